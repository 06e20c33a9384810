-- Needs: _clip_negative
-- Time of the parts whose action begins so: null without any part, 0 without such a part.
-- A part that ended before it began took no time: a clock was put back meanwhile.
CREATE MACRO _phase_seconds(startstops, action_prefix) AS CASE
    WHEN len(startstops) > 0 THEN coalesce(
        list_sum(list_transform(
            list_filter(startstops, lambda part: starts_with(part.action, action_prefix)),
            lambda part: _clip_negative(part.stop - part.start)
        )),
        0
    )
END;
