"""Rows of the table ``_busy_time``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.algorithms.busy_time import BUSY_TIME, SECEDED, Profiled, busy_time
from roast_analyze.algorithms.outcomes import COMPUTING
from roast_analyze.algorithms.profile_forest import SAMPLES, SLICES, sampled_kinds
from roast_analyze.algorithms.work_kinds import load_kinds
from roast_analyze.open.user_kinds import user_file

if TYPE_CHECKING:
    from roast_analyze.algorithms.work_kinds import Kinds
    from roast_analyze.open.session import Session

#: Least width of a time bucket, because profiling cycles take a second.
_LEAST_SECONDS: Final = 1.0

#: Pairs of a bucket and a process, each of which has several kinds and functions.
_PAIRS: Final = 5000

#: Limits the memory: a record has up to 20,000 nodes, and most have few.
_NODES_PER_QUERY: Final = 1_000_000

_RUNS: Final = """
SELECT trace_id, start_t, width, buckets, count(process)
FROM _core_time_buckets
LEFT JOIN _workers USING (trace_id)
GROUP BY ALL
ORDER BY trace_id
"""

#: Buckets of core_time are numbered, and `per` of them are one.
_COMPUTED: Final = """
SELECT
    process,
    round((t - $start_t) / $width)::BIGINT // $per AS bucket,
    prefix,
    dataset,
    span_id,
    sum(seconds) AS seconds
FROM _core_time
WHERE trace_id = $trace_id AND list_contains($uses, use)
GROUP BY ALL
ORDER BY ALL
"""

#: A record belongs to the process that sent it; the address may have been used again.
_PROFILES: Final = """
SELECT
    coalesce(known.process, address.process) AS process,
    profile.prefix,
    profile.interval_seconds AS interval,
    profile.tree
FROM raw.profile AS profile
LEFT JOIN _workers AS known
    ON profile.trace_id = known.trace_id AND profile.server_id = known.server_id
LEFT JOIN _process_addresses AS address
    ON profile.trace_id = address.trace_id
    AND profile.worker = address.worker
    AND profile.start_t >= address.from_t
    AND profile.start_t < address.until_t
WHERE profile.trace_id = $trace_id
    AND profile.worker IS NOT NULL
    AND coalesce(known.process, address.process) IS NOT NULL
    AND profile.interval_seconds > 0
    AND list_contains($records, profile.rowid)
ORDER BY profile.rowid
"""

_RECORDS: Final = """
SELECT list(rowid ORDER BY rowid)
FROM (
    SELECT rowid, sum(coalesce(len(tree.parents), 0)) OVER (ORDER BY rowid) // $nodes AS part
    FROM raw.profile
    ANTI JOIN _damaged_profiles AS damaged ON rowid = damaged.record
    WHERE trace_id = $trace_id
        AND worker IS NOT NULL
        AND ($prefixes::VARCHAR[] IS NULL OR list_contains($prefixes, prefix))
)
GROUP BY part
ORDER BY part
"""

_CPU: Final = """
SELECT
    coalesce(known.process, address.process) AS process,
    metric.prefix,
    coalesce(sum(delta) FILTER (activity = 'thread-cpu'), 0.0) AS cpu_seconds,
    coalesce(sum(delta) FILTER (activity = 'thread-noncpu'), 0.0) AS noncpu_seconds
FROM _activity_deltas AS metric
LEFT JOIN _workers AS known
    ON metric.trace_id = known.trace_id AND metric.server_id = known.server_id
LEFT JOIN _process_addresses AS address
    ON metric.trace_id = address.trace_id
    AND metric.worker = address.worker
    AND metric.t >= address.from_t
    AND metric.t < address.until_t
WHERE metric.trace_id = $trace_id
    AND metric.context = 'execute'
    AND metric.unit = 'seconds'
    AND metric.activity IN ('thread-cpu', 'thread-noncpu')
    AND metric.delta >= 0
    AND coalesce(known.process, address.process) IS NOT NULL
GROUP BY ALL
ORDER BY ALL
"""

#: Times in which tasks had left the threads of their process.
_SECEDED: Final = """
SELECT process, prefix, start_t - $start_t AS start, stop_t - $start_t AS stop
FROM _seceded_times
WHERE trace_id = $trace_id
ORDER BY ALL
"""

_HAS_SECEDED: Final = """
SELECT count(*) > 0 FROM raw.worker_transition
WHERE finish = 'long-running' AND trace_id = $trace_id
"""

_CHUNKS: Final = """
SELECT
    chunk.process,
    run.prefix,
    chunk.dataset,
    sum(chunk.compute_seconds) AS seconds,
    sum(chunk.decompress_seconds) AS decompress_seconds
FROM _chunks AS chunk
INNER JOIN _task_runs AS run USING (seq)
WHERE chunk.trace_id = $trace_id
    AND chunk.process IS NOT NULL
    AND chunk.decompress_seconds >= 0
    AND chunk.compute_seconds > 0
GROUP BY ALL
ORDER BY ALL
"""

_DATASETS: Final = """
SELECT dataset, bool_or(filename LIKE '%://%' AND filename NOT LIKE 'file://%') AS is_remote
FROM _chunks
WHERE trace_id = $trace_id AND filename IS NOT NULL AND dataset IS NOT NULL
GROUP BY dataset
ORDER BY dataset
"""


def bucket_widths(trace: Session) -> dict[str, float]:
    """Return the width of the time buckets of each trace, in seconds."""
    return {
        trace_id: width * _joined(width, buckets, processes)
        for trace_id, _, width, buckets, processes in trace.rows(_RUNS)
    }


def _joined(width: float, buckets: int, processes: int) -> int:
    """Return the number of buckets of core_time that are one."""
    return max(1, math.ceil(_LEAST_SECONDS / width), math.ceil(buckets * processes / _PAIRS))


def query(trace: Session) -> pl.DataFrame:
    """Return the compute time of all traces by kind of work."""
    kinds = load_kinds(user_file())
    working = frozenset(k for k, category in kinds.categories.items() if category == "working")
    found = []
    for trace_id, start_t, width, buckets, processes in trace.rows(_RUNS):
        per = _joined(width, buckets, processes)
        run = {"trace_id": trace_id}
        computed = trace.query_frame(
            _COMPUTED,
            {**run, "start_t": start_t, "width": width, "per": per, "uses": COMPUTING},
        )
        if computed.is_empty():
            continue
        slices, samples = sampled(trace, trace_id, start_t, kinds)
        spent = busy_time(
            Profiled(
                bucket_seconds=width * per,
                computed=computed,
                slices=slices,
                samples=samples,
                cpu=trace.query_frame(_CPU, run),
                chunks=trace.query_frame(_CHUNKS, run),
                datasets=trace.query_frame(_DATASETS, run),
                working=working,
                seceded=seceded_times(trace, trace_id, start_t),
            )
        )
        found.append(
            spent.with_columns(
                (start_t + pl.col("bucket") * (width * per)).alias("t"),
                pl.col("kind").replace_strict(kinds.categories).alias("category"),
                pl.lit(trace_id).alias("trace_id"),
            ).drop("bucket")
        )
    return pl.concat(found) if found else pl.DataFrame(schema=BUSY_TIME)


def seceded_times(trace: Session, trace_id: str, start_t: float) -> pl.DataFrame:
    """Return process, prefix, start and stop of the times of seceded tasks of a trace."""
    [(has_seceded,)] = trace.rows(_HAS_SECEDED, {"trace_id": trace_id})
    if not has_seceded:
        return pl.DataFrame(schema=SECEDED)
    found = trace.query_frame(_SECEDED, {"trace_id": trace_id, "start_t": start_t})
    return found.select(pl.col(name).cast(kind) for name, kind in SECEDED.items())


def sampled(
    trace: Session,
    trace_id: str,
    start_t: float,
    kinds: Kinds,
    prefixes: list[str] | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the profiling cycles of a trace, or of some prefixes, and samples by kind."""
    run = {"trace_id": trace_id}
    slices, samples = [pl.DataFrame(schema=SLICES)], [pl.DataFrame(schema=SAMPLES)]
    chosen = {**run, "prefixes": prefixes, "nodes": _NODES_PER_QUERY}
    for (records,) in trace.rows(_RECORDS, chosen):
        profiles = trace.query_frame(_PROFILES, {**run, "records": records})
        first = sum(len(before) for before in slices)
        some, of_kinds = sampled_kinds(kinds, profiles, first)
        slices.append(some.with_columns(pl.col("start") - start_t, pl.col("stop") - start_t))
        samples.append(of_kinds)
    return pl.concat(slices), pl.concat(samples)
