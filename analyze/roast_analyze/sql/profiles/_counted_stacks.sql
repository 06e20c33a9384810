-- Needs: _damaged_profiles
-- Dask counts a sample in every function of a stack except the innermost one. The recorder
-- adds which one was innermost, except in the profiling cycle in which recording began. In that
-- cycle the count of a node minus those of its children (its excess) are samples in which one
-- of these children was innermost:
--
-- * a single child gets them all;
-- * with several children, a child with count 0 was innermost at least once: that sample is
--   certain, and the rest of the excess is ambiguous;
-- * without children they belong to the node itself, which was counted although it was
--   innermost, as in low-level profiling.
--
-- The scheduler's counts include the innermost function, so there an excess belongs to the node.
--
-- Paths are lists of node numbers until the last step, which processes one record at a time:
-- joining the large tree of a record would copy it into every row.
CREATE VIEW _counted_stacks AS
WITH RECURSIVE nodes AS MATERIALIZED (
    SELECT
        profile.rowid AS record,
        unnest(range(len(tree.parents))) AS node,
        unnest(tree.parents) AS parent
    FROM raw.profile AS profile
    WHERE profile.rowid NOT IN (SELECT record FROM _damaged_profiles)
),
paths AS (
    SELECT record, node, []::BIGINT[] AS path
    FROM nodes
    WHERE node = 0
    UNION ALL
    SELECT nodes.record, nodes.node, list_append(paths.path, nodes.node + 1)
    FROM paths
    INNER JOIN nodes ON paths.record = nodes.record AND paths.node = nodes.parent
    -- Dask limits stacks to 100 frames. A malformed tree must not exhaust the memory.
    WHERE len(paths.path) < 400
),
slices AS (
    SELECT
        profile.rowid AS record,
        worker IS NULL AS of_scheduler,
        tree.parents AS parents,
        unnest(range(len(tree.slices))) + 1 AS slice,
        unnest(tree.slices) AS cycle
    FROM raw.profile AS profile
    WHERE profile.rowid NOT IN (SELECT record FROM _damaged_profiles)
),
counts AS (
    SELECT
        record,
        of_scheduler,
        slice,
        unnest(cycle.nodes) AS node,
        unnest(list_select(parents, list_transform(cycle.nodes, lambda node: node + 1))) AS parent,
        unnest(cycle.counts) AS samples,
        unnest(cycle.innermost) AS innermost
    FROM slices
),
children AS (
    SELECT
        record,
        slice,
        parent AS node,
        count(*) AS children,
        count(*) FILTER (samples = 0) AS uncounted,
        try_cast(sum(samples) AS BIGINT) AS samples
    FROM counts
    GROUP BY record, slice, parent
),
excesses AS (
    SELECT
        counts.record,
        of_scheduler,
        slice,
        node,
        parent,
        counts.samples,
        innermost,
        greatest(counts.samples - coalesce(children.samples, 0), 0) AS excess,
        CASE WHEN of_scheduler THEN 0 ELSE coalesce(children.children, 0) END AS children,
        CASE WHEN uncounted <= excess THEN uncounted ELSE 0 END AS certain
    FROM counts
    LEFT JOIN children USING (record, slice, node)
),
decided AS (
    SELECT
        callee.record,
        callee.slice,
        callee.node,
        CASE
            WHEN callee.innermost IS NOT NULL THEN callee.innermost
            ELSE CASE WHEN callee.children = 0 THEN callee.excess ELSE 0 END
                + CASE
                    WHEN caller.children = 1 THEN caller.excess
                    WHEN caller.children > 1 AND callee.samples = 0 THEN least(caller.certain, 1)
                    ELSE 0
                END
        END AS samples,
        CASE
            WHEN callee.innermost IS NULL AND callee.children > 1
                THEN callee.excess - callee.certain
            ELSE 0
        END AS undecided,
        callee.excess AS counted
    FROM excesses AS callee
    LEFT JOIN excesses AS caller
        ON callee.record = caller.record
        AND callee.slice = caller.slice
        AND callee.parent = caller.node
)
SELECT
    record,
    list({
        slice: slice, path: path, samples: samples, undecided: undecided, counted: counted
    } ORDER BY slice, path) AS stacks
FROM decided
INNER JOIN paths USING (record, node)
WHERE samples > 0 OR undecided > 0 OR counted > 0
GROUP BY record;
