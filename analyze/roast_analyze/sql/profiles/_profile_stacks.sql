-- Needs: _function_stacks, _profile_samples
-- Rows of profile_stacks in any order: sorting takes more memory than everything else.
CREATE VIEW _profile_stacks AS
WITH labelled AS (
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
        trace_id,
        record
    FROM raw.profile AS profile
    INNER JOIN _profile_samples ON profile.rowid = record
),
found AS (
    SELECT * EXCLUDE (stacks), unnest(stacks) AS it, unnest(range(len(stacks))) AS place
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
    trace_id,
    record,
    place
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
    trace_id,
    NULL,
    NULL
FROM _function_stacks;
