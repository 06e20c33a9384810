"""The environment: versions, configuration, batch jobs and machines, and a script to rerun."""

# ruff: noqa: S608 - every query here is put together from the report's own text

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from roast_analyze.report import programs
from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import Listing, list_query
from roast_analyze.report.section import Section, Snippet
from roast_analyze.report.topics.environment.rerun_script import Rerun, script
from roast_analyze.report.topics.failures import beginning
from roast_analyze.safe_text import named, visible

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: Maximum number of packages and kinds of jobs that a sentence names.
PACKAGES_NAMED: Final = 5
JOBS_NAMED: Final = 3
#: Maximum number of rows of the tables of facts and of the others, and of characters of their
#: values.
FACT_ROWS: Final = 500
ROWS: Final = 200
FACT_CHARACTERS: Final = 240
VALUE_CHARACTERS: Final = 300
#: Maximum number of facts that a rerun takes into account.
FACT_LIMIT: Final = 500

_FACTS_QUERY: Final = (
    f"SELECT section, name, {beginning('value', FACT_CHARACTERS)} AS value FROM environment"
)
_OPTIONS_QUERY: Final = (
    f"SELECT name, left(value, {VALUE_CHARACTERS}) AS value, "
    f"left(default_value, {VALUE_CHARACTERS}) AS default_value, "
    "coalesce(source_name, source) AS set_by, process, processes, varies "
    "FROM config WHERE differs"
)
_VERSIONS_QUERY: Final = (
    "SELECT package, version, process, processes, "
    "count(DISTINCT package) OVER () AS all_packages FROM packages WHERE differs"
)
#: Hundreds of workers are alike, so jobs and machines are grouped.
_JOBS_QUERY: Final = (
    'SELECT process, "system", queue, account, qos, cores, memory_limit_bytes, '
    "count(*) AS processes, "
    "count(DISTINCT job_id) AS jobs, count(DISTINCT coalesce(node, host)) AS nodes, "
    "min(job_id) AS first_job, max(job_id) AS last_job FROM jobs "
    'GROUP BY process, "system", queue, account, qos, cores, memory_limit_bytes'
)
_MACHINES_QUERY: Final = (
    "SELECT process, cpu_model, cores, usable_cores, cgroup_cores, memory_bytes, "
    "cgroup_memory_bytes, kernel, python, sum(processes)::BIGINT AS processes, "
    "count(DISTINCT host) AS hosts, min(host) AS first_host FROM machines "
    "WHERE python IS NOT NULL GROUP BY process, cpu_model, cores, usable_cores, cgroup_cores, "
    "memory_bytes, cgroup_memory_bytes, kernel, python"
)

_RERUN_FACTS: Final = (
    "SELECT section, name, left(value, if(name = 'arguments', 40_000, 500)) FROM environment "
    "WHERE section IN ('client', 'client machine', 'client versions', 'cluster', "
    "'scheduler versions') "
    f"AND value IS NOT NULL AND name IS NOT NULL LIMIT {FACT_LIMIT}"
)
#: If the trace does not contain the defaults, all recorded options. Texts of options that no
#: package declares are not recorded, and the user's files still have them.
_RERUN_CONFIGURATION: Final = (
    "SELECT name, left(coalesce(value, 'None'), 500) FROM config "
    "WHERE process = 'scheduler' AND name IS NOT NULL "
    "AND (differs OR (differs IS NULL AND value IS NOT NULL)) AND NOT is_run_specific "
    "AND (coalesce(is_declared, true) OR value IS DISTINCT FROM '<withheld>') "
    f"ORDER BY name LIMIT {FACT_LIMIT}"
)

_OPTIONS: Final = columns(
    "name value default_value set_by process processes",
    {"name": "option"},
    {"set_by": "The file or environment variable, or code."},
)
_VERSIONS: Final = columns("package version process processes")
_JOBS: Final = columns(
    "process system queue account (qos) cores? memory_limit_bytes? processes jobs nodes "
    "(first_job)",
    {"memory_limit_bytes": "memory"},
    {
        "processes": "Processes in jobs of this kind.",
        "jobs": "Distinct jobs.",
        "nodes": "Distinct nodes.",
        "first_job": "The first of these jobs, by name.",
    },
)
_MACHINES: Final = columns(
    "process processes hosts (first_host) cpu_model cores (usable_cores?) cgroup_cores? "
    "memory_bytes cgroup_memory_bytes? (kernel) python",
    descriptions={
        "hosts": "Distinct hosts.",
        "first_host": "The first of these hosts, by name.",
    },
)
_FACTS: Final = columns("section name value")
_PROGRAMS: Final = columns(
    "program user_name? host? start_t stop_t tasks (task_runs) failures? compute_seconds "
    "(core_seconds)",
    {"user_name": "user", "start_t": "connected", "stop_t": "disconnected"},
    {"program": "Its file name, the name of its client, or else the client."},
)


@dataclass(frozen=True)
class Environment:
    """The environment of a run."""

    facts: Listing
    #: Options of Dask's configuration that differ from the defaults of the packages.
    options: Listing
    #: Packages with different versions in different processes.
    versions: Listing
    jobs: Listing
    machines: Listing
    #: Clients that submitted tasks, if there are several.
    programs: Listing | None
    #: Whether the defaults of the configuration are known.
    has_configuration: bool
    rerun: Rerun


def query(trace: Session) -> Environment:
    """Query the environment."""
    [(has_configuration,)] = trace.rows("SELECT EXISTS (FROM config WHERE differs IS NOT NULL)")
    facts: dict[str, dict[str, str]] = {}
    for section, name, value in trace.rows(_RERUN_FACTS):
        facts.setdefault(section, {}).setdefault(name, value)
    configuration = dict(trace.rows(_RERUN_CONFIGURATION))
    by_size = "processes DESC, process"
    return Environment(
        facts=list_query(trace, "environment", _FACTS_QUERY, "section, name, value", FACT_ROWS),
        options=list_query(
            trace, "config", _OPTIONS_QUERY, "name, process, value, set_by", ROWS
        ),
        versions=list_query(
            trace, "packages", _VERSIONS_QUERY, "package, process, version", ROWS
        ),
        jobs=list_query(trace, "jobs", _JOBS_QUERY, f"{by_size}, first_job", ROWS),
        machines=list_query(trace, "machines", _MACHINES_QUERY, f"{by_size}, first_host", ROWS),
        programs=programs.query(trace),
        has_configuration=has_configuration,
        rerun=Rerun(facts, configuration),
    )


def section(found: Environment, context: Context) -> Section:
    """Build the section."""
    section = Section("environment", "Environment and rerun", "Environment")
    if found.facts.total == 0:
        return replace(
            section,
            empty="No facts about software and machines were recorded: the settings excluded "
            "them.",
        )
    recording = context.recording
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
    recorded = (
        f"Recorded with {', '.join(versions)}." if versions else "Versions were not recorded."
    )
    configuration = ""
    if found.has_configuration:
        options = found.options.rows
        differing = options["name"].n_unique()
        varying = options.filter("varies")["name"].n_unique()
        configuration = "Dask's configuration is the default."
        if differing:
            text = q.counted(
                differing,
                "option of Dask's configuration differs",
                "options of Dask's configuration differ",
            )
            vary = q.counted(varying, "of them varies", "of them vary")
            among = f"; {vary} between processes" if varying else ""
            configuration = f"{text} from the default{among}."
    by_name, by_size = "the first by name", "those with the most processes"
    tables = context.tables(
        *(
            [("programs", "Programs of the scheduler", found.programs, _PROGRAMS, "the first")]
            if found.programs
            else []
        ),
        ("options", "Non-default configuration", found.options, _OPTIONS, by_name),
        ("versions", "Differing versions", found.versions, _VERSIONS, by_name),
        ("jobs", "Batch jobs", found.jobs, _JOBS, by_size),
        ("machines", "Machines", found.machines, _MACHINES, by_size),
        ("environment", "Recorded facts", found.facts, _FACTS, by_name),
    )
    lines = script(found.rerun, context.run)
    return replace(
        section,
        sentences=(recorded, _differing_versions(found), configuration, _jobs(found)),
        tables=tables,
        snippets=(Snippet("again", "Rerun script", lines),) if lines else (),
    )


def _differing_versions(found: Environment) -> str:
    """Name packages with their versions by process; empty if no versions differ."""
    if not found.versions.total:
        return ""
    rows = found.versions.rows
    names = []
    for (package,), of_package in rows.group_by("package", maintain_order=True):
        parts = []
        for (process,), same in of_package.group_by("process", maintain_order=True):
            versions = ", ".join(same["version"].unique(maintain_order=True))
            who = "workers" if process == "worker" else process
            parts.append(f"{who} {named(versions, limit=40)}")
        names.append(f"{visible(str(package))} ({', '.join(parts)})")
    shown = names[:PACKAGES_NAMED]
    more = q.and_more(rows["all_packages"][0], len(shown))
    return f"Versions differ between processes: {q.series(shown)}{more}."


def _jobs(found: Environment) -> str:
    """Describe the batch jobs of the workers; empty if there were none."""
    kinds = found.jobs.rows.filter(process="worker").to_dicts()
    if not kinds:
        return ""
    texts = []
    for kind in kinds[:JOBS_NAMED]:
        workers = q.counted(kind["processes"], "worker")
        jobs = q.counted(kind["jobs"], "batch job")
        text = f"{workers} in {jobs} of {visible(kind['system'])}"
        if kind["queue"] is not None:
            text += f", queue {named(kind['queue'], limit=40)}"
        if kind["cores"] is not None:
            text += f", {q.counted(int(kind['cores']), 'core')}"
        texts.append(text)
    return f"{q.series(texts)}{q.and_more(len(kinds), len(texts))}."
