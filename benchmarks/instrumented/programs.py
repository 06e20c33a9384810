"""Small programs, and what may and what must not be stated about each of them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import BaseSchema
from distributed import (
    Client,
    Event,
    LocalCluster,
    Lock,
    Queue,
    Reschedule,
    Semaphore,
    as_completed,
    get_client,
    get_worker,
    rejoin,
    secede,
    span,
    wait,
    worker_client,
)  # fmt: skip
from instruments import measured


@dataclass
class Lab:
    """A running cluster, and what the program expects of the statements about it."""

    client: Client
    cluster: LocalCluster
    folder: Path
    #: Futures that are kept until the end.
    held: list[Any] = field(default_factory=list)
    #: Idle or busy seconds of threads by use of core time: at least, at most.
    uses: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """A program of the campaign.

    Parameters
    ----------
    names : str
        IDs of findings, of which one must be there; if none is given, and the program is
        healthy, no finding may be major.
    entity : str
        Part of the entity of that finding.
    may, never, says : tuple of str
        Regular expressions: those of :data:`RARE` that a statement may match, further ones that
        none may match, and those that one must match.
    is_measured : bool
        Whether the instruments measure all tasks, so that compute seconds can be compared.
    """

    name: str
    run: Callable[[Lab], Any]
    workers: int = 2
    threads: int = 1
    names: str = ""
    entity: str = ""
    may: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    is_measured: bool = True
    is_healthy: bool = True
    memory: str = "1GB"
    resources: dict[str, float] | None = None


#: Statements that are true of few programs.
GIL = r"hold(s)? the GIL"
CHUNKS = r"chunks? of (about )?[\d,]+ events|smaller chunks"
CLIENT = r"Workers that waited for the client"
LOST = r"[Ww]orkers? (was|were) (lost|killed)"
RARE = (GIL, CHUNKS, CLIENT, LOST)


# Small functions are close together, and the table has its own line breaks.
# fmt: off
@measured
def nap(seconds: float, *_: Any) -> float:
    time.sleep(seconds)
    return seconds

@measured
def compute(seconds: float, *_: Any) -> float:
    until = time.thread_time() + seconds
    number = 0
    while time.thread_time() < until:
        number += sum(range(1000))
    return float(number)

@measured
def add(left: Any, right: Any) -> Any:
    time.sleep(0.05)
    return left + right

def each(function: Callable[..., Any], *arguments: Any) -> Callable[[Lab], Any]:
    """Return a program that maps a function and waits for the results."""
    return lambda lab: lab.client.gather(lab.client.map(function, *arguments, pure=False))

def naps(lab: Lab, number: int = 24, seconds: float = 0.1, **options: Any) -> list[Any]:
    return lab.client.map(nap, [seconds] * number, pure=False, **options)

def array(_: Lab) -> None:
    import dask.array as da

    x = da.random.random((3000, 3000), chunks=(500, 500))
    (x + x.T).mean(axis=0).compute()

def shuffle(_: Lab) -> None:
    import dask.datasets

    frame = dask.datasets.timeseries(end="2000-01-08", freq="10s", seed=1)
    frame.shuffle("name", shuffle_method="p2p").map_partitions(len).compute()

def delayed_tree(_: Lab) -> None:
    import dask

    level = [dask.delayed(nap, pure=False)(0.1) for _ in range(32)]
    while len(level) > 1:
        level = [
            dask.delayed(add, pure=False)(*level[n : n + 2]) for n in range(0, len(level), 2)
        ]
    level[0].compute()

@measured
def spawn_and_wait(number: int) -> float:
    client = get_client()
    secede()
    futures = client.map(nap, [0.2] * 4, key=[f"inner-{number}-{n}" for n in range(4)])
    return sum(client.gather(futures))

@measured
def with_client(_: int) -> float:
    with worker_client() as client:
        return sum(client.gather(client.map(nap, [0.2] * 4, pure=False)))

class Actor:
    @measured
    def work(self, seconds: float) -> float:
        time.sleep(seconds)
        return seconds

def actors(lab: Lab) -> None:
    actor = lab.client.submit(Actor, actor=True).result()
    lab.client.gather(naps(lab, 8))
    actor.work(4.0).result()
    lab.client.gather(naps(lab, 8))

@measured
def fail_at_first(path: str, seconds: float) -> float:
    time.sleep(seconds)
    if not Path(path).exists():
        Path(path).touch()
        raise ValueError("not yet")
    return seconds

def retried(lab: Lab) -> None:
    paths = [str(lab.folder / f"tried-{n}") for n in range(8)]
    lab.client.gather(lab.client.map(fail_at_first, paths, [0.4] * 8, retries=2))

@measured
def die_at_first(path: str) -> float:
    time.sleep(1.5)
    if not Path(path).exists():
        Path(path).touch()
        os._exit(1)
    return 1.0

def worker_dies(lab: Lab) -> None:
    futures = naps(lab, 20, 0.2)
    lab.client.gather([lab.client.submit(die_at_first, str(lab.folder / "died")), *futures])

def restart(lab: Lab) -> None:
    lab.held = naps(lab, 4, 20.0)
    time.sleep(2)
    lab.client.restart(wait_for_workers=True)
    lab.client.gather(naps(lab, 16))

def scatter(lab: Lab) -> None:
    data = lab.client.scatter([np.ones(2_000_000) for _ in range(8)])
    lab.client.gather(lab.client.map(nap, [0.2] * 8, data, pure=False))

def scaled_up_late(lab: Lab) -> None:
    futures = naps(lab, 90)
    time.sleep(3)
    lab.cluster.scale(4)
    lab.client.gather(futures)

def cancelled(lab: Lab) -> None:
    futures = naps(lab, 40, 0.5)
    time.sleep(2.2)
    lab.client.cancel(futures)
    lab.client.gather(naps(lab, 10))

@measured
def locked(name: str) -> None:
    with Lock(name):
        time.sleep(0.15)

@measured
def produce(name: str, number: int) -> int:
    queue = Queue(name)
    for item in range(number):
        time.sleep(0.1)
        queue.put(item)
    return number

@measured
def consume(name: str, number: int) -> int:
    queue = Queue(name)
    return sum(queue.get() for _ in range(number))

def queue(lab: Lab) -> None:
    made = lab.client.submit(produce, "items", 25)
    lab.client.gather([lab.client.submit(consume, "items", 25), made])

@measured
def hash_small(seconds: float, _: int) -> str:
    digest, until = hashlib.sha256(), time.perf_counter() + seconds
    while time.perf_counter() < until:
        for _ in range(500):
            digest.update(b"0123456789abcdef")
    return digest.hexdigest()

@measured
def sort(seed: int) -> float:
    return float(np.sort(np.random.default_rng(seed).random(3_000_000))[0])

@measured
def allocate(seed: int, megabytes: int) -> np.ndarray:
    time.sleep(0.1)
    return np.random.default_rng(seed).random(megabytes * 131_072)

def spill(lab: Lab) -> None:
    data = lab.client.map(allocate, range(24), megabytes=40)
    wait(data)
    lab.client.gather(lab.client.map(np.sum, data))

class Jets(processor.ProcessorABC):
    """Sleep for each chunk, longer for some files."""

    def __init__(self, slow: str = "", wrong: str = "") -> None:
        self.slow, self.wrong = slow, wrong

    @measured
    def process(self, events: ak.Array) -> dict[str, float]:
        name = events.metadata["filename"]
        time.sleep(1.0 if self.slow and self.slow in name else 0.12)
        if self.wrong:
            raise KeyError(self.wrong)
        return {"pt": float(ak.sum(events.Jet_pt)), "events": len(events)}

    def postprocess(self, accumulator: dict[str, float]) -> dict[str, float]:
        return accumulator

def coffea(lab: Lab, jets: Jets, tree: str = "Events") -> None:
    fileset: dict[str, list[str]] = {"DY": [], "TT": []}
    for number in range(8):
        path = lab.folder / f"{number}.root"
        random = np.random.default_rng(number)
        counts = random.poisson(2.0, 4_000)
        with uproot.recreate(path) as file:
            columns = ak.unflatten(random.exponential(30.0, counts.sum()), counts)
            file.mktree("Events", {"Jet": "var * {pt: float64}"}).extend(
                {"Jet": ak.zip({"pt": columns})}
            )
        fileset["DY" if number % 2 else "TT"].append(str(path))
    runner = processor.Runner(
        executor=processor.DaskExecutor(client=lab.client, status=False, retries=0),
        schema=BaseSchema, chunksize=1_000, metadata_cache={},
    )  # fmt: skip
    # Some programs are meant to fail.
    with contextlib.suppress(Exception):
        runner(fileset, treename=tree, processor_instance=jets)

def two_clients(lab: Lab) -> None:
    with Client(lab.cluster.scheduler_address, set_as_default=False) as other:
        futures = other.map(nap, [0.1] * 20, pure=False)
        lab.client.gather(naps(lab, 20))
        other.gather(futures)

def idle_client(lab: Lab) -> None:
    for _ in range(2):
        lab.client.gather(naps(lab, 16))
        time.sleep(2.5)
    lab.client.gather(naps(lab, 16))
    lab.uses["between graphs"] = (2 * 2 * 2.5 - 0.3, 2 * 2 * 2.5 + 3.0)

def client_prepares(lab: Lab) -> None:
    time.sleep(3)
    lab.client.gather(naps(lab, 24))
    lab.uses["before first graph"] = (2 * 3.0 - 0.3, 2 * 3.0 + 3.0)

def unfinished(lab: Lab) -> None:
    lab.client.gather(naps(lab, 16))
    lab.held = naps(lab, 1, 60.0)
    time.sleep(4)

@measured
def elsewhere(path: str, number: int) -> int:
    time.sleep(0.1)
    if number % 4 == 0 and not Path(f"{path}-{number}").exists():
        Path(f"{path}-{number}").touch()
        raise Reschedule
    return number

def rescheduled(lab: Lab) -> None:
    path = str(lab.folder / "seen")
    lab.client.gather(lab.client.map(elsewhere, [path] * 24, range(24)))

def streaming(lab: Lab) -> None:
    done, left = as_completed(naps(lab, 6, 0.15)), 30
    for _ in done:
        if left:
            left -= 1
            done.add(lab.client.submit(nap, 0.15, pure=False))

@measured
def wait_for_event(name: str) -> None:
    Event(name).wait()

def event(lab: Lab) -> None:
    waiting = lab.client.map(wait_for_event, ["go"] * 2, pure=False)
    time.sleep(3)
    Event("go").set()
    lab.client.gather(waiting)

def retired(lab: Lab) -> None:
    futures = naps(lab, 60)
    time.sleep(1)
    lab.client.retire_workers([next(iter(lab.client.scheduler_info()["workers"]))])
    lab.client.gather(futures)

def large_arguments(_: Lab) -> None:
    import dask

    table = np.random.default_rng(1).random(400_000).tobytes()
    calls = [dask.delayed(len, pure=False)(table + bytes(n)) for n in range(40)]
    dask.compute(*calls)

def chain(lab: Lab) -> None:
    future = lab.client.submit(nap, 0.2, pure=False)
    for _ in range(20):
        future = lab.client.submit(nap, 0.2, future, pure=False)
    future.result()

@measured
def external(seconds: float, _: int) -> int:
    return subprocess.run(["sleep", str(seconds)], check=True).returncode

def pinned(lab: Lab) -> None:
    first = next(iter(lab.client.scheduler_info()["workers"]))
    lab.client.gather(naps(lab, 40, 0.15, workers=[first]))

def one_by_one(lab: Lab) -> None:
    for _ in range(25):
        lab.client.submit(nap, 0.15, pure=False).result()

@measured
def import_missing(_: int) -> None:
    time.sleep(0.1)
    import btag_tables_of_nobody  # noqa: F401

def missing_module(lab: Lab) -> None:
    wait(lab.client.map(import_missing, range(16)))

@measured
def fail_on_one(_: int) -> int:
    time.sleep(0.15)
    if get_worker().name == 1:
        raise OSError("no such mount")
    return 1

def fails_on_one(lab: Lab) -> None:
    wait(lab.client.map(fail_on_one, range(45)))

def groupby(_: Lab) -> None:
    import dask.datasets

    frame = dask.datasets.timeseries(end="2000-01-06", freq="20s", seed=1)
    frame.groupby("name").x.mean().compute()

def bag(_: Lab) -> None:
    import dask.bag

    numbers = dask.bag.from_sequence(range(400_000), npartitions=16)
    numbers.map(lambda n: n % 97).frequencies().compute()

def replicated(lab: Lab) -> None:
    parts = lab.client.map(allocate, range(4), megabytes=8)
    wait(parts)
    lab.client.replicate(parts)
    lab.client.gather(lab.client.map(nap, [0.2] * 16, parts * 4, pure=False))

@measured
def load(number: int) -> int:
    time.sleep(0.3)
    return number

def computed_again(_: Lab) -> None:
    import dask

    inputs = [dask.delayed(load)(n, dask_key_name=f"load-{n}") for n in range(10)]
    for reduce in (sum, max, min):
        dask.delayed(reduce)(inputs).compute()

def unplaceable(lab: Lab) -> None:
    lab.client.gather(naps(lab, 16))
    lab.held = naps(lab, 4, 0.1, resources={"GPU": 1})
    time.sleep(4)

@measured
def leave_and_return(seconds: float, _: int) -> float:
    secede()
    time.sleep(seconds)
    rejoin()
    return seconds

def in_spans(lab: Lab) -> None:
    for name in ("skim", "fit"):
        with span(name):
            futures = naps(lab, 20)
        lab.client.gather(futures)

@measured
def leased(name: str) -> None:
    with Semaphore(max_leases=2, name=name):
        time.sleep(0.15)

@measured
def on_one(seconds: float, _: int) -> float:
    time.sleep(seconds * (4 if get_worker().name == 1 else 1))
    return seconds
PROGRAMS = {program.name: program for program in (
    Program("plain_futures", each(nap, [0.1] * 40)),
    Program("array", array, is_measured=False, is_healthy=False, may=(CLIENT,)),
    Program("shuffle", shuffle, is_measured=False, is_healthy=False, may=(GIL, CLIENT),
            never=("split_every", r"2\d\d %")),
    Program("delayed_tree", delayed_tree, is_healthy=False, may=(CLIENT,)),
    Program("nested_futures", each(spawn_and_wait, range(6)), is_measured=False,
            is_healthy=False, may=(GIL, CLIENT, LOST),
            never=(r"[2-9]\d\d %", r"\d of up to 2 threads computed")),
    Program("client_of_worker", each(with_client, range(6)), is_measured=False,
            is_healthy=False, may=(GIL, CLIENT, LOST), never=(r"[2-9]\d\d %",)),
    Program("actors", actors, is_measured=False, is_healthy=False, may=(GIL, CHUNKS, LOST),
            never=(r"had nothing to do for [3-9]",)),
    Program("retried", retried, names="retries", entity="ValueError", may=(CLIENT,)),
    Program("worker_dies", worker_dies, names="killed-workers", is_measured=False,
            may=(GIL, LOST)),
    Program("restart", restart, is_measured=False, is_healthy=False, may=(GIL, CLIENT, LOST),
            never=(r"0\.0 s of running attempts were lost",)),
    Program("scatter", scatter, is_healthy=False, may=(CLIENT,)),
    Program("scaled_up_late", scaled_up_late, workers=1, names="late-workers",
            may=(GIL, CLIENT)),
    Program("resources",
            lambda lab: lab.client.gather(naps(lab, 24, 0.2, resources={"SLOT": 1})),
            resources={"SLOT": 1}, threads=4, workers=1,
            names="scarce-resources idle-threads low-parallelism", may=(LOST,)),
    Program("priorities",
            lambda lab: wait(naps(lab, 20, priority=-1) + naps(lab, 20, priority=5))),
    Program("cancelled", cancelled, is_measured=False, is_healthy=False, may=(CLIENT,)),
    Program("lock", each(locked, ["only"] * 20), threads=2, is_healthy=False,
            may=(CLIENT, LOST)),
    Program("queue", queue, is_healthy=False, may=(LOST,)),
    Program("sleeping_threads", each(nap, [0.15] * 64), workers=1, threads=4),
    Program("hashing_small_buffers", each(hash_small, [0.6] * 24, range(24)), workers=1,
            threads=4, names="gil", may=(GIL,)),
    Program("numpy_sort", each(sort, range(16)), is_healthy=False, may=(GIL,)),
    Program("spill", spill, memory="400MB", names="spilling unmanaged-memory paused-workers",
            is_measured=False, may=(LOST,)),
    Program("datasets", lambda lab: coffea(lab, Jets()), is_measured=False, is_healthy=False,
            may=(CHUNKS, CLIENT), never=(r"expensive-dataset.*(major|moderate)",)),
    Program("slow_file", lambda lab: coffea(lab, Jets(slow="3.root")), names="slow-file",
            entity="3.root", is_measured=False, may=(CHUNKS, CLIENT)),
    Program("exception_everywhere", lambda lab: coffea(lab, Jets(wrong="no_such_branch")),
            says=("KeyError",), is_measured=False, is_healthy=False, may=(CHUNKS, CLIENT),
            never=(r"Find the cause in \S+\.root", "is probably damaged")),
    Program("wrong_tree", lambda lab: coffea(lab, Jets(), tree="NoSuchTree"), is_measured=False,
            is_healthy=False, may=(CHUNKS, CLIENT), never=("is probably damaged",)),
    Program("two_clients", two_clients),
    Program("idle_client", idle_client, names="client-gaps", may=(CLIENT,)),
    Program("client_prepares", client_prepares, is_healthy=False, may=(CLIENT,)),
    Program("unfinished", unfinished, says=("not ended|had not ended|unfinished",),
            is_measured=False, is_healthy=False, may=(CLIENT,)),
    Program("rescheduled", rescheduled, is_measured=False, is_healthy=False, may=(CLIENT,),
            never=("attempt cancelled",)),
    Program("long_task_last",
            lambda lab: lab.client.gather([*naps(lab, 24), *naps(lab, 1, 3.0, priority=-5)]),
            names="long-tail low-parallelism"),
    Program("short_tasks", each(nap, [0.0] * 2500),
            names="short-tasks scheduler-saturated", is_measured=False, may=(GIL,)),
    Program("streaming", streaming),
    Program("event", event, is_healthy=False, may=(LOST,)),
    Program("retired", retired, workers=3, is_healthy=False, may=(GIL,),
            never=(r"look for memory, a crash",)),
    Program("large_arguments", large_arguments,
            names="large-graph scheduler-saturated transfers", is_measured=False,
            may=(CLIENT,)),
    Program("chain", chain, names="low-parallelism excess-workers idle-threads"),
    Program("subprocesses", each(external, [0.15] * 32, range(32))),
    Program("slow_worker", each(on_one, [0.15] * 60, range(60)), names="slow-worker slow-host",
            entity="1"),
    Program("pinned", pinned, workers=3, names="restricted-tasks"),
    Program("one_by_one", one_by_one, names="client-gaps excess-workers low-parallelism",
            may=(CLIENT,)),
    # Dask's times of failed attempts include the pickling of the error.
    Program("missing_module", missing_module, names="retries", entity="ModuleNotFoundError",
            says=("Install btag_tables_of_nobody",), is_measured=False, may=(CLIENT,)),
    Program("fails_on_one", fails_on_one, workers=3, names="retries", entity="OSError",
            says=(r"were on worker 1\b",), is_measured=False, may=(CLIENT,)),
    Program("groupby", groupby, is_measured=False, is_healthy=False, may=(GIL, CLIENT)),
    Program("bag", bag, is_measured=False, is_healthy=False, may=(GIL, CLIENT)),
    Program("replicated", replicated, is_healthy=False, may=(CLIENT,)),
    Program("computed_again", computed_again, names="recomputed-keys", is_measured=False,
            may=(CLIENT,)),
    Program("unplaceable", unplaceable, names="unplaceable-tasks", may=(CLIENT,)),
    Program("leave_and_return", each(leave_and_return, [0.4] * 12, range(12)),
            is_measured=False, is_healthy=False, may=(LOST, CLIENT),
            never=(r"[2-9]\d\d %",)),
    Program("in_spans", in_spans, may=(CLIENT,)),
    Program("semaphore", each(leased, ["pair"] * 24), threads=2, is_healthy=False,
            may=(CLIENT, LOST)),
    Program("computing", each(compute, [0.15] * 24, range(24)), is_healthy=False, may=(GIL,)),
)}
# fmt: on
