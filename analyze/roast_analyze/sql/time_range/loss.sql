-- Needs: nothing
-- What the trace lacks, it lacks whatever is looked at.
CREATE VIEW loss AS FROM trace.loss;
