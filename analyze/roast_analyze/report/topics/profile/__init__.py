"""The profile: time inside tasks by function, as a flame graph and a table."""

# ruff: noqa: S608 - every query here is put together from this file's own text

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import Listing, list_frame, list_query, list_view
from roast_analyze.report.section import Section
from roast_analyze.report.topics.profile import flame_graph
from roast_analyze.report.topics.profile.flame_graph import LIBRARY_PATTERN
from roast_analyze.safe_text import named

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context
    from roast_analyze.report.topics.profile.flame_graph import Flame

#: Maximum number of time buckets, and of buckets times pairs of worker and prefix: a run with
#: many such pairs has fewer buckets.
PROFILE_BUCKETS: Final = 60
PROFILE_CELLS: Final = 30_000
#: Maximum number of rows of the tables of functions, lines and sections.
FUNCTION_ROWS: Final = 200
LINE_ROWS: Final = 30
SECTION_ROWS: Final = 100
#: Samples of workers; without any, those of the scheduler.
_FUNCTIONS_QUERY: Final = (
    "WITH sampled AS (SELECT _folded_stack(stack, frames) AS stack, seconds, "
    "samples * interval_seconds AS own_seconds, samples + ambiguous_samples AS samples "
    "FROM profile_stacks WHERE profiler = 'dask' AND samples + ambiguous_samples > 0 "
    "AND (worker IS NULL) = (NOT EXISTS (FROM profile_stacks WHERE profiler = 'dask' "
    "AND worker IS NOT NULL))), "
    "seen AS (SELECT unnest(list_distinct(stack)) AS function, stack[-1] AS innermost, "
    "seconds, own_seconds, samples FROM sampled) SELECT function, "
    "coalesce(sum(own_seconds) FILTER (function = innermost), 0) AS self_seconds, "
    "sum(seconds) AS total_seconds, "
    "self_seconds / (SELECT sum(seconds) FROM sampled) AS self_share, "
    "total_seconds / (SELECT sum(seconds) FROM sampled) AS total_share, "
    "try_cast(sum(samples) AS BIGINT) AS samples FROM seen GROUP BY function"
)
#: Dask counts samples by function, and records the line of the first sample of each profiling
#: cycle. Samples are those of workers.
_LINES: Final = (
    "WITH sampled AS (SELECT seconds AS of_stack, "
    "list_distinct(list_filter(list_zip(frames, lines), "
    f"lambda called: NOT regexp_matches(called[1].filename, '{LIBRARY_PATTERN}') "
    "AND NOT _is_recorder(called[1]))) AS called FROM _profile_stacks "
    "WHERE profiler = 'dask' AND worker IS NOT NULL), "
    "seen AS (SELECT of_stack, unnest(called) AS called FROM sampled WHERE len(called) > 0) "
    "SELECT called[1].name || ' (' || called[1].filename || ':' || called[2] || ')' AS line, "
    "sum(of_stack) AS seconds, "
    "sum(of_stack) / (SELECT sum(sampled.of_stack) FROM sampled) AS share "
    "FROM seen WHERE line IS NOT NULL GROUP BY line"
)
#: Time range of the samples. Expanding the stacks takes longest, and is not needed here.
_TIME_RANGE: Final = (
    "WITH slices AS (SELECT worker, prefix, unnest(tree.slices) AS slice FROM raw.profile "
    "AS it "
    "ANTI JOIN _damaged_profiles AS damaged ON it.rowid = damaged.record) "
    "SELECT min(slice.start_t), max(slice.stop_t), median(slice.stop_t - slice.start_t), "
    "count(DISTINCT (worker, prefix)) FROM slices "
    "WHERE list_sum(slice.counts) + coalesce(list_sum(slice.innermost), 0) > 0"
)
#: Two hashes of 64 bits identify a stack: comparing lists of structs would double the time.
_STACKS: Final = (
    "SELECT frames_hash, stack_hash, _folded_frames(frames) AS frames, "
    "_folded_stack(stack, frames) AS stack, "
    "len(list_filter(frames, lambda frame: _is_recorder(frame))) > 0 AS is_folded FROM ("
    "SELECT hash(frames) AS frames_hash, hash(stack) AS stack_hash, "
    "any_value(frames) AS frames, any_value(stack) AS stack "
    "FROM _profile_stacks WHERE samples + ambiguous_samples > 0 GROUP BY ALL) "
    "ORDER BY ALL"
)
#: A separate query, because lists of samples by stack would exceed a small memory limit.
_COUNTS: Final = (
    "SELECT hash(frames) AS frames_hash, hash(stack) AS stack_hash, "
    "log, worker, prefix, interval_seconds, "
    "greatest(least(floor(((start_t + stop_t) / 2 - $start) / $width), $buckets - 1), 0)::INT "
    "AS bucket, "
    "try_cast(sum(samples) AS BIGINT) AS samples, "
    "try_cast(sum(ambiguous_samples) AS BIGINT) AS ambiguous "
    "FROM _profile_stacks WHERE samples + ambiguous_samples > 0 GROUP BY ALL"
)
_HASHES: Final = ("frames_hash", "stack_hash")
#: Rounded, because the order of additions changes the last bits of a sum.
_FUNCTION_ORDER: Final = "round(self_seconds, 9) DESC, round(total_seconds, 9) DESC, function"

_SECTIONS: Final = columns(
    "name dataset executions failures seconds compute_share mean_seconds max_seconds "
    "(cpu_seconds) bytes_read (mean_memory_delta_bytes) (max_memory_delta_bytes)",
    {"name": "section"},
)
_LINE_COLUMNS: Final = columns(
    "line seconds share",
    descriptions={
        "line": "The line of the first sample of the function in a profiling cycle.",
        "seconds": "Time of the samples of cycles that began in the line, with the functions "
        "that it calls.",
        "share": "Share of the samples of workers.",
    },
)
_FUNCTIONS: Final = columns(
    "function self_seconds self_share total_seconds total_share samples"
)


@dataclass(frozen=True)
class Profiles:
    """Samples by stack and time, and the tables of the topic."""

    #: Start of the first bucket, seconds since the epoch, and length of each.
    start_t: float
    bucket_seconds: float
    buckets: int
    #: One row per distinct stack, then folded (see ``sql/profiles/_fold_recorder.sql``):
    #: ``frames``, a list of structs of name, filename and line_number, the outermost first;
    #: ``stack``, the same as text.
    stacks: pl.DataFrame
    #: Samples, with columns ``place`` (row of the stack), log, worker, prefix,
    #: interval_seconds, bucket, samples and ambiguous (samples in one of several functions that
    #: the last one calls).
    #: Rows with a log were measured by Yappi and have no time; all others are samples of
    #: Dask's profilers.
    counts: pl.DataFrame
    #: Samples of Dask's profilers in whose stacks functions of the recorder were folded.
    folded_samples: int
    #: Functions by self time.
    functions: Listing
    #: Lines of functions of the user.
    lines: Listing
    #: Totals of named sections.
    sections: Listing


def query(trace: Session) -> Profiles:
    """Query the samples of a run by stack, worker, prefix and bucket."""
    start_t, stop_t, cycle, pairs = trace.rows(_TIME_RANGE)[0]
    if start_t is None:
        # Yappi files contain no times.
        start_t = stop_t = 0.0
    span = max(stop_t - start_t, 1e-9)
    # A bucket shorter than a profile cycle would be followed by empty ones.
    most = (
        PROFILE_BUCKETS,
        PROFILE_CELLS // max(pairs, 1),
        int(span / max(cycle or 0.0, 1e-9)),
    )
    buckets = max(min(most), 1)
    parameters = {"start": start_t, "width": span / buckets, "buckets": buckets}
    stacks = trace.sql(_STACKS).pl().with_row_index("place")
    counts = (
        trace.sql(_COUNTS, parameters)
        .pl()
        .join(stacks.select("place", "is_folded", *_HASHES), on=_HASHES)
        .drop(_HASHES)
    )
    folded = counts.filter(pl.col("is_folded") & pl.col("log").is_null())
    counts = counts.drop("is_folded")
    return Profiles(
        start_t=start_t,
        bucket_seconds=span / buckets,
        buckets=buckets,
        stacks=stacks.select("frames", "stack"),
        counts=counts,
        folded_samples=int(folded.select("samples", "ambiguous").sum().sum_horizontal().item()),
        functions=_functions(stacks["stack"], counts),
        lines=list_query(
            trace, "profile_stacks", _LINES, "round(seconds, 9) DESC, line", LINE_ROWS
        ),
        sections=list_view(
            trace, "section_totals", "seconds DESC NULLS LAST, dataset, name", SECTION_ROWS
        ),
    )


def _functions(stacks: pl.Series, counts: pl.DataFrame) -> Listing:
    """List the functions by self time."""
    # Equivalent to the query, which would take longer because it expands the stacks again.
    of_workers = pl.col("worker").is_not_null()
    counted = pl.col("samples") + pl.col("ambiguous")
    by_stack = (
        counts.filter(pl.col("log").is_null())
        # Without samples of workers, those of the scheduler.
        .filter(of_workers == of_workers.any())
        .group_by("place")
        .agg(
            samples=counted.sum(),
            seconds=(counted * pl.col("interval_seconds")).sum(),
            # Ambiguous samples are in functions that the last one calls.
            own_seconds=(pl.col("samples") * pl.col("interval_seconds")).sum(),
        )
        .with_columns(stack=pl.lit(stacks).gather(pl.col("place")))
    )
    whole = by_stack["seconds"].sum()
    is_innermost = pl.col("function") == pl.col("innermost")
    seconds, own = pl.col("seconds"), pl.col("own_seconds").filter(is_innermost)
    functions = (
        by_stack.select(
            "seconds",
            "own_seconds",
            "samples",
            function=pl.col("stack").list.unique(),
            innermost=pl.col("stack").list.last(),
        )
        .filter(pl.col("function").list.len() > 0)
        .explode("function")
        .group_by("function")
        .agg(
            self_seconds=own.sum(),
            total_seconds=seconds.sum(),
            self_share=own.sum() / whole,
            total_share=seconds.sum() / whole,
            samples=pl.col("samples").sum(),
        )
        .sort(
            pl.col("self_seconds").round(9),
            pl.col("total_seconds").round(9),
            "function",
            descending=[True, True, False],
        )
    )
    return list_frame(
        "profile_stacks", _FUNCTIONS_QUERY, _FUNCTION_ORDER, FUNCTION_ROWS, functions
    )


def section(found: Profiles, context: Context) -> Section:
    """Build the section."""
    section = Section("inside", "Profile: time by function", "Profile")
    tables = context.tables(
        ("sections", "Named sections", found.sections, _SECTIONS, "those with the most time")
    )
    if found.stacks.is_empty():
        return context.absent(
            replace(section, tables=tables),
            "This trace contains no profile. Profiles are recorded, unless the settings "
            "exclude them, when Dask's profiler is enabled before the workers start:",
            "dask.config.set({'distributed.worker.profile.enabled': True})",
        )
    flame = flame_graph.build(
        found,
        start_t=context.start_t,
        names=context.worker_names,
        command=context.view_command("profile_stacks"),
    )
    functions = context.table(
        "functions", "Functions", found.functions, _FUNCTIONS,
        chosen="those with the highest self time",
    )  # fmt: skip
    lines = context.tables(
        ("lines", "Own code by line", found.lines, _LINE_COLUMNS, "those with the most time"),
        has_view=False,
    )
    sentences = (_sentence(found, flame), _coverage(found, context))
    tables = [*lines, functions, *tables]
    return replace(section, sentences=sentences, flame=flame, tables=tables)


def _coverage(found: Profiles, context: Context) -> str:
    """Compare the time of the samples with the compute time; empty if one is not known."""
    of_tasks = found.counts.filter(
        pl.col("log").is_null(), pl.col("worker").is_not_null(), pl.col("prefix").is_not_null()
    )
    sampled = (
        of_tasks.select(
            (pl.col("samples") + pl.col("ambiguous")) * pl.col("interval_seconds")
        ).sum()
    ).item()
    computed = context.run.compute_seconds
    if not sampled or not computed:
        return ""
    return (
        f"The samples of tasks stand for {q.seconds(sampled)}, and tasks computed for "
        f"{q.seconds(computed)}. A sample stands for the sampling interval, and the two differ "
        "where samples are missing or late: a held GIL or a host without free cores can delay "
        "the profiler, and it does not record attempts that were lost with their worker."
    )


def _sentence(found: Profiles, flame: Flame) -> str:
    text = (
        f"Dask's profilers took {q.counted(flame.samples, 'sample')}. The width of a function "
        "is its total time: self time and the time of the functions that it calls."
    )
    if flame.logs:
        files = q.counted(len(flame.logs), "Yappi file")
        text += (
            f" {files} can be selected instead of a worker. Yappi records only direct callers; "
            "longer stacks are estimated."
        )
    rows = found.functions.rows
    if rows.height:
        top = rows.row(0, named=True)
        text += (
            f" {named(top['function'])} has the highest self time, "
            f"{q.share(top['self_share'])} of the total."
        )
    if found.folded_samples:
        samples = q.counted(found.folded_samples, "sample")
        text += (
            f" Functions of roast's recorder were in the stacks of {samples}. They are left "
            "out: what they call is attached to their caller, and their self time is shown as "
            "(roast recorder)."
        )
    if flame.ambiguous:
        samples = q.counted(flame.ambiguous, "sample is", "samples are")
        text += (
            f" {samples} ambiguous, in one of several functions, because Dask does not count "
            "the innermost function."
        )
    if flame.rare:
        text += (
            f" The stacks of {q.counted(flame.rare, 'sample')} are cut off at nodes named "
            "(rare), to keep this page small."
        )
    return text
