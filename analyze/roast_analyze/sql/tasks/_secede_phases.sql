-- Needs: nothing
-- Divide the computation of an attempt that seceded: from then on it held no thread of the worker, and
-- computed or waited.
CREATE MACRO _secede_phases(startstops, seceded_t) AS list_concat(
    list_transform(
        startstops,
        lambda part: if(
            part.action = 'compute',
            struct_update(part, stop := greatest(least(part.stop, seceded_t), part.start)),
            part
        )
    ),
    list_transform(
        list_filter(startstops, lambda part: part.action = 'compute' AND part.stop > seceded_t),
        lambda part: struct_update(
            part, action := 'seceded', start := greatest(part.start, seceded_t)
        )
    )
);
