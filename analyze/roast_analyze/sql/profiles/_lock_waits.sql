-- Needs: _damaged_profiles, _is_lock_wait
-- Sampled time of task threads that were acquiring a lock, by the outermost function that acquires it.
-- Records without such a function are skipped early.
CREATE VIEW _lock_waits AS
WITH RECURSIVE trees AS MATERIALIZED (
    SELECT
        rowid AS record,
        trace_id,
        worker,
        prefix,
        interval_seconds,
        tree,
        list_transform(tree.frames, lambda frame: _is_lock_wait(frame)) AS waits
    FROM raw.profile
    WHERE worker IS NOT NULL
        AND rowid NOT IN (SELECT record FROM _damaged_profiles)
        AND list_bool_or(list_transform(tree.frames, lambda frame: _is_lock_wait(frame)))
),
nodes AS MATERIALIZED (
    SELECT
        record,
        waits,
        unnest(range(len(tree.parents))) AS node,
        unnest(tree.parents) AS parent,
        unnest(tree.node_frames) AS frame
    FROM trees
),
paths AS (
    SELECT record, node, NULL::BIGINT AS caller, frame, false AS is_wait, 0 AS depth
    FROM nodes
    WHERE node = 0
    UNION ALL
    SELECT nodes.record, nodes.node, paths.frame, nodes.frame, nodes.waits[nodes.frame + 1], depth + 1
    FROM paths
    INNER JOIN nodes ON paths.record = nodes.record AND paths.node = nodes.parent
    WHERE NOT paths.is_wait AND depth < 400
),
slices AS (
    SELECT record, unnest(tree.slices) AS slice FROM trees
),
counts AS (
    SELECT
        record,
        unnest(slice.nodes) AS node,
        unnest(slice.counts) AS samples,
        unnest(slice.innermost) AS innermost
    FROM slices
)
SELECT
    trees.trace_id,
    trees.worker,
    trees.prefix,
    trees.tree.frames[paths.frame + 1] AS frame,
    trees.tree.frames[paths.caller + 1] AS caller,
    sum((counts.samples + coalesce(counts.innermost, 0)) * trees.interval_seconds) AS seconds
FROM paths
INNER JOIN trees USING (record)
INNER JOIN counts USING (record, node)
WHERE paths.is_wait
GROUP BY ALL;
