"""The page of a store: data in, sections out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import polars as pl
from markupsafe import Markup

from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.history import changes, data, figures, sentences
from roast_analyze.report.listing import Listing
from roast_analyze.report.section import Plot, Section
from roast_analyze.report.shell import Page, roast_version
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plotly.graph_objects import Figure

    from roast_analyze.report.history.data import History

#: Maximum number of changes in sentences, and with a panel.
_SENTENCES: Final = 8
_PANELS: Final = 4

_LAST: Final = "Start of the last run."
_OF_RUNS: Final = {
    "runs": "Number of runs.",
    "programs": "Number of programs.",
    "median_wall_seconds": "Median of the runs.",
    "wasted_hours": "Core-hours without a kept result.",
    "wasted_share": "Share of the core-hours without a kept result.",
    "last": _LAST,
}
_SHARE: Final = {"wasted_share": "share without kept result"}
_PROGRAMS: Final = columns(
    "program runs median_wall_seconds core_hours wasted_hours wasted_share failures last",
    _SHARE, _OF_RUNS,
)  # fmt: skip
_USERS: Final = columns(
    "owner account programs runs core_hours wasted_hours wasted_share failures last",
    _SHARE, _OF_RUNS,
)  # fmt: skip
_SLOW: Final = {
    "runs": "Runs in which its relative duration is known.",
    "slow_runs": f"Runs with a relative duration of at least {data.SLOW_FACTOR}.",
    "slow_share": "slow runs / runs.",
    "median_relative_duration": "Median over the runs of the duration relative to others of "
    "the run.",
    "excess_hours": "Compute time that it took longer than others, in hours.",
    "last": _LAST,
}
_CHANGES: Final = columns(
    "program run_number between start metric change facts trace_id p_value",
    {"start": "since", "trace_id": "first run after it"},
    {
        "run_number": "Number of the first run after the change.",
        "between": "Numbers of the runs between which the change lies, at a confidence of "
        "99.9 %.",
        "start": "Start of the first run after the change.",
        "change": "Relative difference of the medians; of shares, their difference.",
        "facts": "Recorded facts that changed in the range.",
    },
)
_START, *_OTHERS = columns(
    "start program owner commit wall_seconds core_hours utilization wasted_share failures "
    "events_per_core_second? trace_id",
    {"program": "label or program", "trace_id": "trace_id"},
    {
        "start": "Start of the run, in UTC. Links to its report.",
        "wasted_share": _OF_RUNS["wasted_share"],
    },
)
_RUNS: Final = (replace(_START, link="report"), *_OTHERS)


def build(
    history: History,
    *,
    title: str | None = None,
    reports: Mapping[str, str] = MappingProxyType({}),
) -> Page:
    """Build the page; the default title is the name of the store.

    ``reports`` are the addresses of reports by trace.
    """
    return Page(
        title=visible(title or PurePosixPath(history.store).name or history.store),
        about=Markup("Runs in a store. Times are in UTC."),
        made_with=roast_version(),
        command=f"roast-analyze {history.store_argument} --html",
        sections=(
            _overview(history),
            _changes(history),
            _programs(history),
            _slow(history),
            _users(history),
            _runs(history, reports),
        ),
    )


def _overview(history: History) -> Section:
    section = Section("verdict", "Overview", "Overview")
    text = sentences.totals(history)
    if history.runs.is_empty():
        return replace(section, empty=text)
    query = "SELECT start_t, core_hours, compute_hours, kept_hours FROM runs"
    figure = figures.core_hours(history.runs)
    return replace(
        section,
        sentences=(text, sentences.verdict(history)),
        plots=(_plot(history, "core-hours", "Core-hours over time", figure, query),),
    )


def _changes(history: History) -> Section:
    section = Section("changes", "Changes of programs", "Changes")
    found = history.changes
    if not history.series:
        return replace(section, empty="No program has enough runs to find a change.")
    if not found:
        text = ("No program changed.", sentences.test(history))
        return replace(section, sentences=text)
    # Newest first, and those for the worse before the others.
    ranked = sorted(found, key=lambda change: not change.is_worse)
    worse = [change for change in found if change.is_worse]
    rows = pl.DataFrame(
        [
            {
                "program": change.program,
                "run_number": change.run_number,
                "between": f"{change.low}–{change.high}",
                "start": q.minute(change.start_t),
                "metric": shift.metric.words,
                "change": shift.change,
                "facts": "; ".join(f"{fact.name} {fact.text}" for fact in change.facts),
                "trace_id": change.trace_id,
                "p_value": f"{shift.p_value:.1g}",
            }
            for change in ranked
            for shift in change.shifts
        ][: data.ROW_LIMIT],
        infer_schema_length=None,
    )
    table = history.table(
        "changes", "Changes", Listing("program_history", "", rows, rows.height), _CHANGES
    )
    plot = _plot(
        history,
        "changes",
        "Runs before and after a change",
        figures.changes(
            changes.of_one_program(history.runs), (worse or found)[:_PANELS], found
        ),
        "FROM program_history",
        note="Lines are the medians before and after the change.",
    )
    return replace(
        section,
        sentences=(*map(sentences.change, ranked[:_SENTENCES]), sentences.test(history)),
        plots=(plot,),
        tables=(replace(table, command=f"roast-analyze {history.store_argument}"),),
    )


def _programs(history: History) -> Section:
    section = Section("programs", "Programs", "Programs")
    if history.programs.total == 0:
        return replace(section, empty="The store is empty.")
    rows = history.programs.rows
    runs = changes.of_one_program(history.runs)
    known = rows.filter(pl.col("program").is_in(runs["program"].drop_nulls().implode()))
    names = known["program"].head(figures.PROGRAM_LIMIT).to_list()
    plots = []
    if names:
        are_left_out = known["program"].n_unique() > len(names)
        plots.append(
            _plot(
                history,
                "wall-time",
                "Wall time relative to the median of the program",
                figures.wall_time(runs, names),
                "SELECT program, start_t, wall_seconds FROM program_history",
                note="Programs with the most core-hours." if are_left_out else "",
            )
        )
    table = history.table("programs", "Programs", _dated(history.programs), _PROGRAMS)
    return replace(section, plots=plots, tables=(table,))


def _slow(history: History) -> Section:
    section = Section("slow", "Slow in run after run", "Slow files and hosts")
    text, shown = [], []
    for listing, tested, noun, name, more in (
        (history.files, history.tested_files, "file", "filename", "dataset"),
        (history.hosts, history.tested_hosts, "host", "host", ""),
    ):
        if tested:
            text.append(sentences.slow(tested, noun))
        if listing.total:
            fields = columns(f"{name} {' '.join(_SLOW)} {more}", descriptions=_SLOW)
            title = f"Slow {noun}s"
            shown.append(history.table(f"{noun}s", title, _dated(listing), fields))
    if not text:
        return replace(section, empty="The runs have no durations of files or hosts.")
    if not shown:
        text.insert(0, "No file or host is slow in run after run.")
    return replace(section, sentences=text, tables=shown)


def _users(history: History) -> Section:
    section = Section("users", "Users", "Users")
    if history.users.total == 0:
        return replace(section, empty="The store is empty.")
    text = (
        "The owner is that of the trace files; the account is the one that the batch system "
        "charged."
    )
    table = history.table("users", "Users", _dated(history.users), _USERS)
    return replace(section, sentences=(text,), tables=(table,))


def _runs(history: History, reports: Mapping[str, str]) -> Section:
    section = Section("runs", "Runs", "Runs")
    if history.runs.is_empty():
        return replace(section, empty="The store is empty.")
    newest = history.runs.reverse().head(data.RUN_LIMIT)
    rows = newest.with_columns(
        pl.Series("start", [q.minute(t).removesuffix(" UTC") for t in newest["start_t"]]),
        pl.coalesce("label", "program").alias("program"),
        pl.col("git_commit").str.head(9).alias("commit"),
        pl.Series("report", map(reports.get, newest["trace_id"]), pl.String),
    )
    listing = Listing("runs", "FROM runs ORDER BY start_t DESC", rows, history.runs.height)
    hint = (
        f"The command roast-analyze {history.store_argument} TRACE_ID --html writes the report "
        "of a run. Starts of runs link to the reports that existed when this page was written."
    )
    table = history.table("runs", "Runs", listing, _RUNS, chosen="the newest")
    return replace(section, sentences=(hint,), tables=(table,))


def _dated(listing: Listing) -> Listing:
    """Add the start of the last run as text."""
    last = pl.Series("last", map(q.minute, listing.rows["last_t"]))
    return replace(listing, rows=listing.rows.with_columns(last))


def _plot(
    history: History, name: str, title: str, figure: Figure, query: str, note: str = ""
) -> Plot:
    return Plot(
        figure,
        name=name,
        title=title,
        description=f"{title}, {q.counted(history.runs.height, 'run')}.",
        query=query,
        command=f'roast-analyze sql {history.store_argument} "{query}"',
        note=note,
    )
