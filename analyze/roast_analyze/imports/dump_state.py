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
import hashlib
import math
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints, is_typeddict

import orjson

from roast_schemas.records import KINDS, Json
from roast_schemas.redact import MARK, Redactor, names_a_secret

Record = dict[str, Any]

#: Dask's own annotations, which are imported.
_ANNOTATIONS: Final = ("priority", "retries", "workers", "resources", "allow_other_workers")

#: Facts about the host that are imported.
_HOST: Final = ("python", "python-bits", "OS", "OS-release", "machine", "byteorder", "LANG")

#: Text settings that are imported: sizes, durations and the like.
_SIZE: Final = re.compile(r"[0-9]+(\.[0-9]+)? ?[a-zA-Zμµ%]{0,12}")

#: Texts of Dask's objects, which a dump has in place of the objects.
_TASK: Final = re.compile(r"<TaskState (?P<key>.*) [a-z-]+>", re.DOTALL)
_WORKER: Final = re.compile(r"<WorkerState '(?P<worker>[^']*)'")
_PREFIX: Final = re.compile(r"<(?:TaskPrefix )?(?P<name>.*?)(?:: [a-z-]+: \d|: >|>)")

#: Arguments of a task in a worker's log, which can have several lines.
_ARGUMENTS: Final = re.compile(r"(?ms)^(args|kwargs|Task):.*?(?=^(?:Exception|Traceback)\b|\Z)")

#: Bytes in events, which a dump contains as text, such as pickled functions.
_BYTES: Final = re.compile(r"""(?:<\w+: )?b['"]""")

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
        # The same dump has the same marks, and nobody without it can compute them.
        with Path(sys.argv[1]).open("rb") as file:
            redactor = Redactor(key=hashlib.file_digest(file, "sha256").digest())
        # Losses come last: they are known when all other records are written.
        for record in chain([dump.header()], dump.records(), dump.losses()):
            line = redactor.record(conform(KINDS[record["kind"]], record))
            sys.stdout.buffer.write(orjson.dumps(line, option=_OPTIONS))
        summary = {"redacted_values": redactor.replaced, "stop_t": dump.stop_t}
        sys.stdout.buffer.write(orjson.dumps(summary, option=_OPTIONS))
    except NotADump as error:
        sys.exit(f"Error: {error}")


#: Dumps contain numbers as keys, and NumPy scalars.
_OPTIONS: Final = (
    orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
)


# -- the file ----------------------------------------------------------------------------


def load(path: Path) -> dict[str, Any]:
    """Read a dump: msgpack or YAML, possibly compressed with gzip; the content decides."""
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
    """The records in a cluster dump; :func:`conform` removes values with a wrong type."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._scheduler = state["scheduler"]
        self._versions = _mapping(state.get("versions"))
        self._tasks = _tasks(self._scheduler)
        self._groups = _mapping(self._scheduler, "task_groups")
        self._workers = _mappings(self._scheduler.get("workers"))
        self._answers = _mappings(state["workers"])
        self._tasks_of = {address: _tasks(it) for address, it in self._answers.items()}
        self._losses: list[Record] = []
        logged = _list(self._scheduler.get("transition_log"))
        entries = map(_transition, logged)
        #: Transitions: key, start, finish, recommendations, stimulus_id, time.
        self._log: list[list[Any]] = [entry for entry in entries if entry is not None]
        self._unreadable = len(logged) - len(self._log)
        clients = _mapping(self._scheduler, "clients").values()
        logs = (_rows(answer.get("log")) for answer in self._answers.values())
        events = map(_rows, _mapping(self._scheduler, "events").values())
        # All of these are on the scheduler's clock.
        times = [
            t
            for t in chain(
                [self._scheduler.get("started")],
                (
                    _mapping(it).get("last_seen")
                    for it in chain(self._workers.values(), clients)
                ),
                (_mapping(group).get("stop") for group in self._groups.values()),
                (entry[-1] for entry in chain(self._log, *logs)),
                (event[0] for event in chain(*events)),
            )
            if _is_time(t)
        ]
        if not times:
            raise NotADump("it contains no time")
        # What was there before the log is recorded at its start, as in any recording.
        self.start_t = self._log[0][-1] if self._log else min(times)
        self.stop_t = max(times)

    def header(self) -> Record:
        """Return the header without the fields that do not depend on the dump."""
        return {
            "kind": "header",
            "t": self.start_t,
            "versions": self._packages("scheduler") or None,
            "scheduler": self._scheduler.get("address"),
            "scheduler_id": self._scheduler.get("id"),
        }

    def records(self) -> Iterator[Record]:
        """Yield all records except losses."""
        yield from self._environment()
        for name in _mapping(self._scheduler, "clients"):
            yield {"kind": "client_added", "t": self.start_t, "client": name}
        for address, it in self._workers.items():
            yield from self._worker(address, it)
        yield from self._graph()
        yield from self._transitions()
        yield from self._events()
        for address, answer in self._answers.items():
            about = {"worker": address, "server_id": answer.get("id")}
            log = [
                entry
                for entry in _rows(answer.get("log"))
                if len(entry) == 7 and _is_time(entry[-1])
            ]
            self._lose_older("worker_transition", answer, log, f"the log of {address}")
            for key, start, finish, actual, _, stimulus, t in log:
                yield {
                    "kind": "worker_transition",
                    "t": t,
                    **about,
                    "key": _key(key),
                    "start": str(start),
                    "finish": str(finish),
                    "state": str(actual) if actual != finish else None,
                    "stimulus_id": str(stimulus),
                }
            yield from self._transfers(answer, about)
            yield from self._worker_log(answer, about)

    def losses(self) -> Iterator[Record]:
        """Yield records of what the dump does not contain."""
        for address in self._workers:
            if address not in self._answers:
                detail = f"{address} did not answer when the dump was made"
                self._lose("state of a worker", detail)
        self._lose(
            "a cluster dump is not a recording",
            "it contains the state at one time and Dask's recent logs, but no samples over "
            "time, profiles and fine metrics, no times of attempts that ended before these "
            "logs or whose results were released, and no workers and tasks that were removed",
        )
        yield from self._losses

    def _packages(self, *path: str) -> dict[Any, Any]:
        """Return the versions of a process's packages, and of Python as Python writes it."""
        packages = _mapping(self._versions, *path, "packages")
        return {k: str(v).removesuffix(".final.0") for k, v in packages.items() if v}

    def _lose(
        self, reason: str, detail: str, kind: str | None = None, records: int | None = None
    ) -> None:
        loss = {"kind": "loss", "t": self.stop_t, "reason": reason, "record_kind": kind}
        self._losses.append({**loss, "records": records, "detail": detail})

    def _lose_older(
        self, kind: str, server: Record, log: list[Any], what: str, unreadable: int = 0
    ) -> None:
        # The log is a deque of a limited length; the counter counts all.
        missing = (_integer(server.get("transition_counter")) or 0) - len(log) - unreadable
        if missing > 0:
            detail = f"{what} keeps the last {len(log):,}"
            self._lose("older transitions", detail, kind, missing)

    def _environment(self) -> Iterator[Record]:
        host = _picked(_mapping(self._versions, "scheduler", "host"), *_HOST)
        scheduler = _picked(self._scheduler, "address", "id", "status")
        # Workers usually share their configuration.
        first = next(iter(self._answers.values()), {})
        settings = list(_leaves(_mapping(first, "config"), ()))
        harmless = [
            (name, value)
            for name, value in settings
            if not any(map(names_a_secret, name.split(".")))
            and (
                value is None
                or isinstance(value, bool | int | float)
                or (isinstance(value, str) and _SIZE.fullmatch(value))
            )
        ]
        for section, facts in (
            ("scheduler versions", self._packages("scheduler").items()),
            ("scheduler machine", host.items()),
            ("scheduler", [item for item in scheduler.items() if isinstance(item[1], str)]),
            ("config", harmless),
        ):
            for name, value in facts:
                fact = {"section": section, "name": str(name), "value": value}
                yield {"kind": "environment", "t": self.start_t, **fact}
        if left_out := len(settings) - len(harmless):
            detail = (
                f"{left_out} values: only switches, numbers, sizes and durations are imported, "
                "because others can be secret"
            )
            self._lose("settings not imported", detail, "environment")

    def _worker(self, address: str, it: Record) -> Iterator[Record]:
        common = _picked(it, "server_id", "memory_limit", "nthreads") | {"worker": address}
        # Few dumps contain when a worker joined.
        joined = (
            float(event[0])
            for event in _rows(_mapping(self._scheduler, "events").get(address))
            if len(event) > 1 and _mapping(event[1]).get("action") == "add-worker"
        )
        yield {
            "kind": "worker_added",
            "t": next(filter(_is_time, joined), self.start_t),
            **common,
            **_picked(it, "host", "pid", "nanny", "local_directory"),
            "name": str(it.get("name", address)),
            "resources": _mapping(it, "resources"),
            "versions": self._packages("workers", address) or None,
        }
        metrics = _mapping(it, "metrics")
        measured = ("cpu", "memory", "managed_bytes", "event_loop_interval", "num_fds")
        if _is_time(it.get("last_seen")):
            yield {
                "kind": "worker_sample",
                "t": it["last_seen"],
                **common,
                **_picked(it, "occupancy", "nbytes", "last_seen"),
                "processing": len(_list(it.get("processing"))),
                "executing": len(_mapping(it, "executing")),
                "metrics": {
                    **_picked(metrics, *measured),
                    "spilled_memory": _mapping(metrics, "spilled_bytes").get("memory"),
                    "spilled_disk": _mapping(metrics, "spilled_bytes").get("disk"),
                    "ready": _mapping(metrics, "task_counts").get("ready"),
                    **_picked(
                        _mapping(metrics, "transfer"), "incoming_bytes", "outgoing_bytes"
                    ),
                },
            }

    def _graph(self) -> Iterator[Record]:
        # The oldest entry about a task has the state in which the log finds it.
        first: dict[str, list[Any]] = {}
        for logged in self._log:
            first.setdefault(_key(logged[0]), logged)
        for key, it in self._tasks.items():
            group = str(it.get("group_key", ""))
            # A repr with the number of its tasks by state.
            prefix = _PREFIX.match(str(it.get("prefix")))
            record: Record = {
                "kind": "task",
                "t": self.start_t,
                "key": key,
                "prefix": prefix["name"] if prefix else group,
                "group": group or None,
                "dependencies": [_key_of(one) for one in _list(it.get("dependencies"))],
                "priority": _list(it.get("priority")),
                "annotations": _picked(_mapping(it, "annotations"), *_ANNOTATIONS) or None,
                "span_id": _mapping(self._groups, group).get("span_id"),
            }
            entry = first.get(key)
            if entry is None:
                record["state"] = it.get("state")
                record |= self._assigned(it)
            elif entry[1] == "released" and str(entry[4]).startswith("update-graph"):
                # The log has the transition with which it entered the graph.
                record |= {"t": entry[-1], "stimulus_id": entry[4]}
            else:
                record["state"] = str(entry[1])
            yield record

    def _transitions(self) -> Iterator[Record]:
        what = "the scheduler's transition log"
        self._lose_older("transition", self._scheduler, self._log, what, self._unreadable)
        if self._unreadable:
            detail = f"{what} has entries that are not those of a known version of Dask"
            self._lose("unreadable transitions", detail, "transition", self._unreadable)
        if without := sum(entry[4] is None for entry in self._log):
            detail = (
                f"{without:,} transitions: this version of Dask did not log the stimulus, so "
                "the reason why an attempt ended without a result is unknown"
            )
            self._lose("transitions without a stimulus", detail, "transition")
        # Fields of the dump describe the last transition of a task only.
        last = {_key(entry[0]): place for place, entry in enumerate(self._log)}
        gone: Counter[str] = Counter()
        for place, entry in enumerate(self._log):
            key, (start, finish, recommended, stimulus, t) = _key(entry[0]), entry[1:6]
            record = {
                "kind": "transition",
                "t": t,
                "key": key,
                "start": str(start),
                "finish": str(finish),
                "stimulus_id": stimulus and str(stimulus),
            }
            task = self._tasks.get(key, {})
            if last[key] == place and task.get("state") == finish:
                record |= self._end(key, start, finish, task, gone)
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
            self._lose("failed attempts without their worker", detail, "transition")

    def _end(
        self, key: str, start: str, finish: str, task: Record, gone: Counter[str]
    ) -> Record:
        """Return the dump's fields of the transition that led to a task's state."""
        if finish == "processing":
            return self._assigned(task)
        if start == "processing" and finish == "memory":
            return self._result(key, task)
        if finish != "erred":
            return {}
        # With several workers, it is unknown on which of them the last attempt failed.
        failed_on = [str(worker) for worker in _list(task.get("erred_on"))]
        gone.update(one for one in failed_on if one not in self._workers)
        pickled = task.get("exception")
        text = task.get("exception_text")
        if not text and pickled is not None:
            # It is not unpickled, but can contain the name of its class as text.
            name = "KilledWorker" if "KilledWorker" in str(pickled) else "an exception"
            text = f"{name} (pickled in the dump, not read)"
        return {
            "worker": self._known_worker(failed_on[0]) if len(failed_on) == 1 else None,
            "run_id": task.get("run_id"),
            "cause": _key_of(task["exception_blame"]) if task.get("exception_blame") else None,
            "exception": _cut(text),
            "traceback": _cut(task.get("traceback_text")),
        }

    def _result(self, key: str, task: Record) -> Record:
        """Return the fields of an attempt whose result is in memory."""
        known = {
            "run_id": task.get("run_id"),
            "nbytes": task.get("nbytes") if task.get("nbytes") != -1 else None,
            "typename": task.get("type"),
        }
        holders = [_worker_of(one) for one in _list(task.get("who_has"))]
        for worker in filter(None, holders):
            it = _mapping(self._tasks_of, worker, key)
            parts = [
                {**part, "action": str(part["action"])}
                for part in map(_mapping, _list(it.get("startstops")))
                if _is_time(part.get("start"))
                and _is_time(part.get("stop"))
                and "action" in part
            ]
            # Only the worker that computed the result has these times; others have a copy.
            if any(part["action"] == "compute" for part in parts):
                return {**known, "worker": self._known_worker(worker), "startstops": parts}
        if len(holders) == 1:
            # Results are sometimes copied to other workers, but rarely moved.
            known["worker"] = self._known_worker(holders[0])
        return known

    def _events(self) -> Iterator[Record]:
        topics = _mapping(self._scheduler, "events")
        for topic, events in topics.items():
            for t, message, *_ in (event for event in _rows(events) if len(event) > 1):
                if _is_time(t):
                    worker = _mapping(message).get("worker")
                    event = {"topic": str(topic), "worker": worker, "payload": message}
                    yield {"kind": "event", "t": t, **event}
        if without := sum(not isinstance(events, list) for events in topics.values()):
            detail = f"{without} topics are in the dump by name only"
            self._lose("events not in the dump", detail, "event")

    def _transfers(self, answer: Record, about: Record) -> Iterator[Record]:
        address = about["worker"]
        for way in ("incoming", "outgoing"):
            transfers = _list(answer.get(f"transfer_{way}_log"))
            # A full log may have lost older entries.
            if len(transfers) >= _TRANSFERS:
                detail = (
                    f"the log of {way} transfers of {address} keeps the last {len(transfers):,}"
                )
                self._lose("older transfers", detail, "transfer")
            for it in map(_mapping, transfers):
                if not (_is_time(it.get("start")) and _is_time(it.get("stop"))):
                    continue
                ends = address, it.get("who")
                # The worker of the log is the destination of what came in.
                destination, source = ends if way == "incoming" else ends[::-1]
                yield {
                    "kind": "transfer",
                    "t": it["stop"],
                    **about,
                    "start_t": it["start"],
                    "stop_t": it["stop"],
                    "source": source,
                    "destination": destination,
                    "nbytes": it.get("total"),
                    "keys": {
                        _key(_literal(key) if str(key).startswith("[") else key): size
                        for key, size in _mapping(it, "keys").items()
                    },
                }

    def _worker_log(self, answer: Record, about: Record) -> Iterator[Record]:
        lines = [
            line
            for line in _rows(answer.get("logs"))
            if len(line) == 2 and isinstance(line[1], str)
        ]
        imported = [(level, text) for level, text in lines if level in _LEVELS]
        for level, text in imported:
            message = _cut(_ARGUMENTS.sub(r"\1: (not imported)\n", text))
            payload = {"level": level, "message": message}
            # A worker's log has no times.
            event = {"topic": "worker-log", "worker": about["worker"], "payload": payload}
            yield {"kind": "event", "t": self.stop_t, **event}
        if skipped := len(lines) - len(imported):
            detail = (
                f"{skipped} lines of {about['worker']}: only warnings and errors are imported"
            )
            self._lose("lines of a worker's log not imported", detail, "event")

    def _assigned(self, task: Record) -> Record:
        """Return the attempt that a task is assigned to."""
        worker = self._known_worker(_worker_of(task.get("processing_on")))
        return {"worker": worker, "run_id": task.get("run_id")}

    def _known_worker(self, worker: str | None) -> str | None:
        """Return the address of a worker, if the dump contains it."""
        return worker if worker in self._workers else None


# -- types -------------------------------------------------------------------------------


def conform(kind: Any, value: Any) -> Any:
    """Return a value with the declared type of a record or a field, else None.

    Fields and items with another type are left out.
    """
    if kind is Json:
        return _plain(value)
    if kind is str:
        return _unicode(value) if isinstance(value, str) else None
    if kind is int:
        return _integer(value)
    if kind is float:
        is_number = type(value) in (int, float) and math.isfinite(value)
        return float(value) if is_number else None
    if not isinstance(value, get_origin(kind) or dict):
        return None
    if isinstance(value, list):
        items = (conform(get_args(kind)[0], item) for item in value)
        return [item for item in items if item is not None]
    if is_typeddict(kind):
        fields = (
            (name, conform(type_, value.get(name))) for name, type_ in _types(kind).items()
        )
    else:
        item_type = get_args(kind)[1]
        fields = ((_unicode(name), conform(item_type, item)) for name, item in value.items())
    return {name: field for name, field in fields if field is not None}


#: Names and types of the fields of a record.
_types = cache(get_type_hints)


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a value that JSON can represent: valid Unicode, 64-bit integers, plain types."""
    if isinstance(value, str):
        return "<bytes>" if _BYTES.match(value) else _unicode(value)
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**62 else str(value)
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    if depth >= _MAX_DEPTH:
        return MARK
    if isinstance(value, dict):
        return {_unicode(name): _plain(item, depth + 1) for name, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(item, depth + 1) for item in value]
    return _plain(str(value))


def _unicode(text: Any) -> str:
    return str(text).encode(errors="replace").decode()


def _integer(value: Any) -> int | None:
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    return value if type(value) is int and abs(value) < 2**62 else None


def _is_time(value: Any) -> bool:
    """Return whether a value is a time, in seconds since the epoch, of recent decades."""
    return type(value) in (int, float) and 1e9 < value < 1e10


def _cut(text: Any) -> Any:
    """Return a text, cut if it is very long."""
    is_long = isinstance(text, str) and len(text) > _CHARACTERS
    return text[:_CHARACTERS] + " … (cut)" if is_long else text


def _mapping(value: Any, *path: str) -> dict[Any, Any]:
    """Return the mapping at a path in nested mappings, or an empty one."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> dict[str, dict[Any, Any]]:
    """Return the values of a mapping that are mappings, by text."""
    return {str(k): it for k, it in _mapping(value).items() if isinstance(it, dict)}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _transition(entry: Any) -> list[Any] | None:
    """Return an entry of the scheduler's log as of Dask 2022.8 and newer, or None."""
    if not isinstance(entry, list) or not entry or not _is_time(entry[-1]):
        return None
    if len(entry) == 5:  # before, without a stimulus
        return [*entry[:4], None, entry[-1]]
    return [*entry[:5], entry[-1]] if len(entry) >= 6 else None


def _rows(value: Any) -> list[list[Any]]:
    """Return the entries of a log: the items of a list that are lists with items."""
    return [row for row in _list(value) if isinstance(row, list) and row]


def _picked(values: dict[Any, Any], *names: str) -> Record:
    return {name: values[name] for name in names if name in values}


# -- texts of Dask's objects -------------------------------------------------------------


def _tasks(server: Record) -> dict[str, Record]:
    """Return the tasks of a scheduler or worker by key, which are lists as text in a dump."""
    return {
        _key(_mapping(it).get("key", name)): _mapping(it)
        for name, it in _mapping(server, "tasks").items()
    }


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
    key: str = found["key"]
    return str(_literal(key)) if key[:1] in "'\"" else key


def _literal(text: str) -> Any:
    """Return the value of a Python literal, or another text as it is."""
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(text)
    return text


def _worker_of(shown: Any) -> str | None:
    """Return the address in the repr of a worker."""
    found = _WORKER.match(str(shown))
    return found["worker"] if found else None


def _leaves(settings: dict[Any, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the settings with their full names."""
    for name, value in settings.items():
        inner = (*path, str(name))
        # A dict without items is a value; a limit, because YAML can refer to itself.
        if isinstance(value, dict) and value and len(path) < 20:
            yield from _leaves(value, inner)
        else:
            yield ".".join(inner), value


if __name__ == "__main__":
    main()
