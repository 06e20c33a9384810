"""Facts about the set-up of a run: processes, machines, packages, configuration, program.

Facts are raw: they are read from lists of allowed names, here, and recorded as they are. The
views of ``sql/setup`` derive jobs and their queues, limits of control groups and differences.

Scheduler, workers and clients call :func:`describe_process`. It reads files, so it belongs in
a thread. Configuration and packages are the same in hundreds of workers, so they are sheets:
a process refers to them by a digest, and each is recorded once.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import logging
import math
import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import dask

from roast_recorder import __version__
from roast_recorder.scheduler.wire_format import pack, plain

if TYPE_CHECKING:
    from distributed import Client, Scheduler
    from distributed.scheduler import WorkerState

logger = logging.getLogger("roast_recorder")

#: Section, name and value.
Fact = tuple[str, str, Any]
Sheet = tuple[str, Any]

#: Section of the fact that describes a process.
PROCESS: Final = "process"

#: Replacement of a value that is not recorded.
WITHHELD: Final = "<withheld>"

#: Different sheets in one recording. More occur only if every process differs.
MAX_SHEETS: Final = 300

MAX_PLUGINS: Final = 200
MAX_PACKAGES: Final = 3_000
MAX_ARGUMENTS: Final = 100
MAX_OPTIONS: Final = 2_000
MAX_ITEMS: Final = 100

#: Longest text of a fact, in characters, and most that is read of a file, in bytes.
MAX_LENGTH: Final = 1_000
MAX_VARIABLE_LENGTH: Final = 10_000
MAX_FILE_BYTES: Final = 262_144

#: Git compares all files with the last commit. In a large repository that is slow.
GIT_TIMEOUT_SECONDS: Final = 3.0


# --- scheduler, workers and client ---------------------------------------------------------


def header_facts(scheduler: Scheduler) -> dict[str, Any]:
    """Return the fields of a header that describe the scheduler."""
    utc_offset = datetime.now().astimezone().utcoffset()
    return {
        "t": time(),
        "versions": {
            "dask": importlib.metadata.version("dask"),
            "distributed": importlib.metadata.version("distributed"),
            "python": platform.python_version(),
            "roast-trace": __version__,
        },
        "scheduler": scheduler.address,
        "scheduler_id": scheduler.id,
        "utc_offset_seconds": utc_offset.total_seconds() if utc_offset is not None else None,
    }


def scheduler_facts(scheduler: Scheduler) -> Iterator[Fact]:
    """Describe the scheduler and its state when recording began."""
    yield "scheduler", "address", scheduler.address
    yield "scheduler", "id", scheduler.id
    yield "scheduler", "pid", os.getpid()
    yield "scheduler", "workers when recording began", len(scheduler.workers)
    yield "scheduler", "threads when recording began", scheduler.total_nthreads
    yield "scheduler", "tasks when recording began", len(scheduler.tasks)
    yield from plugin_facts(scheduler)


def plugin_facts(scheduler: Scheduler) -> Iterator[Fact]:
    """Return the names of plugins and extensions, except the recorder's."""
    for name in ("plugins", "extensions", "worker_plugins", "nanny_plugins"):
        yield "scheduler", name.replace("_", " "), _plugin_names(getattr(scheduler, name))


def client_facts(client: Client) -> Iterator[Fact]:
    """Describe the client that records, its program and its cluster."""
    yield "client", "id", client.id
    yield from program_facts()
    yield from cluster_facts(client.cluster)


def worker_facts(worker: WorkerState) -> dict[str, Any]:
    """Return the fields of a ``worker_added`` record."""
    return {
        "worker": worker.address,
        "server_id": worker.server_id,
        "name": str(worker.name),
        "host": worker.host,
        "pid": worker.pid,
        "nthreads": worker.nthreads,
        "memory_limit": worker.memory_limit,
        "nanny": worker.nanny,
        "local_directory": worker.local_directory,
        "resources": worker.resources or None,
        "versions": worker.versions.get("packages"),
    }


def _plugin_names(plugins: Iterable[Any]) -> list[str]:
    names = [str(name) for name in plugins][:MAX_PLUGINS]
    return sorted(name for name in names if not name.startswith("roast-"))


# --- any process ---------------------------------------------------------------------------


class Sheets:
    """The sheets that one recording contains already."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> bool:
        """Return whether a sheet is new and is to be recorded now."""
        if name in self._names or len(self._names) >= MAX_SHEETS:
            return False
        self._names.add(name)
        return True


def describe_process(
    role: str, settings: dict[str, Any], root: Path = Path("/")
) -> tuple[dict[str, Any], dict[str, Sheet]]:
    """Describe this process. Facts that cannot be read are left out; nothing is raised.

    Parameters
    ----------
    role : str
        ``scheduler``, ``worker`` or ``client``.
    settings : dict
        Fields of :class:`roast_recorder.settings.Settings`.
    root : Path
        Root of the file system.

    Returns
    -------
    process : dict
        The value of a ``process`` fact, see :class:`roast_schemas.records.Environment`.
    sheets : dict
        Name to section and content.
    """
    process: dict[str, Any] = {"role": role, "pid": os.getpid()}
    sheets: dict[str, Sheet] = {}

    def put(section: str, content: Any) -> None:
        text = json.dumps(plain(content), sort_keys=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        process[section] = name
        sheets[name] = section, content

    def put_configuration() -> None:
        differing, defaults = configuration(own=settings["own_configuration"])
        put("configuration", differing)
        put("defaults", defaults)

    steps: list[Callable[[], None]] = [
        lambda: process.update(machine()),
        lambda: process.update(variables=variables(os.environ)),
        lambda: process.update(files=files(os.environ, root)),
        put_configuration,
        lambda: put("packages", packages(settings["packages"])),
    ]
    for step in steps:
        try:
            step()
        except Exception:
            logger.debug("roast: a fact about this process is missing", exc_info=True)
    return process, sheets


def facts_of(
    process: dict[str, Any], sheets: dict[str, Sheet], known: Sheets
) -> list[dict[str, Any]]:
    """Return the facts to record about a process: its new sheets, then the process."""
    new = [
        {"section": section, "name": name, "value": content}
        for name, (section, content) in sheets.items()
        if known.add(name)
    ]
    return [*new, {"section": PROCESS, "name": process["role"], "value": process}]


def describe_worker(settings: dict[str, Any], plugins: Iterable[Any]) -> dict[str, Any]:
    """Return the message of a worker: its process, and each sheet packed for itself.

    The scheduler unpacks only sheets that it does not have.
    """
    process, sheets = describe_process("worker", settings)
    process["plugins"] = _plugin_names(plugins)
    packed = {
        name: pack([{"section": section, "name": name, "value": content}])
        for name, (section, content) in sheets.items()
    }
    return {"process": pack([process]), "sheets": packed}


# --- machine and batch job -----------------------------------------------------------------

#: Environment variables that are recorded, by the variable whose presence shows that the
#: process runs in a job of the system. ``_jobs.sql`` reads them.
# fmt: off
VARIABLES: Final[dict[str, tuple[str, ...]]] = {
    "SLURM_JOB_ID": (
        "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
        "SLURM_JOB_NAME", "SLURM_JOB_PARTITION", "SLURM_CLUSTER_NAME", "SLURMD_NODENAME",
        "SLURM_PROCID", "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_CPUS_PER_TASK",
        "SLURM_CPUS_ON_NODE", "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU",
        "SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME",
    ),
    "_CONDOR_JOB_AD": ("_CONDOR_JOB_AD", "_CONDOR_MACHINE_AD", "_CONDOR_SLOT"),
    "PBS_JOBID": (
        "PBS_JOBID", "PBS_ARRAY_INDEX", "PBS_ARRAYID", "PBS_JOBNAME", "PBS_QUEUE", "PBS_SERVER",
        "PBS_NODENAME", "HOSTNAME", "PBS_NODENUM", "PBS_VNODENUM", "PBS_NUM_NODES", "NCPUS",
        "PBS_NUM_PPN", "PBS_NP", "PBS_RESC_MEM", "PBS_RESC_TOTAL_MEM",
    ),
    "LSB_JOBID": (
        "LSB_JOBID", "LSB_HOSTS", "LSB_JOBINDEX", "LSB_DJOB_NUMPROC", "LSB_MAX_NUM_PROCESSORS",
        "LSB_JOBNAME", "LSB_QUEUE", "LSF_CLUSTER_NAME", "HOSTNAME", "LSB_CGROUP_MEM_LIMIT",
    ),
    "SGE_ROOT": (
        "SGE_ROOT", "SGE_TASK_ID", "JOB_ID", "JOB_NAME", "QUEUE", "SGE_CLUSTER_NAME",
        "HOSTNAME", "NHOSTS", "NSLOTS",
    ),
    "OAR_JOB_ID": ("OAR_JOB_ID", "OAR_ARRAY_INDEX", "OAR_JOB_NAME", "HOSTNAME"),
    "KUBERNETES_SERVICE_HOST": (
        "KUBERNETES_SERVICE_HOST", "POD_NAME", "MY_POD_NAME", "K8S_POD_NAME", "HOSTNAME",
        "POD_NAMESPACE", "MY_POD_NAMESPACE", "K8S_NAMESPACE", "DASK_WORKER_NAME", "NODE_NAME",
        "MY_NODE_NAME", "K8S_NODE_NAME", "CPU_LIMIT", "MY_CPU_LIMIT", "MEMORY_LIMIT",
        "MEM_LIMIT", "MY_MEM_LIMIT",
    ),
}

#: Lines that are recorded of HTCondor's ads. Others contain the environment and arguments.
_AD_LINE: Final = re.compile(
    r"(?:ClusterId|ProcId|GlobalJobId|JobBatchName|RequestCpus|RequestMemory|RemoteHost"
    r'|JobStartDate|JobUniverse|Machine|Name|Cpus|Memory) = (?:"[^"\\]{0,200}"|-?[\d.]{1,20})'
)
# fmt: on

#: The only file beside a pod's secrets that is read.
_NAMESPACE: Final = "var/run/secrets/kubernetes.io/serviceaccount/namespace"

_CGROUP_LIMITS: Final = (
    "cpu.max", "memory.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes",
)  # fmt: skip


def machine() -> dict[str, Any]:
    """Return what Python and the operating system report about machine and interpreter."""
    facts: dict[str, Any] = {
        "host": socket.gethostname(),
        "system": platform.system(),
        "platform": platform.platform(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
    }
    if sys.platform != "win32":
        import resource

        facts["memory_bytes"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        facts["open_files_limit"] = limit if 0 <= limit < 2**60 else None
    if hasattr(os, "sched_getaffinity"):
        facts["usable_cores"] = len(os.sched_getaffinity(0))
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "machine": {name: value for name, value in facts.items() if value is not None},
    }


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of :data:`VARIABLES` that are set."""
    names = {name for sign, names in VARIABLES.items() if environ.get(sign) for name in names}
    return {name: environ[name][:MAX_VARIABLE_LENGTH] for name in sorted(names & {*environ})}


def files(environ: Mapping[str, str], root: Path) -> list[dict[str, str]]:
    """Return path and text of the files that describe machine, control group and job.

    A limit applies to all groups within the group that it is set for, so the limits of all
    groups from that of the process up to the root are returned.
    """
    texts: dict[str, str | None] = {}

    def read(path: str) -> str:
        texts[path] = text = _read(root / path.lstrip("/"))
        return text or ""

    cpu = re.search(r"(?m)^(?:model name|Model)[ \t]*:.*$", read("/proc/cpuinfo"))
    texts["/proc/cpuinfo"] = cpu and cpu[0][:MAX_LENGTH]
    for line in read("/proc/self/cgroup").splitlines():
        controllers, _, group = line.partition(":")[2].partition(":")
        parts = [part for part in group.split("/") if part not in ("", "..")]
        for controller in {"", "cpu", "memory"} & {*controllers.split(",")}:
            # A container sees its group as the root, under the name that it has outside.
            for length in range(len(parts), -1, -1):
                folder = "/".join(
                    ["/sys/fs/cgroup", *filter(None, [controller]), *parts[:length]]
                )
                for name in _CGROUP_LIMITS:
                    read(f"{folder}/{name}")
    if environ.get("KUBERNETES_SERVICE_HOST"):
        read(f"/{_NAMESPACE}")
    for name in ("_CONDOR_JOB_AD", "_CONDOR_MACHINE_AD"):
        if environ.get("_CONDOR_JOB_AD") and (path := environ.get(name)):
            lines = (line.strip() for line in (_read(Path(path)) or "").splitlines())
            texts[path] = "\n".join(line for line in lines if _AD_LINE.fullmatch(line))
    return [{"path": path, "text": text} for path, text in texts.items() if text]


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return None


# --- packages ------------------------------------------------------------------------------

#: Packages that are recorded with ``packages = "known"``: Dask and the scientific stack.
# fmt: off
KNOWN_PACKAGES: Final = frozenset({
    "aiohttp", "asyncssh", "awkward", "awkward-cpp", "bokeh", "boost-histogram",
    "cachetools", "click", "cloudpickle", "coffea", "correctionlib", "cramjam", "cupy",
    "dask", "dask-awkward", "dask-cuda", "dask-gateway", "dask-histogram", "dask-image",
    "dask-jobqueue", "dask-kubernetes", "dask-ml", "distributed", "fastjet",
    "fastparquet", "fsspec", "fsspec-xrootd", "gcsfs", "h5py", "hist", "intake", "jax",
    "jinja2", "kubernetes", "lightgbm", "locket", "lz4", "matplotlib", "mplhep",
    "msgpack", "mt2", "netcdf4", "numba", "numcodecs", "numpy", "onnxruntime", "orjson",
    "pandas", "partd", "pillow", "pims", "polars", "psutil", "pyarrow", "pyyaml",
    "roast-trace", "s3fs", "scikit-image", "scikit-learn", "scipy", "sortedcontainers",
    "tblib", "tensorflow", "tiledb", "toolz", "torch", "tornado", "tritonclient",
    "ucx-py", "ucxx", "uproot", "urllib3", "uvloop", "vector", "xarray", "xgboost",
    "xrootd", "zarr", "zict", "zstandard",
})
# fmt: on

_INSTALLED: Final = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.]*?)-(?P<version>[^-]+)(?:-py[\d.]+)?(?:-[\w.-]+)?"
    r"\.(?:dist|egg)-info"
)


def packages(which: str = "all", folders: Iterable[str] | None = None) -> list[tuple[str, str]]:
    """Return name and version of the packages that can be imported, by name.

    Versions come from the names of folders. Reading the metadata of every package, in
    hundreds of workers that start at once, would be slow on a shared file system.

    Parameters
    ----------
    which : str
        ``all``, or ``known``: only :data:`KNOWN_PACKAGES`.
    folders : iterable of str, optional
        Folders to search instead of ``sys.path``. The first match wins, as in an import.
    """
    found: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path if folders is None else folders):
        try:
            entries = sorted(path.name for path in Path(folder).glob("*-info"))
        except OSError:
            continue
        for entry in entries:
            if match := _INSTALLED.fullmatch(entry):
                found.setdefault(_normalized(match["name"]), match["version"])
            elif entry.endswith((".dist-info", ".egg-info")):
                try:
                    metadata = importlib.metadata.PathDistribution(Path(folder, entry)).metadata
                    found.setdefault(_normalized(metadata["Name"]), str(metadata["Version"]))
                except Exception:  # noqa: BLE001, S112 - any file may have this name
                    continue
    if which == "known":
        found = {name: found[name] for name in found.keys() & KNOWN_PACKAGES}
    return sorted(found.items())[:MAX_PACKAGES]


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# --- Dask's configuration ------------------------------------------------------------------

#: Parts of a name below which values may be secrets.
# fmt: off
PRIVATE_PARTS: Final = frozenset({
    "environ", "pre-spawn-environ", "env", "env-extra", "environment", "extra", "headers",
    "auth", "kwargs", "client-options", "storage-options", "security", "security-loader",
    "tls", "preload-argv", "job-script-prologue", "job-script-epilogue", "job-extra",
    "job-extra-directives", "job-directives-skip", "worker-command-line", "worker-extra-args",
    "submit-command-extra", "cancel-command-extra", "worker-template-path",
    "scheduler-template-path",
})
# fmt: on

#: Names below private parts that contain no secret.
PUBLIC_NAMES: Final = frozenset({"ciphers", "min-version", "max-version"})

#: Environment variables in the configuration of nannies that contain a number.
PUBLIC_VARIABLES: Final = ("_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX")

#: The recorder's own settings are in the header. The other is what a process inherits, which
#: is part of its configuration.
LEFT_OUT: Final = ("roast.", "internal-inherit-config")

#: Set by Dask at run time: the default client, and the process id of a nanny.
SET_BY_DASK: Final = frozenset({"scheduler", "shuffle", "parent"})


def configuration(*, own: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return Dask's configuration of this process: differences from defaults, and defaults.

    Of options that no imported package declares, texts are withheld. Values that may contain
    environment variables, arguments, headers, credentials or paths of certificates are
    always withheld.

    Parameters
    ----------
    own : bool
        Record texts of options that no package declares.
    """
    declared = dict(_options(dask.config.merge(*dask.config.defaults)))
    spellings = {name.replace("_", "-"): name for name in declared}
    differing = {}
    for configured, value in _options(dask.config.config):
        name = spellings.get(configured.replace("_", "-"), configured)
        if name not in declared:
            is_plain = value is None or isinstance(value, (bool, int, float))
            differing[name] = _public(name, value) if own or is_plain else WITHHELD
        elif type(value) is not type(declared[name]) or value != declared[name]:
            differing[name] = _public(name, value)
    return differing, {name: _shown(value) for name, value in declared.items()}


def _options(options: Mapping[str, Any], parents: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the full name and value of each option."""
    for part, value in list(options.items())[:MAX_OPTIONS]:
        name = f"{parents}{part}"[:MAX_LENGTH]
        if name.replace("_", "-").startswith(LEFT_OUT) or name in SET_BY_DASK:
            continue
        if isinstance(value, Mapping) and value and name.count(".") < 20:
            yield from _options(value, f"{name}.")
        else:
            yield name, value


def _public(name: str, value: Any) -> Any:
    """Return a value, withheld if its name is a private one."""
    parts = name.replace("_", "-").split(".")
    if value is None or isinstance(value, bool) or value in ("", [], {}, ()):
        return _shown(value)
    if name.endswith(PUBLIC_VARIABLES) and str(value).isdecimal():
        return str(value)
    is_private = not PRIVATE_PARTS.isdisjoint(parts) and parts[-1] not in PUBLIC_NAMES
    return WITHHELD if is_private else _shown(value)


def _shown(value: Any) -> Any:
    """Return a value as JSON, cut to a bounded length."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        # Several lines are code, or a script.
        return WITHHELD if "\n" in value.strip() else value[:MAX_LENGTH]
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return [_shown(item) for item in list(items)[:MAX_ITEMS]]
    if isinstance(value, Mapping):
        items = list(value.items())[:MAX_ITEMS]
        return {str(name)[:MAX_LENGTH]: _public(str(name), item) for name, item in items}
    # The text of an object may contain anything; its class does not.
    kind = value if isinstance(value, type) or callable(value) else type(value)
    return f"<{_qualified_name(kind)}>"


def _qualified_name(kind: Any) -> str:
    return f"{getattr(kind, '__module__', '?')}.{getattr(kind, '__qualname__', '?')}"


# --- the user's program and cluster --------------------------------------------------------

#: Arguments of clusters that are recorded: those of Dask, dask-jobqueue, dask-kubernetes,
#: dask-gateway and lpcjobqueue, except ports, paths, names and commands.
# fmt: off
CLUSTER_ARGUMENTS: Final = (
    "arch", "cluster_type", "cores", "death_timeout", "disk", "idle_timeout", "image",
    "interface", "job_cpu", "job_mem", "lifetime", "lifetime_restart", "lifetime_stagger",
    "local_cores", "maximum_memory", "memory", "memory_limit", "memory_pause_fraction",
    "memory_spill_fraction", "memory_target_fraction", "mem", "n_workers", "namespace", "ncpus",
    "nthreads", "processes", "protocol", "queue", "resource_spec", "resources",
    "scheduler_service_type", "shutdown_on_close", "threads_per_worker", "walltime",
    "worker_cores", "worker_memory",
)
# fmt: on


def cluster_facts(cluster: Any) -> Iterator[Fact]:
    """Describe a client's cluster object; None if the client has only an address."""
    if cluster is None:
        return
    yield "cluster", "type", _qualified_name(type(cluster))
    specs = getattr(cluster, "worker_spec", None)
    specs = specs if isinstance(specs, Mapping) else {}
    template: Any = getattr(cluster, "new_spec", None) or next(iter(specs.values()), None)
    template = template if isinstance(template, Mapping) else {}
    options = template.get("options")
    found: dict[str, Any] = {}
    # The options of workers take precedence over attributes of the cluster.
    for given in (vars(cluster), options if isinstance(options, Mapping) else {}):
        for name, value in given.items():
            if isinstance(value, (bool, int, float, str)):
                found[str(name).lstrip("_")] = value[:300] if isinstance(value, str) else value
            elif name == "resources" and isinstance(value, Mapping):
                numbers = {str(n): v for n, v in value.items() if isinstance(v, (int, float))}
                found["resources"] = numbers
    if "cls" in template:
        yield "cluster", "worker type", _qualified_name(template["cls"])
    if specs:
        yield "cluster", "workers asked for", len(specs)
    for name in CLUSTER_ARGUMENTS:
        if name in found:
            yield "cluster", name, found[name]
    for name in ("minimum", "maximum"):
        limit = getattr(getattr(cluster, "_adaptive", None), name, None)
        if isinstance(limit, (int, float)):
            yield "cluster", f"adapts to {name}", limit if limit < 2**53 else str(limit)


def program_facts() -> Iterator[Fact]:
    """Describe the program of this process: name, arguments and git commit."""
    yield "client", "pid", os.getpid()
    yield "client", "program", os.path.basename(sys.argv[0] or "python")  # noqa: PTH119
    yield "client", "arguments", arguments(sys.argv[1:])
    for name, value in git_facts().items():
        yield "client", name, value


def arguments(argv: Sequence[str]) -> list[str]:
    """Return a program's arguments; those that look like a token are withheld.

    The redactor replaces the values of options such as ``--token``.
    """
    shown = []
    for argument in list(argv)[:MAX_ARGUMENTS]:
        option = re.match(r"--?[A-Za-z][\w.-]*=", argument)
        start = option.end() if option else 0
        value = argument[start:]
        value = WITHHELD if looks_random(value) or "\n" in value else value[:300]
        shown.append(argument[:start] + value)
    return shown


def looks_random(text: str) -> bool:
    """Return whether a text resembles a token or a hash rather than words.

    In a random text the sort of character (lower case, upper case, digit) often changes.
    Names of datasets consist of words with few digits.
    """
    if len(text) < 16 or "/" in text or "." in text or " " in text:
        return False
    for word in re.split(r"[^A-Za-z0-9]+", text):
        mixed = word != word.lower() and word != word.upper() and re.search(r"\d", word)
        if len(word) >= 16 and mixed and _changes(word) >= 0.25:
            return True
    return sum(map(str.isdecimal, text)) >= 0.3 * len(text) and _changes(text) >= 0.4


def _changes(text: str) -> float:
    """Return the share of characters whose sort is not that of the character before."""
    sorts = [(c.islower(), c.isupper()) for c in text if c.isalnum()]
    changes = sum(one != other for one, other in pairwise(sorts))
    return changes / max(len(sorts) - 1, 1)


def git_facts() -> dict[str, Any]:
    """Describe the git commit of the working folder; empty if there is none.

    ``git remote`` is host and path of ``origin``, without user and query. ``git dirty`` is
    whether tracked files differ from the commit.
    """
    commit, _, branch = (_git("rev-parse", "HEAD", "--abbrev-ref", "HEAD") or "").partition(
        "\n"
    )
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", commit):
        return {}
    status = _git("status", "--porcelain", "--untracked-files=no", "--ignore-submodules")
    return {
        "git commit": commit,
        "git branch": None if branch == "HEAD" else branch[:300],
        "git remote": _place(_git("config", "--get", "remote.origin.url") or ""),
        "git dirty": None if status is None else bool(status),
    }


def _git(*arguments: str) -> str | None:
    """Run git and return its output; None if it fails or exceeds its time."""
    # The configuration of the repository must not run a command, and nothing is written.
    command = ["git", "-c", "core.fsmonitor=false", "--no-optional-locks", *arguments]
    try:
        answer = subprocess.run(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=GIT_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.decode("utf-8", "replace").strip() if not answer.returncode else None


def _place(url: str) -> str | None:
    """Return host and path of a URL; everything else in it may be a secret."""
    if "://" in url:
        try:
            parts = urlsplit(url)
            place = f"{parts.hostname or ''}{parts.path}"
        except ValueError:
            return None
    else:
        # git@host:path; without a colon it is a folder of this machine.
        place = url.rpartition("@")[2]
        if ":" not in place:
            return None
        place = place.replace(":", "/", 1)
    pieces = [WITHHELD if looks_random(piece) else piece for piece in place.split("/")]
    return "/".join(pieces)[:300] if "@" not in place else None
