"""What a comparison knows of several traces: queries in, frozen dataclasses out.

Traces are opened one after the other, each by itself: its database is the one that its own
report has left in the cache, and no more than one of them takes memory at a time. What is
kept of a trace is small; totals by prefix, dataset and file are put beside each other here.
"""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.open.discover import trace_name
from roast_analyze.report.data import (
    Recording,
    Run,
    TimeSpent,
    headline,
    recording,
    time_spent,
)
from roast_analyze.report.gathered.listing import Listing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from roast_analyze.open.session import Session

    Opener = Callable[[tuple[Path, ...]], Session]

#: Most traces that are set side by side.
TRACE_LIMIT: Final = 24
#: Most rows of a table that sets prefixes, datasets or files side by side.
SIDE_ROWS: Final = 150
#: Most facts listed that differ.
FACT_ROWS: Final = 200

#: Names that are no longer than this are not shortened; what their words are, and what
#: lies between them.
_SHORT: Final = 24
_WORDS: Final = re.compile(r"[^\W_]+|[\W_]+")

#: Ends the name of a column of ratios to the first trace.
TIMES: Final = " times"
#: The difference to the first trace that is the largest, with its sign.
DIFFERENCE: Final = "difference_seconds"
#: Facts that no two runs have in common, which say nothing about either.
_OF_ONE_RUN: Final = frozenset(
    {
        ("client", "id"),
        ("client", "pid"),
        ("scheduler", "address"),
        ("scheduler", "id"),
        ("scheduler", "pid"),
    }
)
#: Section under which the recorder's settings stand with the recorded facts.
RECORDER: Final = "recorder settings"

#: What tells the rows of a view apart, whatever the trace.
_KEYS: Final = {
    "prefixes": ("prefix",),
    "datasets": ("dataset",),
    "files": ("filename", "dataset"),
}

_HEADLINE_QUERY: Final = (
    "FROM run LEFT JOIN (SELECT trace_id, "
    "sum(compute_seconds) FILTER (outcome = 'memory') AS kept_seconds, "
    "sum(compute_seconds) FILTER (outcome <> 'memory') AS wasted_seconds "
    "FROM task_runs GROUP BY trace_id) USING (trace_id)"
)
_FACTS: Final = (
    "SELECT section, name, value FROM environment UNION ALL "
    "SELECT process || ' packages', package, version FROM packages "
    "WHERE process IN (SELECT process FROM machines WHERE python IS NOT NULL) "
    "AND (process || ' versions', package) NOT IN (SELECT (section, name) FROM environment) "
    "UNION ALL SELECT process || ' configuration', name, coalesce(value, 'None') FROM config "
    "WHERE differs IS NOT NULL AND NOT is_run_specific AND (process <> 'scheduler' "
    "OR name NOT IN (SELECT name FROM environment WHERE section = 'dask configuration')) "
    "UNION ALL "
    f"SELECT '{RECORDER}', unnest(json_keys(settings)), "
    "settings ->> unnest(json_keys(settings)) FROM trace_info"
)


@dataclass(frozen=True)
class Compared:
    """What is known of one trace.

    Parameters
    ----------
    label : str
        Short name that no other of the traces has.
    names : tuple of str
        What it is opened by, as one would write it beside the trace.
    run, recording, time_spent
        See their classes.
    losses : int
        Ways in which it is not whole.
    load : polars.DataFrame
        View ``concurrency``: t, executing, nthreads.
    samples : polars.DataFrame
        View ``cluster_samples``: t, cpu_percent, nthreads, memory_bytes, memory_limit_bytes.
    totals : dict
        View to its ``seconds`` of computing, by prefix, dataset or file.
    facts : polars.DataFrame
        What was recorded of software, machines and settings: section, name, value.
    """

    label: str
    names: tuple[str, ...]
    run: Run
    recording: Recording
    time_spent: TimeSpent
    losses: int
    load: pl.DataFrame
    samples: pl.DataFrame
    totals: dict[str, pl.DataFrame]
    facts: pl.DataFrame

    @property
    def wall_seconds(self) -> float:
        """Length of the recording."""
        return self.run.wall_seconds or 0.0

    @property
    def idle_seconds(self) -> float | None:
        """Core time in which no task computed; None if it is not known what there was."""
        if self.run.core_seconds is None:
            return None
        spent = self.time_spent.kept_seconds + self.time_spent.wasted_seconds
        return max(self.run.core_seconds - spent, 0.0)


@dataclass(frozen=True)
class Comparison:
    """Everything that a comparison shows.

    Parameters
    ----------
    traces : tuple of Compared
        The first one is what the others are compared with.
    left_out : tuple of str
        Labels of traces that were named, but are more than are compared.
    headline : Listing
        A row a trace: ``trace``, what it says of itself, and after each column of numbers
        its ratio to the first trace, whose name ends in :data:`TIMES`.
    prefixes, datasets, files : Listing
        A row for each that a trace has: its name, the compute seconds in each trace, under
        the name that :func:`seconds_in` gives, their ratio to the first trace, and
        :data:`DIFFERENCE`. Those that differ most come first.
    facts : Listing
        Recorded facts that differ: ``section``, ``name``, and the value in each trace.
    facts_in_common : int
        How many do not.
    comments : dict
        Column of the view ``run`` to what it means.
    """

    traces: tuple[Compared, ...]
    left_out: tuple[str, ...]
    headline: Listing
    prefixes: Listing
    datasets: Listing
    files: Listing
    facts: Listing
    facts_in_common: int
    comments: dict[str, str]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the traces."""
        return tuple(trace.label for trace in self.traces)

    @property
    def short_labels(self) -> tuple[str, ...]:
        """The same for where there is little room."""
        return tuple(without_common(self.labels))


def seconds_in(label: str) -> str:
    """Name the column of the compute seconds in a trace."""
    return f"{label} compute_seconds"


def value_in(label: str) -> str:
    """Name the column of the value of a fact in a trace."""
    return f"{label} value"


def gather(traces: Sequence[tuple[Path, ...]], opener: Opener) -> Comparison:
    """Ask several traces what a comparison shows.

    Parameters
    ----------
    traces : sequence of tuple of Path
        What each is opened by, as :func:`roast_analyze.open.discover.group_by_trace` gives it.
    opener : callable
        Opens a trace; it is closed before the next one is opened.
    """
    labels, names = labelled(traces)
    each: list[Compared] = []
    comments: dict[str, str] = {}
    for paths, label, opened_by in zip(traces[:TRACE_LIMIT], labels, names, strict=False):
        with opener(paths) as trace:
            each.append(_compared(trace, label, opened_by))
            comments = comments or _comments(trace)
    differing, in_common = _differing(each)
    return Comparison(
        traces=tuple(each),
        left_out=tuple(labels[len(each) :]),
        headline=Listing("run", _HEADLINE_QUERY, _headline(each), len(each)),
        prefixes=_side_by_side("prefixes", each),
        datasets=_side_by_side("datasets", each),
        files=_side_by_side("files", each),
        facts=differing,
        facts_in_common=in_common,
        comments=comments,
    )


def labelled(
    traces: Sequence[tuple[Path, ...]],
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Name traces so that they are told apart, with no more of their paths than that takes.

    Returns
    -------
    list of str
        Names without the ending that says how a trace is stored.
    list of tuple of str
        What opens them, as long as the names.
    """
    firsts = [paths[0].absolute() for paths in traces]
    longest = max(len(path.parts) for path in firsts)
    ways = [(depth, whole) for whole in (False, True) for depth in range(1, longest + 1)]
    depth, whole = next(
        (way for way in ways if len({_tail(first, *way) for first in firsts}) == len(firsts)),
        ways[-1],
    )
    labels = [_tail(first, depth, whole) for first in firsts]
    return labels, [tuple(_tail(path.absolute(), depth) for path in paths) for paths in traces]


def without_common(labels: Sequence[str]) -> list[str]:
    """Leave out the words with which long names all begin or end: cut, they still differ.

    Examples
    --------
    >>> without_common(["dijets_of_2026_v1_on_the_grid", "dijets_of_2026_v2_on_the_grid"])
    ['…v1…', '…v2…']
    """
    if len(labels) < 2 or max(map(len, labels)) <= _SHORT:
        return list(labels)
    words = [_WORDS.findall(label) for label in labels]
    # Of each name a word stays.
    most = min(map(len, words)) - 1
    head = min(_alike(words), most)
    tail = min(_alike([some[::-1] for some in words]), most - head)
    return [
        "…" * (head > 0) + "".join(some[head : len(some) - tail]) + "…" * (tail > 0)
        for some in words
    ]


def _alike(lists: Sequence[Sequence[str]]) -> int:
    """Count with how many words all begin."""
    return sum(
        1 for _ in takewhile(lambda words: len(set(words)) == 1, zip(*lists, strict=False))
    )


def _tail(path: Path, depth: int, whole: bool = True) -> str:
    """Give the last parts of a path, the ending of the name with them or not."""
    above = path.parent.parts[1:]
    some = above[max(len(above) - depth + 1, 0) :]
    return "/".join((*some, path.name if whole else trace_name(path)))


def _compared(trace: Session, label: str, names: tuple[str, ...]) -> Compared:
    run = headline(trace)
    [(losses,)] = trace.sql("SELECT count(*) FROM loss").fetchall()
    return Compared(
        label=label,
        names=names,
        run=run,
        recording=recording(trace),
        time_spent=time_spent(trace, run),
        losses=losses,
        load=trace.sql("SELECT t, executing, nthreads FROM concurrency ORDER BY t").pl(),
        samples=trace.sql(
            "SELECT t, cpu_percent, nthreads, memory_bytes, memory_limit_bytes "
            "FROM cluster_samples ORDER BY t"
        ).pl(),
        totals={view: _totals(trace, view, keys) for view, keys in _KEYS.items()},
        facts=trace.sql(_FACTS).pl(),
    )


def _comments(trace: Session) -> dict[str, str]:
    run = next(view for view in trace.views() if view.name == "run")
    return {column.name: column.comment for column in run.columns}


# -- the headline ------------------------------------------------------------------------


def _headline(traces: Iterable[Compared]) -> pl.DataFrame:
    rows = pl.DataFrame([_facts_of(trace) for trace in traces], infer_schema_length=None)
    numbers = [name for name, kind in rows.schema.items() if kind.is_numeric()]
    return rows.with_columns(
        # Of the first trace it is 1, which says nothing.
        pl.when(pl.int_range(pl.len()) > 0)
        .then(_ratio(pl.col(name), pl.col(name).first()))
        .alias(name + TIMES)
        for name in numbers
    )


def _facts_of(trace: Compared) -> dict[str, Any]:
    run, spent = trace.run, trace.time_spent
    with_chunks = bool(run.chunk_attempts)
    return {
        "trace": trace.label,
        "wall_seconds": run.wall_seconds,
        "busy_seconds": run.busy_seconds,
        "peak_workers": run.peak_workers,
        "peak_nthreads": run.peak_nthreads,
        "core_seconds": run.core_seconds,
        "kept_seconds": spent.kept_seconds,
        "wasted_seconds": spent.wasted_seconds,
        "idle_seconds": trace.idle_seconds,
        "core_efficiency": run.core_efficiency,
        "tasks": run.tasks,
        "chunks": run.chunks if with_chunks else None,
        "events": run.events if with_chunks else None,
        "events_per_second": run.events_per_second,
        "bytes_read": run.bytes_read,
        "peak_memory_bytes": run.peak_memory_bytes,
        "failures": run.failures,
        "lost_records": run.lost_records,
        "whole": "not whole" if trace.losses else "whole",
    }


def _ratio(value: pl.Expr, first: pl.Expr) -> pl.Expr:
    return pl.when(first > 0).then(value / first)


# -- totals, side by side ----------------------------------------------------------------


def _totals(trace: Session, view: str, keys: Sequence[str]) -> pl.DataFrame:
    named = ", ".join(keys)
    totals: pl.DataFrame = trace.sql(
        f"SELECT {named}, sum(compute_seconds) AS seconds FROM {view} GROUP BY {named}"
    ).pl()
    return totals


def _side_by_side(view: str, traces: Sequence[Compared]) -> Listing:
    keys, labels = _KEYS[view], [trace.label for trace in traces]
    rows = pl.concat(trace.totals[view].select(keys) for trace in traces).unique()
    for trace in traces:
        seconds = trace.totals[view].rename({"seconds": seconds_in(trace.label)})
        rows = rows.join(seconds, on=keys, how="left", nulls_equal=True)
    columns = [seconds_in(label) for label in labels]
    first = pl.col(columns[0])
    differences = [
        pl.col(name).fill_null(0.0) - first.fill_null(0.0) for name in columns[1:]
    ] or [pl.lit(0.0)]
    ratios = [_ratio(pl.col(name), first).alias(name + TIMES) for name in columns[1:]]
    highest, lowest = pl.max_horizontal(differences), pl.min_horizontal(differences)
    farthest = pl.when(highest >= -lowest).then(highest).otherwise(lowest)
    compared = rows.with_columns(*ratios, farthest.alias(DIFFERENCE)).sort(
        pl.col(DIFFERENCE).abs(), first, *keys,
        descending=[True, True, *[False] * len(keys)], nulls_last=True,
    )  # fmt: skip
    query = f"PIVOT {view} ON trace_id USING sum(compute_seconds) GROUP BY {', '.join(keys)}"
    return Listing(view, query, compared.head(SIDE_ROWS), compared.height)


# -- facts that differ -------------------------------------------------------------------


def _differing(traces: Sequence[Compared]) -> tuple[Listing, int]:
    """List the facts that differ between the traces that tell of their section.

    A trace without a section was recorded in another way: that it does not know a package
    does not say that there was none.
    """
    labels = [trace.label for trace in traces]
    known = [_by_name(trace.facts) for trace in traces]
    sections = [{section for section, _ in some} for some in known]
    names = sorted({name for some in known for name in some} - _OF_ONE_RUN)
    rows, in_common = [], 0
    for section, name in names:
        told = [some.get((section, name)) for some in known]
        compared = {value for value, has in zip(told, sections, strict=True) if section in has}
        if len(compared) > 1:
            values = {value_in(label): value for label, value in zip(labels, told, strict=True)}
            rows.append({"section": section, "name": name, **values})
        else:
            in_common += 1
    columns = ["section", "name", *map(value_in, labels)]
    frame = pl.DataFrame(rows[:FACT_ROWS], schema=dict.fromkeys(columns, pl.String))
    query = "PIVOT environment ON trace_id USING first(value) GROUP BY section, name"
    return Listing("environment", query, frame, len(rows)), in_common


def _by_name(facts: pl.DataFrame) -> dict[tuple[str, str], str]:
    """Give what is known by section and name; several values of one name are one text."""
    values: dict[tuple[str, str], dict[str, None]] = {}
    for section, name, value in facts.iter_rows():
        values.setdefault((section or "", name or ""), {})[value or ""] = None
    return {name: "; ".join(found) for name, found in values.items()}
