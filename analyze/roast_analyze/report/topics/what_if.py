"""Predicted wall time and core time with other numbers of workers."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl
from plotly.graph_objects import Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.report import quantities as q
from roast_analyze.report.section import Plot, Section
from roast_analyze.safe_text import visible
from roast_analyze.what_if import COLUMNS, MAX_ERROR, MAX_WORKERS, predict

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: A simulation takes 0.1 ms for each task, and up to 1 ms with hundreds of workers; larger runs
#: are left to the command.
TASK_LIMIT: Final = 10_000

#: Numbers of workers, relative to those of the run.
_FACTORS: Final = (0.25, 0.5, 0.75, 1.5, 2, 4)


def query(trace: Session, context: Context) -> pl.DataFrame:
    """Predict the run with other numbers of workers; the replay of the run comes first.

    Empty if the run has no tasks or more than :data:`TASK_LIMIT`.
    """
    run = context.run
    if not run.peak_workers or not 0 < run.task_runs <= TASK_LIMIT or context.time_range:
        return COLUMNS.to_frame()
    counts = {max(1, round(factor * run.peak_workers)) for factor in _FACTORS}
    counts -= {run.peak_workers}
    return predict(trace, sorted(n for n in counts if n <= MAX_WORKERS), (), (), ())


def section(found: pl.DataFrame, context: Context) -> Section:
    """Build the section."""
    section = Section("what-if", "Prediction", "What if")
    command = f"roast-analyze what-if {shlex.quote(visible(context.trace_name))}"
    if not (context.run.peak_workers and context.run.task_runs):
        return replace(
            section, empty="No task ran on a worker, so there is nothing to predict."
        )
    if found.height < 2:
        return replace(
            section,
            empty="The report predicts only whole runs with workers and at most "
            f"{q.count(TASK_LIMIT)} attempts. To predict this one, which can take a minute:",
            hint=command,
        )
    error = max(abs(found[name][0]) for name in ("replay_error", "placement_error"))
    if error > MAX_ERROR:
        return replace(
            section,
            empty=f"The simulation of this run as recorded is off by {q.share(error)}, so "
            "predictions should not be used.",
        )
    rows = found.sort("workers")
    limitations = rows.drop_nulls("note").group_by("note", maintain_order=True).agg("workers")
    notes = "".join(
        f" With {q.series([q.count(n) for n in workers])} "
        f"{'worker' if workers == [1] else 'workers'}: {note}."
        for note, workers in limitations.iter_rows()
    )
    return replace(
        section,
        sentences=(_sentence(found),),
        plots=(
            Plot(
                figure(rows, found["workers"][0]),
                name="what-if",
                title="Predicted wall time and core time by number of workers",
                description="Two curves over the number of workers: wall time and core time.",
                note="Simulated from the recorded graph and durations. Bars are the range in "
                "which a run should be; where it is too wide, there is no point. Contention "
                "for storage and network that the run did not have is not predicted." + notes,
                query="",
                command=command,
            ),
        ),
    )


def figure(rows: pl.DataFrame, recorded: int) -> Figure:
    """Draw wall time with its lower bounds, and core time, over the number of workers."""
    drawn = layout.empty_figure(
        320,
        xaxis=layout.axis("workers", rangemode="tozero"),
        yaxis=layout.axis("wall time (s)", rangemode="tozero"),
        yaxis2={
            **layout.axis("core time (s)", rangemode="tozero"),
            "overlaying": "y",
            "side": "right",
            "showgrid": False,
            # By default, its ticks are aligned with those of the other axis: 8.3, 16.6 …
            "tickmode": "auto",
        },
    )
    floor = rows.select(pl.max_horizontal("critical_path_seconds", "total_work_seconds"))
    curves = (
        ("wall time", rows["wall_seconds"], palette.RANKED[0], "solid", "y"),
        ("lower bound of the wall time", floor.to_series(), palette.REFERENCE, "dot", "y"),
        ("core time", rows["core_seconds"], palette.RANKED[1], "dash", "y2"),
    )
    # The replay, with recorded placement, can be outside of the range.
    above = (rows["wall_seconds_max"] - rows["wall_seconds"]).clip(0.0)
    below = (rows["wall_seconds"] - rows["wall_seconds_min"]).clip(0.0)
    wall_ranges = {
        "type": "data",
        "symmetric": False,
        "array": above.round(4).to_list(),
        "arrayminus": below.round(4).to_list(),
        "thickness": 1,
    }
    for name, values, color, dash, axis in curves:
        sizes = [13 if workers == recorded else 6 for workers in rows["workers"]]
        drawn.add_trace(
            Scatter(
                x=rows["workers"].to_list(),
                y=[None if value is None else round(value, 4) for value in values],
                yaxis=axis,
                name=name,
                mode="lines" if dash == "dot" else "lines+markers",
                line={"color": color, "dash": dash},
                error_y=wall_ranges if name == "wall time" else None,
                marker={"size": sizes, "color": color},
                hovertemplate=f"%{{x}} workers: %{{y:,.4~g}} s {name}<extra></extra>",
                meta=layout.columns(x="workers", y="seconds"),
            )
        )
    return drawn


def _sentence(found: pl.DataFrame) -> str:
    """Compare twice and half the workers with the run."""
    workers, wall = found.row(0, named=True)["workers"], found["wall_seconds"][0]
    parts = []
    for factor in (0.5, 2):
        rows = found.filter(pl.col("workers") == max(1, round(factor * workers)))
        if rows.height and rows["workers"][0] != workers:
            row = rows.row(0, named=True)
            least, most = row["wall_seconds_min"], row["wall_seconds_max"]
            amount = f"at least {q.seconds(least)}"
            if most is not None:
                amount = f"{q.seconds(least)} to {q.seconds(most)}"
            parts.append(f"{amount} with {q.counted(row['workers'], 'worker')}")
    text = f"With {q.counted(workers, 'worker')} the simulated run takes {q.seconds(wall)}"
    if parts:
        text += f", and it would take {q.series(parts)}"
    error = q.share(abs(found["replay_error"][0]))
    return f"{text}. The replay of the recorded run is off by {error}."
