-- Needs: _io_jobs, _io_runs
-- Offset of the clock of each log, from -1 s to 1 s (old versions of Darshan record whole
-- seconds). Score of an offset: how many of at most 300 calls lie within an attempt, plus how many
-- attempts contain a call. Offsets that score at least 95 % of the best are plausible; of several
-- ranges, all from the one nearest to zero to the one with the best score.
CREATE VIEW _io_clocks AS
WITH extents AS (
    SELECT trace_id, worker, min(start_t) AS start_t, max(stop_t) AS stop_t
    FROM _io_runs
    GROUP BY trace_id, worker
),
calls AS (
    SELECT
        io.rowid AS call,
        io.source,
        io.trace_id,
        jobs.worker,
        io.start_t,
        io.stop_t,
        row_number() OVER (PARTITION BY io.trace_id, io.source ORDER BY io.rowid) - 1 AS n,
        count(*) OVER (PARTITION BY io.trace_id, io.source) AS calls
    FROM raw.io_segment AS io
    INNER JOIN _io_jobs AS jobs USING (trace_id, source)
    INNER JOIN extents ON extents.trace_id = io.trace_id AND extents.worker = jobs.worker
    WHERE io.start_t <= extents.stop_t + 1 AND io.stop_t >= extents.start_t - 1
),
fits AS (
    SELECT
        calls.trace_id,
        calls.source,
        call,
        run.seq AS run,
        greatest(run.start_t - calls.start_t, -1) AS least_offset,
        least(run.stop_t - calls.stop_t, 1) AS most_offset
    FROM calls
    INNER JOIN _io_runs AS run
        ON run.trace_id = calls.trace_id
        AND run.worker = calls.worker
        AND run.start_t - calls.start_t <= 1
        AND run.stop_t - calls.stop_t >= -1
        AND run.start_t - calls.start_t <= run.stop_t - calls.stop_t
    WHERE n % ceil(calls / 300)::BIGINT = 0
),
items AS (
    SELECT trace_id, source, 'call' AS item, call AS number, least_offset, most_offset FROM fits
    UNION ALL
    SELECT trace_id, source, 'run', run, least_offset, most_offset FROM fits
),
-- An item counts once, even if several of its ranges overlap.
begun AS (
    SELECT
        *,
        least_offset > coalesce(
            max(most_offset) OVER (
                PARTITION BY trace_id, source, item, number
                ORDER BY least_offset, most_offset
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            -2
        ) AS begins
    FROM items
),
numbered AS (
    SELECT
        *,
        count_if(begins) OVER (
            PARTITION BY trace_id, source, item, number
            ORDER BY least_offset, most_offset
            ROWS UNBOUNDED PRECEDING
        ) AS part
    FROM begun
),
ranges AS (
    SELECT trace_id, source, min(least_offset) AS least_offset, max(most_offset) AS most_offset
    FROM numbered
    GROUP BY trace_id, source, item, number, part
),
steps AS (
    SELECT trace_id, source, least_offset AS from_offset, 1 AS change FROM ranges
    UNION ALL
    SELECT trace_id, source, most_offset, -1 FROM ranges
),
scores AS (
    SELECT
        trace_id,
        source,
        from_offset,
        lead(from_offset) OVER position AS until_offset,
        sum(change) OVER (position ROWS UNBOUNDED PRECEDING) AS score,
        row_number() OVER position AS n
    FROM steps
    WINDOW position AS (PARTITION BY trace_id, source ORDER BY from_offset, change DESC)
),
plausible AS (
    SELECT
        *,
        n - row_number() OVER (PARTITION BY trace_id, source ORDER BY n) AS island
    FROM (
        FROM scores
        QUALIFY score >= 0.95 * max(score) OVER (PARTITION BY trace_id, source)
    )
),
islands AS (
    SELECT
        trace_id,
        source,
        min(from_offset) AS least_offset,
        max(until_offset) AS most_offset,
        max(score) AS score
    FROM plausible
    GROUP BY trace_id, source, island
)
-- Dask's delay varies by some milliseconds between heartbeats, whatever the score.
SELECT
    trace_id,
    source,
    least(best.least_offset, near.least_offset) - 0.002 AS least_offset,
    greatest(best.most_offset, near.most_offset) + 0.002 AS most_offset
FROM (
    SELECT
        trace_id,
        source,
        first(range ORDER BY score DESC, distance, range.least_offset) AS best,
        first(range ORDER BY distance, range.least_offset) AS near
    FROM (
        SELECT
            trace_id,
            source,
            score,
            greatest(least_offset, -most_offset, 0) AS distance,
            {least_offset: least_offset, most_offset: most_offset} AS range
        FROM islands
    )
    GROUP BY trace_id, source
);
