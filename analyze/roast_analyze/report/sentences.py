"""What a section shows and what it means here, in sentences computed from the run.

Each function takes the gathered data and gives plain text; the page escapes it. A
sentence states what was measured and draws no conclusion that the numbers don't hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.figures.labels import shortened, visible
from roast_analyze.figures.samples import limit_fits
from roast_analyze.report import quantities as q

if TYPE_CHECKING:
    from roast_analyze.figures.chunks import ChunkPlot
    from roast_analyze.figures.timeline import Timeline
    from roast_analyze.report.data import ReportData, Run
    from roast_analyze.report.flame import Flame

#: Most datasets whose cost of a chunk is told in a sentence.
COSTS_TOLD: Final = 4


def what_was_done(data: ReportData) -> str:
    """Say in one sentence what the run did, how fast, and on what."""
    run = data.run
    if not run.task_runs and not run.chunk_attempts:
        return f"No task ran in the {q.seconds(run.wall_seconds)} of this recording."
    on = ""
    if run.workers:
        threads = q.counted(run.peak_nthreads, "thread")
        on = f" on {q.counted(run.peak_workers, 'worker')} ({threads})"
    took = q.seconds(run.busy_seconds)
    if not run.chunks:
        return f"{_tasks(run)} in {took}{on}."
    rate = f": {q.rate(run.events_per_second, 'events')}" if run.events_per_second else ""
    events = "" if run.events is None else f", {q.counted(run.events, 'event')}"
    return (
        f"{q.counted(run.chunks, 'chunk')}{events}, "
        f"in {q.seconds(run.chunk_wall_seconds or run.busy_seconds)}{on}{rate}."
    )


def _tasks(run: Run) -> str:
    if run.tasks == run.task_runs or not run.tasks:
        return q.counted(run.task_runs, "task")
    return f"{q.counted(run.tasks, 'task')}, {q.counted(run.task_runs, 'attempt')},"


def how_it_went(data: ReportData) -> str:
    """Say how busy the cores were and whether anything failed."""
    run = data.run
    parts = []
    if run.core_efficiency is not None and (run.task_runs or run.chunk_attempts):
        parts.append(
            f"The cores computed for {q.share(run.core_efficiency)} of the time that they "
            "were there."
        )
    parts.append(f"{failure_counts(run)}.")
    return " ".join(parts)


def failure_counts(run: Run) -> str:
    """Count the bad ends by kind, in words."""
    parts = [
        (run.erred, "task failed for good", "tasks failed for good"),
        (
            run.retried,
            "attempt failed and was tried again",
            "attempts failed and were tried again",
        ),
        (run.lost, "attempt was lost with its worker", "attempts were lost with their workers"),
        (run.unfinished, "attempt was not finished", "attempts were not finished"),
        (run.skipped, "chunk was skipped", "chunks were skipped"),
    ]
    told = [q.counted(n, one, many) for n, one, many in parts if n]
    if not told:
        return "Nothing failed" if run.failures == 0 else q.counted(run.failures, "failure")
    return _listed(told)


def wholeness(data: ReportData) -> str:
    """Say whether the trace is whole."""
    if data.loss.total == 0:
        return (
            f"The trace is whole: all {q.counted(data.recording.records, 'record')} were read "
            "and nothing is known to be missing."
        )
    reasons = [visible(str(reason)) for reason in data.loss.rows["reason"].head(3)]
    listed = "; ".join(dict.fromkeys(reasons))
    more = "; and more" if data.loss.total > 3 else ""
    missing = ""
    if data.run.lost_records:
        missing = f" At least {q.counted(data.run.lost_records, 'record')} missing."
    return f"The trace is not whole: {shortened(listed, 300)}{more}.{missing}"


def time_spent(data: ReportData) -> str:
    """Explain the bar of the time spent."""
    run, spent = data.run, data.time_spent
    if not run.core_seconds:
        return "No worker was seen, so it is not known how much time the cores had."
    offered, unit = q.core_time(run.core_seconds)
    share = q.share(spent.kept_seconds / run.core_seconds)
    wasted = ""
    if spent.wasted_seconds:
        wasted = (
            f" {q.seconds(spent.wasted_seconds)} of computing went into attempts whose result "
            "was not kept."
        )
    beside = ""
    if spent.transfer_seconds:
        beside = (
            " Transfers need no core and run beside computing: they are a part of the idle "
            "time only where a thread had to wait for them."
        )
    return (
        f"The cluster offered {offered} {unit}; {share} of them computed results that were "
        f"kept.{wasted}{beside}"
    )


def timeline(data: ReportData, drawn: Timeline) -> str:
    """Say what the timeline shows, and how much ran at once."""
    run = data.run
    bar = "a task in the colour of its prefix"
    if not run.task_runs:
        bar = "a chunk in the colour of its dataset"
    text = f"Each lane is a thread of a worker, each bar {bar}."
    if not drawn.by_thread:
        text = (
            f"Each lane is a worker, whose threads lie on top of each other; each bar is {bar}."
        )
    if run.busy_seconds and run.compute_seconds and run.peak_nthreads:
        mean = run.compute_seconds / run.busy_seconds
        text += (
            f" From the first {'task' if run.task_runs else 'chunk'} to the last, "
            f"{q.number(mean)} of up to "
            f"{q.counted(run.peak_nthreads, 'thread')} computed on average."
        )
    gap = data.longest_gap
    if gap and run.start_t is not None and run.busy_seconds:
        length = gap.stop_t - gap.start_t
        if length > 0.01 * run.busy_seconds:
            text += (
                f" The longest pause in which nothing computed was {q.seconds(length)}, "
                f"{q.seconds(gap.start_t - run.start_t)} after the start."
            )
    return text


def workers_put_together(data: ReportData, rows: int, command: str) -> str:
    """Say that rows of the map stand for several workers, if they do."""
    if data.workers.total <= rows:
        return ""
    return (
        f"Each of the {q.count(rows)} rows stands for several of the "
        f"{q.count(data.workers.total)} workers, in order. All of them: {command}"
    )


def scheduler(data: ReportData) -> str:
    """Say how much the scheduler had to do, and how much was held up."""
    load = data.concurrency
    made = load.select((pl.col("transitions_per_second") * pl.col("seconds")).sum()).item()
    most = q.rate(_float(load["transitions_per_second"].max()), "transitions")
    width = q.seconds(_float(load["seconds"][0]))
    transitions = q.counted(round(made), "transition")
    told = [f"The scheduler made {transitions}, at most {most} over {width}."]
    if ready := _float(load["ready"].max()):
        told.append(f"Up to {q.count(ready)} ready tasks waited for a free thread.")
    if loop := _float(load["slowest_loop_seconds"].max()):
        told.append(
            f"The slowest event loop of a worker came round every {q.seconds(loop)} (idle: "
            "0.02 s)."
        )
    return " ".join(told)


def timeline_left_out(drawn: Timeline, command: str) -> str:
    """Say what the timeline leaves out or puts together; empty if nothing."""
    parts = []
    if drawn.merged:
        parts.append(
            f"The {drawn.single:,} longest of {drawn.runs:,} attempts have a bar of their own; "
            f"the {drawn.merged:,} shorter ones share bars with their neighbours."
        )
    if drawn.hidden_lanes:
        parts.append(
            f"{drawn.hidden_lanes:,} lanes with {drawn.hidden_runs:,} attempts are left out: "
            "lanes where something failed come first, then the busiest."
        )
    if drawn.hidden_marks:
        parts.append(f"{drawn.hidden_marks:,} more failed attempts are not marked.")
    return " ".join([*parts, f"All of them: {command}"]) if parts else ""


def chunks(data: ReportData) -> str:
    """Say how long chunks took, and which stands out."""
    done = data.chunk_points.filter(pl.col("outcome") == "memory")
    median = _float(done["compute_seconds"].median())
    run = data.run
    text = (
        "Each point is an attempt at a chunk; on the left, those above the dotted line ran "
        "slower than the median rate."
    )
    if median and done.height > 1:
        slowest = done.sort("compute_seconds", descending=True, nulls_last=True).row(
            0, named=True
        )
        factor = slowest["compute_seconds"] / median
        text += (
            f" Half of the chunks took less than {q.seconds(median)}; the slowest took "
            f"{q.seconds(slowest['compute_seconds'])}, {factor:.1f} times that"
        )
        name = _short(slowest["filename"])
        text += f" (in {name})." if name else "."
    bad = run.chunk_attempts - run.chunks
    if bad:
        text += f" {q.counted(bad, 'attempt')} at chunks came to nothing"
        text += (
            f", {q.count(run.skipped)} of them skipped without a failure."
            if run.skipped
            else "."
        )
    if run.checkpointed_chunks:
        loaded = q.counted(run.checkpointed_chunks, "chunk")
        text += f" The results of {loaded} came from a checkpoint: their events are not known."
    return text


def chunk_time(data: ReportData) -> str:
    """Say what the time of the chunks was spent on, as far as it was measured."""
    run = data.run
    if run.process_seconds is None and run.read_seconds is None:
        return (
            "What a chunk reads, and what it spends its time on, was not measured in this run."
        )
    total = run.chunk_seconds or 0.0
    parts = [
        (run.open_seconds, "opening files"),
        (run.process_seconds, "in the processor"),
        (run.read_seconds, "reading columns, in the processor or before"),
    ]
    told = [
        f"{q.seconds(seconds)} ({q.share(seconds / total)}) {what}"
        for seconds, what in parts
        if seconds is not None and total
    ]
    text = f"Attempts at chunks computed for {q.seconds(total)}"
    text += f": {_listed(told)}." if told else "."
    measured = (run.cpu_seconds or 0.0) + (run.wait_seconds or 0.0)
    if run.cpu_seconds is not None and measured:
        cpu = q.share(run.cpu_seconds / measured)
        text += f" Their threads used the CPU for {cpu} of the time."
    return text


def merging(data: ReportData) -> str:
    """Weigh the merging of results against the processing."""
    run = data.run
    if not run.merge_seconds or not run.chunk_seconds:
        return ""
    share = run.merge_seconds / run.chunk_seconds
    weighed = (
        f"{share:.1f} times what the chunks took: merging outweighs processing"
        if share > 1
        else f"{q.share(share)} of what the chunks took"
    )
    return f"Merging results took {q.seconds(run.merge_seconds)} of computing, {weighed}."


def slow(data: ReportData) -> str:
    """Name the files that are slow on every worker, and workers slow on every file."""
    if not data.comparable_files and not data.comparable_workers:
        return (
            "Whether a file or a worker is slow for itself cannot be told: that takes several "
            "files of a dataset, each on several workers."
        )
    files = [
        f"{_short(row['filename'])} ({row['slowness']:.1f} times)"
        for row in data.slow_files.rows.iter_rows(named=True)
    ]
    workers = [
        f"{_short(row['worker'])} ({row['slowness']:.1f} times)"
        for row in data.slow_workers.rows.iter_rows(named=True)
    ]
    text = ""
    if files:
        more = _more(data.slow_files.total, len(files))
        noun = "file" if len(files) == 1 else "files"
        text += f" Slow on every worker: the {noun} {_listed(files)}{more}."
    elif data.comparable_files:
        compared = q.counted(data.comparable_files, "file")
        text += f" No file of the {compared} that can be compared is slow on every worker."
    if workers:
        more = _more(data.slow_workers.total, len(workers))
        noun = "worker" if len(workers) == 1 else "workers"
        text += f" Slow on every file: the {noun} {_listed(workers)}{more}."
    elif data.comparable_workers:
        compared = q.counted(data.comparable_workers, "worker")
        text += f" No worker of the {compared} that can be compared is slow on every file."
    return text.strip()


def costs(data: ReportData) -> list[str]:
    """Say for each dataset what a chunk costs and which size is better, or why not."""
    rows = data.costs.rows
    known = rows.filter(pl.col("method").is_not_null())
    told = [_cost(row) for row in known.head(COSTS_TOLD).iter_rows(named=True)]
    left = known.height - len(told)
    if left > 0:
        told.append(f"The same of {q.counted(left, 'more dataset')} is in the table.")
    unknown = rows.filter(pl.col("method").is_null())
    for (note,), some in unknown.group_by("note", maintain_order=True):
        names = [_short(name) or "(no dataset)" for name in some["dataset"].head(COSTS_TOLD)]
        more = _more(some.height, len(names))
        told.append(f"What a chunk of {_listed(names)}{more} costs by its size: {note}.")
    return told


def _cost(row: dict[str, Any]) -> str:
    name = _short(row["dataset"]) or "(no dataset)"
    # A rate of events is known to people, a time for one is not.
    fixed, many = q.seconds(row["fixed_seconds"]), q.seconds(1e3 * row["seconds_per_event"])
    model = f"a chunk costs {fixed} and {many} a thousand events"
    off = f" (off by {q.share(row['relative_error'])} in the median)"
    now = f"{q.count(row['median_events'])} events a chunk now"
    if row["recommended_events"] not in (None, row["median_events"]):
        now += f", better {q.count(row['recommended_events'])}"
    return f"{name}: {model}{off}; {now}; {row['note']}."


def branches(data: ReportData) -> str:
    """Name the branches that cost the most, all datasets together."""
    rows = data.top_branches.rows
    if rows.is_empty():
        return ""
    by_time = rows["read_share"].null_count() == 0
    share = "read_share" if by_time else "byte_share"
    named = [
        f"{_short(row['branch'])} ({q.share(row[share])})" for row in rows.iter_rows(named=True)
    ]
    of = "time of reading columns" if by_time else "bytes of what was read"
    return f"The costliest branches, by the {of}: {_listed(named)}."


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _more(total: int, named: int) -> str:
    return f", and {q.count(total - named)} more" if total > named else ""


def _short(name: object) -> str:
    """Cut a file's or branch's name to its end, harmless in a sentence."""
    return shortened(visible(str(name or "")).rsplit("/", 1)[-1], 60)


def chunks_left_out(plot: ChunkPlot, command: str) -> str:
    """Say what the plot of chunks leaves out; empty if nothing."""
    parts = []
    if plot.undrawn:
        parts.append(
            f"{plot.drawn:,} points are drawn: what failed, the slowest, and every so-manieth "
            f"of the rest; {plot.undrawn:,} are not. All of them: {command}"
        )
    if plot.without_time:
        attempts = q.counted(plot.without_time, "attempt")
        parts.append(f"{attempts} without a compute time (lost or unfinished) cannot be drawn.")
    return " ".join(parts)


def workers(data: ReportData) -> str:
    """Say how evenly the work was spread over the workers."""
    rows = data.workers.rows
    text = f"{q.counted(data.run.workers, 'worker process', 'worker processes')} took part."
    compute = rows["compute_seconds"].drop_nulls()
    if compute.len() > 1:
        most, least = _float(compute.max()) or 0.0, _float(compute.min()) or 0.0
        text += (
            f" The one with the most to do computed for {q.seconds(most)}, the one with the "
            f"least for {q.seconds(least)}."
        )
    lost = int(rows["lost"].fill_null(value=False).sum())
    if lost:
        text += f" {q.counted(lost, 'worker')} went away unexpectedly."
    return text


def tasks(data: ReportData) -> str:
    """Say which kind of task took the most time."""
    rows = data.prefixes.rows
    total = data.run.compute_seconds or 0.0
    text = "A prefix is a kind of task: what its key begins with."
    if total and rows.height:
        top = rows.row(0, named=True)
        text += (
            f" {_name(top['prefix'])} took {q.share((top['compute_seconds'] or 0) / total)} of "
            f"all computing: {q.counted(top['task_runs'], 'attempt')}, "
            f"{q.seconds(top['median_compute_seconds'])} in the median."
        )
    return text


def inside(data: ReportData, graph: Flame) -> str:
    """Say what the samples are, which function took the most, and what is not known."""
    text = (
        f"Dask's profilers looked {q.counted(graph.samples, 'time')} at what threads were at. "
        "A function is as wide as the time that was seen in it and in what it calls."
    )
    rows = data.functions.rows
    if rows.height:
        top = rows.row(0, named=True)
        text += (
            f" The most itself took {_name(top['function'])}, {q.share(top['self_share'])} of "
            "it all."
        )
    if graph.undecided:
        text += (
            f" {q.counted(graph.undecided, 'sample lies', 'samples lie')} in one of several "
            "functions, it is not known in which: Dask does not count the innermost one."
        )
    if graph.rare:
        text += (
            f" The stacks of {q.counted(graph.rare, 'sample')} are cut off at nodes named "
            "(rare), to keep this page small."
        )
    return text


def memory(data: ReportData) -> str:
    """Say how near to its limit the memory came, and whether it spilled."""
    cluster, workers = data.cluster_samples, data.worker_samples
    peak = _float(cluster["memory_bytes"].max())
    limit = _float(cluster["memory_limit_bytes"].max())
    text = f"The workers together held at most {q.byte_size(peak)}"
    text += f" of {q.byte_size(limit)} allowed." if limit else "; no limit is set."
    near = (
        workers.filter(pl.col("memory_limit_bytes") > 0)
        .select((pl.col("memory_bytes") / pl.col("memory_limit_bytes")).max())
        .to_series()
    )
    nearest = _float(near.max())
    if nearest is not None:
        text += f" The fullest worker reached {q.share(nearest)} of its limit."
    spilled = _float(cluster["spilled_bytes"].max())
    text += (
        f" At most {q.byte_size(spilled)} were spilled to disk."
        if spilled
        else " Nothing was spilled to disk."
    )
    if limit and not limit_fits(cluster):
        text += " The limit lies far above and is not drawn."
    return text


def cpu(data: ReportData) -> str:
    """Say how busy the cores were by the workers' own measure."""
    mean = _float(data.cluster_samples["cpu_percent"].mean())
    threads = _float(data.cluster_samples["nthreads"].mean())
    if mean is None or not threads:
        return "CPU use was not recorded."
    return (
        f"The workers used {q.number(mean / 100)} cores on average, with {q.number(threads)} "
        "threads that compute. 100 % is one core; more than that is work beside the tasks, or "
        "libraries with threads of their own."
    )


def failures(data: ReportData) -> str:
    """Say how much failed, how, and what for most often."""
    if data.failures.total == 0:
        return "No attempt failed and no worker was lost."
    what = data.failures.rows["what"].value_counts().sort("count", "what", descending=True)
    kinds = ", ".join(f"{n:,} × {visible(str(kind))}" for kind, n in what.iter_rows())
    some = "" if data.failures.total == data.failures.rows.height else " among the first"
    text = f"{q.counted(data.failures.total, 'failure')}; by kind{some}: {kinds}."
    return text + _commonest(data.failures.rows["exception"].drop_nulls())


def _commonest(exceptions: pl.Series) -> str:
    """Name the exception that came most often; those that differ in numbers are one."""
    kinds = (
        exceptions.to_frame("text")
        .with_columns(pl.col("text").str.replace_all("0x[0-9a-f]+|[0-9]+", "#").alias("kind"))
        .group_by("kind", maintain_order=True)
        .agg(pl.len().alias("times"), pl.col("text").first())
        .sort("times", descending=True, maintain_order=True)
    )
    if kinds.is_empty():
        return ""
    _, times, text = kinds.row(0)
    lead = f"Most often ({times:,} ×)" if kinds.height > 1 else "The reason each time"
    if exceptions.len() == 1:
        lead = "The reason"
    elif exceptions.n_unique() > 1 and kinds.height == 1:
        lead += ", but for numbers"
    return f" {lead}: {shortened(' '.join(visible(text).split()), 160)}"


def events(data: ReportData) -> str:
    """Say what Dask logged."""
    return (
        f"{q.counted(data.events.total, 'event')} that the scheduler, the workers, the client "
        f"or your own code logged with Dask, under {q.counted(data.topics.total, 'topic')}."
    )


def environment(data: ReportData) -> str:
    """Say with what the run was made."""
    recording = data.recording
    versions = [
        f"{name} {visible(version)}"
        for name, version in (
            ("dask", recording.dask_version),
            ("distributed", recording.distributed_version),
            ("Python", recording.python_version),
            ("roast", recording.recorder_version),
        )
        if version
    ]
    return (
        f"Recorded with {', '.join(versions)}." if versions else "Versions were not recorded."
    )


def _name(prefix: object) -> str:
    return (
        shortened(visible(str(prefix)), 60) if prefix is not None else "Tasks without a prefix"
    )


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
