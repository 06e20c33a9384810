-- Needs: nothing
-- Parts of an attempt, cut off where the excerpt begins and ends; what lies outside takes no time.
CREATE MACRO _clip_phases(startstops, from_t, until_t) AS list_transform(
    -- least() and greatest() pass over nulls.
    list_filter(startstops, lambda part: part.start IS NOT NULL AND part.stop IS NOT NULL),
    lambda part: struct_pack(
        action := part.action,
        start := least(greatest(part.start, from_t), until_t),
        stop := least(greatest(part.stop, from_t), until_t)
    )
);
