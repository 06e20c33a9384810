"""The page of a store: data in, HTML out.

:class:`HistoryPage` is the context of the template ``history.html.j2``, which extends that of a
report.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.report import quantities as q
from roast_analyze.report import tables
from roast_analyze.report.history import changes, data, figures, sentences
from roast_analyze.report.listing import Listing
from roast_analyze.report.plots import Plot
from roast_analyze.report.section import Section
from roast_analyze.report.shell import Shell, roast_version, shell, templates
from roast_analyze.report.tables import Field, Table
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plotly.graph_objects import Figure

    from roast_analyze.report.history.data import History

#: Most changes in sentences, and with a panel.
_SENTENCES: Final = 8
_PANELS: Final = 4

_WASTED: Final = "Available thread time in hours without a kept result."
_TOTALS: Final = (
    Field("runs", "runs", "count", help="Number of runs."),
    Field("core_hours", "core-hours", "ratio", group="hours"),
    Field("wasted_hours", "without kept result", "ratio", group="hours", help=_WASTED),
    Field("wasted_share", "share without kept result", "share", help=_WASTED),
    Field("failures", "failures", "trouble"),
)
_PROGRAMS: Final = (
    Field("program", "program"),
    _TOTALS[0],
    Field("median_wall_seconds", "median wall time", "seconds", help="Median of the runs."),
    *_TOTALS[1:],
    Field("last", "last run", help="Start of the last run."),
)
_USERS: Final = (
    Field("owner", "owner"),
    Field("account", "account"),
    Field("programs", "programs", "count", help="Number of programs."),
    *_TOTALS,
    Field("last", "last run", help="Start of the last run."),
)
_SLOW: Final = (
    Field("runs", "runs", "count", help="Runs in which its relative duration is known."),
    Field("slow_runs", "slow runs", "count",
          help=f"Runs with a relative duration of at least {data.SLOW_FACTOR}."),
    Field("slow_share", "share of slow runs", "share", help="slow runs / runs."),
    Field("median_relative_duration", "relative duration", "ratio",
          help="Median over the runs of the duration relative to others of the run."),
    Field("excess_hours", "excess core-hours", "ratio",
          help="Compute time that it took longer than others, in hours."),
    Field("last", "last run", help="Start of the last run."),
)  # fmt: skip
_CHANGES: Final = (
    Field("program", "program"),
    Field("run_number", "run", "count", help="Number of the first run after the change."),
    Field("between", "range",
          help="Numbers of the runs between which the change lies, at a confidence of 99.9 %."),
    Field("start", "since", help="Start of the first run after the change."),
    Field("metric", "metric"),
    Field("change", "change", "change",
          help="Relative difference of the medians; of shares, their difference."),
    Field("facts", "changed at that moment", help="Recorded facts that changed in the range."),
    Field("trace_id", "first run after it"),
    Field("p_value", "p-value"),
)  # fmt: skip
_RUNS: Final = (
    Field("start", "start", help="Start of the run, in UTC. Links to its report.",
          link="report"),
    Field("program", "program"),
    Field("owner", "owner"),
    Field("commit", "commit"),
    Field("wall_seconds", "wall time", "seconds"),
    Field("core_hours", "core-hours", "ratio"),
    Field("utilization", "utilization", "share"),
    Field("wasted_share", "without kept result", "share", help=_WASTED),
    Field("failures", "failures", "trouble"),
    Field("events_per_core_second", "events per core-second", "rate", optional=True),
    Field("trace_id", "trace_id"),
)  # fmt: skip


@dataclass(frozen=True)
class HistoryPage:
    """The context of the template."""

    title: str
    made_with: str
    command: str
    sections: tuple[Section, ...]
    shell: Shell


def build(
    history: History,
    *,
    title: str | None = None,
    reports: Mapping[str, str] = MappingProxyType({}),
) -> HistoryPage:
    """Build the page; the default title is the name of the store.

    ``reports`` are the addresses of reports by trace.
    """
    return HistoryPage(
        title=visible(title or PurePosixPath(history.store).name or history.store),
        made_with=f"roast {roast_version()}",
        command=f"roast-analyze {_store(history)} --html",
        sections=(
            _overview(history),
            _changes(history),
            _programs(history),
            _slow(history),
            _users(history),
            _runs(history, reports),
        ),
        shell=shell(
            ("page/page.css", "page/comparison.css"), "shared/scripted.js", "comparison.js"
        ),
    )


def render(page: HistoryPage) -> str:
    """Render the page as HTML."""
    return templates().get_template("history.html.j2").render(page=page)


def _overview(history: History) -> Section:
    text = sentences.totals(history)
    section = Section("verdict", "Overview", "Overview")
    if history.runs.is_empty():
        return replace(section, empty=text)
    query = "SELECT start_t, core_hours, compute_hours, kept_hours FROM runs"
    return replace(
        section,
        sentences=(text, sentences.verdict(history)),
        plots=(_plot(history, "core-hours", "Core-hours over time",
                     figures.core_hours(history.runs), query),),
    )  # fmt: skip


def _changes(history: History) -> Section:
    section = Section("changes", "Changes of programs", "Changes")
    found = history.changes
    if not history.series:
        return replace(section, empty="No program has enough runs to find a change.")
    # Newest first, and those for the worse before the others.
    ranked = sorted(found, key=lambda change: not change.is_worse)
    worse = [change for change in found if change.is_worse]
    text = [sentences.change(change) for change in ranked[:_SENTENCES]]
    if not text:
        text = ["No program changed."]
    plots: tuple[Plot, ...] = ()
    shown: tuple[Table, ...] = ()
    if panels := (worse or found)[:_PANELS]:
        figure = figures.changes(history.runs, panels)
        query = "FROM program_history"
        note = "Lines are the medians before and after the change."
        plot = _plot(history, "changes", "Runs before and after a change", figure, query)
        plots = (replace(plot, note=note),)
    if ranked:
        rows = _change_rows(ranked)
        listing = Listing("program_history", "", rows, rows.height)
        table = _table(history, "changes", "Changes", listing, _CHANGES)
        shown = (replace(table, command=f"roast-analyze {_store(history)}"),)
    return replace(
        section,
        sentences=(*text, sentences.test(history)),
        plots=plots,
        tables=shown,
    )


def _change_rows(found: list[changes.Change]) -> pl.DataFrame:
    rows = [
        {
            "program": change.program,
            "run_number": change.run_number,
            "between": f"{change.low}–{change.high}",
            "start": sentences.date(change.start_t),
            "metric": shift.metric.words,
            "change": shift.change,
            "facts": "; ".join(f"{fact.name} {fact.text}" for fact in change.facts),
            "trace_id": change.trace_id,
            "p_value": f"{shift.p_value:.1g}",
        }
        for change in found
        for shift in change.shifts
    ]
    return pl.DataFrame(rows[: data.ROW_LIMIT], infer_schema_length=None)


def _programs(history: History) -> Section:
    section = Section("programs", "Programs", "Programs")
    if history.programs.total == 0:
        return replace(section, empty="The store is empty.")
    names = history.programs.rows["program"].drop_nulls().head(figures.PROGRAM_LIMIT).to_list()
    plots: tuple[Plot, ...] = ()
    if names:
        figure = figures.wall_time(history.runs, names)
        query = "SELECT program, start_t, wall_seconds FROM program_history"
        plot = _plot(history, "wall-time", "Wall time relative to the median of the program",
                     figure, query)  # fmt: skip
        left = history.programs.rows["program"].n_unique() - len(names)
        plots = (replace(plot, note="Programs with the most core-hours." if left else ""),)
    table = _table(history, "programs", "Programs", history.programs, _PROGRAMS)
    return replace(section, plots=plots, tables=(table,))


def _slow(history: History) -> Section:
    section = Section("slow", "Slow in run after run", "Slow files and hosts")
    text, shown = [], []
    for listing, tested, noun, names in (
        (history.files, history.tested_files, "file",
         (Field("filename", "file"), Field("dataset", "dataset"))),
        (history.hosts, history.tested_hosts, "host", (Field("host", "host"),)),
    ):  # fmt: skip
        if tested:
            text.append(sentences.slow(tested, noun))
        if listing.total:
            fields = (names[0], *_SLOW, *names[1:])
            title = f"Slow {noun}s"
            shown.append(_table(history, f"{noun}s", title, listing, fields))
    if not text:
        return replace(section, empty="The runs have no durations of files or hosts.")
    if not shown:
        text.insert(0, "No file and no host.")
    return replace(section, sentences=tuple(text), tables=tuple(shown))


def _users(history: History) -> Section:
    section = Section("users", "Users", "Users")
    if history.users.total == 0:
        return replace(section, empty="The store is empty.")
    text = "Owners are those of the files of the traces; the batch system charged the accounts."
    table = _table(history, "users", "Users", history.users, _USERS)
    return replace(section, sentences=(text,), tables=(table,))


def _runs(history: History, reports: Mapping[str, str]) -> Section:
    section = Section("runs", "Runs", "Runs")
    if history.runs.is_empty():
        return replace(section, empty="The store is empty.")
    newest = history.runs.reverse().head(data.RUN_LIMIT)
    rows = newest.with_columns(
        pl.Series("start", [sentences.date(t).removesuffix(" UTC") for t in newest["start_t"]]),
        pl.coalesce("label", "program").alias("program"),
        pl.col("git_commit").str.head(9).alias("commit"),
        pl.Series("report", map(reports.get, newest["trace_id"]), pl.String),
    )
    listing = Listing("runs", "FROM runs ORDER BY start_t DESC", rows, history.runs.height)
    hint = (
        f"The command roast-analyze {_store(history)} TRACE_ID --html writes the report of a "
        "run. Starts of runs link to the reports that existed when this page was written."
    )
    return replace(
        section,
        sentences=(hint,),
        tables=(_table(history, "runs", "Runs", listing, _RUNS, chosen="the newest"),),
    )


def _plot(history: History, name: str, title: str, figure: Figure, query: str) -> Plot:
    runs = q.counted(history.runs.height, "run")
    return Plot(
        figure,
        name=name,
        title=title,
        description=f"{title}, {runs}.",
        query=query,
        command=f'roast-analyze sql {_store(history)} "{query}"',
    )


def _table(
    history: History,
    name: str,
    title: str,
    listing: Listing,
    shown: tuple[Field, ...],
    chosen: str = "those with the most core-hours",
) -> Table:
    rows = listing.rows
    if "last_t" in rows.columns:
        rows = rows.with_columns(pl.Series("last", map(sentences.date, rows["last_t"])))
    return tables.build(
        name,
        title,
        replace(listing, rows=rows),
        shown,
        comments=history.comments.get(listing.view, {}),
        command=f"roast-analyze sql {_store(history)} {shlex.quote(listing.query)}",
        chosen=chosen,
    )


def _store(history: History) -> str:
    return shlex.quote(visible(history.store))
