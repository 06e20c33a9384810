-- Needs: nothing
-- What a key is does not depend on when one looks.
CREATE VIEW _key_summaries AS FROM trace._key_summaries;
