-- Needs: nothing
-- Sum of the known values of a list: 0 if the list is empty, null if all values are null.
CREATE MACRO _sum_or_zero(list) AS CASE WHEN len(list) = 0 THEN 0 ELSE list_sum(list) END;
