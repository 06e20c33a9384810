-- Needs: _chunks, sections
CREATE VIEW section_totals AS
WITH computing AS (
    SELECT trace_id, dataset, sum(compute_seconds) AS compute_seconds
    FROM _chunks
    GROUP BY trace_id, dataset
),
totals AS (
    SELECT
        dataset,
        name,
        count(*) AS executions,
        count(DISTINCT (key, run_id)) AS attempts,
        count(exception) AS failures,
        sum(seconds) AS seconds,
        avg(seconds) AS mean_seconds,
        median(seconds) AS median_seconds,
        max(seconds) AS max_seconds,
        sum(cpu_seconds) AS cpu_seconds,
        try_cast(sum(bytes_read) AS BIGINT) AS bytes_read,
        round(avg(memory_delta_bytes))::BIGINT AS mean_memory_delta_bytes,
        min(memory_delta_bytes) AS min_memory_delta_bytes,
        max(memory_delta_bytes) AS max_memory_delta_bytes,
        trace_id
    FROM sections
    GROUP BY trace_id, dataset, name
)
SELECT
    totals.* EXCLUDE (trace_id),
    totals.seconds / nullif(computing.compute_seconds, 0) AS compute_share,
    totals.trace_id
FROM totals
LEFT JOIN computing
    ON totals.trace_id = computing.trace_id
    AND totals.dataset IS NOT DISTINCT FROM computing.dataset
ORDER BY totals.trace_id, totals.seconds DESC NULLS LAST, totals.dataset, totals.name;

COMMENT ON VIEW section_totals IS 'Totals by user-named section. One row per dataset and section, longest first. Sections can be nested, so totals need not add up. Empty if no sections were used.';
COMMENT ON COLUMN section_totals.dataset IS 'Dataset of the chunks. Null for other tasks.';
COMMENT ON COLUMN section_totals.name IS 'Section name.';
COMMENT ON COLUMN section_totals.executions IS 'Number of times the section ran.';
COMMENT ON COLUMN section_totals.attempts IS 'Task attempts that ran the section.';
COMMENT ON COLUMN section_totals.failures IS 'Number of times the section ended with an exception.';
COMMENT ON COLUMN section_totals.seconds IS 'Total wall time.';
COMMENT ON COLUMN section_totals.mean_seconds IS 'Mean wall time of an execution.';
COMMENT ON COLUMN section_totals.median_seconds IS 'Median wall time of an execution.';
COMMENT ON COLUMN section_totals.max_seconds IS 'Maximum wall time of an execution.';
COMMENT ON COLUMN section_totals.cpu_seconds IS 'Total CPU time.';
COMMENT ON COLUMN section_totals.bytes_read IS 'Total bytes requested from the source.';
COMMENT ON COLUMN section_totals.mean_memory_delta_bytes IS 'Mean change of process memory during an execution.';
COMMENT ON COLUMN section_totals.min_memory_delta_bytes IS 'Minimum change of process memory.';
COMMENT ON COLUMN section_totals.max_memory_delta_bytes IS 'Maximum change of process memory.';
COMMENT ON COLUMN section_totals.compute_share IS 'seconds as a share of the compute time of all chunk attempts of the dataset.';
COMMENT ON COLUMN section_totals.trace_id IS 'ID of the trace.';
