-- Needs: nothing
-- Records: profile
-- Profile records with a malformed tree. In a correct tree, a parent comes before its children,
-- every node but the root has a function, and each node of a slice exists, occurs once and has its
-- parent in the slice. Sizes are bounded so that sums do not overflow.
CREATE TABLE _damaged_profiles AS
SELECT
    rowid AS record,
    t,
    segment,
    trace_id
FROM raw.profile
WHERE NOT coalesce(
    len(tree.node_frames) = len(tree.parents)
    AND list_count(tree.frames) = len(tree.frames)
    AND list_bool_and(list_transform(
        tree.parents,
        lambda parent, place: CASE
            WHEN place = 1 THEN parent IS NULL
            ELSE coalesce(parent BETWEEN 0 AND place - 2, false)
        END
    ))
    AND list_bool_and(list_transform(
        tree.node_frames,
        lambda frame, place: place = 1
        OR coalesce(frame BETWEEN 0 AND len(tree.frames) - 1, false)
    ))
    AND coalesce(
        list_bool_and(list_transform(
            tree.slices,
            lambda slice: coalesce(
                len(slice.counts) = len(slice.nodes)
                AND list_unique(slice.nodes) = len(slice.nodes)
                AND list_count(slice.counts) = len(slice.counts)
                AND (
                    slice.innermost IS NULL
                    OR (
                        len(slice.innermost) = len(slice.nodes)
                        AND list_count(slice.innermost) = len(slice.innermost)
                        AND list_min(slice.innermost) >= 0
                        AND list_max(slice.innermost) < 1000000000
                    )
                )
                AND coalesce(
                    list_min(slice.nodes) >= 0
                    AND list_max(slice.nodes) < len(tree.parents)
                    AND list_min(slice.counts) >= 0
                    AND list_max(slice.counts) < 1000000000
                    AND list_has_all(
                        slice.nodes,
                        list_filter(
                            list_select(
                                tree.parents,
                                list_transform(slice.nodes, lambda node: coalesce(node + 1, 0))
                            ),
                            lambda parent: parent IS NOT NULL
                        )
                    ),
                    len(slice.nodes) = 0
                ),
                false
            )
        )),
        true
    ),
    false
);
