"""The data of a comparison: totals of each trace, and the differences between them.

Traces are opened one after the other, so that only one database takes memory at a time and
each trace can use the cache of its own report. Only aggregates of each trace are kept; totals
by prefix, dataset and file are joined here.
"""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final

import polars as pl

from roast_analyze.report import quantities as q
from roast_analyze.report.comparison.labels import abbreviated, distinct_labels, recorded_labels
from roast_analyze.report.findings import query_costs
from roast_analyze.report.listing import Listing
from roast_analyze.report.run import (
    Recording,
    Run,
    query_recording,
    query_run,
)
from roast_analyze.report.tables import Source
from roast_analyze.run_amounts import query_amounts
from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from roast_analyze.algorithms.decomposition import RunAmounts
    from roast_analyze.open.session import Session
    from roast_analyze.open.time_range import TimeRange
    from roast_analyze.report.findings import Costs

    Opener = Callable[[tuple[Path, ...]], Session]

#: Maximum number of traces that are compared.
TRACE_LIMIT: Final = 24
#: Maximum number of rows of a table of prefixes, datasets or files.
GROUP_ROWS: Final = 150
#: Maximum number of differing facts that are listed.
FACT_ROWS: Final = 200

#: Suffix of the names of columns that contain ratios to the first trace.
RATIO: Final = " times"
#: Column of the largest difference from the first trace, with its sign.
DIFFERENCE: Final = "difference_seconds"
#: Facts that always differ between runs.
_IDENTITIES: Final = {
    ("client", "id"), ("client", "pid"),
    ("scheduler", "address"), ("scheduler", "id"), ("scheduler", "pid"),
}  # fmt: skip
#: Columns that identify a row of a view in every trace.
_KEYS: Final = {
    "prefixes": ("prefix",),
    "datasets": ("dataset",),
    "files": ("filename", "dataset"),
}

#: Kinds of process with which the name of a section begins.
_PROCESSES: Final = ("client", "scheduler", "worker")

#: Attributes of a run that are compared without conversion.
_RUN_TOTALS: Final = (
    "wall_seconds", "busy_seconds", "peak_nthreads", "core_seconds", "core_efficiency", "tasks",
    "events_per_second", "bytes_read", "output_bytes", "peak_memory_bytes", "failures",
    "lost_records",
)  # fmt: skip

_TOTALS_QUERY: Final = (
    "SELECT *, compute_seconds - kept_seconds AS wasted_seconds, "
    "core_seconds - compute_seconds AS idle_seconds FROM run"
)
#: Several values of one name, in any order, are one. Dask appends identifiers to the names of
#: plugins.
_FACTS: Final = (
    "SELECT coalesce(section, ''), coalesce(name, ''), "
    "string_agg(DISTINCT coalesce(value, ''), '; ' ORDER BY coalesce(value, '')) FROM ("
    "SELECT section, name, CASE WHEN name LIKE '%plugins%' "
    "THEN regexp_replace(value, '-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', '', 'g') "
    "ELSE value END AS value FROM environment UNION ALL "
    "SELECT process || ' packages', package, version FROM packages "
    "WHERE process IN (SELECT process FROM machines WHERE python IS NOT NULL) "
    "AND (process || ' versions', package) NOT IN (SELECT (section, name) FROM environment) "
    "UNION ALL SELECT process || ' configuration', name, coalesce(value, 'None') FROM config "
    "WHERE differs IS NOT NULL AND NOT is_run_specific AND (process <> 'scheduler' "
    "OR name NOT IN (SELECT name FROM environment WHERE section = 'dask configuration')) "
    "UNION ALL SELECT 'recorder settings', unnest(json_keys(settings)), "
    "settings ->> unnest(json_keys(settings)) FROM trace_info) GROUP BY ALL"
)


#: Datasets whose fixed time of a chunk is not known from the run alone, and their chunk sizes.
_UNKNOWN_COSTS: Final = """
SELECT dataset, median_events
FROM chunk_costs
WHERE NOT is_known AND dataset IS NOT NULL
"""

#: Their model, fitted to all traces together.
_JOINT_COSTS: Final = """
SELECT
    dataset,
    any_value(runs) AS runs,
    any_value(fixed_seconds) AS fixed_seconds,
    any_value(fixed_error_seconds) AS fixed_error_seconds,
    any_value(seconds_per_event) AS seconds_per_event,
    min(median_events) AS least_events,
    max(median_events) AS most_events
FROM joint_chunk_costs
WHERE is_known
GROUP BY dataset
ORDER BY dataset
"""


@dataclass(frozen=True)
class TraceTotals:
    """Totals, samples and facts of one trace."""

    #: Name that is distinct within the comparison, and its abbreviation for figures.
    label: str
    short_label: str
    #: Paths of the trace, for commands.
    names: tuple[str, ...]
    run: Run
    recording: Recording
    #: Number of losses.
    losses: int
    #: View ``concurrency``: t, executing, nthreads.
    load: pl.DataFrame
    #: View ``cluster_samples``: t, cpu_percent, nthreads, memory_bytes, memory_limit_bytes.
    samples: pl.DataFrame
    #: View to its compute ``seconds`` by prefix, dataset or file.
    totals: dict[str, pl.DataFrame]
    #: Section and name of facts about software, machines and settings to their value.
    facts: dict[tuple[str, str], str]
    #: Work and waiting.
    amounts: RunAmounts
    #: Thread time of each finding.
    findings: Costs
    #: The time range that is compared, if it is not the whole run.
    time_range: TimeRange | None = None
    #: Dataset to its median chunk size, if this run alone does not determine the fixed time.
    unknown_costs: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Session, label: str, names: tuple[str, ...]) -> TraceTotals:
        """Query the totals of an opened trace."""
        run = query_run(trace)
        [(losses,)] = trace.rows("SELECT count(*) FROM loss")
        totals = {}
        for view, keys in _KEYS.items():
            named = ", ".join(keys)
            totals[view] = trace.sql(
                f"SELECT {named}, sum(compute_seconds) AS seconds FROM {view} GROUP BY {named}"
            ).pl()
        return cls(
            label=label,
            short_label=label,
            names=names,
            run=run,
            recording=query_recording(trace),
            losses=losses,
            load=trace.sql("SELECT t, executing, nthreads FROM concurrency ORDER BY t").pl(),
            samples=trace.sql(
                "SELECT t, cpu_percent, nthreads, memory_bytes, memory_limit_bytes "
                "FROM cluster_samples ORDER BY t"
            ).pl(),
            totals=totals,
            facts={(section, name): it for section, name, it in trace.rows(_FACTS)},
            amounts=query_amounts(trace),
            findings=query_costs(trace),
            time_range=next(iter(trace.time_ranges), None),
            unknown_costs=dict(trace.rows(_UNKNOWN_COSTS)) if run.chunk_attempts else {},
        )

    @property
    def wall_seconds(self) -> float:
        """Duration of the recording."""
        return self.run.wall_seconds or 0.0

    @property
    def options(self) -> str:
        """Options that restrict a command to the same time range."""
        options = self.time_range.options if self.time_range else ""
        return f" {options}" if options else ""


@dataclass(frozen=True)
class Comparison(Source):
    """The data of a comparison."""

    chosen: ClassVar[str] = "those that differ most"

    #: The others are compared with the first.
    traces: tuple[TraceTotals, ...]
    #: Labels of traces beyond :data:`TRACE_LIMIT`.
    left_out: tuple[str, ...]
    #: One row per trace: ``trace``, its totals, and for each column of numbers the ratio to
    #: the first trace, in a column whose name ends in :data:`RATIO`.
    totals: Listing
    #: View to one row for each of its prefixes, datasets or files in any trace: its name, the
    #: compute seconds in each trace (see :func:`seconds_in`), their ratios to the first trace,
    #: and :data:`DIFFERENCE`. The largest differences come first.
    groups: dict[str, Listing]
    #: Recorded facts that differ: ``section``, ``name``, and the value in each trace.
    facts: Listing
    #: Number of facts that do not differ.
    facts_in_common: int
    #: Number of facts that are not compared, because not all traces contain them.
    facts_in_some: int
    #: Cost models of chunks that are known only from the runs together: dataset, runs,
    #: fixed_seconds, fixed_error_seconds, seconds_per_event, least_events and most_events.
    chunk_costs: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the traces."""
        return tuple(trace.label for trace in self.traces)

    @property
    def options(self) -> str:
        """Options that restrict a command to the time range of all traces."""
        # A run that ends before the range needs no end.
        return max((trace.options for trace in self.traces), key=len)

    def view_command(self, view: str) -> str:
        """Return the command that prints a view of all traces in a terminal."""
        names = [shlex.quote(visible(name)) for trace in self.traces for name in trace.names]
        return f"roast-analyze view {' '.join(names)} {view}{self.options}"


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
    file_labels, names = distinct_labels(traces)
    compared: list[TraceTotals] = []
    for paths, label, called in zip(traces[:TRACE_LIMIT], file_labels, names, strict=False):
        with opener(paths) as trace:
            compared.append(TraceTotals.of(trace, label, called))
    labels = recorded_labels([trace.recording.label for trace in compared], file_labels)
    compared = [
        replace(trace, label=label, short_label=short)
        for trace, label, short in zip(compared, labels, abbreviated(labels), strict=True)
    ]
    facts, facts_in_common, facts_in_some = _differing_facts(compared)
    chunk_costs = pl.DataFrame()
    if _has_several_sizes(compared):
        with opener(tuple(path for paths in traces[:TRACE_LIMIT] for path in paths)) as trace:
            chunk_costs = trace.sql(_JOINT_COSTS).pl()
    return Comparison(
        traces=tuple(compared),
        left_out=tuple(file_labels[len(compared) :]),
        totals=Listing("run", _TOTALS_QUERY, _totals(compared), len(compared)),
        groups={view: _compare_groups(view, compared) for view in _KEYS},
        facts=facts,
        facts_in_common=facts_in_common,
        facts_in_some=facts_in_some,
        chunk_costs=chunk_costs,
    )


def _has_several_sizes(traces: Sequence[TraceTotals]) -> bool:
    """Return whether runs differ in the chunk size of a dataset, with costs known by none."""
    for dataset in {dataset for trace in traces for dataset in trace.unknown_costs}:
        sizes = [trace.unknown_costs.get(dataset) for trace in traces]
        known = [size for size in sizes if size is not None]
        if len(known) == len(traces) and max(known) >= 2 * min(known):
            return True
    return False


def _totals(traces: Sequence[TraceTotals]) -> pl.DataFrame:
    rows = []
    for trace in traces:
        row = {"trace": trace.label, **{name: getattr(trace.run, name) for name in _RUN_TOTALS}}
        # Without coffea, zero chunks would look as if all had failed.
        has_chunks = trace.run.chunk_attempts > 0
        row["chunks"] = trace.run.chunks if has_chunks else None
        row["events"] = trace.run.events if has_chunks else None
        row["kept_seconds"] = trace.run.kept_seconds or 0.0
        row["wasted_seconds"] = trace.run.wasted_seconds
        row["idle_seconds"] = trace.run.idle_seconds
        row["completeness"] = "incomplete" if trace.losses else "complete"
        rows.append(row)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.with_columns(
        # The ratio of the first trace to itself is not worth showing.
        pl.when(pl.int_range(pl.len()) > 0)
        .then(_ratio(pl.col(name), pl.col(name).first()))
        .alias(name + RATIO)
        for name, kind in frame.schema.items()
        if kind.is_numeric()
    )


def _ratio(value: pl.Expr, first: pl.Expr) -> pl.Expr:
    return pl.when(first > 0).then(value / first)


def _compare_groups(view: str, traces: Sequence[TraceTotals]) -> Listing:
    """Join the compute seconds of all traces by prefix, dataset or file."""
    keys, columns = _KEYS[view], [seconds_in(trace.label) for trace in traces]
    rows = pl.concat(trace.totals[view].select(keys) for trace in traces).unique()
    for trace, column in zip(traces, columns, strict=True):
        seconds = trace.totals[view].rename({"seconds": column})
        # Chunks without a dataset are a group, too.
        rows = rows.join(seconds, on=keys, how="left", nulls_equal=True)
    first, *others = map(pl.col, columns)
    # A trace that lacks a group spent no time on it.
    differences = [other.fill_null(0.0) - first.fill_null(0.0) for other in others]
    highest = pl.max_horizontal(differences or [pl.lit(0.0)])
    lowest = pl.min_horizontal(differences or [pl.lit(0.0)])
    compared = rows.with_columns(
        *(_ratio(pl.col(name), first).alias(name + RATIO) for name in columns[1:]),
        pl.when(highest >= -lowest).then(highest).otherwise(lowest).alias(DIFFERENCE),
    ).sort(
        pl.col(DIFFERENCE).abs(), first, *keys,
        descending=[True, True, *[False] * len(keys)], nulls_last=True,
    )  # fmt: skip
    query = f"PIVOT {view} ON trace_id USING sum(compute_seconds) GROUP BY {', '.join(keys)}"
    return Listing(view, query, compared.head(GROUP_ROWS), compared.height)


def _differing_facts(traces: Sequence[TraceTotals]) -> tuple[Listing, int, int]:
    """List the facts that differ between the traces; count those that do not, and the others.

    A missing package was not installed, unless its whole section is missing: the trace was
    recorded with other settings. A missing Dask option only means that the process had not
    imported what declares it, such as distributed. Such facts are not compared. A fact with the
    same values in several kinds of process, such as a version of a package, is one.
    """
    facts = [trace.facts for trace in traces]
    sections = [{section for section, _ in some} for some in facts]
    columns = [value_in(trace.label) for trace in traces]
    rows: dict[tuple[str | None, ...], list[str]] = {}
    in_common: set[tuple[str | None, ...]] = set()
    in_some: set[tuple[str | None, ...]] = set()
    for section, name in sorted({name for some in facts for name in some} - _IDENTITIES):
        values = [some.get((section, name)) for some in facts]
        is_option = section.endswith(" configuration")
        compared = [
            value
            for value, has in zip(values, sections, strict=True)
            if (value is not None if is_option else section in has)
        ]
        process, _, topic = section.partition(" ")
        if process not in _PROCESSES:
            process, topic = "", section
        fact = (topic, name, *values)
        if len(set(compared)) > 1:
            rows.setdefault(fact, []).append(process)
        elif len(compared) == len(traces):
            in_common.add(fact)
        else:
            in_some.add(fact)
    # Types are named, because there may be no rows to infer them from.
    schema = dict.fromkeys(["section", "name", *columns], pl.String)
    query = "PIVOT environment ON trace_id USING first(value) GROUP BY section, name"
    merged = sorted(
        (f"{q.series(processes)} {topic}".strip(), *fact)
        for (topic, *fact), processes in rows.items()
    )
    frame = pl.DataFrame(merged[:FACT_ROWS], schema=schema, orient="row")
    listing = Listing("environment", query, frame, len(merged))
    return listing, len(in_common), len(in_some)
