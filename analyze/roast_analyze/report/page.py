"""The page: gathered data and figures in, one HTML text out.

:class:`Page` is the whole context of the template ``page.html.j2``; the template computes
nothing; :mod:`.shell` is what it is wrapped in.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roast_analyze.figures import palette
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.report import excerpts, sentences
from roast_analyze.report import quantities as q
from roast_analyze.report.sections import (
    chunks,
    environment,
    failures,
    loss,
    memory,
    scheduler,
    tasks,
    timeline,
    workers,
)
from roast_analyze.report.sections import profile as inside
from roast_analyze.report.sections.section import options
from roast_analyze.report.shell import Shell, roast_version, shell, templates
from roast_analyze.safe_text import visible
from roast_schemas import SCHEMA_VERSION

if TYPE_CHECKING:
    from roast_analyze.report.data import ReportData, Run
    from roast_analyze.report.sections.section import Section

_SPENT_QUERY: Final = (
    "SELECT core_seconds, sum(task_runs.compute_seconds) FILTER (outcome = 'memory') "
    "AS kept, sum(task_runs.compute_seconds) FILTER (outcome NOT IN ('memory', 'unfinished')) "
    "AS wasted, sum(task_runs.compute_seconds) FILTER (outcome = 'unfinished') AS unfinished, "
    "sum(task_runs.transfer_seconds) AS transfer, sum(deserialize_seconds) AS "
    "deserialize, sum(disk_seconds) AS disk FROM run, task_runs GROUP BY core_seconds"
)
_SPENT_ON_CHUNKS_QUERY: Final = (
    "SELECT core_seconds, sum(chunks.compute_seconds) FILTER (outcome = 'memory') AS kept, "
    "sum(chunks.compute_seconds) FILTER (outcome NOT IN ('memory', 'unfinished')) AS wasted, "
    "sum(chunks.compute_seconds) FILTER (outcome = 'unfinished') AS unfinished "
    "FROM run, chunks GROUP BY core_seconds"
)
_STYLES: Final = ("page/page.css", "timeline/timeline.css", "flame/flame.css")


@dataclass(frozen=True)
class Tile:
    """A headline number: what, how much, and what stands small below it."""

    label: str
    value: str
    hint: str
    tone: str = ""


@dataclass(frozen=True)
class Share:
    """A part of the time spent.

    Parameters
    ----------
    name : str
    seconds : float
    text, percent : str
        The same in words; no percentage for what isn't a part of the core time.
    fraction : float
        Part of the bar, 0 for what isn't a part of the core time.
    colour : str
        As CSS writes it.
    """

    name: str
    seconds: float
    text: str
    percent: str
    fraction: float
    colour: str


@dataclass(frozen=True)
class Verdict:
    """The headline: two sentences, the tiles, the bar of time spent, how whole the trace is."""

    done: str
    went: str
    whole: bool
    wholeness: str
    tiles: tuple[Tile, ...]
    spent: tuple[Share, ...]
    spent_sentence: str
    spent_query: str


@dataclass(frozen=True)
class Page:
    """Everything that the template needs."""

    title: str
    trace_name: str
    stretch: str
    left_out: str
    started: str
    lasted: str
    made_with: str
    command: str
    verdict: Verdict
    sections: tuple[Section, ...]
    shell: Shell


def build(data: ReportData, *, title: str | None = None) -> Page:
    """Lay out what was gathered.

    Parameters
    ----------
    data : ReportData
    title : str, optional
        Heading; the trace's name if not given.
    """
    name = visible(data.trace_name)
    return Page(
        title=visible(title) if title else name,
        trace_name=name,
        stretch=excerpts.stretch(data.excerpt).capitalize() if data.excerpt else "",
        left_out=excerpts.left_out(data.excerpt) if data.excerpt else "",
        started=q.instant(data.run.start_t, data.recording.utc_offset_seconds),
        lasted=q.seconds(data.run.wall_seconds),
        made_with=f"roast {roast_version()}, trace schema "
        f"{visible(data.recording.schema_version or 'unknown')} (reads {SCHEMA_VERSION})",
        command=f"roast-analyze {shlex.quote(name)} --html{options(data)}",
        verdict=_verdict(data),
        sections=_sections(data),
        shell=shell(_STYLES, "timeline/main.js", "report.js"),
    )


def render(page: Page) -> str:
    """Write the page as HTML."""
    return templates().get_template("page.html.j2").render(page=page)


def _sections(data: ReportData) -> tuple[Section, ...]:
    axis = TimeAxis(data.run.start_t or 0.0, data.run.stop_t or 0.0)
    colours = palette.by_rank(data.prefixes.rows["prefix"].to_list())
    return (
        timeline.build(data),
        chunks.build(data, axis),
        workers.build(data, axis),
        tasks.build(data, colours),
        inside.build(data),
        memory.build(data, axis),
        scheduler.build(data, axis),
        failures.build(data),
        environment.build(data),
        loss.build(data),
    )


def _verdict(data: ReportData) -> Verdict:
    return Verdict(
        done=sentences.what_was_done(data),
        went=sentences.how_it_went(data),
        whole=data.loss.total == 0,
        wholeness=sentences.wholeness(data),
        tiles=_tiles(data),
        spent=_spent(data),
        spent_sentence=sentences.time_spent(data),
        spent_query=_SPENT_QUERY if data.run.task_runs else _SPENT_ON_CHUNKS_QUERY,
    )


def _tiles(data: ReportData) -> tuple[Tile, ...]:
    run = data.run
    offered, unit = q.core_time(run.core_seconds)
    bad = run.failures
    tiles = [
        Tile(
            "Wall time",
            q.seconds(run.wall_seconds),
            "no task ended"
            if run.busy_seconds is None
            else f"busy for {q.seconds(run.busy_seconds)}",
        ),
        # In a recording of one instant no worker was there for any time.
        Tile("Workers", q.count(run.peak_workers or run.workers), _most_at_once(run)),
        Tile(unit.capitalize(), offered, _computing(run)),
        Tile("Tasks", q.count(run.tasks), _outcomes(data)),
    ]
    if run.chunk_attempts:
        read = "" if run.bytes_read is None else f"; {q.byte_size(run.bytes_read)} read"
        tiles += [
            Tile(
                "Chunks", q.count(run.chunks), f"of {q.counted(run.chunk_attempts, 'attempt')}"
            ),
            Tile("Events", q.count(run.events), f"in finished chunks{read}"),
            Tile("Events per second", _rounded(run.events_per_second), "of the whole cluster"),
        ]
    tiles += [
        Tile("Results", q.byte_size(run.output_bytes), "size of all task results"),
        Tile("Peak memory", q.byte_size(run.peak_memory_bytes), "all workers together"),
        Tile(
            "Failures",
            q.count(bad),
            "listed below" if bad else "none",
            "bad" if bad else "good",
        ),
        Tile(
            "Trace",
            "whole" if data.loss.total == 0 else "not whole",
            f"{q.counted(data.recording.records, 'record')}",
            "good" if data.loss.total == 0 else "bad",
        ),
    ]
    return tuple(tiles)


def _most_at_once(run: Run) -> str:
    if not run.workers:
        return "none was seen"
    seen = f"; {q.count(run.workers)} seen in all" if run.workers > run.peak_workers > 0 else ""
    threads = f", with {q.counted(run.peak_nthreads, 'thread')}" if run.peak_nthreads else ""
    return f"at once{threads}{seen}"


def _computing(run: Run) -> str:
    if run.core_seconds is None:
        return "threads are not known"
    if run.core_efficiency is None:
        return "nothing computed"
    return f"{q.share(run.core_efficiency)} of them computing"


def _rounded(value: float | None) -> str:
    return q.count(value) if value is None or value >= 100 else q.number(value)


def _outcomes(data: ReportData) -> str:
    run = data.run
    parts = [(run.memory, "well"), (run.erred, "failed"), (run.retried, "retried")]
    parts += [(run.lost, "lost"), (run.rescheduled, "rescheduled")]
    parts += [(run.cancelled, "cancelled"), (run.unfinished, "unfinished")]
    told = ", ".join(f"{q.count(n)} {word}" for n, word in parts if n)
    return f"attempts: {told}" if told else "no attempts"


def _spent(data: ReportData) -> tuple[Share, ...]:
    """Share out the core time between computing and not; list what went on beside it.

    A task that has seceded from its thread computes beside those that have not, so that
    computing can exceed the core time; then its own sum is shared out.
    """
    spent = data.time_spent
    computing = spent.kept_seconds + spent.wasted_seconds + spent.unfinished_seconds
    rest = max((data.run.core_seconds or 0.0) - computing, 0.0)
    of_cores = (
        ("computing, result kept", spent.kept_seconds, palette.RANKED[0]),
        ("computing, result not kept", spent.wasted_seconds, palette.FAILURE),
        ("computing, not ended in the stretch", spent.unfinished_seconds, palette.RANKED[1]),
        ("idle, waiting and other", rest, "var(--idle)"),
    )
    beside = (
        ("transfer", spent.transfer_seconds, palette.ACTIVITY["transfer"]),
        ("deserialising", spent.deserialize_seconds, palette.ACTIVITY["deserialize"]),
        ("disk", spent.disk_seconds, palette.ACTIVITY["disk"]),
    )
    whole = computing + rest
    if not whole or not math.isfinite(whole):
        return ()
    return tuple(
        Share(name, part, q.seconds(part), q.share(part / whole), part / whole, colour)
        for name, part, colour in of_cores
        if part > 0
    ) + tuple(
        Share(f"beside computing: {name}", part, q.seconds(part), "", 0.0, colour)
        for name, part, colour in beside
        if part > 0
    )
