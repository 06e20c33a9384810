"""Scheduler load: transitions, waiting tasks, event loops, submissions and work stealing."""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl
from plotly.graph_objects import Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.report import quantities as q
from roast_analyze.report.section import Plot, Section

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: With more idle threads than this, ready tasks do not wait for a free thread.
IDLE_SHARE: Final = 0.2

#: What happened at the very end belongs to the last bucket.
_BUCKET: Final = "least(floor(({t} - $begin_t) / $width)::BIGINT, $last) AS bucket"
_TRANSITIONS: Final = (
    f"SELECT {_BUCKET.format(t='t')}, count(*) AS transitions FROM transitions GROUP BY bucket"
)
_LOOPS: Final = (
    f"SELECT {_BUCKET.format(t='t')}, "
    "max(event_loop_interval_seconds) AS slowest_loop_seconds "
    "FROM worker_samples GROUP BY bucket"
)
#: All tasks of one graph enter at one instant.
_BATCHES: Final = (
    f"SELECT {_BUCKET.format(t='submitted_t')}, count(*) AS batches, "
    "sum(tasks)::BIGINT AS tasks, max(tasks) AS largest FROM ("
    "SELECT submitted_t, count(*) AS tasks FROM tasks GROUP BY submitted_t) GROUP BY bucket"
)
#: The payload of a steal is a list: outcome of the request, key, state of the task, ….
_STEALS: Final = (
    f"SELECT {_BUCKET.format(t='t')}, count(*) FILTER (what = 'confirm') AS stolen, "
    "count(*) FILTER (what IN ('already-computing', 'already-aborted', 'stale-response')) "
    "AS too_late FROM (SELECT t, payload ->> '$[0]' AS what FROM events "
    "WHERE topic = 'stealing') GROUP BY bucket"
)
#: Workers report no phases of attempts that were lost, cancelled or rescheduled, or did not
#: end: view ``concurrency`` does not contain them.
_BUSY: Final = (
    "SELECT t AS busy_t, coalesce(sum(seconds) FILTER (category = 'busy'), 0) / sum(seconds) "
    "AS busy_share FROM core_time GROUP BY t ORDER BY t"
)
_SETTINGS: Final = (
    "SELECT EXISTS (FROM events), (SELECT any_value(value) FROM environment "
    "WHERE section = 'dask configuration' AND name = 'distributed.scheduler.work-stealing')"
)


@dataclass(frozen=True)
class SchedulerLoad:
    """Load of the scheduler over time."""

    #: One row per bucket of view ``concurrency``: t, seconds, ready (tasks that are not
    #: computed yet), waiting (for dependencies), nthreads, busy_share (of the threads),
    #: transitions, transitions_per_second,
    #: slowest_loop_seconds (longest interval of a worker's event loop), batches, tasks,
    #: stolen.
    load: pl.DataFrame
    #: Batches in which new tasks were submitted (a graph is one), their tasks, and the tasks
    #: of the largest batch.
    batches: int
    tasks: int
    largest: int
    #: Tasks that idle workers stole, and requests for tasks that had begun or were gone.
    stolen: int
    too_late: int
    #: Whether work stealing was enabled; None if it was not recorded.
    stealing: bool | None
    #: Whether Dask's events were recorded, which stealing is counted from.
    has_events: bool


def query(trace: Session, context: Context) -> SchedulerLoad:
    """Query the load of the scheduler."""
    transitions, loops, batches, steals = (
        trace.sql(text, context.buckets).pl()
        for text in (_TRANSITIONS, _LOOPS, _BATCHES, _STEALS)
    )
    has_events, stealing = trace.rows(_SETTINGS)[0]
    columns = ("t", "seconds", "ready", "waiting", "nthreads")
    load = context.load.select(columns).with_row_index("bucket")
    for found in (transitions, loops, batches, steals):
        load = load.join(found, on="bucket", how="left", maintain_order="left")
    # Buckets of view core_time can be wider.
    load = load.with_columns(middle_t=pl.col("t") + pl.col("seconds") / 2).join_asof(
        trace.sql(_BUSY).pl(), left_on="middle_t", right_on="busy_t"
    )
    load = load.with_columns(
        pl.col("transitions", "batches", "tasks", "stolen", "busy_share").fill_null(0)
    )
    # The last bucket can be much shorter than the others, and contains what happened at the
    # very end.
    per_second = pl.col("transitions") / context.buckets["width"]
    return SchedulerLoad(
        load=load.with_columns(transitions_per_second=per_second),
        batches=int(batches["batches"].sum()),
        tasks=int(batches["tasks"].sum()),
        largest=int(batches["largest"].fill_null(0).max() or 0),
        stolen=int(steals["stolen"].sum()),
        too_late=int(steals["too_late"].sum()),
        stealing=None if stealing is None else stealing == "true",
        has_events=has_events,
    )


def section(found: SchedulerLoad, context: Context) -> Section:
    """Build the section."""
    section = Section("scheduler", "Scheduler", "Scheduler")
    load = found.load
    if load.is_empty() and context.run.task_runs:
        return replace(
            section, empty="All records have the same time, so there are no rates to show."
        )
    if load.is_empty() or not load["transitions_per_second"].sum():
        return context.absent(
            section,
            "No transition was recorded: there was no scheduler, it had no tasks, or the "
            "settings excluded transitions.",
        )
    plots = [
        Plot(
            figure(load, context.axis),
            name="scheduler",
            title="Scheduler load",
            description="Over time: transitions per second, tasks that waited, and the slowest "
            "event loop of a worker.",
            query="SELECT t, seconds, queued + no_worker AS ready, waiting FROM concurrency; "
            "SELECT t FROM transitions; "
            "SELECT t, event_loop_interval_seconds FROM worker_samples",
            command=context.view_command("concurrency"),
        )
    ]
    if found.tasks:
        stolen = f", and {q.counted(found.stolen, 'stolen task')}" if found.stolen else ""
        plots.append(
            Plot(
                submission_figure(load, context.axis),
                name="submissions",
                title="Task submissions",
                description=f"Over time: {q.counted(found.tasks, 'task')} submitted in "
                f"{q.counted(found.batches, 'batch', 'batches')}{stolen}.",
                query="SELECT submitted_t, count(*) AS tasks FROM tasks GROUP BY submitted_t; "
                "SELECT t, payload FROM events WHERE topic = 'stealing'",
                command=context.view_command("tasks"),
            )
        )
    return replace(section, sentences=_sentences(found), plots=plots)


def _sentences(found: SchedulerLoad) -> list[str]:
    """Describe the rate of transitions, what waited, submitted tasks and stolen ones."""
    load = found.load
    rates = load["transitions_per_second"]
    total = q.counted(int(load["transitions"].sum()), "transition")
    peak = q.rate(q.as_float(rates.max()), "transitions")
    over = q.seconds(load["seconds"][0])
    text = f"The scheduler made {total}, with a peak of {peak} over {over}."
    # A mean over a bucket.
    if ready := round(q.as_float(load["ready"].max()) or 0.0):
        # Right after a submission, no thread computes yet: all times with ready tasks count.
        waited = load.filter(pl.col("ready") > 0)
        threads = waited["nthreads"] * waited["seconds"]
        available = float(threads.sum())
        idle = 1 - float((threads * waited["busy_share"]).sum()) / available if available else 0
        text += f" On average over {over}, up to {q.counted(ready, 'ready task')} waited"
        if idle >= IDLE_SHARE:
            text += (
                f". While tasks were ready, {q.share(idle)} of the threads computed nothing: "
                "a lack of threads does not explain the wait."
            )
        else:
            text += " for a free thread."
    if loop := q.as_float(load["slowest_loop_seconds"].max()):
        text += (
            f" The slowest event loop of a worker took {q.seconds(loop)} per iteration "
            "(20\N{NO-BREAK SPACE}ms when idle)."
        )
    sentences = [text]
    if found.tasks:
        tasks = q.counted(found.tasks, "task was submitted", "tasks were submitted")
        largest = q.counted(found.largest, "task")
        batches = f"{q.count(found.batches)} batches, such as graphs; the largest had {largest}"
        sentences.append(f"{tasks} in {'one batch' if found.batches == 1 else batches}.")
    if found.stealing is False and not found.stolen:
        sentences.append("Work stealing was disabled.")
    elif found.has_events and not found.stolen and not found.too_late:
        sentences.append("No task was stolen.")
    elif found.has_events:
        late = q.counted(found.too_late, "request")
        stolen = q.counted(found.stolen, "task was stolen", "tasks were stolen")
        sentences.append(
            f"{stolen} from busy workers by idle ones"
            + (f"; {late} to steal came too late." if found.too_late else ".")
        )
    return sentences


def figure(load: pl.DataFrame, axis: TimeAxis) -> Figure:
    """Draw transitions, waiting tasks and event loops: see :attr:`SchedulerLoad.load`."""
    drawn = layout.panels(axis, 520, "per second", "tasks", "event loop (s)")
    drawn.update_layout(yaxis3_nticks=4)
    for column, words, color, yaxis in (
        ("transitions_per_second", "transitions per second", palette.RANKED[0], "y"),
        ("ready", "ready, not dispatched", palette.RANKED[1], "y2"),
        ("waiting", "waiting for dependencies", palette.RANKED[4], "y2"),
        ("slowest_loop_seconds", "slowest event loop of a worker", palette.RANKED[3], "y3"),
    ):
        curve = layout.curve(
            axis, load, column, words,
            yaxis=yaxis,
            # A value is that of the bucket that begins there.
            line={"color": color, "width": 1.6, "shape": "hv"},
            # Short runs have more buckets than samples.
            connectgaps=True,
            fill="tozeroy" if yaxis == "y" else "none",
        )  # fmt: skip
        drawn.add_trace(curve)
    return drawn


def submission_figure(load: pl.DataFrame, axis: TimeAxis) -> Figure:
    """Draw submitted tasks, and stolen tasks below if there are any."""
    kinds = [("tasks", "tasks submitted", palette.RANKED[0])]
    if load["stolen"].sum():
        kinds.append(("stolen", "tasks stolen", palette.RANKED[3]))
    names = [column for column, *_ in kinds]
    drawn = layout.panels(axis, 80 + 160 * len(kinds), *names, showlegend=len(kinds) > 1)
    for yaxis, (column, words, color) in zip(("y", "y2"), kinds, strict=False):
        shown = load.filter(pl.col(column) > 0)
        counts = shown[column].to_list()
        # A stem for each bucket, because a bar would be too thin to see: an error bar from the
        # point down to zero.
        down = {"type": "data", "symmetric": False, "array": [0] * len(counts), "width": 0}
        drawn.add_trace(
            Scatter(
                mode="markers",
                x=axis.places(shown),
                y=counts,
                yaxis=yaxis,
                name=words,
                marker={"color": color, "size": 7},
                error_y={**down, "arrayminus": counts, "thickness": 1.6, "color": color},
                cliponaxis=False,
                hovertemplate=f"%{{y:,}} {words}<extra></extra>",
                meta=layout.columns(x=axis.column, y=column),
            )
        )
    return drawn
