"""What a section shows and what it means here, in sentences computed from the run.

Each function takes the gathered data and gives plain text; the page escapes it. A
sentence states what was measured and draws no conclusion that the numbers don't hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.figures.samples import limit_fits
from roast_analyze.report import quantities as q
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from roast_analyze.figures.chunks import ChunkPlot
    from roast_analyze.report.data import ReportData, Run
    from roast_analyze.report.flame import Flame
    from roast_analyze.report.gathered.task_stream import TaskStream

#: Most datasets whose cost of a chunk is told in a sentence.
COSTS_TOLD: Final = 4
#: Most packages of different versions that are named.
VERSIONS_TOLD: Final = 5
#: Kinds of jobs that a sentence names.
KINDS_OF_JOBS_TOLD: Final = 3


def what_was_done(data: ReportData) -> str:
    """Say in one sentence what the run did, how fast, and on what."""
    run = data.run
    if not run.task_runs and not run.chunk_attempts:
        return f"No task ran in the {q.seconds(run.wall_seconds)} of this recording."
    on = _where(run)
    if not run.chunks:
        return f"{_tasks(run)}{_for(run.busy_seconds)}{on}."
    rate = f": {q.rate(run.events_per_second, 'events')}" if run.events_per_second else ""
    events = "" if run.events is None else f", {q.counted(run.events, 'event')}"
    return (
        f"{q.counted(run.chunks, 'chunk')}{events},"
        f"{_for(run.chunk_wall_seconds or run.busy_seconds)}{on}{rate}."
    )


def _for(seconds: float | None) -> str:
    return "" if seconds is None else f" in {q.seconds(seconds)}"


def _where(run: Run) -> str:
    """Say on how many workers; of those without a cluster the threads are not known."""
    if not run.workers:
        return ""
    # In a recording of one instant no worker was there for any time.
    workers = q.counted(run.peak_workers or run.workers, "worker")
    threads = f" ({q.counted(run.peak_nthreads, 'thread')})" if run.peak_nthreads else ""
    return f" on {workers}{threads}"


def _tasks(run: Run) -> str:
    if not run.task_runs:
        tried = q.counted(run.chunk_attempts, "attempt")
        return f"{tried} at chunks, none of them finished,"
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
        return (
            "No worker was seen to come, so it is not known how many threads there were, and "
            "how much time they had."
        )
    offered, unit = q.core_time(run.core_seconds)
    unit = unit.removesuffix("s") if offered == "1" else unit
    share = q.share(spent.kept_seconds / run.core_seconds)
    wasted = ""
    if spent.wasted_seconds:
        wasted = (
            f" {q.seconds(spent.wasted_seconds)} of computing went into attempts whose result "
            "was not kept."
        )
    if spent.unfinished_seconds:
        wasted += (
            f" {q.seconds(spent.unfinished_seconds)} of computing went into attempts that "
            "ended after this stretch."
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


def timeline(data: ReportData) -> str:
    """Say what the timeline shows, and how much ran at once."""
    run = data.run
    bar = "a task in the colour of its prefix"
    if not run.task_runs:
        bar = "a chunk in the colour of its dataset"
    text = f"Each lane is a thread of a worker, each bar {bar}."
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
            # By the clock of a worker, it can have ended before the recording began.
            since = max(gap.start_t - run.start_t, 0.0)
            text += (
                f" The longest pause in which nothing computed was {q.seconds(length)}, "
                f"{q.seconds(since)} after the start."
            )
    return text


def workers_put_together(data: ReportData, rows: int, command: str = "") -> str:
    """Say that rows of a map stand for several workers, if they do.

    Parameters
    ----------
    data : ReportData
    rows : int
        Rows of the map.
    command : str, optional
        What shows each worker for itself in a terminal.
    """
    if data.workers.total <= rows:
        return ""
    return (
        f"Each of the {q.count(rows)} rows stands for several of the "
        f"{q.count(data.workers.total)} workers, in order."
        + (f" All of them: {command}" if command else "")
    )


def scheduler(data: ReportData) -> str:
    """Say how much the scheduler had to do, and how much was held up."""
    load = data.stretches
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
            "0.02\N{NO-BREAK SPACE}s)."
        )
    return " ".join(told)


def timeline_left_out(stream: TaskStream, command: str) -> str:
    """Say what the timeline leaves out or puts together; empty if nothing."""
    parts = []
    single = stream.bars.height
    if stream.runs - stream.hidden_runs > single:
        parts.append(
            f"The {q.count(single)} longest of {q.counted(stream.runs, 'computation')} have a "
            f"bar of their own; the others are put together by "
            f"{q.seconds(stream.stretch_seconds)}, as high as the part of it that they took."
        )
    if stream.transfer_runs > stream.transfers.height:
        parts.append(
            f"So are all but the {q.count(stream.transfers.height)} longest of "
            f"{q.counted(stream.transfer_runs, 'transfer')}."
        )
    if stream.hidden_rows:
        parts.append(
            f"{q.counted(stream.hidden_rows, 'worker')} with "
            f"{q.counted(stream.hidden_runs, 'computation')} are left out: those where "
            "something failed come first, then the busiest."
        )
    if stream.failures > stream.marks.height:
        more = stream.failures - stream.marks.height
        parts.append(f"{q.counted(more, 'more failed attempt')} are not marked.")
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
    bad = run.failed_chunks
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
        f"{_short(row['filename'])} ({row['relative_duration']:.1f} times)"
        for row in data.slow_files.rows.iter_rows(named=True)
    ]
    workers = [
        f"{_short(row['worker'])} ({row['relative_duration']:.1f} times)"
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
    rows = data.everyone
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


def comings_and_goings(data: ReportData, began_t: float) -> str:
    """Say how many workers came and left meanwhile; empty if none did.

    Parameters
    ----------
    data : ReportData
    began_t : float
        Workers that came up to then were there when recording began.
    """
    everyone = data.everyone
    came = everyone.filter(pl.col("added_t") > began_t).height
    left = everyone.filter(
        pl.col("removed_t").is_not_null() & ~pl.col("lost").fill_null(value=False)
    ).height
    told = [f"{q.count(came)} came after the start"] if came else []
    told += [f"{q.count(left)} left as they were told to"] if left else []
    return f"Of these, {_listed(told)}." if told else ""


def tasks(data: ReportData) -> str:
    """Say which kind of task took the most time."""
    rows = data.prefixes.rows
    total = data.run.compute_seconds or 0.0
    text = "A prefix is a kind of task: what its key begins with."
    top = rows.row(0, named=True) if rows.height else {}
    if total and top.get("compute_seconds") is not None:
        text += (
            f" {_name(top['prefix'])} took {q.share(top['compute_seconds'] / total)} of "
            f"all computing: {q.counted(top['task_runs'], 'attempt')}, "
            f"{q.seconds(top['median_compute_seconds'])} in the median."
        )
    return text


def merging_of_tasks(data: ReportData) -> str:
    """Weigh what tasks do for coffea against each other; empty without coffea."""
    shares = dict(data.roles.rows.select("role", "compute_share").iter_rows())
    chunks, merging = shares.get("chunk"), shares.get("merge")
    if chunks is None:
        return ""
    # Shares that are rounded each may add up to a hair more than all.
    other = max(1 - chunks - (merging or 0), 0.0)
    merged = f", merging their results {q.share(merging)}" if merging else ""
    return f"Chunks took {q.share(chunks)} of computing{merged}, all else {q.share(other)}."


def task_groups(data: ReportData) -> str:
    """Say that prefixes consist of several task groups, if they do."""
    groups, prefixes = data.task_groups, data.prefixes.total
    if groups.total <= prefixes or not groups.rows.height:
        return ""
    top = groups.rows.row(0, named=True)
    return (
        "Tasks of a prefix come in groups, the layers of the graphs: "
        f"{q.count(groups.total)} of them. The costliest, "
        f"{_name(top['task_group'], 'no group')}, computed for "
        f"{q.seconds(top['compute_seconds'])} in {q.counted(top['task_runs'], 'attempt')}."
    )


def stragglers(data: ReportData) -> str:
    """Say how many attempts took far longer than usual, and name the worst."""
    found = data.stragglers.listing
    if not found.total:
        return "No attempt took twice as long as is usual for its prefix."
    worst = found.rows.row(0, named=True)
    attempts = "1 attempt" if found.total == 1 else f"{q.count(found.total)} attempts"
    ratio = worst["relative_duration"]
    times = f", {q.number(ratio)} times as long" if ratio else ""
    return (
        f"{attempts} took at least twice as long as is usual for the prefix, "
        f"{q.seconds(data.stragglers.excess_seconds)} more in all. The worst, "
        f"{shortened(visible(worst['key']), 60)}, took {q.seconds(worst['compute_seconds'])} "
        f"instead of {q.seconds(worst['median_seconds'])}{times}."
    )


def durations_left_out(data: ReportData, shown: int) -> str:
    """Say how many prefixes the figure of durations leaves out; empty if none."""
    if shown >= data.prefixes.total:
        return ""
    return (
        f"The {q.count(shown)} prefixes that computed the most, of "
        f"{q.count(data.prefixes.total)}."
    )


def submissions(data: ReportData) -> str:
    """Say in how many batches tasks came."""
    came = data.submissions
    if not came.tasks:
        return ""
    tasks = q.counted(came.tasks, "task")
    if came.batches == 1:
        return f"{tasks} came in one batch."
    return (
        f"{tasks} came in {q.count(came.batches)} batches, such as graphs; the largest had "
        f"{q.count(came.largest)}."
    )


def stealing(data: ReportData) -> str:
    """Say how many tasks idle workers took from busy ones; empty if it cannot be known."""
    came = data.submissions
    if came.stealing is False and not came.stolen:
        return "Work stealing was off."
    if not came.has_events:
        return ""
    if not came.stolen and not came.too_late:
        return "No task was stolen by an idle worker."
    late = ""
    if came.too_late:
        late = f"; {q.counted(came.too_late, 'request')} came too late"
    stolen = q.counted(came.stolen, "task was stolen", "tasks were stolen")
    return f"{stolen} by idle workers from busy ones{late}."


def inside(data: ReportData, graph: Flame) -> str:
    """Say what the samples are, which function took the most, and what is not known."""
    looked = q.counted(graph.samples, "time") if graph.samples else "never"
    text = (
        f"Dask's profilers looked {looked} at what threads were at. "
        "A function is as wide as the time that was seen in it and in what it calls."
    )
    if graph.logs:
        text += (
            f" What Yappi measured, in {q.counted(len(graph.logs), 'file')}, is chosen in the "
            "place of workers; who called a function's callers is worked out there."
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


def not_sampled(data: ReportData) -> str:
    """Say why there is no sample of a worker."""
    every = q.seconds(data.recording.sample_interval_seconds or 1.0)
    return (
        "The workers were never sampled: none was there, or the recording was shorter "
        f"than the interval between samples ({every}). A shorter one:"
    )


def movement(data: ReportData) -> str:
    """Say how much moved between workers, or what is known of it without a record."""
    moved = data.movement
    if not moved.transfers:
        return "No worker had to fetch a result from another one, as far as they told."
    most = moved.pairs.rows.row(0, named=True)
    way = f"from {_address(most['source'])} to {_address(most['destination'])}"
    if moved.recorded:
        return (
            f"Workers sent each other {q.byte_size(moved.bytes)} in "
            f"{q.counted(moved.transfers, 'transfer')}; the most, "
            f"{q.byte_size(most['bytes'])}, went {way}."
        )
    told = (
        f"Workers fetched results from each other "
        f"{q.counted(moved.transfers, 'time')}, for {q.seconds(moved.seconds)} added up; "
        f"the most between two of them, {q.seconds(most['seconds'])}, {way}."
    )
    return f"{told}{_fetching_most(data)} How many bytes these were was not recorded."


def _fetching_most(data: ReportData) -> str:
    rows = data.prefixes.rows.filter(pl.col("transfer_seconds") > 0)
    if rows.is_empty():
        return ""
    top = rows.sort("transfer_seconds", descending=True).row(0, named=True)
    total = _float(rows["transfer_seconds"].sum())
    share = q.share(top["transfer_seconds"] / total) if total else q.UNKNOWN
    return f" {_name(top['prefix'])} waited for {share} of it."


def _address(worker: object) -> str:
    return shortened(visible(str(worker)).rsplit("://", 1)[-1], 40)


def cpu(data: ReportData) -> str:
    """Say how busy the cores were by the workers' own measure."""
    mean = _float(data.cluster_samples["cpu_percent"].mean())
    threads = _float(data.cluster_samples["nthreads"].mean())
    if mean is None or not threads:
        return "CPU use was not recorded."
    return (
        f"The workers used {_measured(mean / 100, 'core')} on average, with "
        f"{_measured(threads, 'thread')} for tasks. 100 % is one core; more than that is work "
        "beside the tasks, or libraries with threads of their own."
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


def versions_differ(data: ReportData) -> str:
    """Say which packages processes of the run have in different versions, if any."""
    differing = data.recipe.differing
    if not differing:
        return ""
    told = [
        f"{visible(name)} ({_versions(places)})"
        for name, places in list(differing.items())[:VERSIONS_TOLD]
    ]
    more = _more(len(differing), len(told))
    return f"Versions differ: {_listed(told)}{more}."


def _versions(places: dict[str, str]) -> str:
    return ", ".join(
        f"{'workers' if process == 'worker' else process} {shortened(visible(version), 40)}"
        for process, version in places.items()
    )


def configured(data: ReportData) -> str:
    """Say how much of Dask's configuration is not the default."""
    setup = data.setup
    if not setup.has_configuration:
        return ""
    options = setup.options.rows["name"].n_unique()
    if not options:
        return "All of Dask's configuration is the default."
    varies = setup.options.rows.filter("varies")["name"].n_unique()
    among = f", {q.count(varies)} of them not everywhere in the same way" if varies else ""
    verb = "differs" if options == 1 else "differ"
    return (
        f"{q.counted(options, 'option')} of Dask's configuration {verb} from the "
        f"default{among}."
    )


def jobs(data: ReportData) -> str:
    """Say in which jobs of which batch system the workers ran, if in any."""
    kinds = data.setup.jobs.rows.filter(process="worker").to_dicts()
    if not kinds:
        return ""
    told = [_jobs_of_a_kind(kind) for kind in kinds[:KINDS_OF_JOBS_TOLD]]
    return f"{_listed(told)}{_more(len(kinds), len(told))}."


def _jobs_of_a_kind(kind: dict[str, object]) -> str:
    workers = q.counted(int(str(kind["processes"])), "worker")
    in_jobs = q.counted(int(str(kind["jobs"])), "job")
    parts = [f"{workers} in {in_jobs} of {visible(str(kind['system']))}"]
    if kind["queue"] is not None:
        parts.append(f"queue {shortened(visible(str(kind['queue'])), 40)}")
    if kind["cores"] is not None:
        parts.append(q.counted(int(str(kind["cores"])), "core"))
    return ", ".join(parts)


def _name(name: object, nameless: str = "Tasks without a prefix") -> str:
    return shortened(visible(str(name)), 60) if name is not None else nameless


def _measured(value: float, noun: str) -> str:
    text = q.number(value)
    return f"{text} {noun if text == '1' else noun + 's'}"


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
