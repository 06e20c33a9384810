"""Setup of a run: processes, machines, batch jobs, packages, configuration."""

import json
import re
from collections.abc import Iterator

from nightly.recording import Recording, Row, once
from nightly.totals import grouped

SHEETS = ("packages", "configuration", "config_sources", "defaults")

#: Packages and options in the view ``environment``.
BEST_KNOWN_PACKAGES = {
    "python", "dask", "distributed", "coffea", "uproot", "awkward", "dask-awkward", "numpy",
    "pandas", "pyarrow", "msgpack", "tornado", "cloudpickle", "roast-trace",
}  # fmt: skip
BEST_KNOWN_OPTIONS = {
    "distributed.scheduler.allowed-failures", "distributed.scheduler.worker-saturation",
    "distributed.scheduler.work-stealing", "distributed.scheduler.worker-ttl",
    "distributed.scheduler.unknown-task-duration", "distributed.worker.memory.target",
    "distributed.worker.memory.spill", "distributed.worker.memory.pause",
    "distributed.worker.memory.terminate", "distributed.worker.profile.enabled",
    "distributed.worker.profile.interval", "distributed.worker.profile.cycle",
    "distributed.comm.compression", "optimization.fuse.active", "dataframe.shuffle.method",
}  # fmt: skip

MACHINE = (
    "host", "cores", "usable_cores", "cgroup_cores", "memory_bytes", "cgroup_memory_bytes",
    "cpu_model", "architecture", "system", "kernel", "platform", "open_files_limit",
)  # fmt: skip

#: Columns of ``jobs`` by the name in the trace.
JOB = {
    "system": "system", "job_id": "job_id", "queue": "queue", "node": "node", "cores": "cores",
    "memory_limit_bytes": "memory_bytes", "array_id": "array_id", "array_index": "array_index",
    "name": "name", "cluster": "cluster", "namespace": "namespace", "slot": "slot",
    "account": "account", "qos": "qos", "node_list": "node_list",
    "nodes": "nodes", "start_t": "start_t", "end_t": "end_t",
}  # fmt: skip


def as_text(value: object) -> str | None:
    """Return text as it is, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@once
def processes(recording: Recording) -> list[dict]:
    """Return the fact sheets of processes, each once."""
    reported: dict[tuple, dict] = {}
    for line in recording.of("environment"):
        if line.get("section") == "process" and isinstance(line.get("value"), dict):
            identity = (line.get("name"), line.get("server_id"))
            about = {"worker": line.get("worker"), "t": line["t"]}
            about["server_id"] = line.get("server_id")
            reported.setdefault(identity, {**line["value"], **about})
    return [process for process in reported.values() if process.get("role")]


def sheet(recording: Recording, section: str, name: str | None) -> object:
    """Return the content of a sheet."""
    for line in recording.of("environment"):
        if (line.get("section"), line.get("name")) == (section, name):
            return line.get("value")
    return None


def _facts(recording: Recording, *sections: str) -> Iterator[tuple[str, str, str | None]]:
    seen = set()
    for line in recording.of("environment"):
        fact = (line.get("section"), line.get("name"), as_text(line.get("value")))
        if fact[0] in sections and fact not in seen:
            seen.add(fact)
            yield fact


def versions(recording: Recording) -> Iterator[tuple[str, str, str | None, str | None]]:
    """Return kind of process, package, version and worker of all processes."""
    for process in processes(recording):
        role, worker = process["role"], process["worker"]
        if process.get("python"):
            yield role, "python", process["python"], worker
        for package, version in sheet(recording, "packages", process.get("packages")) or ():
            yield role, package, version, worker
    for section, package, version in _facts(recording, "scheduler versions", "client versions"):
        if package is not None:
            yield section.split()[0], package, version, None
    reported = {process["server_id"] for process in processes(recording)}
    for line in recording.of("worker_added"):
        if isinstance(line.get("versions"), dict) and line.get("server_id") not in reported:
            for package, version in line["versions"].items():
                if version is not None:
                    plain = re.sub(r"\.final\.0$", "", as_text(version))
                    yield "worker", package, plain, line["worker"]


def packages(recording: Recording) -> list[Row]:
    """Return one row per package, version and kind of process."""
    found = grouped(versions(recording), lambda row: row[:3])
    of_package = grouped(found, lambda row: row[1])
    return [
        {
            "package": package,
            "version": version,
            "process": role,
            "processes": len(rows),
            "workers": [row[3] for row in rows] if role == "worker" else None,
            "differs": len({v for _, _, v in of_package[package] if v is not None}) > 1,
        }
        for (role, package, version), rows in found.items()
    ]


def options(recording: Recording) -> Iterator[tuple[Row, str | None]]:
    """Return the options of all processes, with the worker."""
    for process in processes(recording):
        if process.get("configuration") is None:
            continue
        differing = sheet(recording, "configuration", process["configuration"]) or {}
        defaults = sheet(recording, "defaults", process.get("defaults")) or {}
        sources = sheet(recording, "config_sources", process.get("config_sources"))
        for name in defaults | differing:
            # The last file or variable that sets an option is its source.
            last = {"kind": "code"}
            for source in sources or ():
                if name.replace("_", "-") in source["options"]:
                    last = source
            is_known = name in differing or last["kind"] != "code"
            if sources is None or not is_known:
                last = {"kind": None}
            yield (
                {
                    "name": name,
                    "value": as_text({**defaults, **differing}[name]),
                    "process": process["role"],
                    "default_value": as_text(defaults.get(name)),
                    "differs": name in differing,
                    "is_declared": name in defaults,
                    "source": last["kind"],
                    "source_name": last.get("name"),
                },
                process["worker"],
            )
    for _, name, value in _facts(recording, "dask configuration"):
        unknown = dict.fromkeys(
            ("default_value", "differs", "is_declared", "source", "source_name")
        )
        yield {"name": name, "value": value, "process": "scheduler", **unknown}, None


def is_run_specific(name: str | None, value: str | None) -> bool | None:
    """Return whether a value is an address, a port or a temporary folder."""
    last = re.split(r"[.]", name or "")[-1]
    ends = (
        "address", "port", "host", "temporary-directory", "local-directory", "log-directory",
        "scheduler-file", "pid-file",
    )  # fmt: skip
    if name == "distributed.scheduler.http.routes":
        return True
    if any(last == end or last.endswith("-" + end) for end in ends):
        return True
    text = value or ""
    address = r"(tcp|tls|ws|wss|ucx|ucxx|inproc|http|https)://|/(tmp|scratch|var/tmp|run)(/|$)"
    return bool(re.match(address, text) or re.search(r":[0-9]{4,5}$", text))


def config(recording: Recording) -> list[Row]:
    """Return one row per option, value and kind of process."""
    found = grouped(options(recording), lambda pair: tuple(pair[0].items()))
    values = grouped((dict(option) for option in found), lambda row: row["name"])
    return [
        {
            **dict(option),
            "varies": len({row["value"] or "" for row in values[dict(option)["name"]]}) > 1,
            "is_run_specific": is_run_specific(dict(option)["name"], dict(option)["value"]),
            "processes": len(pairs),
            "workers": (
                [worker for _, worker in pairs] if dict(option)["process"] == "worker" else None
            ),
        }
        for option, pairs in found.items()
    ]


def machines(recording: Recording) -> list[Row]:
    """Return one row per host, kind of process and limits."""
    found = grouped(
        (process for process in processes(recording) if process.get("machine")),
        lambda process: (
            process["role"],
            process.get("python"),
            *(machine_of(process).get(name) for name in MACHINE),
        ),
    )
    rows = [
        {
            "process": role,
            "python": python,
            **dict(zip(MACHINE, machine, strict=True)),
            "processes": len(alike),
            "workers": [one["worker"] for one in alike] if role == "worker" else None,
        }
        for (role, python, *machine), alike in found.items()
    ]
    nothing = dict.fromkeys((*MACHINE, "python", "workers"))
    for section in ("scheduler machine", "client machine"):
        if facts := {name: value for _, name, value in _facts(recording, section)}:
            cores = facts.get("cores")
            known = {name: facts.get(name) for name in ("host", "platform")}
            known["cores"] = int(cores) if cores and cores.isdecimal() else None
            rows.append({**nothing, **known, "process": section.split()[0], "processes": 1})
    return rows


def machine_of(process: dict) -> dict:
    """Return the facts of a machine, including those stored as files since format 2.3."""
    files = {file["path"]: file["text"] for file in process.get("files") or ()}
    cores, nbytes = [], []
    for path, text in files.items():
        if path.endswith("/cpu.max"):
            cores.append(text.split())
        elif path.endswith("/cpu.cfs_quota_us"):
            cores.append([text, files[path.replace("quota", "period")]])
        elif path.endswith(("/memory.max", "/memory.limit_in_bytes")) and text.isdecimal():
            nbytes.append(int(text))
    limits = {
        "cpu_model": files.get("/proc/cpuinfo", ":").split(":", 1)[1].strip()[:200] or None,
        "cgroup_cores": min(
            (int(quota) / int(period) for quota, period in cores if quota.isdecimal()),
            default=None,
        ),
        "cgroup_memory_bytes": min((each for each in nbytes if each < 2**60), default=None),
    }
    return limits | process["machine"]


def jobs(recording: Recording) -> list[Row]:
    """Return one row per process and batch system."""
    return [
        {
            "process": process["role"],
            "worker": process["worker"],
            "host": (process.get("machine") or {}).get("host"),
            **{column: job.get(name) for column, name in JOB.items()},
        }
        for process in processes(recording)
        for job in process.get("jobs") or ()
        if job.get("system")
    ]


def differences(recording: Recording) -> list[Row]:  # noqa: ARG001
    """Return no rows: a single trace has nothing to differ from."""
    return []
