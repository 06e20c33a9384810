-- Needs: nothing
-- Summaries of keys do not depend on the range.
CREATE VIEW _key_summaries AS FROM trace._key_summaries;
