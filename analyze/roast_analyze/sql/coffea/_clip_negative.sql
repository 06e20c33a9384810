-- Needs: nothing
-- Negative durations come from clock differences or corrections, and count as 0. greatest()
-- would turn null into 0.
CREATE MACRO _clip_negative(seconds) AS CASE WHEN seconds < 0 THEN 0 ELSE seconds END;
