-- Needs: _coffea_keys
-- Records: chunk
-- Measurement records and the chunk attempt that each belongs to. A dask-awkward task can read
-- several chunks, and one of them several times. A record delivered twice has the same start;
-- the later one counts.
CREATE TABLE _chunk_reads AS
WITH records AS (
    SELECT
        chunk.rowid AS record,
        trace_id,
        key,
        chunk.run_id,
        chunk.dataset,
        chunk.filename,
        chunk.treename,
        chunk.entry_start,
        chunk.entry_stop,
        chunk.start_t
    FROM raw.chunk AS chunk
    SEMI JOIN (FROM _coffea_keys WHERE role = 'chunk') AS chunks USING (trace_id, key)
    WHERE chunk.run_id IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, key, chunk.run_id, dataset, filename, treename, entry_start,
            entry_stop, start_t
        ORDER BY record DESC
    ) = 1
)
SELECT
    record,
    min(record) OVER same_chunk AS measured,
    count(*) OVER same_chunk > 1 AS of_several
FROM records
WINDOW
    same_chunk AS (
        PARTITION BY trace_id, key, run_id, dataset, filename, treename, entry_start, entry_stop
    );
