"""Fault injection: ``make campaign``.

Processes are killed at random times, and targets fill up, become read-only or are slow. The
transitions in the trace are compared with those that ``transition_log.py`` logs on the
scheduler. The tables are written to standard output. The exit code is 1 if a case failed; the
files of failed cases are kept.

Cases with disks mount file systems, which requires root on Linux.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from distributed import Client

import roast_analyze
import transition_log
from doomed_processes import (
    Cluster,
    RecordedClient,
    cluster,
    recorded_client,
    wait_until_gone,
    writing_process,
)
from transition_log import Transition

if TYPE_CHECKING:
    import psutil

#: The recorder's default, and the time to pull and write a batch on a busy machine.
FLUSH_INTERVAL_SECONDS = 0.5
MARGIN_SECONDS = 0.5

#: Time range of a kill after the first task.
KILL_AFTER_SECONDS = (0.5, 4.0)

#: A writing process without a client tries to reach the scheduler for 25 s.
WRITER_TIMEOUT_SECONDS = 45.0

#: Traces by number of the case: two files, and a folder of segments.
TRACES = ("trace.jsonl", "trace.jsonl.zst", "trace/")

#: Killed clients per cluster.
CLIENTS_PER_CLUSTER = 10

#: Small enough that the disk is full within a run.
DISK_BYTES = 2**20
SLOW_BYTES_PER_SECOND = 10**6
#: Largest median slowdown of a run whose recording has a faulty target.
MOST_SLOWDOWN = 0.05

#: Stopping a recording gives up after 30 s.
STOP_LIMIT_SECONDS = 45.0

STALLED = "a target accepts no more data"


# -- results ---------------------------------------------------------------------------------


@dataclass
class Case:
    """A case, and its results.

    Parameters
    ----------
    group : str
        Row of the table.
    name : str
    folder : Path
        Folder of its files.
    """

    group: str
    name: str
    folder: Path
    #: Failed expectations.
    wrong: list[str] = field(default_factory=list)
    #: Number of transitions in the log, and of those missing in the trace.
    logged: int = 0
    missing: int = 0
    #: Time from the oldest missing transition to the kill; 0 if none is missing.
    age_seconds: float = 0.0
    #: Whether the trace has a final trailer.
    has_trailer: bool = False
    #: Whether the writing process can have been killed during an append.
    may_be_torn: bool = False
    plainly_readable: bool = True
    slowdown: float | None = None
    dropped: int = 0
    stop_seconds: float = 0.0

    def expect(self, holds: bool, otherwise: str) -> None:
        """Record a failure unless a condition holds."""
        if not holds:
            self.wrong.append(otherwise)


def segments_of(trace: Path) -> list[str]:
    """List the files of a trace."""
    return [str(path) for path in sorted(trace.iterdir())] if trace.is_dir() else [str(trace)]


def read_plainly(trace: Path) -> tuple[int, list[Transition]]:
    """Return the number of records and the transitions, read with DuckDB only."""
    files = segments_of(trace)
    [[records]] = duckdb.execute("SELECT count(*) FROM read_json(?)", [files]).fetchall()
    fields = ("kind", *Transition._fields)
    rows = duckdb.execute(
        "SELECT * EXCLUDE kind FROM read_json(?, format='newline_delimited', columns=?) "
        "WHERE kind = 'transition'",
        [files, dict.fromkeys(fields, "VARCHAR")],
    ).fetchall()
    return records, [Transition(*row) for row in rows]


def read_trace(case: Case, trace: Path) -> list[Transition]:
    """Read a trace with and without roast_analyze; return its transitions."""
    fields = ", ".join(Transition._fields)
    with roast_analyze.Trace(trace) as opened:
        [[records]] = opened.sql("SELECT sum(records) FROM trace_info").fetchall()
        rows = opened.sql(f"SELECT {fields} FROM raw.transition ORDER BY rowid").fetchall()
        [[trailers]] = opened.sql(
            "SELECT count(*) FROM raw.trailer WHERE reason <> 'rotated'"
        ).fetchall()
    case.has_trailer = bool(trailers)
    transitions = [Transition(*row) for row in rows]
    try:
        plain_records, plain_transitions = read_plainly(trace)
    except duckdb.Error as error:
        case.plainly_readable = False
        case.expect(case.may_be_torn, f"DuckDB alone cannot read it: {error}")
    else:
        case.expect(
            (plain_records, plain_transitions) == (records, transitions),
            f"DuckDB alone reads {plain_records} records, roast_analyze {records}",
        )
    return transitions


def compare(case: Case, recorded: list[Transition], log: list[Any], kill_t: float) -> None:
    """Compare the transitions in the trace with those in the log."""
    happened = [transition for _, transition in log]
    case.logged = len(log)
    missing = Counter(happened) - Counter(recorded)
    case.missing = missing.total()
    extra = Counter(recorded) - Counter(happened)
    case.expect(not extra, f"{extra.total()} transitions are not in the log: {list(extra)[:2]}")
    if missing:
        oldest_t = next(t for t, transition in log if transition in missing)
        case.age_seconds = max(kill_t - oldest_t, 0.0)
    case.expect(
        bool(extra) or recorded == happened[: len(recorded)],
        "the trace is not the beginning of the log: it has a hole or another order",
    )


def expect_recent(case: Case) -> None:
    """Expect that missing transitions are not older than a flush interval."""
    limit = FLUSH_INTERVAL_SECONDS + MARGIN_SECONDS
    case.expect(
        case.age_seconds <= limit,
        f"{case.missing} are missing, from {case.age_seconds:.2f} s before the kill on",
    )


def expect_unclean_end(case: Case, trace: Path) -> None:
    """Expect that ``check`` reports that the recording did not end cleanly."""
    command = [sys.executable, "-m", "roast_analyze", "check", str(trace)]
    done = subprocess.run(command, capture_output=True, text=True)
    said = " ".join(done.stdout.split())
    case.expect(done.returncode == 1, f"`roast-analyze check` exits with {done.returncode}")
    case.expect(
        "did not end cleanly" in said, f"`roast-analyze check` prints {said!r} {done.stderr!r}"
    )


def leftovers(dask_scheduler: Any) -> list[str]:
    """Return the recorder's plugins, handlers and asyncio tasks on a scheduler."""
    import asyncio

    handlers = {**dask_scheduler.handlers, **dask_scheduler.stream_handlers}
    tasks = (task.get_coro() for task in asyncio.all_tasks())
    return [
        *(str(name) for name in dask_scheduler.plugins if "roast" in str(name)),
        *(name for name in handlers if "roast" in name),
        *(name for name, call in handlers.items() if hasattr(call, "roast_listeners")),
        *(name for task in tasks if "Recorder" in (name := getattr(task, "__qualname__", ""))),
    ]


# -- killing ---------------------------------------------------------------------------------


def scheduler_killed_under_client(case: Case, chance: random.Random, trace_name: str) -> None:
    """Kill a scheduler that a client records."""
    trace = case.folder / trace_name
    with cluster(case.folder / "cluster") as own, recorded_client(own) as client:
        start = own.log_nbytes()
        client.ask("record", path=str(case.folder / trace_name))
        writer = writing_process(client.process)
        _work_for_a_while(client, chance)
        kill_t = _kill(own.scheduler)
        client.receive()
        client.ask("stop")
        case.expect(wait_until_gone(writer, 15), "the writing process stays")
        check_after_kill(case, trace, own, start, kill_t)


def scheduler_killed_with_preload(case: Case, chance: random.Random) -> None:
    """Kill a scheduler that records itself."""
    traces = case.folder / "traces"
    with (
        cluster(case.folder / "cluster", traces=traces) as own,
        recorded_client(own) as client,
    ):
        writer = writing_process(own.scheduler)
        _work_for_a_while(client, chance)
        kill_t = _kill(own.scheduler)
        case.expect(wait_until_gone(writer, 15), "the writing process stays")
        [trace] = traces.iterdir()
        check_after_kill(case, trace, own, 0, kill_t)


def everything_killed(case: Case, chance: random.Random, trace_name: str) -> None:
    """Kill client, writing process and scheduler at once."""
    with cluster(case.folder / "cluster") as own, recorded_client(own) as client:
        start = own.log_nbytes()
        client.ask("record", path=str(case.folder / trace_name))
        victims = [client.process, writing_process(client.process), own.scheduler]
        _work_for_a_while(client, chance)
        kill_t = _kill(*chance.sample(victims, 3))
        check_after_kill(case, case.folder / trace_name, own, start, kill_t)


def client_killed(case: Case, chance: random.Random, on: Cluster, trace_name: str) -> None:
    """Kill the recording client; its writing process fetches the remaining batches."""
    with recorded_client(on) as client:
        start = on.log_nbytes()
        client.ask("record", path=str(case.folder / trace_name))
        writer = writing_process(client.process)
        _work_for_a_while(client, chance)
        kill_t = _kill(client.process)
        case.expect(wait_until_gone(writer, WRITER_TIMEOUT_SECONDS), "the writer stays")
    recorded = read_trace(case, case.folder / trace_name)
    on.log_nbytes()
    before = [row for row in transition_log.read(on.log, start) if row[0] <= kill_t]
    # Transitions caused by the loss of the client may be in the trace or not. They cannot be
    # equal to earlier ones, because a stimulus id contains its time.
    after = {row[1] for row in transition_log.read(on.log, start) if row[0] > kill_t}
    until_death = [transition for transition in recorded if transition not in after]
    compare(case, until_death, before, kill_t)
    expect_recent(case)
    case.expect(case.has_trailer, "no trailer")
    case.expect(not case.missing, f"{case.missing} transitions are missing")
    with Client(on.address, set_as_default=False) as visitor:
        left = visitor.run_on_scheduler(leftovers)
    case.expect(not left, f"the scheduler still has {left}")


def writer_killed(
    case: Case, chance: random.Random, on: Cluster, client: RecordedClient, trace_name: str
) -> None:
    """Kill the writing process; the recording continues and ends in order."""
    start = on.log_nbytes()
    client.ask("record", path=str(case.folder / trace_name))
    writer = writing_process(client.process)
    seconds = _work_for_a_while(client, chance, rest_seconds=1.0)
    kill_t = _kill(writer)
    time.sleep(seconds)
    case.expect(client.receive()["right"], "the results are wrong")
    stop = on.log_nbytes()
    said = client.ask("stop")
    case.expect(said["in_order"], "the recording did not end cleanly")
    case.expect(not said["dropped_by_kind"], f"dropped: {said['dropped_by_kind']}")
    recorded = read_trace(case, case.folder / trace_name)
    compare(case, recorded, transition_log.read(on.log, start), kill_t)
    case.expect(stop == on.log_nbytes(), "transitions were logged after the end")
    case.expect(case.has_trailer, "no trailer")
    case.expect(not case.missing, f"{case.missing} transitions are missing")


def _work_for_a_while(
    client: RecordedClient, chance: random.Random, rest_seconds: float | None = None
) -> float:
    """Start computing on a client, and return after a random time."""
    seconds = chance.uniform(*KILL_AFTER_SECONDS)
    rest = 60.0 if rest_seconds is None else rest_seconds
    client.send("small_tasks", seconds=seconds + rest)
    client.receive()
    time.sleep(seconds)
    return rest


def _kill(*processes: psutil.Process) -> float:
    """Kill processes; return the time before."""
    t = time.time()
    for process in processes:
        process.kill()
    return t


def check_after_kill(case: Case, trace: Path, on: Cluster, start: int, kill_t: float) -> None:
    wait_until_gone(on.scheduler, 10)
    recorded = read_trace(case, trace)
    compare(case, recorded, transition_log.read(on.log, start), kill_t)
    expect_recent(case)
    case.expect(not case.has_trailer, "the trace has a trailer")
    expect_unclean_end(case, trace)


# -- faulty targets ------------------------------------------------------------------------


@contextmanager
def full_disk(folder: Path) -> Iterator[Path]:
    """Mount a disk of 1 MiB."""
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs"):
        yield folder / "trace.jsonl"


@contextmanager
def read_only_folder(folder: Path, *, seconds: float | None) -> Iterator[Path]:
    """Create a folder that becomes read-only after 2 s, permanently or for some seconds.

    A file system with a file that is open for writing cannot be remounted read-only, even by
    root. A read-only bind mount on top of it affects the next segment.
    """
    trace = folder / "trace"
    trace.mkdir()
    stopped = threading.Event()

    def turn() -> None:
        if stopped.wait(2.0):
            return
        with _mounted(trace, "--bind", str(trace)):
            _mount("-o", "remount,bind,ro", str(trace))
            stopped.wait(seconds)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield trace
    finally:
        stopped.set()
        thread.join()


@contextmanager
def slow_reader(folder: Path) -> Iterator[Path]:
    """Create a FIFO that is read at 1 MB/s, into ``read.jsonl``."""
    pipe = folder / "trace.jsonl"
    os.mkfifo(pipe)

    def read() -> None:
        with pipe.open("rb", buffering=0) as source, (folder / "read.jsonl").open("wb") as file:
            while piece := source.read(2**15):
                file.write(piece)
                time.sleep(len(piece) / SLOW_BYTES_PER_SECOND)

    # The thread ends when the last writing process has closed the pipe.
    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    yield pipe
    thread.join(WRITER_TIMEOUT_SECONDS)


@contextmanager
def stalled_reader(folder: Path) -> Iterator[Path]:
    """Create a FIFO that is never read, like a network disk whose server is down."""
    pipe = folder / "trace.jsonl"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield pipe
    finally:
        os.close(reader)


@contextmanager
def _mounted(target: Path, *arguments: str) -> Iterator[None]:
    _mount(*arguments, str(target))
    try:
        yield
    finally:
        # The writing process may still have its file open.
        for _ in range(50):
            if (
                subprocess.run(["umount", str(target)], stderr=subprocess.DEVNULL).returncode
                == 0
            ):
                break
            time.sleep(0.1)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


@dataclass(frozen=True)
class Trouble:
    """A faulty target and the recording to it.

    Parameters
    ----------
    target : callable
        Returns a context manager of the trace's path, given a folder.
    settings : dict
    key_bytes : int
        Length of the keys, which determine the size of the trace.
    read : str
        Name of the file or folder with the written records.
    has_trailer : bool
        Whether a trailer can be written in the end.
    """

    target: Callable[[Path], Any]
    settings: dict[str, Any]
    key_bytes: int
    read: str
    has_trailer: bool


# The last limit is less than the compressed batches of a quick run, even on a slow machine.
TROUBLES = {
    "a disk of 1 MiB fills": Trouble(full_disk, {}, 96, "trace.jsonl", has_trailer=True),
    "a folder becomes read-only": Trouble(
        functools.partial(read_only_folder, seconds=None),
        {"segment_limit_bytes": 20_000},
        96,
        "trace",
        has_trailer=False,
    ),
    "a folder is read-only for 2 s": Trouble(
        functools.partial(read_only_folder, seconds=2.0),
        {"segment_limit_bytes": 20_000},
        96,
        "trace",
        has_trailer=True,
    ),
    "a target accepts 1 MB/s": Trouble(
        slow_reader, {"buffer_limit_bytes": 2**18}, 800, "read.jsonl", has_trailer=True
    ),
}


def troubled_pair(
    case: Case,
    trouble: Trouble,
    on: Cluster,
    client: RecordedClient,
    work: dict[str, Any],
    *,
    recorded_first: bool,
) -> None:
    """Run the same tasks with and without recording to a faulty target."""
    work = {**work, "key_bytes": trouble.key_bytes}
    wall_seconds = {}
    for recorded in (recorded_first, not recorded_first):
        on.log_nbytes()
        if recorded:
            done = _recorded_run(case, trouble, on, client, work)
        else:
            done = client.ask("run", **work)
        case.expect(done["right"], f"the results are wrong (recorded: {recorded})")
        wall_seconds[recorded] = done["wall_seconds"]
    case.slowdown = wall_seconds[True] / wall_seconds[False] - 1


def target_stalls(case: Case, on: Cluster, client: RecordedClient, tasks: int) -> None:
    """Record to a target that accepts no more data; stopping must not wait for it."""
    with stalled_reader(case.folder) as trace:
        client.ask("record", path=str(trace))
        done = client.ask("run", tasks=tasks, task_seconds=0.02, key_bytes=96)
        case.expect(done["right"], "the results are wrong")
        case.logged = len(transition_log.read(on.log))
        client.send("stop")
        case.stop_seconds = STOP_LIMIT_SECONDS
        case.stop_seconds = client.receive(STOP_LIMIT_SECONDS)["stop_seconds"]


def _recorded_run(
    case: Case, trouble: Trouble, on: Cluster, client: RecordedClient, work: dict[str, Any]
) -> dict[str, Any]:
    start = on.log_nbytes()
    with trouble.target(case.folder) as trace:
        client.ask("record", path=str(trace), **trouble.settings)
        writer = writing_process(client.process)
        done = client.ask("run", **work)
        on.log_nbytes()
        said = client.ask("stop")
        case.stop_seconds = said["stop_seconds"]
        case.expect(wait_until_gone(writer, WRITER_TIMEOUT_SECONDS), "the writer stays")
        happened = len(transition_log.read(on.log, start))
        # A disk must be read before it is unmounted, a pipe's output after the pipe is closed.
        if trouble.read != "read.jsonl":
            check_losses(case, case.folder / trouble.read, trouble, said, happened)
    if trouble.read == "read.jsonl":
        check_losses(case, case.folder / trouble.read, trouble, said, happened)
    return done


def check_losses(
    case: Case, trace: Path, trouble: Trouble, said: dict[str, Any], happened: int
) -> None:
    recorded = len(read_trace(case, trace))
    case.logged = happened
    case.missing = happened - recorded
    case.dropped = said["dropped_by_kind"].get("transition", 0)
    case.expect(case.dropped > 0, "nothing was dropped: the target was not faulty")
    case.expect(
        happened == recorded + case.dropped,
        f"{happened} are in the log, {recorded} in the trace, and {case.dropped} were dropped",
    )
    in_records = dict(
        duckdb.execute(
            "SELECT record_kind, sum(records)::BIGINT FROM read_json(?, "
            "format='newline_delimited', columns={kind: 'VARCHAR', record_kind: 'VARCHAR', "
            "records: 'BIGINT'}) WHERE kind = 'loss' GROUP BY ALL",
            [segments_of(trace)],
        ).fetchall()
    )
    [[in_trailers]] = duckdb.execute(
        "SELECT sum(dropped_by_kind.transition)::BIGINT FROM read_json(?, "
        "format='newline_delimited', columns={kind: 'VARCHAR', "
        "dropped_by_kind: 'STRUCT(transition BIGINT)'}) WHERE kind = 'trailer'",
        [segments_of(trace)],
    ).fetchall()
    if trouble.has_trailer:
        case.expect(case.has_trailer, "no trailer")
        case.expect(
            in_trailers == case.dropped,
            f"trailers count {in_trailers} dropped transitions, the recorder {case.dropped}",
        )
        case.expect(
            in_records == said["dropped_by_kind"],
            f"the trace counts losses {in_records}, the recorder {said['dropped_by_kind']}",
        )


# -- campaign --------------------------------------------------------------------------------


class Campaign:
    """Runs cases and keeps their results."""

    def __init__(self, root: Path, seed: int) -> None:
        self.cases: list[Case] = []
        self._root = root
        self._seed = seed

    @contextmanager
    def case(self, group: str, variant: str = "") -> Iterator[tuple[Case, random.Random]]:
        """Record exceptions as failures; remove the files of a case that passed."""
        number = len(self.cases) + 1
        folder = self._root / f"case-{number:03d}"
        folder.mkdir()
        case = Case(group, f"case {number}: {group}{variant and f' ({variant})'}", folder)
        self.cases.append(case)
        try:
            # Seeded by number, so that a case can be repeated without the previous ones.
            yield case, random.Random(f"{self._seed}-{number}")
        except Exception as error:  # noqa: BLE001 - the other cases still run
            case.wrong.append(f"{type(error).__name__}: {error}")
        if not case.wrong:
            shutil.rmtree(folder, ignore_errors=True)
        print(_line(case), file=sys.stderr, flush=True)

    def kill_schedulers(self, times: int) -> None:
        """Kill schedulers, half of them recorded by a client, half by their own preload."""
        for number in range(times):
            name = TRACES[number // 2 % len(TRACES)]
            if number % 2:
                with self.case("the scheduler, recorded by its preload") as (case, chance):
                    scheduler_killed_with_preload(case, chance)
            else:
                with self.case("the scheduler, recorded by a client", name) as (case, chance):
                    scheduler_killed_under_client(case, chance, name)

    def kill_clients(self, times: int) -> None:
        """Kill clients that record, several on each cluster."""
        for first in range(0, times, CLIENTS_PER_CLUSTER):
            with cluster(self._root / f"cluster-of-clients-{first}") as on:
                for number in range(first, min(first + CLIENTS_PER_CLUSTER, times)):
                    name = TRACES[number % len(TRACES)]
                    with self.case("the client that records", name) as (case, chance):
                        client_killed(case, chance, on, name)

    def kill_writers(self, times: int) -> None:
        """Kill the writing processes of one client."""
        if not times:
            return
        with cluster(self._root / "cluster-of-writers") as on, recorded_client(on) as client:
            for number in range(times):
                name = TRACES[number % len(TRACES)]
                with self.case("the writing process", name) as (case, chance):
                    writer_killed(case, chance, on, client, name)

    def kill_everything(self, times: int) -> None:
        """Kill client, writing process and scheduler at once."""
        for number in range(times):
            name = TRACES[number % len(TRACES)]
            group = "client, writing process and scheduler at once"
            with self.case(group, name) as (case, chance):
                case.may_be_torn = True
                everything_killed(case, chance, name)

    def trouble_targets(self, pairs: int, tasks: int) -> None:
        """Record to each faulty target, on a cluster that is not fully loaded."""
        folder = self._root / "cluster-of-targets"
        work = {"tasks": tasks, "task_seconds": 0.02}
        with cluster(folder, threads=4) as on, recorded_client(on) as client:
            client.ask("run", tasks=200, task_seconds=0.01, key_bytes=96)
            for name, trouble in TROUBLES.items():
                for pair in range(pairs):
                    with self.case(name) as (case, _):
                        troubled_pair(
                            case, trouble, on, client, work, recorded_first=bool(pair % 2)
                        )

    def stall_target(self, tasks: int) -> None:
        """Record to a stalled target, on a separate cluster because its client may hang."""
        with (
            cluster(self._root / "cluster-of-the-stalled", threads=4) as on,
            recorded_client(on) as client,
            self.case(STALLED) as (case, _),
        ):
            target_stalls(case, on, client, tasks)


def _line(case: Case) -> str:
    verdict = "FAILED: " + "; ".join(case.wrong) if case.wrong else "passed"
    figures = [f"{case.logged} transitions, {case.missing} missing"]
    if case.age_seconds:
        figures.append(f"oldest {case.age_seconds:.2f} s before the kill")
    if case.slowdown is not None:
        figures.append(f"{case.dropped} dropped, {100 * case.slowdown:+.1f} % wall time")
    if case.stop_seconds:
        figures.append(f"stopped in {case.stop_seconds:.1f} s")
    return f"{case.name}: {', '.join(figures)}: {verdict}"


# -- tables ----------------------------------------------------------------------------------


KILLED_HEADER = """\
| killed process | cases | passed | complete | with trailer | readable by DuckDB alone | \
age of the oldest missing transition at the kill, median (s) | max (s) |
| --- | --: | --: | --: | --: | --: | --: | --: |"""

TROUBLED_HEADER = """\
| target | runs | passed | transitions | dropped transitions, counted | \
increase of wall time, median (%) | duration of `stop()`, max (s) |
| --- | --: | --: | --: | --: | --: | --: |"""


def print_tables(cases: list[Case]) -> None:
    """Print the tables of docs/explanation/costs.md."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    targets = {*TROUBLES, STALLED}
    killed = {name: group for name, group in groups.items() if name not in targets}
    troubled = {name: group for name, group in groups.items() if name in targets}
    if killed:
        print(KILLED_HEADER)
        for name, group in killed.items():
            ages = [case.age_seconds for case in group]
            cells = [
                name,
                str(len(group)),
                str(sum(not case.wrong for case in group)),
                str(sum(not case.missing for case in group)),
                str(sum(case.has_trailer for case in group)),
                str(sum(case.plainly_readable for case in group)),
                f"{statistics.median(ages):.2f}",
                f"{max(ages):.2f}",
            ]
            print(f"| {' | '.join(cells)} |")
        print()
    if troubled:
        print(TROUBLED_HEADER)
        for name, group in troubled.items():
            cells = [
                name,
                str(len(group)),
                str(sum(not case.wrong for case in group)),
                f"{sum(case.logged for case in group):,}",
                f"{sum(case.dropped for case in group):,}" if name in TROUBLES else "–",
                f"{100 * _median_slowdown(group):+.1f}" if name in TROUBLES else "–",
                f"{max(case.stop_seconds for case in group):.1f}",
            ]
            print(f"| {' | '.join(cells)} |")


def _median_slowdown(group: list[Case]) -> float:
    found = [case.slowdown for case in group if case.slowdown is not None]
    return statistics.median(found) if found else float("nan")


def wrong_cases(cases: list[Case]) -> list[str]:
    """Return the failures as lines of text."""
    found = [f"{case.name}: {wrong} [{case.folder}]" for case in cases for wrong in case.wrong]
    for name in TROUBLES:
        group = [case for case in cases if case.group == name]
        if group and not _median_slowdown(group) <= MOST_SLOWDOWN:
            found.append(f"{name}: {100 * _median_slowdown(group):+.1f} % of wall time")
    return found


def can_mount(folder: Path) -> bool:
    """Return whether file systems can be mounted."""
    if os.geteuid() != 0 or sys.platform != "linux":
        return False
    try:
        with full_disk(folder):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0].replace("``", "`"),
        epilog="Exit code 1 if a case failed.",
    )
    parser.add_argument("--scheduler-kills", type=int, default=100, metavar="N")
    parser.add_argument("--client-kills", type=int, default=50, metavar="N")
    parser.add_argument("--writer-kills", type=int, default=25, metavar="N")
    parser.add_argument(
        "--pairs", type=int, default=5, metavar="N", help="pairs of runs for each target"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--quick", action="store_true", help="a few cases of each kind, in two minutes"
    )
    return parser.parse_args()


def main() -> int:
    """Run the campaign and print the tables."""
    arguments = options()
    tasks = 3200
    if arguments.quick:
        tasks = 2000
        (
            arguments.scheduler_kills,
            arguments.client_kills,
            arguments.writer_kills,
            arguments.pairs,
        ) = 4, 3, 3, 1
    root = Path(tempfile.mkdtemp(prefix="roast-campaign-"))
    campaign = Campaign(root, arguments.seed)
    begin = time.monotonic()
    campaign.kill_schedulers(arguments.scheduler_kills)
    campaign.kill_clients(arguments.client_kills)
    campaign.kill_writers(arguments.writer_kills)
    campaign.kill_everything((2 * arguments.writer_kills) // 5)
    if arguments.pairs and can_mount(root):
        campaign.trouble_targets(arguments.pairs, tasks)
    elif arguments.pairs:
        print("faulty targets skipped: mounting needs root on Linux", file=sys.stderr)
    if arguments.pairs and not arguments.quick:
        campaign.stall_target(tasks)
    print(f"{time.monotonic() - begin:.0f} s", file=sys.stderr)
    print_tables(campaign.cases)
    for wrong in (found := wrong_cases(campaign.cases)):
        print(wrong, file=sys.stderr)
    if not found:
        shutil.rmtree(root, ignore_errors=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
