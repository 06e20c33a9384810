"""Relations between the views of a trace.

An aggregate is compared with the `GROUP BY` of rows that are computed a second time
(`attempts`, `chunk_attempts`, `processes`, `stays`), of another view, or of the decoded lines
(`records`).
"""

import re
from collections.abc import Iterator

from nightly.chunks import FAILED
from nightly.invariants import Fields, Never, Relation, Same, Total, extracted
from nightly.tasks import PARTS

#: Tables that several relations read.
PREPARE = """
-- The time of the records, from which instants are counted.
CREATE VIEW extents AS
SELECT min(t) AS first_t, max(t) AS last_t, trace_id FROM records GROUP BY ALL;

-- Attempts at tasks, and at chunks without a task. An attempt before the recording counts from
-- its begin.
CREATE VIEW work AS
SELECT attempts.* EXCLUDE trace_id, coalesce(processing_t, first_t) AS begin_t, true AS is_task,
    trace_id
FROM attempts JOIN extents USING (trace_id)
UNION ALL BY NAME
SELECT processing_t, processing_t AS begin_t, end_t, compute_seconds, output_bytes AS nbytes,
    kept, process, false AS is_task, trace_id
FROM chunk_attempts WHERE NOT has_task;

-- Phases of work, states of tasks and presence of processes.
CREATE VIEW intervals AS
SELECT action AS what, 1.0 AS amount, phase.start_t, phase.stop_t, process,
    phase.outcome <> 'memory' AS failed, trace_id
FROM task_phases AS phase JOIN attempts USING (trace_id, key, attempt)
UNION ALL BY NAME
SELECT 'compute' AS what, compute_seconds / nullif(stop_t - start_t, 0) AS amount, start_t,
    stop_t, process, outcome <> 'memory' AS failed, trace_id
FROM chunk_attempts WHERE NOT has_task
UNION ALL BY NAME
SELECT state AS what, 1.0 AS amount, start_t, stop_t, trace_id FROM stays
UNION ALL BY NAME
SELECT 'there' AS what, 1.0 AS amount, start_t, stop_t, process, trace_id FROM processes
UNION ALL BY NAME
SELECT 'thread' AS what, nthreads AS amount, start_t, stop_t, process, trace_id FROM processes;

CREATE TABLE shared AS
SELECT buckets.t, stop - start AS seconds, what, process, failed, trace_id,
    amount * (least(stop_t - first_t, stop) - greatest(start_t - first_t, start)) AS shared
FROM intervals JOIN extents USING (trace_id) JOIN buckets USING (trace_id)
WHERE least(stop_t - first_t, stop) > greatest(start_t - first_t, start);

-- Each span with itself and all spans inside it, and work without a span.
CREATE TABLE nested AS
WITH RECURSIVE spans_there AS (
    SELECT span_id, trace_id FROM spans UNION SELECT parent_id, trace_id FROM spans
    WHERE parent_id IS NOT NULL UNION SELECT span_id, trace_id FROM tasks
    UNION SELECT span_id, trace_id FROM task_runs UNION SELECT span_id, trace_id FROM activities
),
outward AS (
    SELECT span_id, span_id AS inside, trace_id FROM spans_there
    UNION
    SELECT spans.parent_id, inside, trace_id FROM outward JOIN spans USING (trace_id, span_id)
    WHERE spans.parent_id IS NOT NULL
)
FROM outward;

-- What is counted of a span: its tasks, attempts and metrics.
CREATE VIEW of_spans AS
SELECT span_id, 'task' AS what, is_other_span, trace_id FROM tasks
UNION ALL BY NAME
SELECT span_id, 'attempt' AS what, outcome, compute_seconds, transfer_seconds, nbytes,
    processing_t, end_t, trace_id
FROM task_runs
UNION ALL BY NAME
SELECT span_id, 'metric' AS what, seconds, cpu_seconds, noncpu_seconds, trace_id
FROM activities;
"""

ROWS = "count(is_row)"
FAILURES = "count(is_row) FILTER (outcome IN ('erred', 'retried', 'lost'))"
CHUNK_FAILURES = f"count(is_row) FILTER (outcome IN {FAILED})"
OUTCOMES = {
    name: f"count(is_row) FILTER (outcome = '{name}')"
    for name in ("memory", "erred", "retried", "lost", "rescheduled", "cancelled", "unfinished")
}
TIMES = {
    "compute_seconds": "sum(compute_seconds)",
    "mean_compute_seconds": "avg(compute_seconds)",
    "max_compute_seconds": "max(compute_seconds)",
    "output_bytes": "sum(nbytes)",
    **{name: f"sum({name})" for name in PARTS},
}
ATTEMPTS = {
    "task_runs": ROWS, **OUTCOMES, **TIMES, "median_compute_seconds": "median(compute_seconds)",
}  # fmt: skip
EVENTS = (
    "CASE WHEN count(is_row) FILTER (is_first_result) = 0 THEN 0 "
    "ELSE sum(events) FILTER (is_first_result) END"
)
RELATIVE_IQR = (
    "CASE WHEN count(event_seconds) > 1 THEN (quantile_cont(event_seconds, 0.75) "
    "- quantile_cont(event_seconds, 0.25)) / nullif(median(event_seconds), 0) END"
)
BYTES_PER_SECOND = (
    "sum(bytes_read) / nullif(sum(compute_seconds) FILTER (bytes_read IS NOT NULL), 0)"
)
COMPRESSION = "sum(unpacked_bytes) / nullif(sum(packed_bytes), 0)"
CHECKPOINTED = "count(is_row) FILTER (is_first_result AND from_checkpoint)"
RESULT_EVENTS = "sum(events) FILTER (is_first_result)"
#: Time from the first begin to the last end, 0 if it is negative because a clock was set back.
STRETCH = "CASE WHEN max(end_t) < min(begin_t) THEN 0 ELSE max(end_t) - min(begin_t) END"
CORE_SECONDS = "sum(nthreads * greatest(stop_t - start_t, 0))"
SUMMED = (
    "bytes_read", "process_seconds", "open_seconds", "read_seconds", "cpu_seconds",
    "wait_seconds", "compressed_bytes", "uncompressed_bytes",
)  # fmt: skip


def alike(columns: str) -> dict[str, str]:
    """Return columns that have the same name in view and source."""
    return {name: name for name in columns.split()}


def share(column: str) -> str:
    """Return the share of a sum in that of the whole trace."""
    return f"sum({column}) / nullif(sum(sum({column})) OVER (PARTITION BY _trace_id), 0)"


def slowest(column: str) -> str:
    """Return the first by name of those with most time per event."""
    return (
        f"arg_min({column}, (-event_seconds, {column})) "
        f"FILTER (event_seconds IS NOT NULL AND {column} IS NOT NULL)"
    )


#: Columns that datasets and files share.
CHUNKS = {
    "chunks": "count(is_row) FILTER (is_first_result)",
    "chunk_attempts": ROWS,
    "events": EVENTS,
    "compute_seconds": "sum(compute_seconds)",
    "requests": "sum(requests)",
    **{name: f"sum({name})" for name in SUMMED},
    "failed_attempts": CHUNK_FAILURES,
    "bytes_per_second": BYTES_PER_SECOND,
    "compute_share": share("compute_seconds"),
    "median_compute_seconds": "median(compute_seconds) FILTER (outcome = 'memory')",
    "max_compute_seconds": "max(compute_seconds) FILTER (outcome = 'memory')",
    "relative_iqr": RELATIVE_IQR,
    "compression_ratio": COMPRESSION,
    "checkpointed_chunks": CHECKPOINTED,
    "bytes_per_event": "sum(bytes_read) FILTER (is_first_result) / nullif(sum(events) "
    "FILTER (is_first_result AND bytes_read IS NOT NULL), 0)",
}

OF_SPAN = {
    "tasks": "count(is_row) FILTER (what = 'task')",
    "other_span_tasks": "count(is_row) FILTER (is_other_span)",
    "task_runs": "count(is_row) FILTER (what = 'attempt')",
    "failed_attempts": FAILURES,
    "compute_seconds": "sum(compute_seconds)",
    "transfer_seconds": "sum(transfer_seconds)",
    "output_bytes": "sum(nbytes)",
    "metric_seconds": "sum(seconds)",
    "cpu_seconds": "sum(cpu_seconds)",
    "noncpu_seconds": "sum(noncpu_seconds)",
    "first_t": "min(processing_t)",
    "last_t": "max(end_t)",
    "wall_seconds": "max(end_t) - min(processing_t)",
}

#: Columns of activities by activities and unit.
ACTIVITIES = {
    "cpu_seconds": ("thread-cpu",), "noncpu_seconds": ("thread-noncpu",),
    "serialize_seconds": ("serialize",), "deserialize_seconds": ("deserialize",),
    "compress_seconds": ("compress",), "decompress_seconds": ("decompress",),
    "disk_seconds": ("disk-read", "disk-write"), "network_seconds": ("network",),
    "failed_seconds": ("failed", "cancelled"), "memory_read_bytes": ("memory-read",),
    "disk_read_bytes": ("disk-read",), "disk_write_bytes": ("disk-write",),
}  # fmt: skip
METRIC = "worker server_id context span_id prefix"


def activity(column: str, names: tuple[str, ...]) -> str:
    """Return the sum of the metrics of activities."""
    listed = ", ".join(f"'{name}'" for name in names)
    unit = column.rpartition("_")[2]
    return f"sum(value) FILTER (name IN ({listed}) AND unit = '{unit}')"


#: Thread time of a bucket: 0 without workers, null if that of none is known.
THREADS = (
    "CASE WHEN count(*) FILTER (what = 'there') = 0 THEN 0 "
    "ELSE sum(shared) FILTER (what = 'thread') END"
)


def spent(*what: str, failed: bool = False) -> str:
    """Return the time of intervals in a bucket; 0 without any."""
    listed = ", ".join(f"'{name}'" for name in what)
    also = " AND failed" if failed else ""
    return f"coalesce(sum(shared) FILTER (what IN ({listed}){also}), 0)"


def mean(what: str) -> str:
    """Return the mean number of intervals in a bucket."""
    return f"coalesce(sum(shared / seconds) FILTER (what = '{what}'), 0)"


#: An attempt of each process, as the views name the process.
OF_PROCESS = "(SELECT source.* EXCLUDE worker, processes.worker, server_id FROM {} AS source \
JOIN processes USING (trace_id, process))"

RELATIONS: tuple[Relation, ...] = (
    Total("prefixes", "prefix", "task_runs", ATTEMPTS),
    Total("prefixes", "prefix", "tasks", {
        "tasks": ROWS, "roles": "string_agg(DISTINCT role, ', ' ORDER BY role)",
    }),
    Total("task_groups", "task_group", "attempts", ATTEMPTS | {
        "workers": "count(DISTINCT worker)", "first_t": "min(processing_t)",
        "last_t": "max(end_t)", "wall_seconds": "max(end_t) - min(processing_t)",
    }),
    Total("task_groups", "task_group", "tasks", {
        "tasks": ROWS, "submitted_t": "min(submitted_t)",
    }),
    Total("task_groups", "task_group", """(
        SELECT task_group, prefix, trace_id FROM tasks UNION ALL BY NAME FROM attempts
    )""", {"prefix": "first(prefix)"}),
    Total("task_roles", "role", "task_runs", TIMES | {
        "task_runs": ROWS, "failed_attempts": FAILURES,
        "compute_share": share("compute_seconds"),
        "first_t": "min(processing_t)", "last_t": "max(end_t)",
    }),
    Total("task_roles", "role", "tasks", {
        "tasks": ROWS,
        "prefixes": "string_agg(DISTINCT prefix, ', ' ORDER BY prefix) "
                    "FILTER (role IS NOT NULL)",
    }),
    Total("stragglers", "key attempt", """(
        SELECT *, median(compute_seconds) FILTER (outcome = 'memory') OVER of AS middle,
            count(compute_seconds) FILTER (outcome = 'memory') OVER of AS enough
        FROM task_runs WHERE prefix IS NOT NULL
        WINDOW of AS (PARTITION BY trace_id, prefix)
        QUALIFY enough >= 10 AND middle < compute_seconds AND compute_seconds >= 2 * middle
    )""", {
        "prefix_runs": "any_value(enough)", "median_seconds": "any_value(middle)",
        "excess_seconds": "any_value(compute_seconds - middle)",
        "relative_duration": "any_value(compute_seconds / nullif(middle, 0))",
        **{name: f"any_value({name})" for name in (
            "prefix", "worker", "thread", "outcome", "compute_seconds", "compute_start_t",
            "compute_stop_t", "run_id")},
    }),
    Total("stragglers", "key attempt", "chunks", {
        name: f"any_value({name})" for name in
        ("dataset", "filename", "entry_start", "entry_stop")
    }, is_part=True, where="dataset IS NOT NULL"),
    Total("workers", "worker server_id", OF_PROCESS.format("work"), {
        "task_runs": "count(is_row) FILTER (is_task)",
        "compute_seconds": "coalesce(sum(compute_seconds), 0)",
        "output_bytes": "coalesce(sum(nbytes), 0)",
    }, is_part=True),
    Total("workers", "worker server_id", OF_PROCESS.format("chunk_attempts"), {
        "chunks": OUTCOMES["memory"],
        "events": f"CASE WHEN {OUTCOMES['memory']} = 0 THEN 0 ELSE sum(events) END",
        "bytes_read": "sum(bytes_read)",
        "failed_chunks": CHUNK_FAILURES,
        "chunk_seconds": "sum(compute_seconds)",
        "chunk_share": share("compute_seconds"),
        "events_per_second": "sum(events) / nullif(sum(compute_seconds) "
                             "FILTER (from_checkpoint IS NOT TRUE), 0)",
        "bytes_per_second": BYTES_PER_SECOND,
        "median_chunk_seconds": CHUNKS["median_compute_seconds"],
        "max_chunk_seconds": CHUNKS["max_compute_seconds"],
        "relative_iqr": RELATIVE_IQR,
        "slowest_file": slowest("filename"),
    }, is_part=True),
    Total("cluster_samples", "t", "worker_samples", {
        "workers": ROWS,
        **{name: f"sum({name})" for name in (
            "nthreads", "cpu_percent", "memory_bytes", "memory_limit_bytes", "managed_bytes",
            "spilled_bytes", "processing", "executing", "ready", "occupancy_seconds",
            "stored_bytes")},
    }),
    Total("task_memory", "prefix", """(
        SELECT DISTINCT coalesce(prefix, '?') AS prefix, key, attempt, worker, last_seen_t,
            memory_bytes, managed_bytes, trace_id
        FROM task_runs JOIN worker_samples USING (trace_id, worker)
        WHERE memory_bytes IS NOT NULL
            AND coalesce(compute_start_t, execute_start_t) <= last_seen_t - 0.5
            AND coalesce(compute_stop_t, end_t, 'infinity') >= last_seen_t
    )""", {
        "samples": ROWS, "attempts": "count(DISTINCT (key, attempt))",
        "peak_bytes": "max(memory_bytes)",
    }),
    Same("concurrency", "buckets", {"t": "t", "seconds": "stop - start"}),
    Total("concurrency", "t", "shared", {
        "executing": mean("compute"),
        "transferring": mean("transfer"),
        "processing": mean("processing"),
        "queued": mean("queued"),
        "no_worker": mean("no-worker"),
        "waiting": mean("waiting"),
        "workers": mean("there"),
        "compute_seconds": spent("compute"),
        # Workers with an unknown number of threads count 0; unknown if it is for all.
        "thread_seconds": THREADS, "nthreads": f"{THREADS} / any_value(seconds)",
    }),
    Total("utilization", "t worker name server_id",
          """(SELECT shared.*, worker, name, server_id, nthreads
              FROM shared JOIN processes USING (trace_id, process))""", {
        "seconds": "any_value(seconds)", "compute_seconds": spent("compute"),
        "failed_seconds": spent("compute", failed=True),
        "transfer_seconds": spent("transfer"),
        "thread_seconds": "CASE WHEN any_value(nthreads) IS NOT NULL THEN "
            + spent("thread") + " END",
    }),
    Never("use that is not that of the threads", """
        FROM utilization
        WHERE idle_seconds <> greatest(thread_seconds - compute_seconds, 0)
            OR abs(utilization - compute_seconds / nullif(thread_seconds, 0)) > 1e-9
            OR (utilization IS NULL) <> (coalesce(thread_seconds, 0) = 0)
            OR (idle_seconds IS NULL) <> (thread_seconds IS NULL)
    """),
    Total("branches", "dataset branch", "chunk_branches", {
        "chunk_attempts": ROWS, "files": "count(DISTINCT filename)",
        **{name: f"sum({name})" for name in (
            "compressed_bytes", "uncompressed_bytes", "read_seconds", "decompress_seconds")},
        "compression_ratio":
            "sum(uncompressed_bytes) FILTER (compressed_bytes IS NOT NULL) / nullif("
            "sum(compressed_bytes) FILTER (uncompressed_bytes IS NOT NULL), 0)",
        "byte_share": share("compressed_bytes"), "read_share": share("read_seconds"),
    }),
    Total("datasets", "dataset", "chunk_attempts", CHUNKS | {
        "files": "count(DISTINCT filename)", "output_bytes": "sum(output_bytes)",
        "kept_seconds": "sum(compute_seconds) FILTER (kept)",
        "slowest_file": slowest("filename"),
        "branch_share": "avg(branches_read / nullif(file_branches, 0)) "
                        "FILTER (is_first_result)",
        "events_per_second": "sum(events) FILTER (is_first_result) / nullif("
                             "sum(compute_seconds) FILTER (from_checkpoint IS NOT TRUE), 0)",
    }),
    Total("datasets", "dataset", """(
        SELECT dataset, sum(bytes_read) FILTER (is_first_result) AS read,
            max(file_bytes) AS size, trace_id
        FROM chunk_attempts GROUP BY dataset, filename, treename, trace_id
    )""", {
        "file_read_ratio": "sum(read) FILTER (size IS NOT NULL) / nullif("
                           "sum(size) FILTER (read IS NOT NULL), 0)",
    }),
    Total("files", "dataset filename treename", "chunk_attempts", CHUNKS | {
        "workers": "count(DISTINCT worker)", "slowest_worker": slowest("worker"),
        "source": "any_value(source)",
        **{name: f"max({name})" for name in ("file_bytes", "file_branches", "branches_read")},
        "file_read_ratio": "sum(bytes_read) FILTER (is_first_result) "
                           "/ nullif(max(file_bytes), 0)",
        "branch_share": "max(branches_read) / nullif(max(file_branches), 0)",
        "events_per_second": "sum(events) FILTER (is_first_result) / nullif("
            "sum(compute_seconds) FILTER (is_first_result AND from_checkpoint IS NOT TRUE), 0)",
    }),
    Total("chunk_costs", "dataset", """(
        FROM chunk_attempts WHERE is_first_result AND events > 0 AND compute_seconds > 0
    )""", {
        "chunks": "count(is_row) FILTER (NOT is_warming_up)",
        "first_chunks": "count(is_row) FILTER (is_warming_up)",
        "sizes": "count(DISTINCT events)", "smallest_chunk_events": "min(events)",
        "median_events": "floor(median(events) + 0.5)", "largest_chunk_events": "max(events)",
    }),
    Total("chunk_costs", "dataset", "chunk_attempts", {
        "largest_file_events": "max(entry_stop)",
    }, is_part=True),
    Total("section_totals", "dataset name", "sections", {
        "executions": ROWS, "attempts": "count(DISTINCT (key, run_id)) FILTER (is_row)",
        "failures": "count(exception)", "seconds": "sum(seconds)",
        "mean_seconds": "avg(seconds)", "median_seconds": "median(seconds)",
        "max_seconds": "max(seconds)", "cpu_seconds": "sum(cpu_seconds)",
        "bytes_read": "sum(bytes_read)",
        "mean_memory_delta_bytes": "round(avg(memory_delta_bytes))",
        "min_memory_delta_bytes": "min(memory_delta_bytes)",
        "max_memory_delta_bytes": "max(memory_delta_bytes)",
    }),
    Total("section_totals", "dataset name", """(
        SELECT sections.*, computed FROM sections LEFT JOIN (
            SELECT dataset, sum(compute_seconds) AS computed, trace_id FROM chunk_attempts
            GROUP BY ALL
        ) AS chunks ON chunks.trace_id = sections.trace_id
            AND chunks.dataset IS NOT DISTINCT FROM sections.dataset
    )""", {"compute_share": "sum(seconds) / nullif(any_value(computed), 0)"}),
    Total("fine_metrics", f"{METRIC} activity unit", "fine_metric_deltas",
          {"value": "sum(delta)"}),
    Total("activities", METRIC, """(
        SELECT *, regexp_replace(activity, '^p2p-', '') AS name FROM fine_metrics
        WHERE activity IS DISTINCT FROM 'idle'
            AND (context, prefix) IS DISTINCT FROM ('p2p', 'foreground')
    )""", {
        "seconds": "sum(value) FILTER (unit = 'seconds')",
        "other_seconds": "sum(value) FILTER (unit = 'seconds' AND coalesce(name, '') NOT IN ("
            + ", ".join(f"'{name}'" for column, names in ACTIVITIES.items()
                        if column.endswith("seconds") for name in names) + "))",
        **{column: activity(column, names) for column, names in ACTIVITIES.items()},
    }),
    Total("span_totals", "span_id", "of_spans", OF_SPAN),
    Total("span_totals", "span_id", """(
        SELECT of_spans.* REPLACE (nested.span_id AS span_id)
        FROM nested JOIN of_spans ON nested.trace_id = of_spans.trace_id
            AND nested.inside IS NOT DISTINCT FROM of_spans.span_id
    )""", {f"total_{name}": sql for name, sql in OF_SPAN.items()}),
    Total("span_totals", "span_id", "nested", {"descendants": "count(is_row) - 1"}),
    Total("span_totals", "span_id", "spans", {
        name: f"any_value({name})" for name in ("name", "path", "parent_id")
    }),
    Total("span_idle", "span_id", "spans", {
        name: f"any_value({name})" for name in ("name", "path")
    }),
    Total("span_idle", "span_id", """(
        SELECT nested.span_id, amounts.* EXCLUDE span_id FROM nested JOIN (
            SELECT span_id, submitted_t, trace_id FROM tasks UNION ALL BY NAME
            SELECT span_id, compute_seconds, trace_id,
                if(end_t IS NULL, last_t, coalesce(compute_stop_t, end_t)) AS until_t
            FROM task_runs JOIN extents USING (trace_id)
            UNION ALL BY NAME
            SELECT span_id, value, trace_id FROM fine_metrics
            WHERE context = 'execute' AND unit = 'seconds'
        ) AS amounts ON nested.trace_id = amounts.trace_id AND nested.inside = amounts.span_id
    )""", {
        "start_t": "min(submitted_t)", "stop_t": "max(until_t)", "known_seconds": "sum(value)",
    }, is_part=True),
    Total("span_idle", "span_id", """(
        SELECT span_id, trace_id, nthreads * greatest(least(process.stop_t, span_idle.stop_t)
            - greatest(process.start_t, span_idle.start_t), 0) AS offered
        FROM span_idle JOIN processes AS process USING (trace_id)
    )""", {"thread_seconds": "sum(offered)"}, is_part=True, where="stop_t IS NOT NULL"),
    # Metrics of lost workers are missing, but not their computations.
    Never("idle time of spans that is not the rest", """
        SELECT *, greatest(thread_seconds
            - greatest(known_seconds, coalesce(total_compute_seconds, 0)), 0) AS rest
        FROM span_idle JOIN span_totals USING (trace_id, span_id)
        WHERE (idle_seconds IS NULL) <> (thread_seconds IS NULL OR known_seconds IS NULL)
            OR abs(idle_seconds - if(known_seconds IS NULL, NULL, rest)) > 1e-9 * thread_seconds
            OR abs(idle_share - idle_seconds / nullif(thread_seconds, 0)) > 1e-9
    """),
    Total("run", "", "work", OUTCOMES | {
        "task_runs": "count(is_row) FILTER (is_task)",
        "busy_seconds": STRETCH,
        "compute_seconds": "sum(compute_seconds)",
        "kept_seconds": "sum(compute_seconds) FILTER (kept)",
        "speedup": f"sum(compute_seconds) / nullif({STRETCH}, 0)",
        "output_bytes": "sum(nbytes)", "transfer_seconds": "sum(transfer_seconds)",
        "merge_seconds": "sum(compute_seconds) FILTER (role = 'merge')",
    }),
    Total("run", "", """(
        SELECT *, coalesce(processing_t, if(has_task, first_t, NULL)) AS begin_t
        FROM chunk_attempts JOIN extents USING (trace_id)
    )""", {
        **{name: CHUNKS[name] for name in (
            "chunks", "chunk_attempts", "events", "checkpointed_chunks", *SUMMED)},
        "failed_chunks": CHUNK_FAILURES,
        "skipped": "count(is_row) FILTER (outcome = 'skipped')",
        "chunk_seconds": "sum(compute_seconds)",
        "chunk_wall_seconds": STRETCH,
        "events_per_second": f"{RESULT_EVENTS} / nullif({STRETCH}, 0)",
        "bytes_per_second": f"sum(bytes_read) / nullif({STRETCH}, 0)",
        "mean_process_seconds": "avg(process_seconds) FILTER (is_first_result)",
        "events_per_process_second": "sum(events) FILTER (is_first_result "
            "AND process_seconds IS NOT NULL) / nullif(sum(process_seconds), 0)",
        "compression_ratio": COMPRESSION,
    }),
    Total("run", "", "(FROM processes JOIN extents USING (trace_id))", {
        "start_t": "min(first_t)", "stop_t": "max(last_t)",
        "wall_seconds": "max(last_t) - min(first_t)", "workers": ROWS,
        "core_seconds": CORE_SECONDS,
        "mean_workers": "sum(greatest(stop_t - start_t, 0)) "
                        "/ nullif(any_value(last_t - first_t), 0)",
        "mean_nthreads": f"{CORE_SECONDS} / nullif(any_value(last_t - first_t), 0)",
    }, where="workers > 0"),
    Total("run", "", """(
        SELECT instant.t, count(*) AS workers, coalesce(sum(nthreads), 0) AS threads, trace_id
        FROM (SELECT DISTINCT start_t AS t, trace_id FROM processes) AS instant
        JOIN processes USING (trace_id) WHERE start_t <= instant.t AND instant.t < stop_t
        GROUP BY ALL
    )""", {
        "peak_workers": "coalesce(max(workers), 0)",
        "peak_nthreads": "coalesce(max(threads), 0)",
    }),
    Total("run", "", "failures", {"failures": ROWS}),
    Total("run", "", "(FROM loss WHERE reason <> 'more records than were written')", {
        "lost_records": "coalesce(sum(records), 0)",
    }),
    Total("run", "", "tasks", {"tasks": ROWS}, where="tasks IS NOT NULL"),
    Total("run", "", """(
        SELECT memory_bytes, NULL AS of_worker, trace_id FROM cluster_samples UNION ALL BY NAME
        SELECT memory_bytes AS of_worker, memory_bytes AS sampled, trace_id FROM worker_samples
        UNION ALL BY NAME
        SELECT memory_peak_bytes AS of_worker, trace_id FROM chunk_attempts UNION ALL BY NAME
        SELECT kill_bytes AS memory_bytes, kill_bytes AS of_worker, trace_id FROM processes
    )""", {
        "peak_memory_bytes": "max(memory_bytes)", "peak_worker_memory_bytes": "max(of_worker)",
        "mean_worker_memory_bytes": "round(avg(sampled))",
    }),
    Total("run", "", "run", {
        "core_efficiency": "any_value(compute_seconds / nullif(core_seconds, 0))",
        "events_per_core_second":
            "any_value(if(chunks > 0, events, NULL) / nullif(core_seconds, 0))",
    }),
    Same("failures", """(
        SELECT if(outcome = 'erred', 'task erred', 'attempt ' || outcome) AS what, key, attempt,
            worker, trace_id
        FROM attempts WHERE outcome IN ('erred', 'retried', 'lost')
        UNION ALL BY NAME
        SELECT if(outcome = 'retried', 'attempt retried', 'chunk ' || outcome) AS what, key,
            attempt, worker, trace_id
        FROM chunk_attempts
        WHERE outcome = 'skipped' OR NOT has_task AND outcome IN ('retried', 'erred')
    )""", alike("what key attempt worker"),
        where="what NOT IN ('worker lost', 'task refused')"),
    Same("failures", """(
        SELECT 'task refused' AS what, record ->> '$.key' AS key,
            record ->> '$.worker' AS worker, trace_id
        FROM records
        WHERE kind = 'transition' AND (record ->> '$.finish') = 'erred'
            AND (record ->> '$.exception') IS NOT NULL
            AND (record ->> '$.traceback') IS NULL AND (record ->> '$.thread') IS NULL
            AND NOT starts_with(record ->> '$.exception', 'KilledWorker')
            AND coalesce(record ->> '$.cause', record ->> '$.key') = (record ->> '$.key')
            AND (trace_id, record ->> '$.key', t) NOT IN (
                SELECT (trace_id, key, end_t) FROM attempts WHERE end_t IS NOT NULL
            )
    )""", alike("what key worker"), where="what = 'task refused'"),
    Same("graph_updates", """(
        SELECT record ->> '$.stimulus_id' AS stimulus_id, min(t) AS t, count(*) AS new_tasks,
            count(DISTINCT coalesce(record ->> '$.group', '')) AS groups,
            sum(coalesce(json_array_length(record, '$.dependencies'), 0)) AS edges, trace_id
        FROM records WHERE kind = 'task' AND stimulus_id IS NOT NULL GROUP BY ALL
    )""", alike("stimulus_id t groups edges"), where="groups IS NOT NULL"),
    Same("graph_layers", """(
        SELECT record ->> '$.stimulus_id' AS stimulus_id, record ->> '$.group' AS layer,
            min(t) AS t, count(*) AS tasks, trace_id
        FROM records WHERE kind = 'task' AND stimulus_id IS NOT NULL GROUP BY ALL
    )""", alike("stimulus_id layer t tasks"), where="stage = 'scheduled'"),
    Same("dependencies", """(
        SELECT tasks.key, unnest(dependencies) AS dependency, prefix, task_group, trace_id
        FROM tasks
    )""", alike("key dependency prefix task_group")),
    Total("dependencies", "key", """(
        SELECT key, arg_max(worker, (coalesce(outcome = 'memory', false), attempt)) AS worker,
            trace_id
        FROM attempts GROUP BY key, trace_id
    )""", {"worker": "any_value(worker)"}, is_part=True, several=True),
    Total("dependencies", "dependency", """(
        SELECT key AS dependency, prefix, task_group, trace_id FROM tasks
    )""", {
        "dependency_prefix": "any_value(prefix)", "dependency_group": "any_value(task_group)",
    }, is_part=True, several=True),
    Same("worker_transitions", """(
        SELECT *, row_number() OVER (PARTITION BY trace_id ORDER BY place) - 1 AS seq
        FROM records WHERE kind = 'worker_transition'
    )""", {
        **{name: extracted(name, "VARCHAR") for name in
           ("worker", "key", "start", "finish", "stimulus_id", "server_id")},
        **alike("t seq"), "state": "coalesce(record ->> '$.state', record ->> '$.finish')",
    }),
    Same("spans", """(
        FROM records WHERE kind = 'span' QUALIFY 1 = row_number()
            OVER (PARTITION BY trace_id, record ->> '$.span_id' ORDER BY place)
    )""", {
        "span_id": extracted("span_id", "VARCHAR"), "path": extracted("span_name", "LIST"),
        "name": "record ->> '$.span_name[#-1]'", "parent_id": extracted("parent_id", "VARCHAR"),
        "t": "t",
    }),
    # Recorded innermost counts, or else those that are derived from the other counts.
    Never("samples of a slice that are not those of its record", """
        WITH slices AS (
            SELECT record ->> '$.worker' AS worker, record ->> '$.prefix' AS prefix,
                unnest(json_extract(record, '$.tree.slices[*]')) AS part, trace_id
            FROM records WHERE kind = 'profile'
        ),
        recorded AS (
            SELECT worker, prefix, (part -> '$.start_t')::DOUBLE AS start_t,
                sum(list_sum((part -> '$.innermost')::BIGINT[])) AS innermost, trace_id
            FROM slices GROUP BY ALL
        ),
        found AS (
            SELECT worker, prefix, start_t, trace_id, sum(samples) AS samples,
                sum(samples + ambiguous_samples) AS divided, sum(counted_samples) AS counted
            FROM profile_stacks WHERE profiler = 'dask' GROUP BY ALL
        )
        SELECT recorded.*, samples, divided, counted
        FROM recorded FULL JOIN found ON recorded.trace_id = found.trace_id
            AND recorded.worker IS NOT DISTINCT FROM found.worker
            AND recorded.prefix IS NOT DISTINCT FROM found.prefix
            AND recorded.start_t = found.start_t
        WHERE recorded.trace_id IS NULL OR CASE WHEN innermost IS NULL
            THEN divided <> counted ELSE coalesce(samples, 0) <> innermost END
    """, view="profile_stacks"),
    Total("latencies", "key attempt", """(
        SELECT key, attempt, attempts.worker, attempts.prefix, attempts.outcome, processing_t,
            end_t, phase.start_t, phase.stop_t, action = 'transfer' AS moves, trace_id
        FROM attempts LEFT JOIN task_phases AS phase USING (trace_id, key, attempt)
    )""", {
        **{name: f"any_value({name})" for name in
           ("worker", "prefix", "outcome", "processing_t")},
        "processing_seconds": "any_value(end_t) - any_value(processing_t)",
        "dispatch_seconds": "min(start_t) - any_value(processing_t)",
        "fetch_seconds": "max(stop_t) FILTER (moves) - min(start_t) FILTER (moves)",
        "thread_wait_seconds": "min(start_t) FILTER (NOT moves) - max(stop_t) FILTER (moves)",
        "execute_seconds": "max(stop_t) - min(start_t) FILTER (NOT moves)",
        "report_seconds": "any_value(end_t) - max(stop_t)",
    }),
    Never("wall time that is not divided", """
        FROM (SELECT trace_id, sum(seconds) AS seconds FROM wall_time GROUP BY trace_id)
        JOIN run USING (trace_id)
        WHERE abs(seconds - wall_seconds) > 1e-6
    """),
    Never("work that is not that of the attempts", """
        FROM (
            SELECT trace_id, sum(seconds) AS working_seconds FROM wall_time
            WHERE state = 'working' GROUP BY trace_id
        ) AS working
        JOIN (
            SELECT trace_id,
                sum(greatest(until_t - greatest(from_t, before_t), 0)) AS attempted_seconds
            FROM (
                SELECT *, max(until_t) OVER (
                    PARTITION BY trace_id ORDER BY from_t
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ) AS before_t
                FROM (
                    SELECT trace_id, greatest(begin_t, first_t) AS from_t,
                        least(coalesce(end_t, last_t), last_t) AS until_t
                    FROM work JOIN extents USING (trace_id)
                )
            )
            GROUP BY trace_id
        ) AS attempted USING (trace_id)
        WHERE abs(working_seconds - attempted_seconds) > 1e-6
    """),
    Total("sessions", "client", """(
        SELECT key, compute_seconds, tasks.client, trace_id
        FROM task_runs JOIN tasks USING (trace_id, key)
    )""", {
        "tasks": "count(DISTINCT key)", "task_runs": ROWS,
        "compute_seconds": "sum(compute_seconds)",
    }, is_part=True),
    Never("waiting that is not divided", """
        FROM latencies JOIN task_runs USING (trace_id, key, attempt)
        WHERE abs(dependency_seconds + slot_seconds - queued_seconds) > 1e-6
            OR (queued_seconds IS NULL) <> (dependency_seconds IS NULL)
    """),
    Never("dispatch that is not divided", """
        FROM dispatch_latency
        WHERE abs(coalesce(dispatch_seconds, 0) + coalesce(transfer_wait_seconds, 0)
                + coalesce(queue_seconds, 0) + deserialize_seconds + disk_seconds
                + other_seconds - (compute_start_t - processing_t)) > 1e-6
            OR dispatch_latency_seconds
                IS DISTINCT FROM compute_start_t - processing_t
    """),
    Same("dispatch_latency", """(
        FROM attempts WHERE trace_id IN
            (SELECT trace_id FROM records WHERE kind = 'worker_transition')
    )""", alike("key attempt worker prefix outcome processing_t")),
    Total("chunk_costs", "dataset", """(
        FROM chunk_attempts
        WHERE is_first_result AND events > 0 AND compute_seconds > 0 AND NOT is_warming_up
    )""", {
        "seconds_per_event": "regr_slope(compute_seconds, events)",
        "r2": "regr_r2(compute_seconds, events)",
    }, is_part=True, where="outliers = 0"),
    Never("factors whose median is not 1", """
        SELECT trace_id, NULL AS dataset, quantile_disc(relative_duration, 0.5) AS middle
        FROM workers GROUP BY ALL HAVING abs(middle - 1) > 1e-9 UNION ALL
        SELECT trace_id, dataset, quantile_disc(relative_duration, 0.5) AS middle
        FROM files GROUP BY ALL HAVING abs(middle - 1) > 1e-9
    """),
    Never("slow without reason", """
        SELECT worker AS what, relative_duration AS factor, is_slow, trace_id FROM workers
        WHERE is_slow AND NOT factor >= 1.5 UNION ALL
        SELECT filename, relative_duration, is_slow, trace_id FROM files
        WHERE is_slow AND NOT relative_duration >= 1.5
    """),
    Never("a recorded fact without a row", """
        SELECT record ->> '$.section' AS section, record ->> '$.name' AS name,
            record ->> '$.value' AS value, t, trace_id
        FROM records WHERE kind = 'environment' AND section NOT IN
            ('process', 'packages', 'configuration', 'config_sources', 'defaults')
        EXCEPT FROM environment
    """, view="environment"),
    Same("restrictions", """(
        SELECT record ->> '$.key' AS key, record ->> '$.prefix' AS prefix,
            record ->> '$.group' AS task_group, record -> '$.annotations' AS said, trace_id
        FROM records WHERE kind = 'task'
        QUALIFY row_number() OVER (PARTITION BY trace_id, key ORDER BY place) = 1
            AND json_type(said) = 'OBJECT'
            AND coalesce(said ->> '$.workers', said ->> '$.restrictions',
                said ->> '$.resources', said ->> '$.retries', said ->> '$.priority') IS NOT NULL
    )""", {
        **alike("key prefix task_group"), "resources": "nullif(said -> '$.resources', 'null')",
        "retries": "said -> '$.retries'", "priority": "said -> '$.priority'",
    }),
    Total("graph_updates", "stimulus_id", """(
        SELECT record -> '$.payload' AS said, said ->> '$.stimulus_id' AS stimulus_id, trace_id
        FROM records WHERE kind = 'event' AND said ->> '$.action' = 'update-graph'
    )""", {
        "status": "first(said ->> '$.status')",
        **{name: f"first(abs((said -> '$.metrics.{field}')::DOUBLE))" for name, field in {
            "start_t": "start_timestamp_seconds", "tasks": "tasks",
            "key_collisions": "key_collisions", "update_seconds": "duration_seconds",
            "materialization_seconds": "materialization_duration_seconds",
            "ordering_seconds": "ordering_duration_seconds",
            "state_seconds": "state_initialization_duration_seconds"}.items()},
    }, is_part=True),
    Same("yappi_calls", """(
        FROM (
            SELECT unnest(json_extract(record, '$.value.callees[*]')) AS edge,
                record ->> '$.source' AS source, trace_id
            FROM records WHERE kind = 'function'
        )
        WHERE (trace_id, source, edge ->> '$.index') IN (
            SELECT (trace_id, record ->> '$.source', record ->> '$.value.index')
            FROM records WHERE kind = 'function')
    )""", {
        "source": "source", **{name: f"edge -> '$.{name}'" for name in (
            "calls", "actual_calls", "self_seconds", "total_seconds")},
    }),
    Fields("io_jobs", "import", "start_t stop_t source", {
        "log": "filename", "darshan_version": "versions.darshan",
        **{name: f"value.{name}" for name in (
            "job_id", "executable", "processes", "run_seconds")},
    }, having="record ->> '$.name' = 'darshan'"),
    Never("a call of a task that was not there", """
        FROM io_segments WHERE key IS NOT NULL AND (NOT list_contains(candidate_keys, key)
            OR (trace_id, key, attempt, worker) NOT IN
                (SELECT (trace_id, key, attempt, worker) FROM task_runs))
    """),
    *(
        Never(f"{view}: workers that are not as many as processes", f"""
            FROM {view} WHERE len(workers) <> processes
        """)
        for view in ("config", "packages", "machines")
    ),
    Never("a cell that is not recorded although it has records", """
        FROM metadata_map WHERE is_recorded IS DISTINCT FROM coalesce(records > 0, false)
            OR (hint IS NULL) <> is_recorded AND hint NOT LIKE 'Incomplete%'
    """),
    Fields("events", "event", "t topic worker payload"),
    Fields("fine_metric_deltas", "fine_metric", f"t {METRIC} activity unit delta"),
    Fields("scheduler_samples", "scheduler_sample", "t server_id", {
        "cpu_percent": "metrics.cpu", "memory_bytes": "metrics.memory",
        "event_loop_interval_seconds": "metrics.event_loop_interval",
        **{name: f"metrics.{name}" for name in (
            "num_fds", "host_net_read_bps", "host_net_write_bps", "host_disk_read_bps",
            "host_disk_write_bps")},
    }),
    Fields("stalls", "stall", "worker start_t stop_t server_id"),
    Fields("client_activity", "client_activity", "client start_t stop_t activity filename", {
        "function": "name", "cpu_seconds": "measured.cpu_seconds",
    }),
    Fields("cluster_sizes", "cluster_size", "t client", {
        "planned": "value.planned", "requested": "value.requested",
    }),
    Fields("spills", "spill", "t worker key start finish", {
        "bytes": "nbytes", "disk_bytes": "measured.disk_bytes",
    }),
    Fields("sections", "section", "key name start_t stop_t worker thread run_id exception", {
        "cpu_seconds": "measured.cpu_seconds", "bytes_read": "measured.bytes_read",
        "memory_delta_bytes": "measured.memory_delta",
    }),
    Fields("transfers", "transfer", "start_t stop_t source destination keys", {
        "bytes": "nbytes",
    }, having="record ->> '$.worker' IS DISTINCT FROM record ->> '$.source'",
           where="reported_by IS DISTINCT FROM 'source'"),
    Fields("imports", "import", "filename start_t stop_t worker pid versions source", {
        "tool": "name", "facts": "value", "imported_t": "value.imported_t",
    }),
    Fields("io_files", "io_file", "filename start_t stop_t source", {
        "counters": "value", **{name: f"measured.{name}" for name in (
            "module", "rank", "opens", "reads", "writes", "bytes_read", "bytes_written",
            "read_seconds", "write_seconds", "metadata_seconds")},
    }),
    Fields("io_segments", "io_segment", "filename start_t stop_t host source", {
        "module": "measured.module", "operation": "activity", "bytes": "nbytes",
        "offset_bytes": "measured.offset_bytes", "rank": "measured.rank",
    }),
    Fields("yappi_functions", "function", "name filename source", {
        name: f"value.{name}" for name in (
            "line_number", "calls", "actual_calls", "self_seconds", "total_seconds", "thread",
            "thread_name", "tag", "builtin")
    }),
    # Several functions can have the same label.
    Never("self time of functions that is not that of the stacks which end in them", """
        SELECT function, log, trace_id, sum(self_seconds) AS own, sum(seconds) AS of_stacks
        FROM (
            SELECT function, log, self_seconds, trace_id FROM yappi_functions
            UNION ALL BY NAME
            SELECT stack[-1] AS function, log, seconds, trace_id FROM profile_stacks
            WHERE profiler = 'yappi'
        )
        GROUP BY ALL HAVING abs(coalesce(own, 0) - coalesce(of_stacks, 0)) > 1e-8
    """),
)  # fmt: skip

#: Documented orders of rows. Names come first or last, as DuckDB sorts nulls.
ORDERS = {
    "branches": "read_seconds DESC NULLS LAST, dataset, branch",
    "concurrency": "t",
    "critical_path": "step",
    "datasets": "compute_seconds DESC NULLS LAST, dataset",
    "files": "compute_seconds DESC NULLS LAST, dataset, filename, treename",
    "prefixes": "compute_seconds DESC NULLS LAST, prefix",
    "section_totals": "seconds DESC NULLS LAST, dataset, name",
    "stragglers": "excess_seconds DESC",
    "task_groups": "compute_seconds DESC NULLS LAST, task_group",
    "task_roles": "compute_seconds DESC NULLS LAST, role",
    "utilization": "t",
}

#: Columns that add up to 1, unless they are unknown.
WHOLES = {
    "branches": ("byte_share", "read_share"),
    "critical_path": ("share",),
    "datasets": ("compute_share",),
    "files": ("compute_share",),
    "task_roles": ("compute_share",),
    "workers": ("chunk_share",),
}

#: Odd traces with instants outside the recording, because clocks were set back.
OTHER_CLOCKS = (
    "clock_set_back", "records_delayed", "repeated_attempts_without_cluster",
    "reports_of_workers", "worker_clocks_set_back",
)  # fmt: skip

#: Endings of names of columns that are text.
TEXTS = ("trace_id", "key", "worker", "span_id")

IN_RECORDING = (
    "EXISTS (FROM extents WHERE extents.trace_id = view.trace_id "
    f"AND {{}} BETWEEN first_t AND last_t) OR view.trace_id IN {OTHER_CLOCKS}"
)

#: Conditions on columns by the end of their names, and the columns and views for which they do
#: not hold: differences between clocks, of memory, and intervals before the recording.
CONDITIONS = (
    ("seconds|bytes|value|delta|samples|rows|runs|tasks|chunks|events", "{} >= 0", {
        "trace_info", "latencies", "dispatch_latency", "io_jobs.clock_offset_seconds",
        "task_runs.queued_seconds", "chunks.queued_seconds", "sections.memory_delta_bytes",
        "section_totals.mean_memory_delta_bytes", "section_totals.min_memory_delta_bytes",
        "section_totals.max_memory_delta_bytes", "chunk_costs.fixed_seconds",
    }),
    ("share|confidence|r2", "{} BETWEEN 0 AND 1 + 1e-9", {"section_totals.compute_share"}),
    ("t", IN_RECORDING, {"imports", "io_files", "io_jobs", "io_segments", "jobs",
                         "worker_samples.last_seen_t"}),
    ("trace_id", "{} IN (SELECT trace_id FROM extents)", set()),
    ("key", "(view.trace_id, {}) IN (SELECT (trace_id, record ->> '$.key') FROM records)",
     set()),
    ("worker", "(view.trace_id, {}) IN (SELECT (trace_id, worker) FROM processes)", set()),
    ("span_id", "(view.trace_id, {}) IN (SELECT (trace_id, span_id) FROM nested)", set()),
)  # fmt: skip

#: Views that only gold rows and conditions describe. The kinds of busy_time are patterns, which
#: a second implementation would repeat; `sql/workers/test_busy_time.py` tests its sums.
ONLY_GOLD = {
    "busy_time", "computations", "config", "differences", "jobs", "joint_chunk_costs",
    "machines", "metadata_map", "packages", "trace_info", "wall_time",
}  # fmt: skip


def conditions(types: dict[str, dict[str, str]]) -> Iterator[Never]:
    """Return the conditions on columns of all views, on orders and on shares."""
    for view, columns in types.items():
        for ending, condition, exceptions in CONDITIONS:
            for name, type_ in columns.items():
                if (
                    re.search(f"(^|_)({ending})$", name)
                    and (type_ == "VARCHAR") == (ending in TEXTS)
                    and "[]" not in type_
                    and not exceptions & {view, f"{view}.{name}"}
                ):
                    column = f'view."{name}"'
                    yield Never(
                        f"{view}.{name}",
                        f'FROM "{view}" AS view '
                        f"WHERE {column} IS NOT NULL AND NOT ({condition.format(column)})",
                    )
    for view, order in ORDERS.items():
        yield Never(
            f"order of {view}",
            f'SELECT rowid AS place, * FROM "{view}" '
            "QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY rowid) "
            f"<> row_number() OVER (PARTITION BY trace_id ORDER BY {order}, rowid)",
        )
    for view, columns in WHOLES.items():
        for name in columns:
            yield Never(
                f"shares {view}.{name} that do not add up",
                f'SELECT trace_id, sum({name}) AS added FROM "{view}" GROUP BY trace_id '
                f"HAVING abs(sum({name}) - 1) > 1e-9",
            )
