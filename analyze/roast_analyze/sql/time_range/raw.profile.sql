-- Needs: _time_range
-- A profiling cycle belongs to the range if its middle does.
CREATE VIEW raw.profile AS
SELECT
    record.rowid,
    record.* REPLACE (
        CASE WHEN record.tree IS NOT NULL THEN struct_pack(
            frames := record.tree.frames,
            parents := record.tree.parents,
            node_frames := record.tree.node_frames,
            line_numbers := record.tree.line_numbers,
            calls := record.tree.calls,
            slices := list_filter(
                record.tree.slices,
                lambda cycle: coalesce((cycle.start_t + cycle.stop_t) / 2, record.t) >= from_t
                AND coalesce((cycle.start_t + cycle.stop_t) / 2, record.t) < until_t
            )
        ) END AS tree
    )
FROM trace.raw.profile AS record
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE coalesce(record.start_t, record.t) < until_t AND coalesce(record.stop_t, record.t) >= from_t;
