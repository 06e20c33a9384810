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
        sum(bytes_read)::BIGINT AS bytes_read,
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

COMMENT ON VIEW section_totals IS 'Totals by named part: one row per dataset and name, the costliest first. Parts can lie in each other, so that they need not add up. Empty if nothing was named.';
COMMENT ON COLUMN section_totals.dataset IS 'Dataset of the chunks; null for other tasks.';
COMMENT ON COLUMN section_totals.name IS 'Name that the user gave.';
COMMENT ON COLUMN section_totals.executions IS 'How often it was passed through.';
COMMENT ON COLUMN section_totals.attempts IS 'Attempts at tasks that passed through it.';
COMMENT ON COLUMN section_totals.failures IS 'How often an exception left it.';
COMMENT ON COLUMN section_totals.seconds IS 'Wall time of all executions.';
COMMENT ON COLUMN section_totals.mean_seconds IS 'Mean wall time of a pass.';
COMMENT ON COLUMN section_totals.median_seconds IS 'Median wall time of a pass.';
COMMENT ON COLUMN section_totals.max_seconds IS 'Longest wall time of a pass.';
COMMENT ON COLUMN section_totals.cpu_seconds IS 'CPU time of all executions.';
COMMENT ON COLUMN section_totals.bytes_read IS 'Bytes requested from the source in all executions.';
COMMENT ON COLUMN section_totals.mean_memory_delta_bytes IS 'Memory of the process after minus before, in the mean.';
COMMENT ON COLUMN section_totals.min_memory_delta_bytes IS 'The least of these.';
COMMENT ON COLUMN section_totals.max_memory_delta_bytes IS 'The most of these.';
COMMENT ON COLUMN section_totals.compute_share IS 'seconds, as a part of the computing time of all attempts at chunks of the dataset.';
COMMENT ON COLUMN section_totals.trace_id IS 'Identity of the recording.';
