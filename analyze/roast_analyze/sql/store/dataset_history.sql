-- Needs: datasets, runs
CREATE VIEW dataset_history AS
SELECT
    datasets.dataset,
    row_number() OVER (PARTITION BY datasets.dataset ORDER BY runs.start_t, trace_id)
        AS run_number,
    runs.start_t,
    runs.program,
    datasets.files,
    datasets.chunks,
    datasets.chunk_attempts,
    datasets.failed_attempts,
    datasets.events,
    datasets.bytes_read,
    datasets.compute_seconds,
    datasets.kept_seconds,
    datasets.compute_seconds / nullif(datasets.events, 0) AS seconds_per_event,
    datasets.bytes_per_event,
    datasets.compute_share,
    datasets.trace_id
FROM datasets
INNER JOIN runs USING (trace_id)
ORDER BY datasets.dataset, run_number;

COMMENT ON VIEW dataset_history IS 'Datasets over time. One row per dataset and run.';
COMMENT ON COLUMN dataset_history.dataset IS 'Dataset.';
COMMENT ON COLUMN dataset_history.run_number IS 'Number of the run among those that read the dataset, from 1.';
COMMENT ON COLUMN dataset_history.start_t IS 'Start of the run, in seconds since the epoch.';
COMMENT ON COLUMN dataset_history.program IS 'Program of the run.';
COMMENT ON COLUMN dataset_history.files IS 'Files of the dataset in the run, as in datasets.';
COMMENT ON COLUMN dataset_history.chunks IS 'Chunks with a result.';
COMMENT ON COLUMN dataset_history.chunk_attempts IS 'Attempts at chunks.';
COMMENT ON COLUMN dataset_history.failed_attempts IS 'Failed attempts, as in datasets.';
COMMENT ON COLUMN dataset_history.events IS 'Events of chunks with a result.';
COMMENT ON COLUMN dataset_history.bytes_read IS 'Bytes that chunks read.';
COMMENT ON COLUMN dataset_history.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN dataset_history.kept_seconds IS 'Compute time of attempts whose result was kept.';
COMMENT ON COLUMN dataset_history.seconds_per_event IS 'compute_seconds / events.';
COMMENT ON COLUMN dataset_history.bytes_per_event IS 'bytes_read / events.';
COMMENT ON COLUMN dataset_history.compute_share IS 'Share of the compute time of all chunks of the run.';
COMMENT ON COLUMN dataset_history.trace_id IS 'ID of the trace.';
