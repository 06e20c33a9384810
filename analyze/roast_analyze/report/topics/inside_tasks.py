"""Inside tasks: the compute time by kind of work, and the own code with what it waits for."""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
from plotly.graph_objects import Bar, Figure

from roast_analyze.computed.busy_time import bucket_widths
from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label
from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import Listing, list_query
from roast_analyze.report.section import Plot, Section
from roast_analyze.safe_text import named

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: Rows of the table.
ROWS: Final = 15
#: Kinds whose details name own code, or what it waits for.
OWN_KINDS: Final = (
    "own code", "Python loops", "lock", "another task", "an actor", "subprocess",
    "queue or event", "sleeping", "JIT compilation", "imports", "sending events",
    "garbage collection",
)  # fmt: skip
#: Samples from which kinds are named in sentences. If they are independent, the standard error
#: of a share is then at most 5 percentage points.
LEAST_SAMPLES: Final = 100
#: Kinds that are named, and their least share.
_NAMED: Final = 3
_NAMED_SHARE: Final = 0.01
#: Kinds with a color of their own, and their least share; the others share one.
_DRAWN: Final = 8
_DRAWN_SHARE: Final = 0.005

_UNKNOWN: Final = "not known"
_PATTERNS: Final = {"waiting": "/", _UNKNOWN: "x"}
#: Words for the seconds of kinds that are not known.
REASONS: Final = {
    "no samples": "without samples of the process",
    "profiler starved": (
        "in which samples are missing (a held GIL or a host without free cores can delay the "
        "profiler)"
    ),
    "mixed with seceded tasks": (
        "of prefixes whose samples can also be of tasks that had seceded at that time"
    ),
    "not on the CPU": "in which own or library code was not on the CPU and can have waited",
}
#: Colors of kinds that are not known, by rank.
_GRAYS: Final = ("#4C515A", "#B9BDC5", "#9AA0AA", "#D2D5DA")

_OVER_TIME: Final = (
    "SELECT t, category, kind, sum(seconds) AS seconds, sum(samples) AS samples "
    "FROM busy_time GROUP BY ALL ORDER BY ALL"
)
#: Own functions, and what they call, are described by several words; libraries by one.
_OWN_CODE: Final = (
    "SELECT *, seconds / (SELECT sum(busy_time.seconds) FROM busy_time) AS share FROM ("
    "SELECT kind, detail, prefix, sum(seconds) AS seconds FROM busy_time "
    f"WHERE kind IN {OWN_KINDS} OR (kind = 'not on the CPU' AND contains(detail, ' ')) "
    "GROUP BY kind, detail, prefix)"
)
#: Rounded, because the order of additions changes the last bits of a sum.
_ORDER: Final = "round(seconds, 9) DESC, kind, detail, prefix"
_COLUMNS: Final = columns(
    "kind detail prefix seconds share",
    descriptions={
        "seconds": "Thread time, estimated from samples.",
        "share": "Share of the compute time of all tasks.",
    },
)


class Kind(NamedTuple):
    """A part of the bars: one kind, or all kinds of the least time."""

    words: str
    color: str
    pattern: str = ""


@dataclass(frozen=True)
class InsideTasks:
    """Compute time by kind."""

    #: t (start of the bucket), category, kind, seconds and samples.
    over_time: pl.DataFrame
    bucket_seconds: float
    #: kind, detail, prefix, seconds and share of the compute time.
    own_code: Listing


def query(trace: Session) -> InsideTasks:
    """Query the kinds of work of a run."""
    return InsideTasks(
        over_time=trace.sql(_OVER_TIME).pl(),
        bucket_seconds=next(iter(bucket_widths(trace).values()), 1.0),
        own_code=list_query(trace, "busy_time", _OWN_CODE, _ORDER, ROWS),
    )


def section(found: InsideTasks, context: Context) -> Section:
    """Build the section."""
    section = Section("inside-tasks", "Inside tasks", "Inside")
    if found.over_time.is_empty():
        return context.absent(section, "No task computed while this was recorded.")
    samples = float(found.over_time["samples"].sum())
    if not samples:
        return context.absent(
            section,
            "This trace contains no samples of tasks that computed. They are recorded, unless "
            "the settings exclude profiles, when Dask's profiler is enabled before the workers "
            "start:",
            "dask.config.set({'distributed.worker.profile.enabled': True})",
        )
    plot = Plot(
        over_time(found, context),
        name="inside-tasks",
        title="Kinds of work over time",
        description="Stacked bars over time: the number of computing threads by kind of work.",
        note=f"Estimated from about {q.counted(max(round(samples), 1), 'sample')}. Hatched: "
        "waiting. Crossed: not known. What is runnable but not on the CPU waits for the GIL or "
        "a core.",
        query=_OVER_TIME,
        command=context.view_command("busy_time"),
    )
    return replace(
        section,
        sentences=_sentences(found.over_time) if samples >= LEAST_SAMPLES else (),
        plots=(plot,),
        tables=context.tables(
            (
                "own-code",
                "Own code and what it waits for",
                found.own_code,
                _COLUMNS,
                "those with the most time",
            ),
            has_view=False,
        ),
    )


def over_time(found: InsideTasks, context: Context) -> Figure:
    """Draw the number of computing threads by kind of work, stacked, over time."""
    axis = context.axis
    drawn = layout.stacked_threads(axis)
    # The last bucket can end with the recording.
    inside = pl.min_horizontal(found.bucket_seconds, axis.stop_t - pl.col("t"))
    spent = found.over_time.with_columns(
        inside=inside, share=pl.col("seconds") / pl.col("seconds").sum().over("t")
    )
    for kind, names in rank(found.over_time).items():
        rows = (
            spent.filter(pl.col("kind").is_in(names))
            .group_by("t", "inside", maintain_order=True)
            .agg(pl.col("seconds", "share").sum())
        )
        drawn.add_trace(
            Bar(
                x=axis.places(rows, "t", 6),
                y=(rows["seconds"] / rows["inside"]).round(4).to_list(),
                offset=0,
                width=(rows["inside"] / axis.unit_seconds).round(6).to_list(),
                name=kind.words,
                marker=layout.hatched(kind.color, kind.pattern),
                customdata=rows.select(pl.col("seconds", "share").round(6)).rows(),
                hovertemplate=f"<b>{kind.words}</b><br>%{{customdata[0]:,.3~g}} s, "
                "%{customdata[1]:.1%} of the compute time<br>"
                f"%{{y:,.3~g}} threads from %{{x:,.4~g}} {axis.unit} on<extra></extra>",
                meta=layout.columns(
                    x=axis.column, y="threads", customdata=["seconds", "share"]
                ),
            )
        )
    return drawn


def rank(spent: pl.DataFrame) -> dict[Kind, list[str]]:
    """Return the parts of the bars and their kinds, those of the most time first.

    ``spent`` has the columns category, kind and seconds.
    """
    totals = _totals(spent)
    known = totals.filter(pl.col("category") != _UNKNOWN)
    least = _DRAWN_SHARE * float(totals["seconds"].sum())
    colored = known.head(_DRAWN).filter(pl.col("seconds") >= least)["kind"].to_list()
    rest = known.filter(~pl.col("kind").is_in(colored))["kind"].to_list()
    unknown = totals.filter(pl.col("category") == _UNKNOWN)["kind"].to_list()
    colors = dict(zip(colored, palette.RANKED, strict=False))
    colors |= {kind: _GRAYS[min(n, len(_GRAYS) - 1)] for n, kind in enumerate(unknown)}
    parts = {
        Kind(label(kind), colors[kind], _PATTERNS.get(category, "")): [kind]
        for category, kind in totals.select("category", "kind").iter_rows()
        if kind in colors
    }
    if rest:
        words = q.counted(len(rest), "other kind") if len(rest) > 1 else label(rest[0])
        parts[Kind(words, palette.OTHER)] = rest
    return parts


def _totals(spent: pl.DataFrame) -> pl.DataFrame:
    """Return category, kind and seconds, the most time first."""
    return (
        spent.group_by("category", "kind")
        .agg(pl.col("seconds").sum())
        .sort("seconds", "kind", descending=[True, False])
    )


def _sentences(spent: pl.DataFrame) -> list[str]:
    """Name the largest kinds, and state how much is not known and why."""
    totals = _totals(spent)
    whole = float(totals["seconds"].sum())
    is_unknown = pl.col("category") == _UNKNOWN
    known, unknown = totals.filter(~is_unknown), totals.filter(is_unknown)
    large = pl.col("seconds") >= _NAMED_SHARE * whole
    text = f"Tasks computed for {q.seconds(whole)}."
    largest = [
        f"{named(kind)} ({q.seconds(seconds)}, {q.share(seconds / whole)})"
        for kind, seconds in known.filter(large).head(_NAMED).select("kind", "seconds").rows()
    ]
    if largest:
        text += f" The largest kinds of work, as samples show: {q.series(largest)}."
    sentences = [text]
    if unknown.height:
        reasons = [
            f"{q.seconds(seconds)} {REASONS.get(kind, f'of {named(kind)}')}"
            for kind, seconds in unknown.filter(large).select("kind", "seconds").rows()
        ]
        why = f": {q.series(reasons)}" if reasons else ""
        share = q.share(float(unknown["seconds"].sum()) / whole)
        sentences.append(f"{share} of the compute time is not known{why}.")
    return sentences
