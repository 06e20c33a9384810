-- Slow decompression.
-- The algorithm is chosen when a file is written. LZMA makes the smallest files and decompresses
-- slowest; ZSTD and LZ4 decompress several times faster. Decompression is measured in wall time. If
-- threads are rarely on the CPU, as on a busy machine, it needs less CPU time, at most that of its chunk:
-- then the lower end of the saving is that of their share of CPU time.
-- Records: chunk
-- Source: recorded decompression time of chunks; speeds as in ROOT's comparison of algorithms
-- Documentation: https://root.cern/blog/root-zstd/
-- $min_read_share = 0.5: share of decompression in the time of reading
-- $min_cpu_share = 0.5: CPU time of threads relative to their compute time, below which confidence is low
-- $lzma_share = 0.9: share of LZMA's decompression time that ZSTD saves
-- $zlib_share = 0.6: share of ZLIB's decompression time that ZSTD saves
-- $least_saved = 0.6: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.3: ratio of the largest saving to the cost; calibrated as well
WITH measured AS (
    SELECT trace_id, sum(cpu_seconds) / nullif(sum(stop_t - start_t), 0) AS cpu_share
    FROM _chunks
    WHERE cpu_seconds IS NOT NULL
    GROUP BY trace_id
),
algorithms AS (
    SELECT
        trace_id,
        -- Of several algorithms, the slowest one counts.
        CASE
            WHEN contains(compression, 'LZMA') THEN 'LZMA'
            WHEN contains(compression, 'ZLIB') THEN 'ZLIB'
        END AS algorithm,
        count(DISTINCT filename) AS files,
        sum(read_seconds) AS read_seconds,
        sum(decompress_seconds) AS decompress_seconds,
        -- least() ignores nulls: CPU time can be unknown.
        sum(least(decompress_seconds, cpu_seconds)) AS cpu_seconds,
        sum(uncompressed_bytes) AS nbytes,
        sum(compressed_bytes) AS packed_bytes
    FROM chunks
    WHERE decompress_seconds IS NOT NULL
    GROUP BY ALL
    HAVING algorithm IS NOT NULL
        AND sum(decompress_seconds) >= $min_read_share * sum(read_seconds)
)
SELECT
    algorithm AS entity,
    CASE WHEN cpu_share < $min_cpu_share THEN 'low' ELSE 'high' END AS confidence,
    format(
        'Decompressing {} takes {:.1f} s, {:.0f} % of the time of reading, at {}/s.', algorithm,
        decompress_seconds, 100 * decompress_seconds / read_seconds, _byte_size(nbytes / decompress_seconds)
    ) || CASE
        WHEN cpu_share < $min_cpu_share THEN format(
            ' Threads were on the CPU for {:.0f} % of the compute time: if they waited for cores, decompression'
            ' itself takes less.', 100 * cpu_share
        )
        ELSE ''
    END AS sentence,
    algorithms.cpu_seconds * CASE algorithm WHEN 'LZMA' THEN $lzma_share ELSE $zlib_share END AS core_seconds,
    $least_saved * core_seconds / cluster.nthreads * CASE WHEN cpu_share < $min_cpu_share THEN cpu_share ELSE 1 END
        AS wall_seconds_min,
    least($most_saved * core_seconds / cluster.mean_nthreads, cluster.wall_seconds) AS wall_seconds_max,
    format(
        'Write {} again with ZSTD (now {}), which decompresses several times faster.',
        CASE files WHEN 1 THEN 'the file' ELSE format('the {} files', files) END, algorithm
    ) AS change,
    'SELECT branch, compressed_bytes, uncompressed_bytes, read_seconds, decompress_seconds FROM branches'
        AS evidence,
    algorithms.trace_id
FROM algorithms
INNER JOIN _chunk_threads AS cluster USING (trace_id)
LEFT JOIN (
    SELECT trace_id, coalesce(measured.cpu_share, tasks.cpu_share) AS cpu_share
    FROM _cpu_shares AS tasks
    FULL JOIN measured USING (trace_id)
) AS shares USING (trace_id)
WHERE decompress_seconds > 0;
