"""What is needed to run the same again: versions, program, cluster and configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Most facts of one trace that are looked at; more are none of the recorder's.
FACT_LIMIT: Final = 500

_SECTIONS: Final = (
    "client versions",
    "scheduler versions",
    "client machine",
    "client",
    "cluster",
)

#: Packages whose versions are told if processes have different ones.
PACKAGE_LIMIT: Final = 100

#: Of a trace that does not know the defaults, all that was recorded; what is not in the trace
#: cannot be set again.
_CONFIGURATION: Final = (
    "SELECT name, left(coalesce(value, 'None'), 500) FROM config "
    "WHERE process = 'scheduler' AND name IS NOT NULL "
    "AND (differs OR (differs IS NULL AND value IS NOT NULL)) AND NOT is_run_specific "
    "AND coalesce(value, '') NOT IN ('<withheld>', '<redacted>') ORDER BY name LIMIT $limit"
)
_VERSIONS: Final = (
    "SELECT package, process, "
    "array_to_string(list_sort(list(DISTINCT left(version, 100))), ', ') "
    "FROM packages WHERE differs GROUP BY package, process ORDER BY package, process "
    "LIMIT $limit"
)


@dataclass(frozen=True)
class Recipe:
    """What is known of how the run was made. None is not known.

    Parameters
    ----------
    python, platform, program, cluster : str or None
        Version of Python, what it ran on, name of the script, and class of the cluster.
    packages : dict
        Package to version: of the client, or of the scheduler if the client's are not known.
    differing : dict
        Package to kind of process (client, scheduler, worker) to its version there, or
        versions, where these differ.
    configuration : dict
        Dask's configuration at the scheduler: what is not the default, or all that was
        recorded if the defaults were not.
    arguments : tuple of str
        Of the script, secrets replaced.
    commit : str or None
        The commit that the script was run from, in words.
    """

    python: str | None
    platform: str | None
    program: str | None
    cluster: str | None
    packages: dict[str, str]
    differing: dict[str, dict[str, str]]
    configuration: dict[str, str]
    arguments: tuple[str, ...] = ()
    commit: str | None = None


def gather(trace: Session) -> Recipe:
    """Ask how the run was made; of several traces, the first one."""
    facts: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for section, name, value in trace.sql(
        "SELECT section, name, left(value, 500) FROM environment "
        "WHERE section IN (SELECT unnest($sections)) AND value IS NOT NULL "
        "AND name IS NOT NULL LIMIT $limit",
        {"sections": list(_SECTIONS), "limit": FACT_LIMIT},
    ).fetchall():
        facts[section].setdefault(name, value)
    client, scheduler = facts["client versions"], facts["scheduler versions"]
    packages = dict(client or scheduler)
    differing: dict[str, dict[str, str]] = {}
    for package, process, version in trace.sql(
        _VERSIONS, {"limit": 3 * PACKAGE_LIMIT}
    ).fetchall():
        differing.setdefault(package, {})[process] = version
    return Recipe(
        python=packages.pop("python", None),
        platform=facts["client machine"].get("platform"),
        program=facts["client"].get("program"),
        cluster=facts["cluster"].get("type"),
        packages=packages,
        differing=differing,
        configuration=dict(trace.sql(_CONFIGURATION, {"limit": FACT_LIMIT}).fetchall()),
        arguments=_arguments(facts["client"].get("arguments")),
        commit=_commit(facts["client"]),
    )


def _arguments(told: str | None) -> tuple[str, ...]:
    try:
        found = json.loads(told or "[]")
    except ValueError:  # it was too long, and is cut
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _commit(facts: dict[str, str]) -> str | None:
    commit = facts.get("git commit")
    if commit is None:
        return None
    branch = f" of {facts['git branch']}" if "git branch" in facts else ""
    remote = f" of {facts['git remote']}" if "git remote" in facts else ""
    changed = facts.get("git dirty") == "true"
    more = ", and changes that were not committed" if changed else ""
    return f"commit {commit}{branch}{remote}{more}"
