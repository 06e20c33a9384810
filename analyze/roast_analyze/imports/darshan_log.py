"""A log of Darshan as JSON lines, for a subprocess.

``python -m roast_analyze.imports.darshan_log LOG`` writes the facts of the job and then a
line for each record. PyDarshan reads logs with a C library that an invalid log can crash:
then this process dies, and :mod:`.darshan` reports it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

import orjson

#: Modules whose records have counters, and the prefix of the counters' names.
_WITH_COUNTERS: Final = {
    "POSIX": "POSIX", "MPI-IO": "MPIIO", "STDIO": "STDIO", "H5F": "H5F", "H5D": "H5D",
    "PNETCDF_FILE": "PNETCDF_FILE", "PNETCDF_VAR": "PNETCDF_VAR", "DFS": "DFS", "DAOS": "DAOS",
}  # fmt: skip

#: Modules of Darshan's extended tracing (DXT), and the layer that each traces.
_TRACES: Final = {"DXT_POSIX": "POSIX", "DXT_MPIIO": "MPI-IO"}

#: Counters, without prefix, that are added up. DFS includes non-blocking calls in the other
#: counters, so that its NB_READS and NB_WRITES are left out.
_SUMS: Final = {
    "opens": (
        "OPENS", "INDEP_OPENS", "COLL_OPENS", "GLOBAL_OPENS", "OBJ_OPENS", "ARRAY_OPENS",
        "KV_OPENS",
    ),
    "reads": (
        "READS", "INDEP_READS", "COLL_READS", "SPLIT_READS", "NB_READS", "READXS",
        "ARRAY_READS", "OBJ_FETCHES", "KV_GETS",
    ),
    "writes": (
        "WRITES", "INDEP_WRITES", "COLL_WRITES", "SPLIT_WRITES", "NB_WRITES", "WRITEXS",
        "ARRAY_WRITES", "OBJ_UPDATES", "KV_PUTS",
    ),
    "bytes_read": ("BYTES_READ",),
    "bytes_written": ("BYTES_WRITTEN",),
    "read_seconds": ("F_READ_TIME",),
    "write_seconds": ("F_WRITE_TIME",),
    "metadata_seconds": ("F_META_TIME",),
}  # fmt: skip


def main() -> None:
    """Write the log in the first argument to stdout, as JSON lines."""
    from darshan.backend import cffi_backend as darshan

    log = darshan.log_open(sys.argv[1])
    if log["handle"] == darshan.ffi.NULL:
        sys.exit("Error: it is not a Darshan log")
    job = darshan.log_get_job(log)
    begin_t = job["start_time_sec"] + job["start_time_nsec"] / 1e9
    modules = darshan.log_get_modules(log)
    # The library opens some files that are not logs without an error.
    if not modules and not job["start_time_sec"]:
        sys.exit("Error: it has neither a job nor a module")
    command = darshan.log_get_exe(log).split()
    facts = {
        "start_t": begin_t,
        "stop_t": job["end_time_sec"] + job["end_time_nsec"] / 1e9,
        "versions": {
            "darshan": str(job["metadata"].get("lib_ver", "")),
            "log": job["log_ver"],
            "darshan-util": darshan.get_lib_version(),
        },
        "value": {
            "job_id": job["jobid"],
            "processes": job["nprocs"],
            "run_seconds": job["run_time"],
            # Arguments can contain secrets.
            "executable": command[0] if command else None,
            "modules": {name: {"partial": it["partial_flag"]} for name, it in modules.items()},
            "left_out": sorted(modules.keys() - _WITH_COUNTERS.keys() - _TRACES.keys()),
        },
    }
    _write([facts])
    names = darshan.log_get_name_records(log)
    for module in modules:
        records = iter(partial(darshan.log_get_record, log, module, dtype="dict"), None)
        if module in _WITH_COUNTERS:
            _write(_file(record, module, names, begin_t) for record in records)
        elif module in _TRACES:
            for record in records:
                _write(_segments(record, module, names, begin_t))
    # The library prints errors on stderr and continues; the parent process reads them.
    sys.stdout.flush()


def _write(records: Iterable[dict[str, Any]]) -> None:
    for record in records:
        sys.stdout.buffer.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))


def _file(
    record: dict[str, Any], module: str, names: dict[int, str], begin_t: float
) -> dict[str, Any]:
    """Return the record of a file, from a module that has counters."""
    # Counters are named by their module, as in POSIX_OPENS.
    begin = len(_WITH_COUNTERS[module]) + 1
    counters: dict[str, float] = {name: int(n) for name, n in record["counters"].items()}
    counters |= {name: float(n) for name, n in record["fcounters"].items()}
    short = {name[begin:]: n for name, n in counters.items()}
    # A time that was not measured is 0; a damaged log can contain any float.
    times = [
        (name, n)
        for name, n in short.items()
        if name.startswith("F_") and n > 0 and math.isfinite(n)
    ]
    starts = (n for name, n in times if name.endswith("_START_TIMESTAMP"))
    stops = (n for name, n in times if name.endswith("_END_TIMESTAMP"))
    start, stop = min(starts, default=None), max(stops, default=None)
    sums = {}
    for name, parts in _SUMS.items():
        # A missing counter and a count below 0 were not measured.
        known = [
            short[part]
            for part in parts
            if part in short
            and (part.startswith("F_") or short[part] >= 0)
            and not (module == "DFS" and part.startswith("NB_"))
        ]
        if known and math.isfinite(sum(known)):
            sums[name] = sum(known)
    values: dict[str, Any] = {n: it for n, it in counters.items() if it and math.isfinite(it)}
    if "file_rec_id" in record:
        values["file"] = names.get(record["file_rec_id"], str(record["file_rec_id"]))
    return {
        "kind": "io_file",
        "filename": names.get(record["id"], str(record["id"])),
        "start_t": None if start is None else begin_t + start,
        "stop_t": None if stop is None else begin_t + stop,
        "measured": {"module": module, "rank": int(record["rank"]), **sums},
        "value": values,
    }


def _segments(
    record: dict[str, Any], module: str, names: dict[int, str], begin_t: float
) -> Iterator[dict[str, Any]]:
    """Yield the calls on a file, from a module that traces them."""
    measured = {"module": _TRACES[module], "rank": int(record["rank"])}
    for activity in ("write", "read"):
        for segment in record[f"{activity}_segments"]:
            yield {
                "kind": "io_segment",
                "filename": names.get(record["id"], str(record["id"])),
                "host": record["hostname"],
                "activity": activity,
                "start_t": begin_t + segment["start_time"],
                "stop_t": begin_t + segment["end_time"],
                "nbytes": segment["length"],
                "measured": {**measured, "offset_bytes": segment["offset"]},
            }


if __name__ == "__main__":
    main()
