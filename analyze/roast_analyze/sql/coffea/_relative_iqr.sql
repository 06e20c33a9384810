-- Needs: nothing
-- Interquartile range divided by the median.
CREATE MACRO _relative_iqr(value) AS CASE
    WHEN count(value) > 1
        THEN (quantile_cont(value, 0.75) - quantile_cont(value, 0.25)) / nullif(median(value), 0)
END;
