"""With what software and on which machines the run was made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.report import sentences
from roast_analyze.report.rerun_script import script
from roast_analyze.report.sections.section import Section, Snippet, empty, filled, table
from roast_analyze.report.tables import Field

if TYPE_CHECKING:
    from roast_analyze.report.data import ReportData


def build(data: ReportData) -> Section:
    """Say what differs from the defaults and between processes, and list what is known."""
    section = Section("environment", "Environment, and how to run it again", "Environment")
    if data.environment.total == 0:
        return empty(
            section,
            "No facts about software and machines were recorded: they were left out of the "
            "kinds to record.",
        )
    setup = data.setup
    told = (
        sentences.environment(data),
        sentences.versions_differ(data),
        sentences.configured(data),
        sentences.jobs(data),
    )
    shown = [
        table(data, name, title, listing, fields)
        for name, title, listing, fields in (
            ("options", "Configuration that is not Dask's default", setup.options, _OPTIONS),
            ("versions", "Versions that differ between processes", setup.versions, _VERSIONS),
            ("jobs", "Jobs", setup.jobs, _JOBS),
            ("machines", "Machines", setup.machines, _MACHINES),
        )
        if listing.total
    ]
    shown.append(table(data, "environment", "Recorded facts", data.environment, _ENVIRONMENT))
    lines = script(data)
    snippets = (Snippet("again", "How to run it again", lines),) if lines else ()
    return filled(section, *filter(None, told), tables=tuple(shown), snippets=snippets)


_OPTIONS: Final = (
    Field("name", "option"),
    Field("value", "value"),
    Field("default_value", "default"),
    Field("process", "where"),
    Field("processes", "processes", "count"),
)
_VERSIONS: Final = (
    Field("package", "package"),
    Field("version", "version"),
    Field("process", "where"),
    Field("processes", "processes", "count"),
)
_JOBS: Final = (
    Field("process", "of the"),
    Field("system", "system"),
    Field("queue", "queue"),
    Field("cores", "cores", "count", optional=True),
    Field("memory_limit_bytes", "memory", "bytes", optional=True),
    Field("processes", "processes", "count", help="Processes in jobs of this kind."),
    Field("jobs", "jobs", "count", help="Different jobs among them."),
    Field("nodes", "nodes", "count", help="Different nodes among them."),
    Field("first_job", "such as", help="The first of these jobs, by name."),
)
_MACHINES: Final = (
    Field("process", "of the"),
    Field("processes", "processes", "count"),
    Field("hosts", "hosts", "count", help="Different hosts among them."),
    Field("first_host", "such as", help="The first of these hosts, by name."),
    Field("cpu_model", "CPU"),
    Field("cores", "cores", "count"),
    Field("usable_cores", "usable", "count", optional=True),
    Field("cgroup_cores", "limit", "ratio", optional=True),
    Field("memory_bytes", "memory", "bytes", group="memory"),
    Field("cgroup_memory_bytes", "limit of it", "bytes", optional=True, group="memory"),
    Field("kernel", "kernel"),
    Field("python", "Python"),
)
_ENVIRONMENT: Final = (
    Field("section", "section"),
    Field("name", "name"),
    Field("value", "value"),
)
