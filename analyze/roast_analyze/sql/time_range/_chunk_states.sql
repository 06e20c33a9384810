-- Needs: nothing
-- Times outside of the range show that it is between two chunks of the run.
CREATE VIEW _chunk_states AS FROM trace._chunk_states;
