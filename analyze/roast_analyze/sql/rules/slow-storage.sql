-- Slow reads from storage.
-- The rate of a server, and the share of opening and reading, are medians over its files, so that
-- one slow file does not count for its server. The rate is compared with that of the fastest other
-- server, or of local files, which are nearly always faster. Hosts are compared if their workers read
-- from the same server, or local files. A single server is slow if reading dominates, at a low rate
-- that latency does not explain: requests are large, or reading takes longer than opening, which has as
-- many requests, or both take longer for each request than the latency between continents. The cost
-- excludes repeated reads of the same baskets (rule repeated-baskets).
-- Records: chunk
-- Applies: EXISTS (FROM _chunks WHERE bytes_read > 0 AND NOT is_warming_up)
-- Source: recorded bytes, requests and times of chunks
-- Documentation: https://uproot.readthedocs.io/en/latest/basic.html#opening-a-file
-- $min_ratio = 3: rate of the fastest server, or of local files, relative to this one
-- $min_share = 0.15: opening and reading relative to the compute time of the server's chunks
-- $min_single_share = 0.4: the same, if there is nothing to compare with but local files
-- $max_rate = 5e6: rate in bytes per second and thread, below which reading is slow, if there is nothing to compare with
-- $min_request_bytes = 100000: mean size of requests, if there is nothing to compare with
-- $min_read_ratio = 1.5: otherwise, reading relative to opening
-- $min_request_seconds = 0.1: or mean duration of requests, if reading takes at least half as long as opening
-- $repeated_ratio = 2.5: how often baskets are read, from which repeated reads are excluded
-- $least_saved = 0.7: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
WITH reads AS (
    SELECT
        chunk.trace_id,
        nullif(regexp_extract(chunk.filename, '^\w+://([^/]+)', 1), '') AS server,
        workers.host,
        chunk.filename,
        chunk.bytes_read,
        chunk.requests,
        chunk.compute_seconds,
        chunk.open_seconds,
        greatest(coalesce(chunk.read_seconds, 0) - coalesce(chunk.decompress_seconds, 0), 0)
            AS read_seconds,
        least(coalesce(chunk.open_seconds, 0) + read_seconds, chunk.compute_seconds) AS io_seconds
    FROM _chunks AS chunk
    LEFT JOIN _workers AS workers USING (process)
    WHERE chunk.bytes_read > 0 AND NOT chunk.is_warming_up
),
-- Places are servers, and hosts of workers for each server.
by_place AS (
    -- Local files have no place here.
    SELECT *, server AS place, true AS is_server, NULL AS origin FROM reads
    UNION ALL
    SELECT *, host AS place, false AS is_server, server AS origin FROM reads WHERE host IS NOT NULL
),
by_file AS (
    SELECT
        trace_id,
        place,
        is_server,
        origin,
        sum(bytes_read) / nullif(sum(io_seconds), 0) AS rate,
        sum(bytes_read) AS nbytes,
        sum(requests) AS requests,
        sum(open_seconds) AS open_seconds,
        sum(read_seconds) AS read_seconds,
        sum(io_seconds) AS io_seconds,
        sum(compute_seconds) AS compute_seconds
    FROM by_place
    GROUP BY trace_id, place, is_server, origin, filename
),
places AS (
    SELECT
        trace_id,
        place,
        is_server,
        origin,
        median(rate) AS rate,
        median(io_seconds / compute_seconds) AS share,
        sum(nbytes) AS nbytes,
        sum(nbytes) / nullif(sum(requests), 0) AS request_bytes,
        sum(io_seconds) / nullif(sum(requests), 0) AS request_seconds,
        sum(read_seconds) / nullif(sum(open_seconds), 0) AS read_ratio,
        sum(io_seconds) AS io_seconds,
        sum(compute_seconds) AS compute_seconds
    FROM by_file
    GROUP BY ALL
),
compared AS (
    SELECT
        *,
        max(rate) OVER same AS best_rate,
        nullif(arg_max(coalesce(place, ''), rate) OVER same, '') AS best_place,
        count(place) OVER same AS places
    FROM places
    WINDOW same AS (PARTITION BY trace_id, is_server, origin)
),
slow AS (
    SELECT
        *,
        best_rate >= $min_ratio * rate
            AND share >= CASE WHEN best_place IS NULL THEN $min_single_share ELSE $min_share END
            AS is_slower,
        io_seconds * (1 - rate / CASE WHEN is_slower THEN best_rate ELSE $max_rate END)
            / CASE
                WHEN NOT is_slower AND baskets.ratio >= $repeated_ratio THEN baskets.ratio
                ELSE 1
            END AS excess_seconds
    FROM compared
    LEFT JOIN (SELECT trace_id, max(ratio) AS ratio FROM _basket_reads GROUP BY trace_id) AS baskets USING (trace_id)
    WHERE place IS NOT NULL AND (is_slower OR (
        places = 1
        -- Local reads are slow on a busy machine, too.
        AND is_server
        -- If workers of another host read from this server fast, their host is the cause.
        AND NOT EXISTS (
            FROM compared AS host
            WHERE host.trace_id = compared.trace_id
                AND host.origin = compared.place
                AND host.best_rate >= $min_ratio * host.rate
        )
        AND rate < $max_rate
        AND share >= $min_single_share
        AND (
            request_bytes >= $min_request_bytes
            OR read_ratio >= $min_read_ratio
            OR (request_seconds >= $min_request_seconds AND read_ratio >= 0.5)
        )
    ))
)
SELECT
    place AS entity,
    CASE
        WHEN is_slower THEN 'high'
        WHEN request_seconds >= $min_request_seconds THEN 'medium'
        ELSE 'low'
    END AS confidence,
    CASE
        WHEN is_server THEN format('Files of {} are read at {}/s per thread', place, _byte_size(rate))
        ELSE concat(
            format('Workers on {} read ', place),
            coalesce(format('files of {}', origin), 'local files'),
            format(' at {}/s per thread', _byte_size(rate))
        )
    END
    || CASE
        WHEN is_slower
            THEN format(
                ', {} at {}/s',
                CASE
                    WHEN best_place IS NULL THEN 'local files'
                    WHEN is_server THEN 'those of ' || best_place
                    ELSE 'those on ' || best_place
                END,
                _byte_size(best_rate)
            )
        WHEN request_seconds >= $min_request_seconds
            THEN format(', with {:.2g} s for each request', request_seconds)
        ELSE ''
    END
    || format('; opening and reading take {:.0f} % of the time of their chunks.', 100 * io_seconds / slow.compute_seconds)
        AS sentence,
    excess_seconds AS core_seconds,
    $least_saved * excess_seconds / cluster.nthreads AS wall_seconds_min,
    -- Workers of a slow host end last, too.
    CASE
        WHEN is_server THEN 1.2 * excess_seconds
        ELSE 1.4 * (excess_seconds + coalesce(idle.seconds, 0))
    END / cluster.mean_nthreads AS wall_seconds_max,
    CASE
        WHEN is_slower AND origin IS NOT NULL
            THEN format('Check the network of host {}, or process files of {} on other hosts.', place, origin)
        WHEN is_slower AND best_place IS NOT NULL
            THEN format('Read these {} from {}, or copy the files there.', _byte_size(nbytes), best_place)
        ELSE 'Copy the files to storage near the workers, or read them through a cache.'
    END AS change,
    'SELECT regexp_extract(filename, ''^\w+://([^/]+)'', 1) AS server, host,'
    ' sum(chunks.bytes_read) / sum(open_seconds + read_seconds) AS bytes_per_second'
    ' FROM chunks INNER JOIN (SELECT DISTINCT trace_id, worker, host FROM workers)'
    ' USING (trace_id, worker) GROUP BY ALL' AS evidence,
    slow.trace_id
FROM slow
INNER JOIN _chunk_threads AS cluster USING (trace_id)
LEFT JOIN (
    SELECT trace_id, sum(tail_seconds + imbalance_seconds) AS seconds
    FROM _bucket_uses
    GROUP BY trace_id
) AS idle USING (trace_id);
