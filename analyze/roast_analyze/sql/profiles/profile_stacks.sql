-- Needs: _function_stacks, _profiles
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
-- Paths are lists of node numbers until the last step, which works record by record: joining
-- the large tree of a record would copy it into every row.
CREATE VIEW profile_stacks AS
WITH RECURSIVE whole AS MATERIALIZED (
    SELECT record FROM _profiles WHERE is_whole
),
nodes AS MATERIALIZED (
    SELECT
        profile.rowid AS record,
        unnest(range(len(tree.parents))) AS node,
        unnest(tree.parents) AS parent
    FROM raw.profile AS profile
    WHERE profile.rowid IN (SELECT record FROM whole)
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
    WHERE profile.rowid IN (SELECT record FROM whole)
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
        sum(samples)::BIGINT AS samples
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
),
by_record AS (
    SELECT
        record,
        list({
            slice: slice, path: path, samples: samples, undecided: undecided, counted: counted
        } ORDER BY slice, path) AS stacks
    FROM decided
    INNER JOIN paths USING (record, node)
    WHERE samples > 0 OR undecided > 0 OR counted > 0
    GROUP BY record
),
labelled AS (
    SELECT
        worker,
        prefix,
        tree.slices AS slices,
        tree.line_numbers AS lines,
        list_transform(tree.node_frames, lambda frame: coalesce(frame + 1, 0)) AS places,
        list_select(tree.frames, places) AS frames,
        list_select(
            list_transform(
                tree.frames,
                lambda frame: coalesce(frame.name, '?') || ' (' || coalesce(frame.filename, '?')
                || coalesce(':' || frame.line_number, '') || ')'
            ),
            places
        ) AS labels,
        stacks,
        server_id,
        interval_seconds,
        trace_id
    FROM (
        -- Sort while a record is a single row.
        SELECT *
        FROM raw.profile AS profile
        INNER JOIN by_record ON profile.rowid = record
        ORDER BY trace_id, record
    )
),
found AS (
    SELECT * EXCLUDE (stacks), unnest(stacks) AS it
    FROM labelled
)
SELECT
    worker,
    prefix,
    slices[it.slice].start_t AS start_t,
    slices[it.slice].stop_t AS stop_t,
    list_select(labels, it.path) AS stack,
    it.samples AS samples,
    (it.samples + it.undecided) * interval_seconds AS seconds,
    it.undecided AS ambiguous_samples,
    it.counted AS counted_samples,
    list_select(frames, it.path) AS frames,
    list_select(lines, it.path) AS lines,
    server_id,
    interval_seconds,
    'dask' AS profiler,
    NULL AS log,
    trace_id
FROM found
UNION ALL
SELECT
    worker,
    NULL,
    NULL,
    NULL,
    stack,
    samples,
    seconds,
    0,
    0,
    frames,
    NULL,
    NULL,
    1e-6,
    'yappi',
    log,
    trace_id
FROM _function_stacks;

COMMENT ON VIEW profile_stacks IS 'Call stacks of statistical profiles, with samples and time. Profiler dask: one row per worker, prefix, profiling cycle and stack; the samples of a stack are those in which its last function was innermost. Dask does not count the innermost function; the recorder adds it, except in the cycle in which the recording began. Samples that cannot be assigned to one function count as ambiguous at the stack of the caller, so that samples and ambiguous samples add up to all samples. Malformed profiles are excluded and listed in loss. Profiler yappi: functions measured by Yappi, with callers as far as they are known (see analyze/README.md). The two profilers cover the same time and must not be added.';
COMMENT ON COLUMN profile_stacks.worker IS 'Worker address. Null for the scheduler''s event loop, and for Yappi data imported without a worker.';
COMMENT ON COLUMN profile_stacks.prefix IS 'Key prefix of the tasks. Null for Yappi.';
COMMENT ON COLUMN profile_stacks.start_t IS 'Start of the profiling cycle, in seconds since the epoch. Null for Yappi.';
COMMENT ON COLUMN profile_stacks.stop_t IS 'End of the profiling cycle, in seconds since the epoch.';
COMMENT ON COLUMN profile_stacks.stack IS 'Functions from outermost to innermost, as name (file:line), with the line at which the function is defined. Empty for ambiguous samples between outermost functions.';
COMMENT ON COLUMN profile_stacks.samples IS 'Samples in which the last function of the stack was innermost. For Yappi, its self time in microseconds, rounded.';
COMMENT ON COLUMN profile_stacks.seconds IS 'Time of the samples and ambiguous samples.';
COMMENT ON COLUMN profile_stacks.ambiguous_samples IS 'Samples in which one of several callees of the last function was innermost, but it is unknown which.';
COMMENT ON COLUMN profile_stacks.counted_samples IS 'Dask''s count of the last function minus the counts of its callees: exclusive samples if Dask counted innermost functions.';
COMMENT ON COLUMN profile_stacks.frames IS 'Functions of the stack as name, filename and line number.';
COMMENT ON COLUMN profile_stacks.lines IS 'Line first sampled in each function, in the same record.';
COMMENT ON COLUMN profile_stacks.server_id IS 'Process identity.';
COMMENT ON COLUMN profile_stacks.interval_seconds IS 'Sampling interval of a thread. For Yappi, one microsecond.';
COMMENT ON COLUMN profile_stacks.profiler IS 'Profiler: dask or yappi.';
COMMENT ON COLUMN profile_stacks.log IS 'File name of the imported Yappi file.';
COMMENT ON COLUMN profile_stacks.trace_id IS 'Trace identity.';
