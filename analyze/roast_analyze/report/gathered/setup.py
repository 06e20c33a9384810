"""What the run was set up with: configuration, versions, jobs and machines.

Hundreds of workers are alike, so all of it comes in groups.
"""

# ruff: noqa: S608 - every query here is put together from the report's own text

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roast_analyze.report.gathered.listing import Listing, asked

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Most rows of each table, and most characters of a value.
ROW_LIMIT: Final = 200
VALUE_CHARACTERS: Final = 300

_OPTIONS: Final = (
    f"SELECT name, left(value, {VALUE_CHARACTERS}) AS value, "
    f"left(default_value, {VALUE_CHARACTERS}) AS default_value, process, processes, varies "
    "FROM config WHERE differs"
)
_VERSIONS: Final = "SELECT package, version, process, processes FROM packages WHERE differs"
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


@dataclass(frozen=True)
class Setup:
    """What the run was set up with.

    Parameters
    ----------
    options : Listing
        Options of Dask's configuration that are not as the packages have them.
    versions : Listing
        Packages that processes of the run have in different versions.
    jobs : Listing
        Jobs of batch systems, those of a kind together.
    machines : Listing
        Machines, those of a kind together.
    has_configuration, has_versions : bool
        Whether the defaults, and the packages of workers, are known at all.
    """

    options: Listing
    versions: Listing
    jobs: Listing
    machines: Listing
    has_configuration: bool
    has_versions: bool


def gather(trace: Session) -> Setup:
    """Ask what the run was set up with."""
    has_configuration, has_versions = trace.sql(
        "SELECT EXISTS (FROM config WHERE differs IS NOT NULL), "
        "EXISTS (FROM packages WHERE process = 'worker')"
    ).fetchall()[0]
    return Setup(
        options=asked(trace, "config", _OPTIONS, "name, process, value", ROW_LIMIT),
        versions=asked(trace, "packages", _VERSIONS, "package, process, version", ROW_LIMIT),
        jobs=asked(trace, "jobs", _JOBS, "processes DESC, process, first_job", ROW_LIMIT),
        machines=asked(
            trace, "machines", _MACHINES, "processes DESC, process, first_host", ROW_LIMIT
        ),
        has_configuration=has_configuration,
        has_versions=has_versions,
    )
