-- Needs: nothing
-- A time that is less than nothing because clocks differ, or one was put back, is none; greatest() passes over null.
CREATE MACRO _clip_negative(seconds) AS CASE WHEN seconds < 0 THEN 0 ELSE seconds END;
