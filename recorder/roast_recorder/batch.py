"""What a batch system says of the job that a process runs in.

It says it in environment variables and in files that they name. Only those that are named
here are looked at, and no text in them is taken that is longer than a name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

#: A longer text is none of these facts.
MAX_LENGTH: Final = 200

_MIB: Final = 2**20

_AD_BYTES: Final = 262_144
_AD_LINE: Final = re.compile(r'(?P<name>\w+) = (?:"(?P<text>[^"\\]*)"|(?P<number>-?[\d.]+))')

#: Where Kubernetes tells a pod its namespace. What else lies there is secret.
_NAMESPACE: Final = Path("var/run/secrets/kubernetes.io/serviceaccount/namespace")

_SIZE: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kKmMgGtT]?)i?[bB]?")
_UNITS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}

Variables = Mapping[str, str]
Facts = dict[str, Any]


def jobs(variables: Variables | None = None, root: Path = Path("/")) -> list[Facts]:
    """Describe the jobs that this process runs in: usually one or none.

    Parameters
    ----------
    variables : mapping, optional
        Environment variables; else those of this process.
    root : Path
        Of the file system.

    Returns
    -------
    list of dict
        system, and as far as it is known: job_id, array_id, array_index, name, queue, cluster,
        namespace, node, slot, nodes, cores, memory_bytes, start_t, end_t.
    """
    variables = os.environ if variables is None else variables
    found = []
    for system, (sign, describe) in _SYSTEMS.items():
        if variables.get(sign):
            told = {"system": system, **describe(variables, root)}
            found.append({name: value for name, value in told.items() if value is not None})
    return found


def _slurm(variables: Variables, _root: Path) -> Facts:
    cores = _number(variables, "SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE")
    memory = _number(variables, "SLURM_MEM_PER_NODE")
    if memory is None and cores and (per_core := _number(variables, "SLURM_MEM_PER_CPU")):
        memory = per_core * cores
    return {
        "job_id": _text(variables, "SLURM_JOB_ID", "SLURM_JOBID"),
        "array_id": _text(variables, "SLURM_ARRAY_JOB_ID"),
        "array_index": _text(variables, "SLURM_ARRAY_TASK_ID"),
        "name": _text(variables, "SLURM_JOB_NAME"),
        "queue": _text(variables, "SLURM_JOB_PARTITION"),
        "cluster": _text(variables, "SLURM_CLUSTER_NAME"),
        "node": _text(variables, "SLURMD_NODENAME"),
        "slot": _text(variables, "SLURM_PROCID"),
        "nodes": _number(variables, "SLURM_JOB_NUM_NODES", "SLURM_NNODES"),
        "cores": cores,
        # Slurm's MB are 2**20 bytes.
        "memory_bytes": memory and memory * _MIB,
        "start_t": _number(variables, "SLURM_JOB_START_TIME"),
        "end_t": _number(variables, "SLURM_JOB_END_TIME"),
    }


def _condor(variables: Variables, _root: Path) -> Facts:
    ad = _condor_ad(variables.get("_CONDOR_JOB_AD"))
    machine = _condor_ad(variables.get("_CONDOR_MACHINE_AD"))
    cluster, process = ad.get("ClusterId"), ad.get("ProcId")
    memory = machine.get("Memory", ad.get("RequestMemory"))
    cores = machine.get("Cpus", ad.get("RequestCpus"))
    slot, _, host = str(machine.get("Name", ad.get("RemoteHost", ""))).rpartition("@")
    return {
        "job_id": f"{cluster}.{process}" if cluster is not None else None,
        # What comes nearest to a queue: vanilla, docker, local, ….
        "queue": _UNIVERSES.get(ad.get("JobUniverse", 0)),
        "name": ad.get("JobBatchName"),
        "cluster": str(ad.get("GlobalJobId", "")).partition("#")[0] or None,
        "node": machine.get("Machine") or host or None,
        "slot": _text(variables, "_CONDOR_SLOT") or slot or None,
        "cores": cores if isinstance(cores, int) else None,
        "memory_bytes": memory * _MIB if isinstance(memory, int) else None,
        "start_t": ad.get("JobStartDate"),
    }


def _pbs(variables: Variables, _root: Path) -> Facts:
    return {
        "job_id": _text(variables, "PBS_JOBID"),
        "array_index": _text(variables, "PBS_ARRAY_INDEX", "PBS_ARRAYID"),
        "name": _text(variables, "PBS_JOBNAME"),
        "queue": _text(variables, "PBS_QUEUE"),
        "cluster": _text(variables, "PBS_SERVER"),
        "node": _text(variables, "PBS_NODENAME", "HOSTNAME"),
        "slot": _text(variables, "PBS_NODENUM", "PBS_VNODENUM"),
        "nodes": _number(variables, "PBS_NUM_NODES"),
        "cores": _number(variables, "NCPUS", "PBS_NUM_PPN", "PBS_NP"),
        "memory_bytes": _size(variables, "PBS_RESC_MEM", "PBS_RESC_TOTAL_MEM"),
    }


def _lsf(variables: Variables, _root: Path) -> Facts:
    hosts = variables.get("LSB_HOSTS", "").split()
    index = _text(variables, "LSB_JOBINDEX")
    cores = _number(variables, "LSB_DJOB_NUMPROC", "LSB_MAX_NUM_PROCESSORS")
    return {
        "job_id": _text(variables, "LSB_JOBID"),
        "array_index": None if index == "0" else index,
        "name": _text(variables, "LSB_JOBNAME"),
        "queue": _text(variables, "LSB_QUEUE"),
        "cluster": _text(variables, "LSF_CLUSTER_NAME"),
        "node": hosts[0][:MAX_LENGTH] if hosts else _text(variables, "HOSTNAME"),
        "nodes": len(set(hosts)) or None,
        "cores": len(hosts) or None if cores is None else cores,
        "memory_bytes": _size(variables, "LSB_CGROUP_MEM_LIMIT"),
    }


def _sge(variables: Variables, _root: Path) -> Facts:
    index = _text(variables, "SGE_TASK_ID")
    return {
        "job_id": _text(variables, "JOB_ID"),
        "array_index": None if index == "undefined" else index,
        "name": _text(variables, "JOB_NAME"),
        "queue": _text(variables, "QUEUE"),
        "cluster": _text(variables, "SGE_CLUSTER_NAME"),
        "node": _text(variables, "HOSTNAME"),
        "nodes": _number(variables, "NHOSTS"),
        "cores": _number(variables, "NSLOTS"),
    }


def _oar(variables: Variables, _root: Path) -> Facts:
    return {
        "job_id": _text(variables, "OAR_JOB_ID"),
        "array_index": _text(variables, "OAR_ARRAY_INDEX"),
        "name": _text(variables, "OAR_JOB_NAME"),
        "node": _text(variables, "HOSTNAME"),
    }


def _kubernetes(variables: Variables, root: Path) -> Facts:
    try:
        namespace = (root / _NAMESPACE).read_text("utf-8")[:MAX_LENGTH].strip()
    except (OSError, ValueError):
        namespace = ""
    # Names that manifests commonly give to what the downward API tells.
    pod = _text(variables, "POD_NAME", "MY_POD_NAME", "K8S_POD_NAME", "HOSTNAME")
    told = _text(variables, "POD_NAMESPACE", "MY_POD_NAMESPACE", "K8S_NAMESPACE")
    return {
        "job_id": pod,
        "name": _text(variables, "DASK_WORKER_NAME"),
        "namespace": told or namespace or None,
        "node": _text(variables, "NODE_NAME", "MY_NODE_NAME", "K8S_NODE_NAME"),
        "cores": _number(variables, "CPU_LIMIT", "MY_CPU_LIMIT"),
        "memory_bytes": _size(variables, "MEMORY_LIMIT", "MEM_LIMIT", "MY_MEM_LIMIT"),
    }


#: Which variable shows that a process runs in a job of the system, and who describes it.
_SYSTEMS: Final[dict[str, tuple[str, Callable[[Variables, Path], Facts]]]] = {
    "SLURM": ("SLURM_JOB_ID", _slurm),
    "HTCondor": ("_CONDOR_JOB_AD", _condor),
    "PBS": ("PBS_JOBID", _pbs),
    "LSF": ("LSB_JOBID", _lsf),
    "SGE": ("SGE_ROOT", _sge),
    "OAR": ("OAR_JOB_ID", _oar),
    "Kubernetes": ("KUBERNETES_SERVICE_HOST", _kubernetes),
}


def _given(variables: Variables, names: tuple[str, ...]) -> Iterator[str]:
    return (variables[name].strip() for name in names if variables.get(name, "").strip())


def _text(variables: Variables, *names: str) -> str | None:
    text = next(_given(variables, names), None)
    return text and text[:MAX_LENGTH]


def _number(variables: Variables, *names: str) -> int | None:
    """Give the first number; ``8(x2)`` is 8 cores on each of two nodes."""
    for text in _given(variables, names):
        if number := re.match(r"\d{1,15}", text):
            return int(number[0])
    return None


def _size(variables: Variables, *names: str) -> int | None:
    """Give the first size, in bytes."""
    for text in _given(variables, names):
        if size := _SIZE.fullmatch(text):
            return int(float(size["number"]) * 2 ** _UNITS[size["unit"].lower()])
    return None


def _condor_ad(path: str | None) -> dict[str, Any]:
    """Read a file of ``Name = value``; of the rest of the job's ad nobody takes anything."""
    if not path:
        return {}
    try:
        with Path(path).open("rb") as file:
            text = file.read(_AD_BYTES).decode("utf-8", "replace")
    except OSError:
        return {}
    found: dict[str, Any] = {}
    for line in text.splitlines():
        told = _AD_LINE.fullmatch(line.strip())
        if told and told["name"] in _CONDOR_NAMES:
            number = told["number"]
            text = told["text"] or ""
            found[told["name"]] = (
                text[:MAX_LENGTH]
                if number is None
                else int(number)
                if re.fullmatch(r"-?\d{1,15}", number)
                else number[:MAX_LENGTH]
            )
    return found


#: HTCondor has no queues; it says how a job is run by a number.
_UNIVERSES: Final = {
    5: "vanilla",
    7: "scheduler",
    9: "grid",
    10: "java",
    11: "parallel",
    12: "local",
    13: "vm",
}

#: What is read of HTCondor's ads of the job and the machine.
_CONDOR_NAMES: Final = frozenset(
    {
        "ClusterId",
        "ProcId",
        "GlobalJobId",
        "JobBatchName",
        "RequestCpus",
        "RequestMemory",
        "RemoteHost",
        "JobStartDate",
        "JobUniverse",
        "Machine",
        "Name",
        "Cpus",
        "Memory",
    }
)
