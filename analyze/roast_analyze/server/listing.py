"""The rows of the list: texts of a run, and values to sort by."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roast_analyze.report import live
from roast_analyze.report import quantities as q
from roast_analyze.report.live import Silence
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from roast_analyze.algorithms.progress import Progress
    from roast_analyze.server.facts import Facts
    from roast_analyze.server.following import Following
    from roast_analyze.server.kept import Kept
    from roast_analyze.server.sources import Source


#: Rows of a table of a live run.
_ROWS: Final = 30


class Column(NamedTuple):
    """A column of the list."""

    name: str
    title: str
    help: str
    is_numeric: bool = False


COLUMNS: Final = (
    Column("run", "Run", "Label of the recording, or program; below it, the trace."),
    Column("user", "User", "User of the program, or else owner of the trace."),
    Column("start", "Started (UTC)", "First record.", is_numeric=True),
    Column("wall", "Duration", "Time from the first to the last record.", is_numeric=True),
    Column(
        "state",
        "State",
        "live: being recorded; ended: with a trailer; cut off: without one, because the "
        "recording was killed or the file is not complete.",
    ),
    Column("tasks", "Tasks", "Tasks submitted; of a live run, those that are done.", True),
    Column("failures", "Failures", "Failed, lost or skipped attempts, and lost workers.", True),
    Column("workers", "Workers", "Worker processes.", True),
    Column(
        "finding",
        "Top finding",
        "The finding with the largest possible saving; without one, what is not explained.",
    ),
)


@dataclass
class Listed:
    """A run of the list."""

    id: str
    source: Source
    kept: Kept
    #: Name of its files.
    name: str
    #: Path in the folder, or ``trace_id``.
    place: str
    owner: str | None
    nbytes: int
    changed_t: float | None
    #: Place of the trace that it is a copy of; empty if it is none.
    copy_of: str = ""
    facts: Facts | None = None
    error: str = ""
    live: Following | None = None
    #: Progress after the first records of a run that was not read yet.
    glance: Progress | None = None
    silence: Silence = field(default_factory=Silence)
    #: Whether its facts are being read, or will be.
    is_expected: bool = False
    #: Number of the renewal of the list with which it changed.
    version: int = 0
    row: dict[str, Any] = field(default_factory=dict)
    #: What :func:`progress` returns.
    progress: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Return the label, the program, or the name of the files."""
        known: tuple[str | None, ...] = ()
        if self.facts is not None:
            known = self.facts.label, self.facts.program
        elif progress := self.live.progress if self.live else self.glance:
            known = progress.label, progress.program
        return one_line(next(filter(None, known), self.name))


class Cell(NamedTuple):
    """Text of a cell; what stands below it; a number to sort by; a share; tone; tooltip."""

    text: str
    below: str = ""
    value: float | None = None
    share: float | None = None
    tone: str = ""
    help: str = ""


def row(run: Listed) -> dict[str, Any]:
    """Return the row of a run as JSON: all of its texts are visible characters."""
    if run.live is not None and run.live.progress.start_t:
        cells = _live_cells(run, run.live)
    elif run.facts is not None:
        cells = _read_cells(run, run.facts)
    else:
        cells = _unread_cells(run)
    place = one_line(run.place, 200)
    below = [place] if place != run.title else []
    if run.copy_of:
        below.append(f"copy of {one_line(run.copy_of, 200)}")
    named = {"run": Cell(run.title, ", ".join(below))}
    cells = named | cells
    filled = [cells.get(column.name, Cell(q.UNKNOWN)) for column in COLUMNS]
    datasets = run.facts.datasets if run.facts else ""
    words = [text for cell in filled for text in (cell.text, cell.below, cell.help)]
    page = "live" if run.live is not None else "report"
    return {
        "id": run.id,
        "version": run.version,
        "page": None if run.error else f"{page}-{run.id}",
        "cells": [cell._asdict() for cell in filled],
        "words": " ".join([*words, datasets]).lower(),
    }


def _read_cells(run: Listed, facts: Facts) -> dict[str, Cell]:
    """Return the cells of a run that was read."""
    state = Cell("ended")
    if not facts.clean_end:
        state = Cell("cut off", tone="bad", help="The trace has no trailer.")
    elif facts.end_reason:
        state = Cell("ended", help=one_line(facts.end_reason, 300))
    if facts.finding is None:
        finding = Cell("", help="It is known when the report has been opened.")
    elif not facts.finding:
        finding = Cell(one_line(facts.sentence, 160), tone="quiet", help=facts.sentence)
    else:
        finding = Cell(facts.finding, below=facts.severity, help=facts.sentence)
    start_t = facts.start_t if facts.start_t is not None else run.changed_t
    return {
        "user": _user(run),
        "start": _start(start_t),
        "wall": Cell(q.seconds(facts.wall_seconds), value=facts.wall_seconds),
        "state": state,
        "tasks": _count(facts.tasks),
        "failures": _count(facts.failures, "bad"),
        "workers": _count(facts.workers),
        "finding": finding,
    }


def _live_cells(run: Listed, following: Following) -> dict[str, Cell]:
    """Return the cells of a run that is being recorded."""
    progress, tasks = following.progress, following.progress.tasks
    wall = progress.now - progress.start_t
    silent = run.silence.seconds > live.usual_seconds(progress)
    about = f"nothing written for {q.seconds(run.silence.seconds)}" if silent else ""
    done = min(tasks.done / tasks.total, 1.0) if tasks.total else None
    left = tasks.left_seconds(progress.now, progress.work_t or progress.start_t)
    remaining = f"{q.seconds(left)} left" if left and not silent else ""
    return {
        "user": _user(run),
        "start": _start(progress.start_t),
        "wall": Cell(q.seconds(wall), value=wall),
        "state": Cell("live", about, tone="bad" if silent else "live"),
        "tasks": Cell(
            f"{q.count(tasks.done)} of {q.count(tasks.total)}",
            remaining,
            value=tasks.total,
            share=done,
        ),
        "failures": _count(tasks.failed + progress.retried, "bad"),
        "workers": _count(progress.joined),
        "finding": Cell("", help="Open the report of the run so far."),
    }


def _unread_cells(run: Listed) -> dict[str, Cell]:
    """Return the cells of a run that was not read yet, or cannot be."""
    size = q.byte_size(run.nbytes)
    state = Cell("not read", size, tone="quiet", help="Open the report to read it.")
    if run.is_expected:
        state = Cell("reading …", size, tone="quiet")
    finding = Cell("", tone="quiet")
    if run.error:
        state = Cell("unreadable", size, tone="bad")
        finding = Cell(one_line(run.error, 300), tone="quiet", help=run.error)
    elif run.live is not None:
        state = Cell("live", "no record yet", tone="live")
    start_t = (run.glance.start_t if run.glance else None) or run.changed_t
    return {"user": _user(run), "start": _start(start_t), "state": state, "finding": finding}


def progress(run: Listed, following: Following) -> dict[str, Any]:
    """Return the page of a run that is being recorded, or was until now, as JSON."""
    found = following.progress
    if not found.start_t:
        facts = [("Running", "no record yet")]
    else:
        facts = [live.state(found, run.silence), *live.facts(found, run.silence)]
    return {
        "place": one_line(run.place, 200),
        "facts": [(name, one_line(text, 400)) for name, text in facts],
        "failures": [
            f"{q.seconds(t - found.start_t)} {one_line(f'{key}: {text}', 300)}"
            for t, key, text in found.failures
        ],
        "tables": [
            {
                "name": name,
                "headings": live.HEADINGS,
                "rows": [
                    {"share": it.share, "cells": [one_line(it.name), *it[1:3], *it[4:]]}
                    for it in islice(live.amounts(amounts, found, run.silence), _ROWS)
                ],
                "more": max(len(amounts) - _ROWS, 0),
            }
            for name, amounts in (("dataset", found.datasets), ("prefix", found.prefixes))
            if amounts
        ],
    }


def _user(run: Listed) -> Cell:
    name = (run.facts.user_name if run.facts else None) or run.owner
    return Cell(one_line(name, 60) if name else q.UNKNOWN)


def _start(t: float | None) -> Cell:
    return Cell(q.minute(t).removesuffix(" UTC"), value=t)


def _count(number: int | None, tone: str = "") -> Cell:
    return Cell(q.count(number), value=number, tone=tone if number else "")
