-- Needs: nothing
-- Advice for tasks that rechunk arrays, in each rule that has one: programs also rechunk without asking for it.
CREATE MACRO _rechunking_hint(prefix) AS CASE
    WHEN regexp_matches(prefix, '^rechunk(-|$)')
        THEN ' Give arrays that are combined the same chunks: where they differ, Dask splits all of them.'
    ELSE ''
END;
