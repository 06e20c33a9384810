"""A Dask cluster dump as JSON lines, for a subprocess.

``python -m roast_analyze.imports.dump_state DUMP`` writes the fields of a header, the records
in the dump, and a summary. The structure of a dump is that of ``distributed.cluster_dump``: a
dict of ``scheduler``, ``workers`` and ``versions``, in which many objects are text.

Nothing is unpickled. Fields are selected by name: no ``run_spec``, no arguments, and of the
configuration only switches, numbers, sizes and durations.
"""

from __future__ import annotations

import ast
import gzip
import math
import re
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from roast_schemas.redact import MARK, Redactor, names_a_secret

if TYPE_CHECKING:
    from collections.abc import Iterator

Record = dict[str, Any]
Reason = tuple[str, str, int | None, str]

#: Dask's own annotations, which are imported.
_ANNOTATIONS: Final = ("priority", "retries", "workers", "resources", "allow_other_workers")

#: Facts about the host that are imported.
_HOST: Final = ("python", "python-bits", "OS", "OS-release", "machine", "byteorder", "LANG")

#: Text settings that are imported: sizes, durations and the like.
_SIZE: Final = re.compile(r"[0-9]+(\.[0-9]+)? ?[a-zA-Zμµ%]{0,12}")

_TASK: Final = re.compile(r"<TaskState (?P<key>.*) [a-z-]+>", re.DOTALL)
_WORKER: Final = re.compile(r"<WorkerState '(?P<worker>[^']*)'")

#: Lines of a worker's log with a task's arguments.
_ARGUMENTS: Final = re.compile(r"(?m)^(args|kwargs):.*$")

#: Levels of a worker's log that are imported.
_LEVELS: Final = ("WARNING", "ERROR", "CRITICAL")

#: Longer texts are cut.
_CHARACTERS: Final = 100_000

#: More deeply nested values of events are replaced.
_MAX_DEPTH: Final = 50

#: Length of Dask's logs of transfers, which keep the newest.
_TRANSFERS: Final = 1000

#: Error of a failed attempt whose error is not in the dump.
_UNKNOWN: Final = "(not in the dump: the attempt failed and was tried again)"


class NotADump(Exception):  # noqa: N818 - as in errors.py
    """A file is not a cluster dump."""


def main() -> None:
    """Write the dump in the first argument to stdout, as JSON lines."""
    try:
        state = load(Path(sys.argv[1]))
        dump = Dump(state)
        redactor = Redactor()
        # Losses come last: they are known when all other records are written.
        for records in ([dump.header()], dump.records(), dump.losses()):
            for record in records:
                present = {name: value for name, value in record.items() if value is not None}
                line = redactor.record(_plain(present))
                sys.stdout.buffer.write(orjson.dumps(line, option=_OPTIONS))
        summary = {"redacted_values": redactor.replaced, "stop_t": dump.stop_t}
        sys.stdout.buffer.write(orjson.dumps(summary, option=_OPTIONS))
    except NotADump as error:
        sys.exit(f"Error: {error}")


_OPTIONS: Final = (
    orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
)


# -- the file ----------------------------------------------------------------------------


def load(path: Path) -> dict[str, Any]:
    """Read a dump.

    Parameters
    ----------
    path : Path
        msgpack or YAML, possibly compressed with gzip; the content decides.

    Raises
    ------
    NotADump
        If it is not a dump.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(3) == b"\x1f\x8b\x08"
        with gzip.open(path) if packed else path.open("rb") as file:
            beginning = file.read(64)
            file.seek(0)
            is_text = all(byte >= 32 or byte in b"\t\n\r" for byte in beginning)
            # 0x80 to 0x8f: a small map in msgpack, and no first byte of UTF-8
            is_map = b"\x80" <= beginning[:1] <= b"\x8f"
            state = (_yaml if is_text and not is_map else _msgpack)(file)
    except NotADump:
        raise
    except EOFError:
        raise NotADump("it is truncated") from None
    except (OSError, zlib.error) as error:
        raise NotADump(f"it cannot be decompressed ({error})") from None
    if not isinstance(state, dict) or not all(
        isinstance(state.get(part), dict) for part in ("scheduler", "workers")
    ):
        raise NotADump("it has no scheduler or no workers")
    return state


def _msgpack(file: Any) -> Any:
    import msgpack

    try:
        unpacker = msgpack.Unpacker(
            file,
            raw=False,
            strict_map_key=False,
            unicode_errors="replace",
            max_buffer_size=2**31 - 1,
        )
        return unpacker.unpack()
    except (msgpack.OutOfData, msgpack.UnpackException, ValueError, TypeError) as error:
        raise NotADump(f"it is not complete msgpack ({type(error).__name__})") from None


def _yaml(file: Any) -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Loader of plain values, and of tuples, which older versions of Dask wrote."""

    Loader.add_constructor(
        "tag:yaml.org,2002:python/tuple",
        lambda loader, node: loader.construct_sequence(node, deep=True),
    )
    try:
        return yaml.load(file, Loader=Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError, UnicodeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise NotADump(f"it is not complete YAML ({reason})") from None


# -- records -----------------------------------------------------------------------------


class Dump:
    """The records in a cluster dump.

    Parameters
    ----------
    state : dict
        Result of :func:`load`.

    Attributes
    ----------
    start_t, stop_t : float
        Start of the scheduler, and the last time in the dump.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._scheduler = state["scheduler"]
        self._versions = _mapping(state.get("versions"))
        self._tasks = _mapping(self._scheduler.get("tasks"))
        self._groups = _mapping(self._scheduler.get("task_groups"))
        self._workers = {
            str(address): worker
            for address, worker in _mapping(self._scheduler.get("workers")).items()
            if isinstance(worker, dict)
        }
        self._answers = {
            str(address): answer
            for address, answer in state["workers"].items()
            if isinstance(answer, dict)
        }
        self._log = [
            entry
            for entry in _list(self._scheduler.get("transition_log"))
            if isinstance(entry, list) and len(entry) >= 6 and _is_time(entry[-1])
        ]
        self._losses: list[Reason] = []
        times = [*self._times()]
        if not times:
            raise NotADump("it contains no time")
        started = self._scheduler.get("started")
        self.start_t = min([started] if _is_time(started) else times)
        self.stop_t = max(times)

    def _times(self) -> Iterator[float]:
        """Return every time in the dump, on the scheduler's clock."""
        found: list[Any] = [self._scheduler.get("started")]
        found += [entry[-1] for entry in self._log]
        for one in (
            *self._workers.values(),
            *_mapping(self._scheduler.get("clients")).values(),
        ):
            found.append(_mapping(one).get("last_seen"))
        for answer in self._answers.values():
            found += [_list(entry)[-1] for entry in _list(answer.get("log")) if _list(entry)]
        for group in self._groups.values():
            found.append(_mapping(group).get("stop"))
        for events in _mapping(self._scheduler.get("events")).values():
            found += [_list(event)[0] for event in _list(events) if _list(event)]
        return (time for time in found if _is_time(time))

    def header(self) -> Record:
        """Return the fields of the header."""
        packages = _mapping(_mapping(self._versions.get("scheduler")).get("packages"))
        return {
            "t": self.start_t,
            "versions": packages or None,
            "scheduler": self._text(self._scheduler.get("address")),
            "scheduler_id": self._text(self._scheduler.get("id")),
        }

    def records(self) -> Iterator[Record]:
        """Yield all records except losses."""
        yield from self._environment()
        yield from self._clients()
        for address in self._workers:
            yield from self._worker(address)
        yield from self._graph()
        yield from self._transitions()
        yield from self._events()
        for address, answer in self._answers.items():
            yield from self._of_worker(address, answer)

    def losses(self) -> Iterator[Record]:
        """Yield records of what the dump does not contain."""
        for address in self._workers:
            if address not in self._answers:
                detail = f"{address} did not answer when the dump was made"
                self._lose("state of a worker", None, None, detail)
        self._lose(
            "a cluster dump is not a recording",
            None,
            None,
            "it contains the state at one time and Dask's recent logs, but no samples over "
            "time, profiles and fine metrics, no times of attempts whose results were "
            "released, "
            "and no workers and tasks that were removed",
        )
        for reason, kind, records, detail in self._losses:
            yield {
                "kind": "loss",
                "t": self.stop_t,
                "reason": reason,
                "record_kind": kind or None,
                "records": records,
                "detail": detail,
            }

    # -- parts ---------------------------------------------------------------------------

    def _environment(self) -> Iterator[Record]:
        def fact(section: str, name: str, value: Any) -> Record:
            return {
                "kind": "environment",
                "t": self.start_t,
                "section": section,
                "name": name,
                "value": value,
            }

        scheduler = _mapping(self._versions.get("scheduler"))
        for name, value in _mapping(scheduler.get("packages")).items():
            yield fact("scheduler versions", str(name), value)
        host = _mapping(scheduler.get("host"))
        for name in _HOST:
            if name in host:
                yield fact("scheduler machine", name, host[name])
        for name in ("address", "id", "status"):
            if isinstance(self._scheduler.get(name), str):
                yield fact("scheduler", name, self._scheduler[name])
        left_out = 0
        for answer in self._answers.values():
            for name, value in _leaves(_mapping(answer.get("config")), ()):
                if _is_harmless(name, value):
                    yield fact("config", name, value)
                else:
                    left_out += 1
            break  # workers usually share their configuration
        if left_out:
            detail = (
                f"{left_out} values: only switches, numbers, sizes and durations are imported, "
                "because others can be secret"
            )
            self._lose("settings not imported", "environment", None, detail)

    def _clients(self) -> Iterator[Record]:
        for name in _mapping(self._scheduler.get("clients")):
            yield {"kind": "client_added", "t": self.start_t, "client": self._text(name)}

    def _worker(self, address: str) -> Iterator[Record]:
        it = self._workers[address]
        versions = _mapping(
            _mapping(_mapping(self._versions.get("workers")).get(address)).get("packages")
        )
        yield {
            "kind": "worker_added",
            "t": self._first_seen(address),
            "worker": self._text(address),
            "server_id": self._text(it.get("server_id")),
            "name": self._text(str(it.get("name", address))),
            "host": self._text(it.get("host")),
            "pid": _integer(it.get("pid")),
            "nthreads": _integer(it.get("nthreads")),
            "memory_limit": _integer(it.get("memory_limit")),
            "nanny": self._text(it.get("nanny")),
            "local_directory": self._text(it.get("local_directory")),
            "resources": _mapping(it.get("resources")),
            "versions": versions or None,
        }
        metrics = _mapping(it.get("metrics"))
        seen = it.get("last_seen")
        if not _is_time(seen):
            return
        spilled, transfer = (
            _mapping(metrics.get("spilled_bytes")),
            _mapping(metrics.get("transfer")),
        )
        yield {
            "kind": "worker_sample",
            "t": seen,
            "worker": self._text(address),
            "server_id": self._text(it.get("server_id")),
            "memory_limit": _integer(it.get("memory_limit")),
            "nthreads": _integer(it.get("nthreads")),
            "processing": len(_list(it.get("processing"))),
            "executing": len(_mapping(it.get("executing"))),
            "occupancy": _number(it.get("occupancy")),
            "nbytes": _integer(it.get("nbytes")),
            "last_seen": seen,
            "metrics": {
                "cpu": _number(metrics.get("cpu")),
                "memory": _integer(metrics.get("memory")),
                "managed_bytes": _integer(metrics.get("managed_bytes")),
                "spilled_memory": _integer(spilled.get("memory")),
                "spilled_disk": _integer(spilled.get("disk")),
                "ready": _integer(_mapping(metrics.get("task_counts")).get("ready")),
                "event_loop_interval": _number(metrics.get("event_loop_interval")),
                "num_fds": _integer(metrics.get("num_fds")),
                "incoming_bytes": _integer(transfer.get("incoming_bytes")),
                "outgoing_bytes": _integer(transfer.get("outgoing_bytes")),
            },
        }

    def _first_seen(self, address: str) -> float:
        """Return the first time known of a worker; few dumps contain when it joined."""
        for event in _list(_mapping(self._scheduler.get("events")).get(address)):
            if len(_list(event)) > 1 and _mapping(event[1]).get("action") == "add-worker":
                return float(event[0])
        answer = self._answers.get(address, {})
        times = [entry[-1] for entry in map(_list, _list(answer.get("log"))) if entry]
        times.append(self._workers[address].get("last_seen"))
        return min((time for time in times if _is_time(time)), default=self.start_t)

    def _graph(self) -> Iterator[Record]:
        first: dict[str, list[Any]] = {}
        for logged in self._log:
            first.setdefault(_key(logged[0]), logged)
        for name, task in self._tasks.items():
            it = _mapping(task)
            key = _key(it.get("key", name))
            entry = first.get(key)
            group = str(it.get("group_key", ""))
            annotations = _mapping(it.get("annotations"))
            record: Record = {
                "kind": "task",
                "t": self.start_t,
                "key": key,
                "prefix": _prefix(it),
                "group": group or None,
                "dependencies": [_key_of(one) for one in _list(it.get("dependencies"))],
                "priority": [
                    n for n in map(_number, _list(it.get("priority"))) if n is not None
                ],
                "annotations": {n: annotations[n] for n in _ANNOTATIONS if n in annotations}
                or None,
                "span_id": self._text(_mapping(self._groups.get(group)).get("span_id")),
            }
            if entry is None:
                record["state"] = self._text(it.get("state"))
                record["worker"] = self._known_worker(_worker_of(it.get("processing_on")))
                record["run_id"] = _integer(it.get("run_id"))
            elif entry[1] == "released" and str(entry[4]).startswith("update-graph"):
                # The log has the transition with which it entered the graph.
                record |= {"t": entry[-1], "stimulus_id": entry[4]}
            else:
                record["state"] = str(entry[1])
            yield record

    def _transitions(self) -> Iterator[Record]:
        count = _integer(self._scheduler.get("transition_counter")) or 0
        if count > len(self._log):
            detail = f"the scheduler's transition log keeps the last {len(self._log):,}"
            self._lose("older transitions", "transition", count - len(self._log), detail)
        last = {_key(entry[0]): place for place, entry in enumerate(self._log)}
        tasks = {
            _key(_mapping(it).get("key", name)): _mapping(it)
            for name, it in self._tasks.items()
        }
        gone: Counter[str] = Counter()
        for place, entry in enumerate(self._log):
            key, start, finish, recommended, stimulus, t = _key(entry[0]), *entry[1:6]
            record = {
                "kind": "transition",
                "t": t,
                "key": key,
                "start": self._text(str(start)),
                "finish": self._text(str(finish)),
                "stimulus_id": self._text(str(stimulus)),
            }
            task = tasks.get(key, {})
            if last[key] == place and task.get("state") == finish:
                record |= self._end(key, str(start), str(finish), task, gone)
            elif (
                start == "processing"
                and str(stimulus).startswith("task-erred")
                and _mapping(recommended).get(str(entry[0])) == "waiting"
            ):
                record["exception"] = _UNKNOWN
            yield record
        if gone:
            names = ", ".join(sorted(gone)[:10])
            detail = f"they ran on workers that have left: {names}"
            self._lose("failed attempts without their worker", "transition", None, detail)

    def _end(
        self, key: str, start: str, finish: str, task: Record, gone: Counter[str]
    ) -> Record:
        """Return the dump's fields of the transition that led to a task's state."""
        if finish == "processing":
            return {
                "worker": self._known_worker(_worker_of(task.get("processing_on"))),
                "run_id": _integer(task.get("run_id")),
            }
        if start == "processing" and finish == "memory":
            return self._result(key, task)
        if finish != "erred":
            return {}
        failed_on = [str(worker) for worker in _list(task.get("erred_on"))]
        worker = self._known_worker(failed_on[0]) if len(failed_on) == 1 else None
        gone.update(one for one in failed_on if one not in self._workers)
        pickled = task.get("exception")
        text = task.get("exception_text")
        if not text and pickled is not None:
            # It is not unpickled, but can contain the name of its class as text.
            name = "KilledWorker" if "KilledWorker" in str(pickled) else "an exception"
            text = f"{name} (pickled in the dump, not read)"
        cause = _key_of(task.get("exception_blame")) if task.get("exception_blame") else None
        return {
            "worker": worker,
            "run_id": _integer(task.get("run_id")),
            "cause": self._text(cause),
            "exception": self._text(text),
            "traceback": self._text(task.get("traceback_text")),
        }

    def _result(self, key: str, task: Record) -> Record:
        """Return the fields of an attempt whose result is in memory."""
        known = {
            "run_id": _integer(task.get("run_id")),
            "nbytes": _integer(task.get("nbytes")) if task.get("nbytes") != -1 else None,
            "typename": self._text(task.get("type")),
        }
        holders = [_worker_of(one) for one in _list(task.get("who_has"))]
        for worker in filter(None, holders):
            its = _mapping(_mapping(self._answers.get(worker)).get("tasks"))
            it = _mapping(its.get(key))
            parts = [
                {
                    "action": str(part["action"]),
                    "start": float(part["start"]),
                    "stop": float(part["stop"]),
                    "source": self._text(part.get("source")),
                }
                for part in map(_mapping, _list(it.get("startstops")))
                if _is_time(part.get("start"))
                and _is_time(part.get("stop"))
                and "action" in part
            ]
            if any(part["action"] == "compute" for part in parts):
                present = [{n: v for n, v in part.items() if v is not None} for part in parts]
                return {**known, "worker": self._known_worker(worker), "startstops": present}
        if len(holders) == 1:
            # Results are sometimes copied to other workers, but rarely moved.
            known["worker"] = self._known_worker(holders[0])
        return known

    def _events(self) -> Iterator[Record]:
        without = 0
        for topic, events in _mapping(self._scheduler.get("events")).items():
            if not isinstance(events, list):
                without += 1
                continue
            for event in map(_list, events):
                if len(event) < 2 or not _is_time(event[0]):
                    continue
                message = event[1]
                worker = _mapping(message).get("worker")
                yield {
                    "kind": "event",
                    "t": event[0],
                    "topic": self._text(str(topic)),
                    "worker": self._text(worker),
                    "payload": message,
                }
        if without:
            detail = f"{without} topics are in the dump by name only"
            self._lose("events not in the dump", "event", None, detail)

    def _of_worker(self, address: str, answer: Record) -> Iterator[Record]:
        skipped = 0
        about = {"worker": self._text(address), "server_id": self._text(answer.get("id"))}
        for entry in map(_list, _list(answer.get("log"))):
            if len(entry) == 7 and _is_time(entry[-1]):
                key, start, finish, actual, _, stimulus, t = entry
                yield {
                    "kind": "worker_transition",
                    "t": t,
                    **about,
                    "key": _key(key),
                    "start": self._text(str(start)),
                    "finish": self._text(str(finish)),
                    "state": self._text(str(actual)) if actual != finish else None,
                    "stimulus_id": self._text(str(stimulus)),
                }
        for way in ("incoming", "outgoing"):
            transfers = _list(answer.get(f"transfer_{way}_log"))
            if len(transfers) >= _TRANSFERS:
                detail = (
                    f"the log of {way} transfers of {address} keeps the last {len(transfers):,}"
                )
                self._lose("older transfers", "transfer", None, detail)
            for it in map(_mapping, transfers):
                if not (_is_time(it.get("start")) and _is_time(it.get("stop"))):
                    continue
                ends = about["worker"], self._text(it.get("who"))
                destination, source = ends if way == "incoming" else ends[::-1]
                yield {
                    "kind": "transfer",
                    "t": it["stop"],
                    **about,
                    "start_t": it["start"],
                    "stop_t": it["stop"],
                    "source": source,
                    "destination": destination,
                    "nbytes": _integer(it.get("total")),
                    "keys": {
                        _key(key): _integer(nbytes)
                        for key, nbytes in _mapping(it.get("keys")).items()
                    },
                }
        for entry in map(_list, _list(answer.get("logs"))):
            if len(entry) != 2 or not isinstance(entry[1], str):
                continue
            if entry[0] in _LEVELS:
                message = self._text(_ARGUMENTS.sub(r"\1: (not imported)", entry[1]))
                yield {
                    "kind": "event",
                    "t": self.stop_t,
                    "topic": "worker-log",
                    "worker": about["worker"],
                    "payload": {"level": entry[0], "message": message},
                }
            else:
                skipped += 1
        if skipped:
            detail = f"{skipped} lines of {address}: only warnings and errors are imported"
            self._lose("lines of a worker's log not imported", "event", None, detail)

    def _lose(self, reason: str, kind: str | None, records: int | None, detail: str) -> None:
        self._losses.append((reason, kind or "", records, detail))

    def _known_worker(self, worker: str | None) -> str | None:
        """Return the address of a worker, if the dump contains it."""
        return worker if worker in self._workers else None

    def _text(self, value: Any) -> str | None:
        """Return a text, cut if it is very long."""
        if not isinstance(value, str):
            return None
        text = value[:_CHARACTERS]
        return text if len(value) <= _CHARACTERS else text + " … (cut)"


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON can hold it: valid Unicode, 64-bit integers, no other types."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**62 else str(value)
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    if depth >= _MAX_DEPTH:
        return MARK
    if isinstance(value, dict):
        return {_plain(str(name)): _plain(item, depth + 1) for name, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(item, depth + 1) for item in value]
    return _plain(str(value))


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _integer(value: Any) -> int | None:
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    return value if type(value) is int and abs(value) < 2**62 else None


def _number(value: Any) -> float | None:
    is_number = type(value) in (int, float) and math.isfinite(value)
    return float(value) if is_number else None


def _is_time(value: Any) -> bool:
    """Return whether a value is a time, in seconds since the epoch, of recent decades."""
    return type(value) in (int, float) and 1e9 < value < 1e10


def _key(value: Any) -> str:
    """Return a key as text; dumps contain tuples as lists."""
    return value if isinstance(value, str) else str(_tuple(value))


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, (list, tuple)) else value


def _key_of(shown: Any) -> str:
    """Return the key in the repr of a task."""
    found = _TASK.fullmatch(str(shown))
    if found is None:
        return _key(shown)
    text = found["key"]
    if text[:1] in "'\"":
        try:
            return str(ast.literal_eval(text))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text
    return text


def _worker_of(shown: Any) -> str | None:
    """Return the address in the repr of a worker."""
    found = _WORKER.match(str(shown))
    return found["worker"] if found else None


def _prefix(task: Record) -> str:
    """Return the prefix of a task, from a repr with the number of its tasks by state."""
    found = re.match(
        r"<(?:TaskPrefix )?(?P<name>.*?)(?:: [a-z-]+: \d|: >|>)", str(task.get("prefix"))
    )
    return found["name"] if found else str(task.get("group_key", ""))


def _leaves(settings: dict[Any, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the settings with their full names."""
    for name, value in settings.items():
        inner = (*path, str(name))
        if isinstance(value, dict) and value and len(path) < 20:
            yield from _leaves(value, inner)
        else:
            yield ".".join(inner), value


def _is_harmless(name: str, value: Any) -> bool:
    """Return whether a setting cannot be secret."""
    if any(map(names_a_secret, name.split("."))):
        return False
    if value is None or isinstance(value, (bool, int, float)):
        return True
    return isinstance(value, str) and _SIZE.fullmatch(value) is not None


if __name__ == "__main__":
    main()
