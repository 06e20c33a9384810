"""What the code of the tasks was at, by the profilers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roast_analyze.report import flame, sentences
from roast_analyze.report.sections.section import (
    Section,
    empty,
    filled,
    table,
    view,
    worker_names,
)
from roast_analyze.report.tables import Field

if TYPE_CHECKING:
    from roast_analyze.report.data import ReportData

_PROFILE_HINT: Final = "dask.config.set({'distributed.worker.profile.enabled': True})"


def build(data: ReportData) -> Section:
    """Show the samples of the profilers as a flame graph, and the named parts of tasks."""
    section = Section("inside", "Inside tasks", "Inside tasks")
    named = table(data, "sections", "By named part", data.sections, _SECTIONS)
    tables = (named,) if data.sections.total else ()
    if data.profiles.stacks.is_empty():
        without = empty(
            section,
            "No profile is in this trace, so that it is not known what the code of the tasks "
            "was at. Profiles are recorded, unless they are left out of the kinds to record, "
            "when Dask's profiler is on as the workers start:",
            _PROFILE_HINT,
        )
        return replace(without, tables=tables)
    graph = flame.build(
        data.profiles,
        start_t=data.run.start_t or 0.0,
        names=worker_names(data),
        command=view(data, "profile_stacks"),
    )
    shown = table(data, "functions", "By function, in all", data.functions, _FUNCTIONS)
    told = filled(section, sentences.inside(data, graph), tables=(shown, *tables))
    return replace(told, flame=graph)


_SECTIONS: Final = (
    Field("name", "name"),
    Field("dataset", "dataset"),
    Field("executions", "executions", "count"),
    Field("failures", "failures", "trouble"),
    Field("seconds", "time", "seconds"),
    Field("compute_share", "of all computing", "share"),
    Field("mean_seconds", "mean", "seconds"),
    Field("max_seconds", "longest", "seconds"),
    Field("cpu_seconds", "CPU", "seconds"),
    Field("bytes_read", "read", "bytes"),
    Field("mean_memory_delta_bytes", "memory, mean", "bytes"),
    Field("max_memory_delta_bytes", "memory, most", "bytes"),
)
_FUNCTIONS: Final = (
    Field("function", "function"),
    Field("self_seconds", "itself", "seconds"),
    Field("self_share", "of all", "share"),
    Field("total_seconds", "with what it calls", "seconds"),
    Field("total_share", "of all", "share"),
    Field("samples", "samples", "count"),
)
