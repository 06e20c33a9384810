-- Needs: _damaged_profiles, _is_lock_wait
-- Sampled time of task threads that were acquiring a lock, by the outermost function that acquires it, and
-- whether it was acquiring one that all workers share, in this function or within it.
-- Records without such a function are skipped early.
CREATE VIEW _lock_waits AS
WITH RECURSIVE trees AS MATERIALIZED (
    SELECT rowid AS record, trace_id, worker, prefix, interval_seconds, tree
    FROM raw.profile
    WHERE worker IS NOT NULL
        AND rowid NOT IN (SELECT record FROM _damaged_profiles)
        AND list_bool_or(list_transform(tree.frames, lambda frame: _is_lock_wait(frame)))
),
-- Tables of their own: a join would copy the lists of a record into each of its rows.
frames AS MATERIALIZED (
    SELECT
        *,
        -- 1 for a lock, 2 for one of the cluster.
        _is_lock_wait(place)::TINYINT * (1 + _is_cluster_lock(place.filename)::TINYINT) AS lock
    FROM (SELECT record, unnest(range(len(tree.frames))) AS frame, unnest(tree.frames) AS place FROM trees)
),
nodes AS MATERIALIZED (
    SELECT node.record, node.node, node.parent, node.frame, coalesce(frames.lock, 0) AS lock
    FROM (
        SELECT
            record,
            unnest(range(len(tree.parents))) AS node,
            unnest(tree.parents) AS parent,
            unnest(tree.node_frames) AS frame
        FROM trees
    ) AS node
    LEFT JOIN frames USING (record, frame)
),
paths AS (
    -- The frames are those of the outermost lock, once there is one.
    SELECT record, node, NULL::BIGINT AS caller, frame, 0 AS before, 0 AS lock, 0 AS depth
    FROM nodes
    WHERE node = 0
    UNION ALL
    SELECT
        nodes.record,
        nodes.node,
        if(paths.lock > 0, paths.caller, paths.frame),
        if(paths.lock > 0, paths.frame, nodes.frame),
        paths.lock,
        greatest(paths.lock, nodes.lock),
        depth + 1
    FROM paths
    INNER JOIN nodes ON paths.record = nodes.record AND paths.node = nodes.parent
    WHERE paths.lock < 2 AND depth < 400
),
-- Time in a lock of the cluster within another lock is no longer that of the other one.
entered AS (
    SELECT record, node, caller, frame, lock = 2 AS is_shared, 1 AS sign FROM paths WHERE lock > before
    UNION ALL
    SELECT record, node, caller, frame, false, -1 FROM paths WHERE lock > before AND before = 1
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
    frames.place AS frame,
    callers.place AS caller,
    is_shared,
    sum(sign * (counts.samples + coalesce(counts.innermost, 0)) * trees.interval_seconds) AS seconds
FROM entered
INNER JOIN counts USING (record, node)
INNER JOIN (SELECT * EXCLUDE (tree) FROM trees) AS trees USING (record)
LEFT JOIN frames USING (record, frame)
LEFT JOIN frames AS callers ON entered.record = callers.record AND entered.caller = callers.frame
GROUP BY ALL
HAVING seconds > 1e-6;
