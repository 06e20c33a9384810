"""Facts about the set-up of a run: processes, machines, packages, configuration, program.

Facts are recorded unprocessed, and only if their names are in the lists of this module. The
views of ``sql/setup`` derive jobs and their queues, limits of control groups and differences.

Configuration and packages are the same in hundreds of workers, so they are sheets: a process
refers to them by a digest, and each is recorded once.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import logging
import math
import os
import platform
import re
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import dask
import psutil

from roast_recorder.probes import ClientProbe, SchedulerProbe, WorkerProbe
from roast_recorder.program import program_name, start_of_program
from roast_recorder.scheduler.wire_format import loss, pack, plain
from roast_recorder.threads import call_in_thread

if TYPE_CHECKING:
    from distributed import Client

    from roast_recorder.settings import Settings

logger = logging.getLogger("roast_recorder")

#: Section, name and value, as in a record.
Fact = dict[str, Any]

#: Sections of sheets.
SHEETS: Final = frozenset({"configuration", "config_sources", "defaults", "packages"})

#: Replacement of a value that is not recorded.
WITHHELD: Final = "<withheld>"

#: Longest list of packages or of options in a mapping, and any other list.
MAX_ENTRIES: Final = 3_000
MAX_ITEMS: Final = 100

#: Longest text of a fact and of an environment variable, and most bytes read of a file.
MAX_LENGTH: Final = 1_000
MAX_VARIABLE_LENGTH: Final = 10_000
MAX_FILE_BYTES: Final = 262_144

#: Different sheets in one recording. More occur only if every process differs.
MAX_SHEETS: Final = 300

#: Git compares all files with the last commit. In a large repository that is slow.
GIT_TIMEOUT_SECONDS: Final = 3.0


# --- scheduler, workers and client ---------------------------------------------------------


class OnScheduler(SchedulerProbe):
    """Record the scheduler and its plugins, and what workers report about themselves."""

    def _install(self) -> None:
        # Digests of those that are in the trace.
        self._sheets: set[str] = set()
        self._plugins: dict[str, list[str]] = {}
        self._record_plugins()
        self.core.operation("process", self.record_process)
        self.core.run(self._describe())

    def _record_plugins(self, when: str = "") -> None:
        """Record the names of plugins and extensions that were not recorded so."""
        for kind in ("plugins", "extensions", "worker_plugins", "nanny_plugins"):
            plugins = self.core.tap.read("environment", self.core.scheduler, kind)
            if plugins is None or (names := _names(list(plugins))) == self._plugins.get(kind):
                continue
            self._plugins[kind] = names
            name = kind.replace("_", " ") + when
            self.core.record("environment", section="scheduler", name=name, value=names)

    async def _describe(self) -> None:
        with self.core.tap.guard("environment"):
            # In a thread, because it reads files.
            facts = await call_in_thread(packed_facts, "scheduler", self.core.settings)
            self.record_process(facts)

    def record_process(self, facts: list[tuple[str | None, bytes]]) -> None:
        """Record what :func:`packed_facts` returned, without sheets that are known."""
        t = time()
        for sheet, packed in facts:
            if sheet in self._sheets:
                continue
            if sheet is not None:
                if len(self._sheets) == MAX_SHEETS:
                    reason = "more configurations or lists of packages than are kept"
                    self.core.append(("loss", t, 1, loss(reason, "environment", 1, t, t)))
                    continue
                self._sheets.add(sheet)
            self.core.append(("environment", t, 1, packed))

    def finish(self) -> None:
        """Record plugins that were added during the recording."""
        self._record_plugins(" when recording ended")


class OnWorker(WorkerProbe):
    """Report the worker's process, once."""

    def _install(self) -> None:
        self.core.run(self._describe())

    async def _describe(self) -> None:
        # Without a connection, the scheduler has gone.
        with self.core.tap.guard("environment"), contextlib.suppress(OSError):
            read = partial(self.core.read, "environment")
            about = {"worker": read("address"), "server_id": read("id")}
            # In a thread, because it reads files.
            facts = await call_in_thread(
                packed_facts, "worker", self.core.settings, read("plugins"), about
            )
            await self.core.call("process", facts=facts)


class OnClient(ClientProbe):
    """Record the client, its program and its cluster."""

    def _install(self) -> None:
        self.core.run(self._describe())

    async def _describe(self) -> None:
        with self.core.tap.guard("environment"):
            facts = await call_in_thread(client_facts, self.core.settings, self.core.client)
            await self.core.write("environment", facts)


def _names(plugins: Iterable[Any]) -> list[str]:
    return sorted(name for name in map(str, plugins) if not name.startswith("roast-"))


def _facts(section: str, values: Mapping[str, Any]) -> list[Fact]:
    return [
        {"section": section, "name": name, "value": value} for name, value in values.items()
    ]


def client_facts(settings: Settings, client: Client | None = None) -> list[dict[str, Any]]:
    """Describe the process that records, its program and, for a client, its cluster.

    The result is JSON without ``kind`` and ``t``. This function reads files and runs git.
    """
    facts = describe_process("client", settings.as_dict())
    if client is not None:
        facts += _facts("client", {"id": client.id})
        facts += _facts("cluster", cluster_facts(getattr(client, "cluster", None)))
    program = {
        "program": program_name(),
        **start_of_program(sys.argv[0]),
        "arguments": arguments(sys.argv[1:]),
        **git_facts(),
    }
    return [plain(fact) for fact in [*facts, *_facts("client", program)]]


# --- any process ---------------------------------------------------------------------------


def describe_process(
    role: str, settings: dict[str, Any], plugins: Iterable[Any] | None = None
) -> list[Fact]:
    """Describe this process: its sheets, and a ``process`` fact that refers to them.

    `settings` are those of :class:`roast_recorder.settings.Settings`, `plugins` a worker's.
    See :class:`roast_schemas.records.Environment`. Facts that cannot be read are left out;
    nothing is raised. It reads files, so call it in a thread.
    """
    process: dict[str, Any] = {"role": role, "pid": os.getpid()}
    sheets: list[Fact] = []
    steps: list[Callable[[], dict[str, Any]]] = [
        machine,
        lambda: {"variables": variables(os.environ)},
        lambda: {"files": files(os.environ, Path("/"))},
        lambda: configuration(own=settings["own_configuration"]),
        lambda: {"config_sources": configuration_sources(os.environ)},
        lambda: {"packages": packages(settings["packages"])},
        lambda: {} if plugins is None else {"plugins": _names(plugins)},
    ]
    for step in steps:
        try:
            found = step()
            for section in SHEETS & found.keys():
                text = json.dumps(plain(found[section]), sort_keys=True)
                digest = hashlib.sha256(text.encode()).hexdigest()[:16]
                sheets += _facts(section, {digest: found[section]})
                found[section] = digest
            process |= found
        except Exception:
            logger.debug("roast: a fact about this process is missing", exc_info=True)
    return [*sheets, *_facts("process", {role: process})]


def packed_facts(
    role: str,
    settings: dict[str, Any],
    plugins: Iterable[Any] | None = None,
    about: Mapping[str, str] | None = None,
) -> list[tuple[str | None, bytes]]:
    """Describe this process; return the digest of each sheet, or None, and the packed fact.

    `about` is added to the ``process`` fact.
    """
    return [
        (fact["name"], pack([plain(fact)]))
        if fact["section"] in SHEETS
        else (None, pack([plain({**fact, **(about or {})})]))
        for fact in describe_process(role, settings, plugins)
    ]


# --- machine and batch job -----------------------------------------------------------------

#: Environment variables that are recorded, by the variable whose presence shows that the
#: process runs in a job of the system. ``_jobs.sql`` reads them.
VARIABLES: Final = {
    "SLURM_JOB_ID": (
        "SLURM_JOB_ID SLURM_JOBID SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID SLURM_JOB_NAME "
        "SLURM_JOB_PARTITION SLURM_JOB_ACCOUNT SLURM_JOB_QOS SLURM_JOB_NODELIST "
        "SLURM_NODELIST SLURM_CLUSTER_NAME SLURMD_NODENAME SLURM_PROCID "
        "SLURM_JOB_NUM_NODES SLURM_NNODES SLURM_CPUS_PER_TASK SLURM_CPUS_ON_NODE "
        "SLURM_MEM_PER_NODE SLURM_MEM_PER_CPU SLURM_JOB_START_TIME SLURM_JOB_END_TIME"
    ),
    "_CONDOR_JOB_AD": "_CONDOR_JOB_AD _CONDOR_MACHINE_AD _CONDOR_SLOT",
    "PBS_JOBID": (
        "PBS_JOBID PBS_ARRAY_INDEX PBS_ARRAYID PBS_JOBNAME PBS_QUEUE PBS_ACCOUNT PBS_SERVER "
        "PBS_NODEFILE PBS_NODENAME HOSTNAME PBS_NODENUM PBS_VNODENUM PBS_NUM_NODES NCPUS "
        "PBS_NUM_PPN PBS_NP PBS_RESC_MEM PBS_RESC_TOTAL_MEM"
    ),
    "LSB_JOBID": (
        "LSB_JOBID LSB_HOSTS LSB_JOBINDEX LSB_DJOB_NUMPROC LSB_MAX_NUM_PROCESSORS LSB_JOBNAME "
        "LSB_QUEUE LSB_PROJECT_NAME LSF_CLUSTER_NAME HOSTNAME LSB_CGROUP_MEM_LIMIT"
    ),
    "SGE_ROOT": (
        "SGE_ROOT SGE_TASK_ID JOB_ID JOB_NAME QUEUE SGE_CLUSTER_NAME HOSTNAME NHOSTS NSLOTS "
        "PE_HOSTFILE"
    ),
    "OAR_JOB_ID": (
        "OAR_JOB_ID OAR_ARRAY_INDEX OAR_JOB_NAME OAR_PROJECT_NAME OAR_NODEFILE HOSTNAME"
    ),
    "KUBERNETES_SERVICE_HOST": (
        "KUBERNETES_SERVICE_HOST POD_NAME MY_POD_NAME K8S_POD_NAME HOSTNAME POD_NAMESPACE "
        "MY_POD_NAMESPACE K8S_NAMESPACE DASK_WORKER_NAME NODE_NAME MY_NODE_NAME K8S_NODE_NAME "
        "CPU_LIMIT MY_CPU_LIMIT MEMORY_LIMIT MEM_LIMIT MY_MEM_LIMIT"
    ),
}

#: Variables that name an ad of HTCondor, and the lines of it that are recorded. Others contain
#: the environment and arguments.
_AD_FILES: Final = ("_CONDOR_JOB_AD", "_CONDOR_MACHINE_AD")

_AD_LINE: Final = re.compile(
    r"(?:ClusterId|ProcId|GlobalJobId|JobBatchName|AccountingGroup|RequestCpus"
    r"|RequestMemory|RemoteHost|JobStartDate|JobUniverse|Machine|Name|Cpus|Memory)"
    r' = (?:"[^"\\]{0,200}"|-?[\d.]{1,20})'
)

#: Variables that name a file with a line per core or host, which begins with the host.
_HOST_FILES: Final = ("PBS_NODEFILE", "PE_HOSTFILE", "OAR_NODEFILE")

_HOST: Final = re.compile(r"(?m)^[\w.-]{1,255}(?=\s|$)")

#: The only file beside a pod's secrets that is read.
_NAMESPACE: Final = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

_CGROUP_LIMITS: Final = (
    "cpu.max", "memory.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes",
)  # fmt: skip


def machine() -> dict[str, Any]:
    """Return what Python and the operating system report about machine and interpreter."""
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    facts: dict[str, Any] = {
        "host": socket.gethostname(),
        "system": platform.system(),
        "platform": platform.platform(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "open_files_limit": open_files if 0 <= open_files < 2**60 else None,
    }
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        facts["usable_cores"] = len(os.sched_getaffinity(0))
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "machine": {name: value for name, value in facts.items() if value is not None},
    }


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of :data:`VARIABLES` that are set."""
    names = " ".join(names for sign, names in VARIABLES.items() if environ.get(sign)).split()
    present = sorted({*names} & {*environ})
    return {name: environ[name][:MAX_VARIABLE_LENGTH] for name in present}


def files(environ: Mapping[str, str], root: Path) -> list[dict[str, str]]:
    """Return path and text of the files that describe machine, control group and job.

    A limit applies to all groups within the group that it is set for, so the limits of all
    groups from that of the process up to the root are returned.
    """
    texts: dict[str, str] = {}

    def read(path: str) -> str:
        texts[path] = _read(root / path.lstrip("/"))
        return texts[path]

    cpu = re.search(r"(?m)^(?:model name|Model)[ \t]*:.*$", read("/proc/cpuinfo"))
    texts["/proc/cpuinfo"] = cpu[0][:MAX_LENGTH] if cpu else ""
    for line in read("/proc/self/cgroup").splitlines():
        controllers, _, group = line.partition(":")[2].partition(":")
        parts = [part for part in group.split("/") if part not in ("", "..")]
        for controller in {"", "cpu", "memory"} & {*controllers.split(",")}:
            # In a container, the group is mounted as the root, but has its outside name here.
            for length in range(len(parts), -1, -1):
                folder = Path("/sys/fs/cgroup", controller, *parts[:length])
                for name in _CGROUP_LIMITS:
                    read(f"{folder}/{name}")
    if environ.get("KUBERNETES_SERVICE_HOST"):
        read(_NAMESPACE)
    for name, path in variables(environ).items():
        if name in _AD_FILES:
            lines = map(str.strip, _read(Path(path)).splitlines())
            texts[path] = "\n".join(filter(_AD_LINE.fullmatch, lines))
        elif name in _HOST_FILES:
            hosts = dict.fromkeys(_HOST.findall(_read(Path(path))))
            texts[path] = "\n".join(hosts)[:MAX_VARIABLE_LENGTH]
    return [{"path": path, "text": text} for path, text in texts.items() if text]


def _read(path: Path) -> str:
    """Return the beginning of a file; an empty text if it cannot be read."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(MAX_FILE_BYTES).decode("utf-8", "replace").strip()
    return ""


# --- packages ------------------------------------------------------------------------------

#: Packages that are recorded with ``packages = "known"``: Dask and the scientific stack.
KNOWN_PACKAGES: Final = frozenset(
    """
    aiohttp asyncssh awkward awkward-cpp bokeh boost-histogram cachetools click cloudpickle
    coffea correctionlib cramjam cupy dask dask-awkward dask-cuda dask-gateway dask-histogram
    dask-image dask-jobqueue dask-kubernetes dask-ml distributed fastjet fastparquet fsspec
    fsspec-xrootd gcsfs h5py hist intake jax jinja2 kubernetes lightgbm locket lz4 matplotlib
    mplhep msgpack mt2 netcdf4 numba numcodecs numpy onnxruntime orjson pandas partd pillow pims
    polars psutil pyarrow pyyaml roast-trace s3fs scikit-image scikit-learn scipy
    sortedcontainers tblib tensorflow tiledb toolz torch tornado tritonclient ucx-py ucxx uproot
    urllib3 uvloop vector xarray xgboost xrootd zarr zict zstandard
    """.split()  # noqa: SIM905
)

_INSTALLED: Final = re.compile(
    r"(?P<Name>[A-Za-z0-9][\w.]*?)-(?P<Version>[^-]+)(?:-py[\d.]+)?(?:-[\w.-]+)?"
    r"\.(?:dist|egg)-info"
)


def packages(which: str = "all", folders: Iterable[str] | None = None) -> list[tuple[str, str]]:
    """Return name and version of the packages that can be imported, by name.

    With `which` = ``known`` only those in :data:`KNOWN_PACKAGES`. `folders` are searched
    instead of ``sys.path``.
    """
    found: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path if folders is None else folders):
        try:
            entries = sorted(path.name for path in Path(folder).glob("*-info"))
        except OSError:
            continue
        for entry in entries:
            try:
                # Hundreds of workers that start at once would be slow to read the metadata of
                # every package on a shared file system.
                about = (
                    _INSTALLED.fullmatch(entry)
                    or importlib.metadata.PathDistribution(Path(folder, entry)).metadata
                )
                name = re.sub(r"[-_.]+", "-", about["Name"]).lower()
            except Exception:  # noqa: BLE001, S112 - any file may have this name
                continue
            found.setdefault(name, str(about["Version"]))  # the first wins, as in an import
    if which == "known":
        found = {name: found[name] for name in found.keys() & KNOWN_PACKAGES}
    return sorted(found.items())[:MAX_ENTRIES]


# --- Dask's configuration ------------------------------------------------------------------

#: Parts of a name below which values may be secrets.
PRIVATE_PARTS: Final = frozenset(
    """
    environ pre-spawn-environ env env-extra environment extra headers auth kwargs client-options
    storage-options security security-loader tls preload-argv job-script-prologue
    job-script-epilogue job-extra job-extra-directives job-directives-skip worker-command-line
    worker-extra-args submit-command-extra cancel-command-extra worker-template-path
    scheduler-template-path
    """.split()  # noqa: SIM905
)

#: Names below private parts, and ends of names with a number, that contain no secret.
PUBLIC_NAMES: Final = frozenset({"ciphers", "min-version", "max-version"})
PUBLIC_NUMBERS: Final = ("_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX")

#: The recorder's own settings, which are in the header, and the inherited configuration,
#: which is part of each process's own.
LEFT_OUT: Final = ("roast.", "internal-inherit-config")

#: Part of the client preload that ``roast-record run`` adds.
OWN_PRELOAD: Final = "roast_recorder.client_preload"

#: Set by Dask at run time: the default client, and the process id of a nanny.
SET_BY_DASK: Final = frozenset({"scheduler", "shuffle", "parent"})


def configuration(*, own: bool = False) -> dict[str, dict[str, Any]]:
    """Return the ``configuration`` that differs from Dask's ``defaults``, and the defaults.

    Texts of options that no imported package declares are withheld unless `own`. Values that
    may contain environment variables, arguments, headers, credentials or paths of certificates
    are always withheld.
    """
    declared = dict(_options(dask.config.merge(*dask.config.defaults)))
    spellings = {name.replace("_", "-"): name for name in declared}
    differing = {}
    for configured, set_value in _options(dask.config.config):
        name = spellings.get(configured.replace("_", "-"), configured)
        value = set_value
        if name == "distributed.client.preload" and isinstance(value, (list, tuple)):
            # The one of `roast-record run` is no setting of the user's.
            value = [preload for preload in value if OWN_PRELOAD not in str(preload)]
        if name not in declared:
            is_plain = value is None or isinstance(value, (bool, int, float))
            differing[name] = _public(name, value) if own or is_plain else WITHHELD
        elif type(value) is not type(declared[name]) or value != declared[name]:
            differing[name] = _public(name, value)
    defaults = {name: _shown(value) for name, value in declared.items()}
    return {"configuration": differing, "defaults": defaults}


def configuration_sources(environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the files and variables that set options, in the order in which Dask applies them.

    Options are named, without values. The last entry, of kind ``code``, has those that have
    another value now, as after ``dask.config.set``.
    """
    files = dask.config.collect_yaml(dask.config.paths, return_paths=True)
    inherited = "DASK_INTERNAL_INHERIT_CONFIG"  # applied first
    variables = sorted(environ, key=lambda name: (name != inherited, name))
    loaded = [
        *(("file", str(path), options) for path, options in files),
        *(
            ("variable", name, dask.config.collect_env({name: environ[name]}))
            for name in variables
            if name.startswith("DASK_")
        ),
    ]
    values: dict[str, Any] = {}
    sources = []
    for kind, source, options in loaded:
        found = _by_current_name(options)
        values |= found
        sources.append({"kind": kind, "name": source[:MAX_LENGTH], "options": [*found]})
    in_effect = _by_current_name(dask.config.config)
    changed = [
        name
        for name, value in values.items()
        if type(value) is not type(in_effect.get(name)) or value != in_effect.get(name)
    ]
    return [*sources, {"kind": "code", "options": changed}]


def _by_current_name(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by name, with hyphens and without Dask's deprecated names."""
    found = ((name.replace("_", "-"), value) for name, value in _options(options))
    return {dask.config.deprecations.get(name) or name: value for name, value in found}


def _options(options: Mapping[str, Any], parents: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the full name and value of each option."""
    for part, value in list(options.items())[:MAX_ENTRIES]:
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
    is_private = not PRIVATE_PARTS.isdisjoint(parts) and parts[-1] not in PUBLIC_NAMES
    is_empty = value is None or isinstance(value, bool) or value in ("", [], {}, ())
    if name.endswith(PUBLIC_NUMBERS) and str(value).isdecimal():
        return str(value)
    return WITHHELD if is_private and not is_empty else _shown(value)


def _shown(value: Any) -> Any:
    """Return a value as JSON, cut to a bounded length."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        # Several lines are code, or a script.
        return WITHHELD if "\n" in value.strip() else value[:MAX_LENGTH]
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=str)
    if isinstance(value, (list, tuple)):
        return [_shown(item) for item in value[:MAX_ITEMS]]
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
CLUSTER_ARGUMENTS: Final = """
    arch cluster_type cores death_timeout disk idle_timeout image interface job_cpu job_mem
    lifetime lifetime_restart lifetime_stagger local_cores maximum_memory memory memory_limit
    memory_pause_fraction memory_spill_fraction memory_target_fraction mem n_workers namespace
    ncpus nthreads processes protocol queue resource_spec resources scheduler_service_type
    shutdown_on_close threads_per_worker walltime worker_cores worker_memory
""".split()  # noqa: SIM905


def cluster_facts(cluster: Any) -> dict[str, Any]:
    """Describe a client's cluster object; empty if the client has only an address."""
    if cluster is None:
        return {}
    facts: dict[str, Any] = {"type": _qualified_name(type(cluster))}
    # Clusters of other libraries may have anything under these names.
    specs = _mapping(getattr(cluster, "worker_spec", None))
    template = _mapping(getattr(cluster, "new_spec", None) or next(iter(specs.values()), None))
    if "cls" in template:
        facts["worker type"] = _qualified_name(template["cls"])
    if specs:
        facts["workers asked for"] = len(specs)
    found = {
        str(name).lstrip("_"): value
        # The options of workers take precedence over attributes of the cluster.
        for given in (vars(cluster), _mapping(template.get("options")))
        for name, value in given.items()
        if isinstance(value, (bool, int, float, str))
        or (name == "resources" and isinstance(value, Mapping))
    }
    for name in CLUSTER_ARGUMENTS:
        value = found.get(name)
        if isinstance(value, Mapping):
            value = {str(n): v for n, v in value.items() if isinstance(v, (int, float))}
        if value is not None:
            facts[name] = value[:300] if isinstance(value, str) else value
    for name in ("minimum", "maximum"):
        limit = getattr(getattr(cluster, "_adaptive", None), name, None)
        if isinstance(limit, (int, float)):
            facts[f"adapts to {name}"] = limit if limit < 2**53 else str(limit)
    return facts


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def arguments(argv: Sequence[str]) -> list[str]:
    """Return a program's arguments; those that look like a token are withheld.

    The redactor replaces the values of options such as ``--token``.
    """
    shown = []
    for argument in argv[:MAX_ITEMS]:
        option = re.match(r"(?:--?[A-Za-z][\w.-]*=)?", argument)[0]  # type: ignore[index]
        value = argument.removeprefix(option)
        is_random = looks_random(value) or "\n" in value
        shown.append(option + (WITHHELD if is_random else value[:300]))
    return shown


def looks_random(text: str) -> bool:
    """Return whether a text resembles a token or a hash rather than words.

    In a random text the class of character (lower case, upper case, digit) often changes.
    Names of datasets consist of words with few digits.
    """
    if len(text) < 16 or "/" in text or "." in text or " " in text:
        return False
    for word in re.findall("[A-Za-z0-9]{16,}", text):
        is_mixed = word != word.lower() and word != word.upper() and re.search(r"\d", word)
        if is_mixed and _changes(word) >= 0.25:
            return True
    return sum(map(str.isdecimal, text)) >= 0.3 * len(text) and _changes(text) >= 0.4


def _changes(text: str) -> float:
    """Return the share of characters whose class differs from the previous one's."""
    sorts = [(c.islower(), c.isupper()) for c in text if c.isalnum()]
    changes = sum(one != other for one, other in pairwise(sorts))
    return changes / max(len(sorts) - 1, 1)


def git_facts() -> dict[str, Any]:
    """Describe the git commit of the working folder; empty if there is none.

    ``git remote`` is host and path of ``origin``, without user and query. ``git dirty`` is
    whether tracked files differ from the commit.
    """
    head = _git("rev-parse", "HEAD", "--abbrev-ref", "HEAD") or ""
    commit, _, branch = head.partition("\n")
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
    """Run git and return its output; None if it fails or times out."""
    # The configuration of the repository must not run a command, and nothing is written.
    command = ["git", "-c", "core.fsmonitor=false", "--no-optional-locks", *arguments]
    try:
        output = subprocess.check_output(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=GIT_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return output.decode("utf-8", "replace").strip()


def _place(url: str) -> str | None:
    """Return host and path of a URL; everything else in it may be a secret."""
    if ":" not in url:
        return None  # a folder of this machine
    if "://" not in url:  # git@host:path
        url = "ssh://" + url.replace(":", "/", 1)
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    place = f"{parts.hostname or ''}{parts.path}"
    pieces = [WITHHELD if looks_random(piece) else piece for piece in place.split("/")]
    return "/".join(pieces)[:300] if "@" not in place else None
