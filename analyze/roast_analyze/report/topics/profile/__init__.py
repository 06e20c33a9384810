"""The profile: time inside tasks by function, as a flame graph and a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.section import Section
from roast_analyze.report.topics.profile import flame_graph
from roast_analyze.report.topics.profile.data import Profiles, query
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from roast_analyze.report.context import Context
    from roast_analyze.report.tables import Table
    from roast_analyze.report.topics.profile.flame_graph import Flame

__all__ = ["Profiles", "query", "section"]

_PROFILE_HINT: Final = "dask.config.set({'distributed.worker.profile.enabled': True})"

_SECTIONS: Final = columns(
    "name dataset executions failures seconds compute_share mean_seconds max_seconds "
    "(cpu_seconds) bytes_read (mean_memory_delta_bytes) (max_memory_delta_bytes)",
    {"name": "section"},
)
_FUNCTIONS: Final = columns(
    "function self_seconds self_share total_seconds total_share samples"
)


def section(found: Profiles, context: Context) -> Section:
    """Build the section."""
    section = Section("inside", "Profile: time inside tasks", "Profile")
    tables: tuple[Table, ...] = ()
    if found.sections.total:
        sections = context.table(
            "sections", "Named sections", found.sections, _SECTIONS,
            chosen="those with the most time",
        )  # fmt: skip
        tables = (sections,)
    if found.stacks.is_empty():
        return replace(
            section,
            tables=tables,
            empty="This trace contains no profile. Profiles are recorded, unless the settings "
            "exclude them, when Dask's profiler is enabled before the workers start:",
            hint=_PROFILE_HINT,
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
    return replace(
        section,
        sentences=(_sentence(found, flame),),
        flame=flame,
        tables=(functions, *tables),
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
            f" {shortened(visible(top['function']), 60)} has the highest self time, "
            f"{q.share(top['self_share'])} of the total."
        )
    if found.folded_samples:
        samples = q.counted(found.folded_samples, "sample")
        text += (
            f" Functions of roast's recorder were in the stacks of {samples}. They are left "
            "out, and what they call follows their caller; their self time is that of (roast "
            "recorder)."
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
