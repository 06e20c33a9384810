-- Needs: nothing
-- Only rows of attempts in the range are joined.
CREATE VIEW _chunk_reads AS FROM trace._chunk_reads;
