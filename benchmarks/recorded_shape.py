"""Graph, durations and texts of a recorded trace, for synthetic traces.

:func:`read_shape` reads a trace and returns a :class:`Shape`. It contains the graph of the
run, in which the texts of each task have placeholders for everything that differs between
runs. For each key prefix it contains the durations, result sizes, failure rate and profiles of
the tasks. Nothing here is random: values are drawn when a synthetic trace is created.
"""

from __future__ import annotations

import gzip
import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import zstandard

Record = dict[str, Any]

#: Names that are different in every run of Dask and coffea: hashes and UUIDs.
TOKEN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}")

#: Placeholder for a number in a text; JSON never contains this character unescaped.
_HOLE = "\x00"
_SHORTEST_SECONDS = 1e-6


@dataclass(frozen=True)
class LogNormal:
    """A log-normal distribution: mean and standard deviation of the logarithm."""

    mu: float
    sigma: float

    @classmethod
    def fitted(cls, values: Iterable[float], least: float) -> LogNormal:
        """Fit the distribution to positive values; values below `least` count as `least`."""
        logs = [math.log(max(value, least)) for value in values] or [math.log(least)]
        return cls(statistics.fmean(logs), statistics.pstdev(logs))

    @property
    def mean(self) -> float:
        return math.exp(self.mu + self.sigma**2 / 2)


@dataclass(frozen=True)
class Template:
    """JSON text with placeholders for times, and each time as a share of the attempt's."""

    text: str
    shares: tuple[float, ...]

    @classmethod
    def of(cls, value: Any, seconds: float) -> Template:
        """Replace times in `value` (``*seconds``) by placeholders for shares of `seconds`."""
        shares: list[float] = []

        def emptied(part: Any, name: str = "") -> Any:
            if isinstance(part, dict):
                return {name: emptied(inner, name) for name, inner in part.items()}
            if isinstance(part, list):
                return [emptied(inner) for inner in part]
            if name.endswith("seconds"):
                shares.append(part / seconds)
                return _HOLE
            return part

        # Percent signs in the recorded text are not placeholders.
        text = as_json(emptied(value)).replace("%", "%%")
        # orjson escapes _HOLE in this form.
        return cls(text.replace('"\\u0000"', "%r"), tuple(shares))

    def filled(self, seconds: float) -> str:
        """Return the text of an attempt that took `seconds`."""
        return self.text % tuple([share * seconds for share in self.shares])


@dataclass(frozen=True)
class Section:
    """A user-defined section of a chunk; start and stop are shares of the chunk's time."""

    name: str
    start_share: float
    stop_share: float
    measured: Template


@dataclass(frozen=True)
class Chunk:
    """The chunk that a coffea task reads; a metadata read of a file has no entry range."""

    dataset: str
    filename: str
    identity: str  # JSON of the other fields, with tokens
    has_entries: bool
    measured: Template | None
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class TaskShape:
    """A task of the graph: texts with tokens, and the indices of its neighbours."""

    key: str
    prefix: str
    group: str
    dependencies: tuple[int, ...]
    dependents: tuple[int, ...]
    annotations: str | None
    retries: int
    span_id: str
    chunk: Chunk | None


@dataclass(frozen=True)
class ProfileShape:
    """The samples of one cycle of the profiler: a call tree, and the counts of its nodes."""

    tree: str  # JSON of the tree without its slices, without the closing brace
    nodes: str
    counts: tuple[int, ...]
    innermost: tuple[int, ...] | None
    samples: int


@dataclass
class PrefixShape:
    """Distributions and rates of the tasks of a prefix."""

    seconds: LogNormal
    nbytes: LogNormal
    typenames: list[str]
    cpu_share: float
    failing_share: float
    rescheduled_share: float
    waits_in_queue: bool
    profiles: list[ProfileShape] = field(default_factory=list)


@dataclass(frozen=True)
class Failure:
    """Exception and traceback of a failed task, as JSON."""

    exception: str
    traceback: str


@dataclass(frozen=True)
class Shape:
    """The properties of a recorded run that synthetic runs share.

    Attributes
    ----------
    header, worker : dict
        Recorded header and ``worker_added``; fields that differ between runs are replaced.
    preamble : list of dict
        Records of the environment and of the client.
    spans : list of dict
    tasks : tuple of TaskShape
        In topological order: dependencies come first.
    prefixes : dict of str to PrefixShape
    transfer_seconds, disk_seconds, deserialize_seconds : LogNormal
        Durations of one such phase of an attempt.
    disk_share : float
        Share of the attempts that read from disk.
    failures : list of Failure
    samples : list of dict
        Metrics of the ``worker_sample`` records.
    """

    header: Record
    worker: Record
    preamble: list[Record]
    spans: list[Record]
    tasks: tuple[TaskShape, ...]
    prefixes: dict[str, PrefixShape]
    transfer_seconds: LogNormal
    disk_seconds: LogNormal
    deserialize_seconds: LogNormal
    disk_share: float
    failures: list[Failure]
    samples: list[Record]

    @property
    def mean_seconds(self) -> float:
        """Mean computing time of a task."""
        return statistics.fmean(self.prefixes[task.prefix].seconds.mean for task in self.tasks)


def read_shape(path: Path) -> Shape:
    """Read a recorded trace (one file) and return its shape.

    Raises
    ------
    ValueError
        If the trace contains no completed task.
    """
    by_kind: defaultdict[str, list[Record]] = defaultdict(list)
    for record in read_records(path):
        by_kind[record["kind"]].append(record)
    ended = {move["key"] for move in by_kind["transition"] if move["finish"] == "memory"}
    if not ended:
        raise ValueError(f"no task was computed in {str(path)!r}; name a run of tasks")
    parts = _parts(by_kind["transition"])
    return Shape(
        header=by_kind["header"][0],
        worker=by_kind["worker_added"][0],
        preamble=[*by_kind["environment"], *by_kind["client_added"]],
        spans=by_kind["span"],
        tasks=tuple(_tasks(by_kind)),
        prefixes=_prefixes(by_kind),
        transfer_seconds=LogNormal.fitted(parts["transfer"] or [0.005], _SHORTEST_SECONDS),
        disk_seconds=LogNormal.fitted(parts["disk-read"] or [0.02], _SHORTEST_SECONDS),
        deserialize_seconds=LogNormal.fitted(parts["deserialize"] or [0.01, 0.03], 0.01),
        disk_share=max(len(parts["disk-read"]) / len(ended), 0.001),
        failures=_failures(by_kind["transition"]),
        samples=[sample["metrics"] for sample in by_kind["worker_sample"]],
    )


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a trace file."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
        data = reader.read()
    elif path.suffix == ".gz":
        data = gzip.decompress(data)
    for line in data.splitlines():
        yield orjson.loads(line)


def as_json(value: Any) -> str:
    """Encode a value as JSON, as the recorder does."""
    return orjson.dumps(value).decode()


def _parts(transitions: list[Record]) -> defaultdict[str, list[float]]:
    """Return the durations of the phases of all attempts, by action."""
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for move in transitions:
        for part in move.get("startstops", ()):
            seconds[part["action"]].append(part["stop"] - part["start"])
    return seconds


def _tasks(by_kind: dict[str, list[Record]]) -> Iterator[TaskShape]:
    tasks = {task["key"]: task for task in by_kind["task"]}
    chunks = _chunks(by_kind)
    order = _in_dependency_order(tasks)
    places = {key: place for place, key in enumerate(order)}
    dependents: defaultdict[str, list[int]] = defaultdict(list)
    for key in order:
        for dependency in tasks[key]["dependencies"]:
            if dependency in places:
                dependents[dependency].append(places[key])
    for key in order:
        task = tasks[key]
        annotations = task.get("annotations")
        yield TaskShape(
            key=key,
            prefix=task["prefix"],
            group=task["group"],
            dependencies=tuple(
                places[dependency]
                for dependency in task["dependencies"]
                if dependency in places
            ),
            dependents=tuple(dependents[key]),
            annotations=None if annotations is None else as_json(annotations),
            retries=int((annotations or {}).get("retries") or 0),
            span_id=task["span_id"],
            chunk=chunks.get(key),
        )


def _in_dependency_order(tasks: dict[str, Record]) -> list[str]:
    """Sort keys by Dask's priority, each after its dependencies."""
    order: dict[str, None] = {}

    def add(key: str) -> None:
        for dependency in tasks[key]["dependencies"]:
            if dependency in tasks and dependency not in order:
                add(dependency)
        order[key] = None

    for key in sorted(tasks, key=lambda key: tasks[key]["priority"]):
        if key not in order:
            add(key)
    return list(order)


def _chunks(by_kind: dict[str, list[Record]]) -> dict[str, Chunk]:
    sections: defaultdict[tuple[str, int], list[Record]] = defaultdict(list)
    for section in by_kind["section"]:
        sections[section["key"], section["run_id"]].append(section)
    attempts: dict[str, Record] = {}
    for chunk in by_kind["chunk"]:
        if "run_id" in chunk and "exception" not in chunk:
            attempts[chunk["key"]] = chunk
    chunks = {}
    for chunk in by_kind["chunk"]:
        if "run_id" in chunk:
            continue
        attempt = attempts.get(chunk["key"], {})
        seconds = attempt["stop_t"] - attempt["start_t"] if attempt else 1.0
        found = sections[attempt["key"], attempt["run_id"]] if attempt else []
        apart = ("kind", "t", "key", "dataset", "filename")
        chunks[chunk["key"]] = Chunk(
            dataset=chunk["dataset"],
            filename=chunk["filename"],
            identity=as_json({n: v for n, v in chunk.items() if n not in apart})[1:-1],
            has_entries="entry_start" in chunk,
            measured=Template.of(attempt["measured"], seconds) if attempt else None,
            sections=tuple(
                Section(
                    name=as_json(section["name"]),
                    start_share=(section["start_t"] - attempt["start_t"]) / seconds,
                    stop_share=(section["stop_t"] - attempt["start_t"]) / seconds,
                    measured=Template.of(section["measured"], seconds),
                )
                for section in found
            ),
        )
    return chunks


def _prefixes(by_kind: dict[str, list[Record]]) -> dict[str, PrefixShape]:
    prefix_of = {task["key"]: task["prefix"] for task in by_kind["task"]}
    moves: defaultdict[str, list[Record]] = defaultdict(list)
    for move in by_kind["transition"]:
        moves[prefix_of[move["key"]]].append(move)
    cpu_seconds: Counter[tuple[str, str]] = Counter()
    for metric in by_kind["fine_metric"]:
        if "prefix" in metric:
            cpu_seconds[metric["prefix"], metric["activity"]] += metric["delta"]
    shapes = {}
    for prefix, found in moves.items():
        on_cpu = cpu_seconds.get((prefix, "thread-cpu"))
        off_cpu = cpu_seconds[prefix, "thread-noncpu"]
        tasks = len({move["key"] for move in found})
        ended = [move for move in found if move["start"] == "processing"]
        well = [move for move in ended if "nbytes" in move]
        failed = {move["key"] for move in found if "exception" in move}
        rescheduled = {
            move["key"] for move in ended if move["stimulus_id"].startswith("reschedule")
        }
        shapes[prefix] = PrefixShape(
            seconds=LogNormal.fitted(_parts(well)["compute"], _SHORTEST_SECONDS),
            nbytes=LogNormal.fitted([move["nbytes"] for move in well], 1.0),
            typenames=[as_json(move["typename"]) for move in well] or ['"object"'],
            cpu_share=on_cpu / max(on_cpu + off_cpu, 1e-9) if on_cpu is not None else 0.8,
            failing_share=len(failed) / tasks,
            rescheduled_share=len(rescheduled) / tasks,
            waits_in_queue=any(move["finish"] == "queued" for move in found),
        )
    for profile in by_kind["profile"]:
        if profile.get("prefix") in shapes:
            shapes[profile["prefix"]].profiles.append(_profile(profile["tree"]))
    return shapes


def _profile(tree: Record) -> ProfileShape:
    """Return the profile of the cycle with the most samples."""
    fullest = max(tree["slices"], key=lambda cycle: sum(cycle["counts"]))
    without = {name: value for name, value in tree.items() if name != "slices"}
    innermost = fullest.get("innermost")
    return ProfileShape(
        tree=as_json(without)[:-1],
        nodes=as_json(fullest["nodes"]),
        counts=tuple(fullest["counts"]),
        innermost=None if innermost is None else tuple(innermost),
        samples=max(sum(innermost or fullest["counts"][:1]), 1),
    )


def _failures(transitions: list[Record]) -> list[Failure]:
    found = [
        Failure(as_json(move["exception"]), as_json(move.get("traceback", "")))
        for move in transitions
        if "exception" in move
    ]
    no_text = "OSError(5, 'Input/output error')"
    return found or [Failure(as_json(no_text), as_json('  File "task.py", line 1, in work\n'))]
