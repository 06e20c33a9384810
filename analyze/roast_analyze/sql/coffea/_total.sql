-- Needs: nothing
-- The sum of what is known: of nothing it is 0, of nothing known it is null.
CREATE MACRO _total(list) AS CASE WHEN len(list) = 0 THEN 0 ELSE list_sum(list) END;
