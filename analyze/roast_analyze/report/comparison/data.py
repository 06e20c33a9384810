"""The data of a comparison: totals of each trace, and the differences between them.

Traces are opened one after the other, so that only one database takes memory at a time and
each trace can use the cache of its own report. Only aggregates of each trace are kept; totals
by prefix, dataset and file are joined here.
"""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.report.comparison.labels import abbreviated, distinct_labels
from roast_analyze.report.listing import Listing
from roast_analyze.report.run import (
    Recording,
    Run,
    TimeSpent,
    query_recording,
    query_run,
    query_time_spent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from roast_analyze.open.session import Session

    Opener = Callable[[tuple[Path, ...]], Session]

#: Most traces that are compared.
TRACE_LIMIT: Final = 24
#: Most rows of a table of prefixes, datasets or files.
GROUP_ROWS: Final = 150
#: Most differing facts that are listed.
FACT_ROWS: Final = 200

#: End of the names of columns that contain ratios to the first trace.
RATIO: Final = " times"
#: Column of the largest difference to the first trace, with its sign.
DIFFERENCE: Final = "difference_seconds"
#: Facts that always differ between runs.
_IDENTITIES: Final = frozenset(
    {
        ("client", "id"),
        ("client", "pid"),
        ("scheduler", "address"),
        ("scheduler", "id"),
        ("scheduler", "pid"),
    }
)
#: Section of the recorder's settings among the recorded facts.
RECORDER: Final = "recorder settings"

#: Columns that identify a row of a view in every trace.
_KEYS: Final = {
    "prefixes": ("prefix",),
    "datasets": ("dataset",),
    "files": ("filename", "dataset"),
}

#: Attributes of a run that are compared as they are.
_RUN_TOTALS: Final = (
    "wall_seconds", "busy_seconds", "peak_workers", "peak_nthreads", "core_seconds",
    "core_efficiency", "tasks", "events_per_second", "bytes_read", "peak_memory_bytes",
    "failures", "lost_records",
)  # fmt: skip

_TOTALS_QUERY: Final = (
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
class TraceTotals:
    """Totals, samples and facts of one trace.

    Parameters
    ----------
    label : str
        Name that is distinct within the comparison.
    names : tuple of str
        Paths of the trace, for commands.
    run, recording, time_spent
        See their classes.
    losses : int
        Number of losses.
    load : polars.DataFrame
        View ``concurrency``: t, executing, nthreads.
    samples : polars.DataFrame
        View ``cluster_samples``: t, cpu_percent, nthreads, memory_bytes, memory_limit_bytes.
    totals : dict
        View to its compute ``seconds`` by prefix, dataset or file.
    facts : polars.DataFrame
        Facts about software, machines and settings: section, name, value.
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
        """Duration of the recording."""
        return self.run.wall_seconds or 0.0

    @property
    def idle_seconds(self) -> float | None:
        """Core time in which no task computed; None if the core time is unknown."""
        if self.run.core_seconds is None:
            return None
        spent = self.time_spent.kept_seconds + self.time_spent.wasted_seconds
        return max(self.run.core_seconds - spent, 0.0)


@dataclass(frozen=True)
class Comparison:
    """The data of a comparison.

    Parameters
    ----------
    traces : tuple of TraceTotals
        The others are compared with the first.
    left_out : tuple of str
        Labels of traces beyond :data:`TRACE_LIMIT`.
    totals : Listing
        One row per trace: ``trace``, its totals, and for each column of numbers the ratio to
        the first trace, in a column whose name ends in :data:`RATIO`.
    prefixes, datasets, files : Listing
        One row for each in any trace: its name, the compute seconds in each trace (see
        :func:`seconds_in`), their ratios to the first trace, and :data:`DIFFERENCE`. The
        largest differences come first.
    facts : Listing
        Recorded facts that differ: ``section``, ``name``, and the value in each trace.
    facts_in_common : int
        Number of facts that do not differ.
    comments : dict
        Column of the view ``run`` to its description.
    """

    traces: tuple[TraceTotals, ...]
    left_out: tuple[str, ...]
    totals: Listing
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
        """Abbreviated names for figures and headings."""
        return tuple(abbreviated(self.labels))


def seconds_in(label: str) -> str:
    """Return the name of the column of compute seconds in a trace."""
    return f"{label} compute_seconds"


def value_in(label: str) -> str:
    """Return the name of the column of a fact's value in a trace."""
    return f"{label} value"


def query(traces: Sequence[tuple[Path, ...]], opener: Opener) -> Comparison:
    """Query several traces.

    Parameters
    ----------
    traces : sequence of tuple of Path
        Paths of each trace, from :func:`roast_analyze.open.discover.group_by_trace`.
    opener : callable
        Opens a trace; it is closed before the next one is opened.
    """
    labels, names = distinct_labels(traces)
    compared: list[TraceTotals] = []
    comments: dict[str, str] = {}
    for paths, label, trace_names in zip(traces[:TRACE_LIMIT], labels, names, strict=False):
        with opener(paths) as trace:
            compared.append(_query_trace(trace, label, trace_names))
            if not comments:
                run = next(view for view in trace.views() if view.name == "run")
                comments = {column.name: column.comment for column in run.columns}
    facts, facts_in_common = _differing_facts(compared)
    return Comparison(
        traces=tuple(compared),
        left_out=tuple(labels[len(compared) :]),
        totals=Listing("run", _TOTALS_QUERY, _totals(compared), len(compared)),
        prefixes=_compare_groups("prefixes", compared),
        datasets=_compare_groups("datasets", compared),
        files=_compare_groups("files", compared),
        facts=facts,
        facts_in_common=facts_in_common,
        comments=comments,
    )


def _query_trace(trace: Session, label: str, names: tuple[str, ...]) -> TraceTotals:
    run = query_run(trace)
    [(losses,)] = trace.sql("SELECT count(*) FROM loss").fetchall()
    totals = {}
    for view, keys in _KEYS.items():
        named = ", ".join(keys)
        totals[view] = trace.sql(
            f"SELECT {named}, sum(compute_seconds) AS seconds FROM {view} GROUP BY {named}"
        ).pl()
    return TraceTotals(
        label=label,
        names=names,
        run=run,
        recording=query_recording(trace),
        time_spent=query_time_spent(trace, run),
        losses=losses,
        load=trace.sql("SELECT t, executing, nthreads FROM concurrency ORDER BY t").pl(),
        samples=trace.sql(
            "SELECT t, cpu_percent, nthreads, memory_bytes, memory_limit_bytes "
            "FROM cluster_samples ORDER BY t"
        ).pl(),
        totals=totals,
        facts=trace.sql(_FACTS).pl(),
    )


def _totals(traces: Iterable[TraceTotals]) -> pl.DataFrame:
    rows = pl.DataFrame(
        [
            {
                "trace": trace.label,
                **{name: getattr(trace.run, name) for name in _RUN_TOTALS},
                # Without coffea, zero chunks would look as if all had failed.
                **{
                    name: getattr(trace.run, name) if trace.run.chunk_attempts else None
                    for name in ("chunks", "events")
                },
                "kept_seconds": trace.time_spent.kept_seconds,
                "wasted_seconds": trace.time_spent.wasted_seconds,
                "idle_seconds": trace.idle_seconds,
                "completeness": "incomplete" if trace.losses else "complete",
            }
            for trace in traces
        ],
        infer_schema_length=None,
    )
    numbers = [name for name, kind in rows.schema.items() if kind.is_numeric()]
    return rows.with_columns(
        # The ratio of the first trace to itself is not worth showing.
        pl.when(pl.int_range(pl.len()) > 0)
        .then(_ratio(pl.col(name), pl.col(name).first()))
        .alias(name + RATIO)
        for name in numbers
    )


def _ratio(value: pl.Expr, first: pl.Expr) -> pl.Expr:
    return pl.when(first > 0).then(value / first)


def _compare_groups(view: str, traces: Sequence[TraceTotals]) -> Listing:
    """Join the compute seconds of all traces by prefix, dataset or file."""
    keys, columns = _KEYS[view], [seconds_in(trace.label) for trace in traces]
    rows = pl.concat(trace.totals[view].select(keys) for trace in traces).unique()
    for trace, column in zip(traces, columns, strict=True):
        seconds = trace.totals[view].rename({"seconds": column})
        rows = rows.join(seconds, on=keys, how="left", nulls_equal=True)
    first = pl.col(columns[0])
    differences = [
        pl.col(name).fill_null(0.0) - first.fill_null(0.0) for name in columns[1:]
    ] or [pl.lit(0.0)]
    ratios = [_ratio(pl.col(name), first).alias(name + RATIO) for name in columns[1:]]
    highest, lowest = pl.max_horizontal(differences), pl.min_horizontal(differences)
    largest = pl.when(highest >= -lowest).then(highest).otherwise(lowest)
    compared = rows.with_columns(*ratios, largest.alias(DIFFERENCE)).sort(
        pl.col(DIFFERENCE).abs(), first, *keys,
        descending=[True, True, *[False] * len(keys)], nulls_last=True,
    )  # fmt: skip
    query = f"PIVOT {view} ON trace_id USING sum(compute_seconds) GROUP BY {', '.join(keys)}"
    return Listing(view, query, compared.head(GROUP_ROWS), compared.height)


def _differing_facts(traces: Sequence[TraceTotals]) -> tuple[Listing, int]:
    """List the facts that differ between the traces that recorded their section.

    A trace without a section was recorded with other settings, so that a missing package
    does not mean that it was not installed.
    """
    labels = [trace.label for trace in traces]
    facts = [_values_by_name(trace.facts) for trace in traces]
    sections = [{section for section, _ in some} for some in facts]
    rows, in_common = [], 0
    for section, name in sorted({name for some in facts for name in some} - _IDENTITIES):
        values = [some.get((section, name)) for some in facts]
        compared = {
            value for value, has in zip(values, sections, strict=True) if section in has
        }
        if len(compared) > 1:
            columns = map(value_in, labels)
            rows.append(
                {"section": section, "name": name, **dict(zip(columns, values, strict=True))}
            )
        else:
            in_common += 1
    schema = dict.fromkeys(["section", "name", *map(value_in, labels)], pl.String)
    query = "PIVOT environment ON trace_id USING first(value) GROUP BY section, name"
    frame = pl.DataFrame(rows[:FACT_ROWS], schema=schema)
    return Listing("environment", query, frame, len(rows)), in_common


def _values_by_name(facts: pl.DataFrame) -> dict[tuple[str, str], str]:
    """Return the values by section and name; several values of one name are joined."""
    values: dict[tuple[str, str], dict[str, None]] = {}
    for section, name, value in facts.iter_rows():
        values.setdefault((section or "", name or ""), {})[value or ""] = None
    return {name: "; ".join(found) for name, found in values.items()}
