-- Needs: nothing
-- The sum of what is known: of nothing it is 0, of nothing known it is null.
CREATE MACRO _sum_or_zero(list) AS CASE WHEN len(list) = 0 THEN 0 ELSE list_sum(list) END;
