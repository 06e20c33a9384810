"""Configuration, versions, batch jobs and machines of a run, and what a rerun needs."""

# ruff: noqa: S608 - every query here is put together from the report's own text

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roast_analyze.report.listing import Listing, list_query
from roast_analyze.report.topics.failures import beginning

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Most rows of the tables of facts and of the others, and most characters of their values.
FACT_ROWS: Final = 500
ROWS: Final = 200
FACT_CHARACTERS: Final = 240
VALUE_CHARACTERS: Final = 300
#: Most facts and most packages with different versions that a rerun takes into account.
FACT_LIMIT: Final = 500
PACKAGE_LIMIT: Final = 100

_OPTIONS: Final = (
    f"SELECT name, left(value, {VALUE_CHARACTERS}) AS value, "
    f"left(default_value, {VALUE_CHARACTERS}) AS default_value, process, processes, varies "
    "FROM config WHERE differs"
)
_VERSIONS: Final = "SELECT package, version, process, processes FROM packages WHERE differs"
#: Hundreds of workers are alike, so jobs and machines are grouped.
_JOBS: Final = (
    'SELECT process, "system", queue, cores, memory_limit_bytes, count(*) AS processes, '
    "count(DISTINCT job_id) AS jobs, count(DISTINCT coalesce(node, host)) AS nodes, "
    "min(job_id) AS first_job, max(job_id) AS last_job FROM jobs "
    'GROUP BY process, "system", queue, cores, memory_limit_bytes'
)
_MACHINES: Final = (
    "SELECT process, cpu_model, cores, usable_cores, cgroup_cores, memory_bytes, "
    "cgroup_memory_bytes, kernel, python, sum(processes)::BIGINT AS processes, "
    "count(DISTINCT host) AS hosts, min(host) AS first_host FROM machines "
    "WHERE python IS NOT NULL GROUP BY process, cpu_model, cores, usable_cores, cgroup_cores, "
    "memory_bytes, cgroup_memory_bytes, kernel, python"
)
#: If the trace does not contain the defaults, all recorded options. Redacted values cannot be
#: set again.
_CONFIGURATION: Final = (
    "SELECT name, left(coalesce(value, 'None'), 500) FROM config "
    "WHERE process = 'scheduler' AND name IS NOT NULL "
    "AND (differs OR (differs IS NULL AND value IS NOT NULL)) AND NOT is_run_specific "
    "AND coalesce(value, '') NOT IN ('<withheld>', '<redacted>') ORDER BY name LIMIT $limit"
)
_DIFFERING: Final = (
    "SELECT package, process, "
    "array_to_string(list_sort(list(DISTINCT left(version, 100))), ', ') "
    "FROM packages WHERE differs GROUP BY package, process ORDER BY package, process "
    "LIMIT $limit"
)
_FACTS: Final = (
    "SELECT section, name, left(value, 500) FROM environment "
    "WHERE section IN (SELECT unnest($sections)) AND value IS NOT NULL "
    "AND name IS NOT NULL LIMIT $limit"
)


@dataclass(frozen=True)
class Rerun:
    """Facts needed to run the program again. None means unknown.

    Parameters
    ----------
    python, platform, program, cluster : str or None
        Version of Python, platform, name of the script, and class of the cluster.
    packages : dict
        Package to version, of the client; of the scheduler if the client's are unknown.
    configuration : dict
        Dask's configuration on the scheduler: what differs from the defaults, or everything
        recorded if the defaults are unknown.
    arguments : tuple of str
        Arguments of the script, redacted.
    commit : str or None
        Description of the git commit of the script.
    """

    python: str | None
    platform: str | None
    program: str | None
    cluster: str | None
    packages: dict[str, str]
    configuration: dict[str, str]
    arguments: tuple[str, ...] = ()
    commit: str | None = None


@dataclass(frozen=True)
class Environment:
    """The environment of a run.

    Parameters
    ----------
    facts : Listing
        View ``environment``.
    options : Listing
        Options of Dask's configuration that differ from the defaults of the packages.
    versions : Listing
        Packages with different versions in different processes.
    jobs, machines : Listing
        Batch jobs and machines, grouped by kind.
    has_configuration : bool
        Whether the defaults of the configuration are known.
    differing : dict
        Package to kind of process (client, scheduler, worker) to its versions, where these
        differ.
    rerun : Rerun
    """

    facts: Listing
    options: Listing
    versions: Listing
    jobs: Listing
    machines: Listing
    has_configuration: bool
    differing: dict[str, dict[str, str]]
    rerun: Rerun


def query(trace: Session) -> Environment:
    """Query the environment; the rerun of several traces is that of the first."""
    [(has_configuration,)] = trace.sql(
        "SELECT EXISTS (FROM config WHERE differs IS NOT NULL)"
    ).fetchall()
    differing: dict[str, dict[str, str]] = {}
    for package, process, version in trace.sql(
        _DIFFERING, {"limit": 3 * PACKAGE_LIMIT}
    ).fetchall():
        differing.setdefault(package, {})[process] = version
    by_size = "processes DESC, process"
    value = beginning("value", FACT_CHARACTERS)
    return Environment(
        facts=list_query(
            trace,
            "environment",
            f"SELECT section, name, {value} AS value FROM environment",
            "section, name, value",
            FACT_ROWS,
        ),
        options=list_query(trace, "config", _OPTIONS, "name, process, value", ROWS),
        versions=list_query(trace, "packages", _VERSIONS, "package, process, version", ROWS),
        jobs=list_query(trace, "jobs", _JOBS, f"{by_size}, first_job", ROWS),
        machines=list_query(trace, "machines", _MACHINES, f"{by_size}, first_host", ROWS),
        has_configuration=has_configuration,
        differing=differing,
        rerun=_query_rerun(trace),
    )


def _query_rerun(trace: Session) -> Rerun:
    sections = ("client versions", "scheduler versions", "client machine", "client", "cluster")
    facts: dict[str, dict[str, str]] = {section: {} for section in sections}
    for section, name, value in trace.sql(
        _FACTS, {"sections": list(sections), "limit": FACT_LIMIT}
    ).fetchall():
        facts[section].setdefault(name, value)
    client = facts["client"]
    packages = dict(facts["client versions"] or facts["scheduler versions"])
    try:
        arguments = json.loads(client.get("arguments", "[]"))
    except ValueError:  # cut off at the most characters
        arguments = []
    commit = None
    if "git commit" in client:
        commit = f"commit {client['git commit']}"
        commit += f" of {client['git branch']}" if "git branch" in client else ""
        commit += f" of {client['git remote']}" if "git remote" in client else ""
        if client.get("git dirty") == "true":
            commit += ", with uncommitted changes"
    return Rerun(
        python=packages.pop("python", None),
        platform=facts["client machine"].get("platform"),
        program=client.get("program"),
        cluster=facts["cluster"].get("type"),
        packages=packages,
        configuration=dict(trace.sql(_CONFIGURATION, {"limit": FACT_LIMIT}).fetchall()),
        arguments=tuple(map(str, arguments)) if isinstance(arguments, list) else (),
        commit=commit,
    )
