"""Scheduler load: transitions, waiting tasks, event loops, submissions and work stealing."""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl
from plotly.graph_objects import Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.report import quantities as q
from roast_analyze.report.plots import plot_of
from roast_analyze.report.section import Section

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

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
_SETTINGS: Final = (
    "SELECT EXISTS (FROM events), (SELECT any_value(value) FROM environment "
    "WHERE section = 'dask configuration' AND name = 'distributed.scheduler.work-stealing')"
)


@dataclass(frozen=True)
class SchedulerLoad:
    """Load of the scheduler over time.

    Parameters
    ----------
    load : polars.DataFrame
        One row per bucket of view ``concurrency``: t, seconds, ready (tasks without a free
        thread), waiting (for dependencies), transitions_per_second, slowest_loop_seconds
        (longest interval of a worker's event loop), batches, tasks, stolen.
    batches, tasks, largest : int
        Batches in which new tasks were submitted (a graph is one), their tasks, and the tasks
        of the largest batch.
    stolen, too_late : int
        Tasks that idle workers stole, and requests for tasks that had begun or were gone.
    stealing : bool or None
        Whether work stealing was enabled; None if it was not recorded.
    has_events : bool
        Whether Dask's events were recorded, which stealing is counted from.
    """

    load: pl.DataFrame
    batches: int
    tasks: int
    largest: int
    stolen: int
    too_late: int
    stealing: bool | None
    has_events: bool


def query(trace: Session, context: Context) -> SchedulerLoad:
    """Query the load of the scheduler."""
    buckets = context.buckets.parameters
    transitions, loops, batches, steals = (
        trace.sql(text, buckets).pl() for text in (_TRANSITIONS, _LOOPS, _BATCHES, _STEALS)
    )
    has_events, stealing = trace.sql(_SETTINGS).fetchall()[0]
    load = (
        context.load.select("t", "seconds", "ready", "waiting")
        .with_columns(pl.int_range(pl.len()).alias("bucket"))
        .join(transitions, on="bucket", how="left")
        .join(loops, on="bucket", how="left")
        .join(batches, on="bucket", how="left")
        .join(steals, on="bucket", how="left")
        .sort("t")
        .with_columns(
            (pl.col("transitions").fill_null(0) / pl.col("seconds")).alias(
                "transitions_per_second"
            ),
            pl.col("batches", "tasks", "stolen").fill_null(0),
        )
    )
    return SchedulerLoad(
        load=load,
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
            section, empty="All records have the same time, so that there are no rates to show."
        )
    if load.is_empty() or not load["transitions_per_second"].sum():
        return replace(
            section,
            empty="No transition was recorded: there was no scheduler, it had no tasks, or the "
            "settings excluded transitions.",
        )
    plot = plot_of(
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
    plots = [plot]
    if found.tasks:
        stolen = f", and {q.counted(found.stolen, 'stolen task')}" if found.stolen else ""
        submissions = plot_of(
            submission_figure(load, context.axis),
            name="submissions",
            title="Task submissions",
            description=f"Over time: {q.counted(found.tasks, 'task')} submitted in "
            f"{q.counted(found.batches, 'batch', 'batches')}{stolen}.",
            query="SELECT submitted_t, count(*) AS tasks FROM tasks GROUP BY submitted_t; "
            "SELECT t, payload FROM events WHERE topic = 'stealing'",
            command=context.view_command("tasks"),
        )
        plots.append(submissions)
    sentences = (_load(load), _submissions(found), _stealing(found))
    return replace(section, sentences=tuple(filter(None, sentences)), plots=tuple(plots))


def _load(load: pl.DataFrame) -> str:
    """Describe the number and peak rate of transitions, and what waited."""
    rates = load["transitions_per_second"]
    total = q.counted(round((rates * load["seconds"]).sum()), "transition")
    peak = q.rate(q.as_float(rates.max()), "transitions")
    sentences = [
        f"The scheduler made {total}, at most {peak} within {q.seconds(load['seconds'][0])}."
    ]
    if ready := q.as_float(load["ready"].max()):
        tasks = q.counted(round(ready), "ready task")
        sentences.append(f"Up to {tasks} waited for a free thread.")
    if loop := q.as_float(load["slowest_loop_seconds"].max()):
        sentences.append(
            f"The slowest event loop of a worker took {q.seconds(loop)} per iteration "
            "(20\N{NO-BREAK SPACE}ms when idle)."
        )
    return " ".join(sentences)


def _submissions(found: SchedulerLoad) -> str:
    if not found.tasks:
        return ""
    tasks = q.counted(found.tasks, "task was submitted", "tasks were submitted")
    if found.batches == 1:
        return f"{tasks} in one batch."
    return (
        f"{tasks} in {q.count(found.batches)} batches, such as graphs; the largest had "
        f"{q.counted(found.largest, 'task')}."
    )


def _stealing(found: SchedulerLoad) -> str:
    """Count the stolen tasks; empty if that is unknown."""
    if found.stealing is False and not found.stolen:
        return "Work stealing was disabled."
    if not found.has_events:
        return ""
    if not found.stolen and not found.too_late:
        return "No task was stolen."
    late = ""
    if found.too_late:
        late = f"; {q.counted(found.too_late, 'request')} came too late"
    stolen = q.counted(found.stolen, "task was stolen", "tasks were stolen")
    return f"{stolen} from busy workers by idle ones{late}."


def figure(load: pl.DataFrame, axis: TimeAxis) -> Figure:
    """Draw transitions, waiting tasks and event loops: see :attr:`SchedulerLoad.load`."""
    drawn = layout.empty_figure(
        520,
        xaxis=layout.axis(axis.title, range=axis.range, anchor="y"),
        yaxis=layout.axis(
            "event loop (s)", domain=[0, 0.24], rangemode="tozero", nticks=4, anchor="x"
        ),
        yaxis2=layout.axis(
            "tasks", domain=[0.38, 0.62], rangemode="tozero", nticks=5, anchor="x"
        ),
        yaxis3=layout.axis(
            "per second", domain=[0.76, 1], rangemode="tozero", nticks=5, anchor="x"
        ),
    )
    for column, words, color, yaxis in (
        ("transitions_per_second", "transitions per second", palette.RANKED[0], "y3"),
        ("ready", "ready, no free thread", palette.RANKED[1], "y2"),
        ("waiting", "waiting for dependencies", palette.RANKED[4], "y2"),
        ("slowest_loop_seconds", "slowest event loop of a worker", palette.RANKED[3], "y"),
    ):
        drawn.add_trace(
            Scatter(
                mode="lines",
                # A value is that of the bucket that begins there.
                line={"color": color, "width": 1.6, "shape": "hv"},
                # Short runs have more buckets than samples.
                connectgaps=True,
                x=load.select(axis.place("t").round(3)).to_series().to_list(),
                y=load[column].round(3).to_list(),
                yaxis=yaxis,
                name=words,
                fill="tozeroy" if yaxis == "y3" else "none",
                fillcolor=palette.AREA,
                hovertemplate=f"%{{y:,.4~g}} {words}<extra></extra>",
                meta=layout.columns(x=axis.column, y=column),
            )
        )
    return drawn


def submission_figure(load: pl.DataFrame, axis: TimeAxis) -> Figure:
    """Draw submitted tasks, and stolen tasks below if there are any."""
    has_stolen = bool(load["stolen"].sum())
    drawn = layout.one_or_two_panels(
        axis, (240, 400), "tasks", "stolen" if has_stolen else "", showlegend=has_stolen
    )
    drawn.add_trace(_stems(load, "tasks", "tasks submitted", palette.RANKED[0], axis, "y"))
    if has_stolen:
        drawn.add_trace(_stems(load, "stolen", "tasks stolen", palette.RANKED[3], axis, "y2"))
    return drawn


def _stems(
    load: pl.DataFrame, column: str, words: str, color: str, axis: TimeAxis, yaxis: str
) -> Scatter:
    """Draw a stem for each bucket with tasks; a bar would be too thin to see."""
    shown = load.filter(pl.col(column) > 0)
    counts = shown[column].to_list()
    return Scatter(
        mode="markers",
        x=shown.select(axis.place("t").round(3)).to_series().to_list(),
        y=counts,
        yaxis=yaxis,
        name=words,
        marker={"color": color, "size": 7},
        # The stem is an error bar from the point down to zero.
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [0] * len(counts),
            "arrayminus": counts,
            "width": 0,
            "thickness": 1.6,
            "color": color,
        },
        cliponaxis=False,
        hovertemplate=f"%{{y:,}} {words}<extra></extra>",
        meta=layout.columns(x=axis.column, y=column),
    )
