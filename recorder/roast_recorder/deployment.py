"""How a cluster was asked for: the class of ``client.cluster``, and what it was given.

Only arguments that are named here are told, and only plain values of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

#: What clusters are asked for: Dask's own, and those of dask-jobqueue, dask-kubernetes,
#: dask-gateway and lpcjobqueue. Ports, paths, names and commands are not among them.
ARGUMENTS: Final = (
    "arch",
    "cluster_type",
    "cores",
    "death_timeout",
    "disk",
    "idle_timeout",
    "image",
    "interface",
    "job_cpu",
    "job_mem",
    "lifetime",
    "lifetime_restart",
    "lifetime_stagger",
    "local_cores",
    "maximum_memory",
    "memory",
    "memory_limit",
    "memory_pause_fraction",
    "memory_spill_fraction",
    "memory_target_fraction",
    "mem",
    "n_workers",
    "namespace",
    "ncpus",
    "nthreads",
    "processes",
    "protocol",
    "queue",
    "resource_spec",
    "resources",
    "scheduler_service_type",
    "shutdown_on_close",
    "threads_per_worker",
    "walltime",
    "worker_cores",
    "worker_memory",
)

_MAX_LENGTH: Final = 300


def describe(cluster: Any) -> Iterator[tuple[str, Any]]:
    """Describe a cluster object: names and values.

    Parameters
    ----------
    cluster : object
        A client's ``cluster``; None if the client knows only an address.
    """
    if cluster is None:
        return
    kind = type(cluster)
    yield "type", f"{kind.__module__}.{kind.__qualname__}"
    specs = _mapping(getattr(cluster, "worker_spec", None))
    template = _mapping(getattr(cluster, "new_spec", None)) or next(iter(specs.values()), {})
    # The plainest first: what the object itself holds is overruled by what workers get.
    found = {**_plain(vars(cluster)), **_plain(_mapping(_mapping(template).get("options")))}
    if (worker := _mapping(template).get("cls")) is not None:
        yield "worker type", _class_name(worker)
    if specs:
        yield "workers asked for", len(specs)
    for name in ARGUMENTS:
        if name in found:
            yield name, found[name]
    for name in ("minimum", "maximum"):
        limit = getattr(getattr(cluster, "_adaptive", None), name, None)
        if isinstance(limit, (int, float)):
            yield f"adapts to {name}", limit if limit < 2**53 else str(limit)


def _class_name(kind: Any) -> str:
    return f"{getattr(kind, '__module__', '?')}.{getattr(kind, '__qualname__', '?')}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """Take what is on the list and plain. Attributes are told apart from methods by that."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        known = str(name).lstrip("_")
        if known not in ARGUMENTS:
            continue
        if isinstance(value, (bool, int, float)):
            found[known] = value
        elif isinstance(value, str):
            found[known] = value[:_MAX_LENGTH]
        elif known == "resources" and isinstance(value, Mapping):
            found[known] = {
                str(what): amount
                for what, amount in value.items()
                if isinstance(amount, (int, float))
            }
    return found
