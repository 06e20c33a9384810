-- Needs: nothing
-- Losses concern the whole trace.
CREATE VIEW loss AS FROM trace.loss;
