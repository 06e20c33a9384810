-- Needs: _chunk_reads, _chunks
-- Rows of chunk_branches in any order: sorting takes longer than summing.
CREATE VIEW _chunk_branches AS
SELECT * EXCLUDE (read), unnest(read)
FROM (
    SELECT
        chunk.key,
        chunk.attempt,
        chunk.dataset,
        chunk.filename,
        chunk.treename,
        chunk.entry_start,
        chunk.entry_stop,
        chunk.worker,
        chunk.outcome,
        chunk.run_id,
        chunk.trace_id,
        chunk.seq,
        chunk.start_t,
        chunk.part,
        unnest(record.measured.branches) AS read
    FROM _chunks AS chunk
    INNER JOIN _chunk_reads AS reading USING (measured)
    INNER JOIN raw.chunk AS record ON record.rowid = reading.record
);
