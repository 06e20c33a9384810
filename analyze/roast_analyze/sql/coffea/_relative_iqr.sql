-- Needs: nothing
-- How far the middle half of some values lies apart, in units of their median.
CREATE MACRO _relative_iqr(value) AS CASE
    WHEN count(value) > 1
        THEN (quantile_cont(value, 0.75) - quantile_cont(value, 0.25)) / nullif(median(value), 0)
END;
