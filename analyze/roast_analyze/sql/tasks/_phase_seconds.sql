-- Needs: _clip_negative
-- Total time of phases whose action has a prefix: null without any phase, 0 without a matching
-- one. Negative durations (clock corrections) count as 0.
CREATE MACRO _phase_seconds(startstops, action_prefix) AS CASE
    WHEN len(startstops) > 0 THEN coalesce(
        list_sum(list_transform(
            list_filter(startstops, lambda part: starts_with(part.action, action_prefix)),
            lambda part: _clip_negative(part.stop - part.start)
        )),
        0
    )
END;
