"""The environment: versions, configuration, batch jobs and machines, and a script to rerun."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.report.section import Section, Snippet
from roast_analyze.report.tables import Field
from roast_analyze.report.topics.environment.data import Environment, query
from roast_analyze.report.topics.environment.rerun_script import script
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from roast_analyze.report.context import Context
    from roast_analyze.report.run import Recording

__all__ = ["Environment", "query", "section"]

#: Most packages and kinds of jobs that a sentence names.
PACKAGES_NAMED: Final = 5
JOBS_NAMED: Final = 3


def section(found: Environment, context: Context) -> Section:
    """Build the section."""
    section = Section("environment", "Environment and rerun", "Environment")
    if found.facts.total == 0:
        return replace(
            section,
            empty="No facts about software and machines were recorded: the settings excluded "
            "them.",
        )
    sentences = (
        _recorded_with(context.recording),
        _differing_versions(found),
        _configuration(found),
        _jobs(found),
    )
    tables = [
        context.table(name, title, listing, columns, chosen=chosen)
        for name, title, listing, columns, chosen in (
            ("options", "Non-default configuration", found.options, _OPTIONS,
             "the first by name"),
            ("versions", "Differing versions", found.versions, _VERSIONS, "the first by name"),
            ("jobs", "Batch jobs", found.jobs, _JOBS, "those with the most processes"),
            ("machines", "Machines", found.machines, _MACHINES,
             "those with the most processes"),
            ("environment", "Recorded facts", found.facts, _FACTS, "the first by name"),
        )
        if listing.total
    ]  # fmt: skip
    lines = script(found.rerun, context.run)
    return replace(
        section,
        sentences=tuple(filter(None, sentences)),
        tables=tuple(tables),
        snippets=(Snippet("again", "Script to rerun", lines),) if lines else (),
    )


def _recorded_with(recording: Recording) -> str:
    versions = [
        f"{name} {visible(version)}"
        for name, version in (
            ("dask", recording.dask_version),
            ("distributed", recording.distributed_version),
            ("Python", recording.python_version),
            ("roast", recording.recorder_version),
        )
        if version
    ]
    return (
        f"Recorded with {', '.join(versions)}." if versions else "Versions were not recorded."
    )


def _differing_versions(found: Environment) -> str:
    if not found.differing:
        return ""
    names = []
    for package, versions in list(found.differing.items())[:PACKAGES_NAMED]:
        parts = [
            f"{'workers' if process == 'worker' else process} {shortened(visible(version), 40)}"
            for process, version in versions.items()
        ]
        names.append(f"{visible(package)} ({', '.join(parts)})")
    more = q.and_more(len(found.differing), len(names))
    return f"Versions differ between processes: {q.series(names)}{more}."


def _configuration(found: Environment) -> str:
    """Count the options that differ from the defaults; empty if these are unknown."""
    if not found.has_configuration:
        return ""
    options = found.options.rows["name"].n_unique()
    if not options:
        return "Dask's configuration is the default."
    varying = found.options.rows.filter("varies")["name"].n_unique()
    among = ""
    if varying:
        vary = q.counted(varying, "of them varies", "of them vary")
        among = f"; {vary} between processes"
    differ = q.counted(
        options,
        "option of Dask's configuration differs",
        "options of Dask's configuration differ",
    )
    return f"{differ} from the default{among}."


def _jobs(found: Environment) -> str:
    """Describe the batch jobs of the workers; empty if there were none."""
    kinds = found.jobs.rows.filter(process="worker").to_dicts()
    if not kinds:
        return ""
    named = []
    for kind in kinds[:JOBS_NAMED]:
        workers = q.counted(kind["processes"], "worker")
        jobs = q.counted(kind["jobs"], "batch job")
        text = f"{workers} in {jobs} of {visible(kind['system'])}"
        if kind["queue"] is not None:
            text += f", queue {shortened(visible(kind['queue']), 40)}"
        if kind["cores"] is not None:
            text += f", {q.counted(int(kind['cores']), 'core')}"
        named.append(text)
    return f"{q.series(named)}{q.and_more(len(kinds), len(named))}."


_OPTIONS: Final = (
    Field("name", "option"),
    Field("value", "value"),
    Field("default_value", "default"),
    Field("process", "process"),
    Field("processes", "processes", "count"),
)
_VERSIONS: Final = (
    Field("package", "package"),
    Field("version", "version"),
    Field("process", "process"),
    Field("processes", "processes", "count"),
)
_JOBS: Final = (
    Field("process", "process"),
    Field("system", "batch system"),
    Field("queue", "queue"),
    Field("cores", "cores", "count", optional=True),
    Field("memory_limit_bytes", "memory", "bytes", optional=True),
    Field("processes", "processes", "count", help="Processes in jobs of this kind."),
    Field("jobs", "jobs", "count", help="Distinct jobs."),
    Field("nodes", "nodes", "count", help="Distinct nodes."),
    Field("first_job", "example", help="The first of these jobs, by name."),
)
_MACHINES: Final = (
    Field("process", "process"),
    Field("processes", "processes", "count"),
    Field("hosts", "hosts", "count", help="Distinct hosts."),
    Field("first_host", "example", help="The first of these hosts, by name."),
    Field("cpu_model", "CPU"),
    Field("cores", "cores", "count"),
    Field("usable_cores", "usable cores", "count", optional=True),
    Field("cgroup_cores", "core limit", "ratio", optional=True),
    Field("memory_bytes", "memory", "bytes", group="memory"),
    Field("cgroup_memory_bytes", "memory limit", "bytes", optional=True, group="memory"),
    Field("kernel", "kernel"),
    Field("python", "Python"),
)
_FACTS: Final = (
    Field("section", "section"),
    Field("name", "name"),
    Field("value", "value"),
)
