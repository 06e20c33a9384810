-- Needs: nothing
-- Clip the phases of an attempt to a range; phases outside take no time.
CREATE MACRO _clip_phases(startstops, from_t, until_t) AS list_transform(
    -- least() and greatest() ignore nulls.
    list_filter(startstops, lambda part: part.start IS NOT NULL AND part.stop IS NOT NULL),
    lambda part: struct_pack(
        action := part.action,
        start := least(greatest(part.start, from_t), until_t),
        stop := least(greatest(part.stop, from_t), until_t)
    )
);
