"""Compare the view ``busy_time`` with clocks inside of tasks, on programs whose split is known.

    python busy_time.py [NAME …] [--folder FOLDER] [--repeat N]

Each program runs on a LocalCluster with two worker processes and Dask's default profiler, in a
process of its own. Its tasks measure wall and CPU time of each kind of work with clocks. The
target of a wait is its wall time, that of work its CPU time; the rest of the wall time of work
is the target of ``runnable but not on the CPU``. Marked with (wall), the rest is added to the
kind of the work. The exit code is 1 if a share of the compute time differs by more than five
points in each of N repetitions.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

POINTS: Final = 5.0

RUNNABLE: Final = "runnable but not on the CPU"

#: A loop of Python also calls compiled functions, and these can have waited.
MERGED: Final = {
    "own code": "own code and loops",
    "Python loops": "own code and loops",
    "not on the CPU": RUNNABLE,
}


class Clock:
    """Wall and CPU time by kind of work."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = defaultdict(float)
        self.cpu: dict[str, float] = defaultdict(float)
        self._began = time.perf_counter()

    @contextmanager
    def measure(self, kind: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            self.wall[kind] += time.perf_counter() - wall
            self.cpu[kind] += time.thread_time() - cpu

    def result(self) -> tuple[float, dict[str, float], dict[str, float]]:
        return time.perf_counter() - self._began, dict(self.wall), dict(self.cpu)


def loop(seconds: float) -> int:
    """Compute in Python for some CPU time."""
    end, total = time.thread_time() + seconds, 0
    while time.thread_time() < end:
        for number in range(20_000):
            total += number * number
    return total


# Each task imports what it needs, since it is pickled with its module.


def sleeping(number: int, folder: str) -> Any:
    clock = Clock()
    with clock.measure("sleeping"):
        time.sleep(0.3)
    with clock.measure("Python loops"):
        loop(0.15)
    return clock.result()


def thread_lock(number: int, folder: str) -> Any:
    import threading

    clock, lock = Clock(), threading.Lock()
    lock.acquire()
    threading.Timer(0.3, lock.release).start()
    with clock.measure("lock"), lock:
        pass
    with clock.measure("Python loops"):
        loop(0.15)
    return clock.result()


def distributed_lock(number: int, folder: str) -> Any:
    from distributed import Lock

    clock, lock = Clock(), Lock("the only one")
    with clock.measure("lock"):
        lock.acquire()
    with clock.measure("sleeping"):
        time.sleep(0.25)
    with clock.measure("lock"):
        lock.release()
    return clock.result()


def inner(number: int) -> None:
    time.sleep(0.3)


def nested(number: int, folder: str) -> Any:
    from distributed import get_client

    clock, place = Clock(), (Path(folder) / "inner").read_text()
    with clock.measure("another task"):
        get_client().submit(inner, number, workers=[place], pure=False).result()
    with clock.measure("Python loops"):
        loop(0.15)
    return clock.result()


def subprocesses(number: int, folder: str) -> Any:
    import subprocess

    clock = Clock()
    with clock.measure("subprocess"):
        subprocess.run(["sleep", "0.3"], check=True)
    with clock.measure("Python loops"):
        loop(0.15)
    return clock.result()


def zlib_blocks(number: int, folder: str) -> Any:
    import zlib

    clock, block = Clock(), (Path(folder) / "zlib").read_bytes()
    with clock.measure("decompressing"):
        for _ in range(25):
            zlib.decompress(block)
    with clock.measure("sleeping"):
        time.sleep(0.15)
    return clock.result()


def lz4_frames(number: int, folder: str) -> Any:
    clock, block = Clock(), (Path(folder) / "lz4").read_bytes()
    with clock.measure("imports"):
        import lz4.frame
    with clock.measure("decompressing"):
        for _ in range(25):
            lz4.frame.decompress(block)
    with clock.measure("sleeping"):
        time.sleep(0.2)
    return clock.result()


def gzip_file(number: int, folder: str) -> Any:
    import gzip

    clock = Clock()
    with clock.measure("decompressing"):
        for _ in range(12):
            with gzip.open(Path(folder) / "gzip") as file:
                file.read()
    with clock.measure("sleeping"):
        time.sleep(0.15)
    return clock.result()


def numpy_kernels(number: int, folder: str) -> Any:
    clock = Clock()
    with clock.measure("imports"):
        import numpy as np
    with clock.measure("array kernels"):
        values = np.random.default_rng(number).random(2_000_000)
        for _ in range(12):
            np.sort(values)
            values = np.sqrt(values + 1) * 0.5
    with clock.measure("Python loops"):
        loop(0.2)
    return clock.result()


def python_loop(number: int, folder: str) -> Any:
    clock = Clock()
    with clock.measure("Python loops"):
        total = 0
        for value in range(4_000_000):
            total += value * value
    with clock.measure("sleeping"):
        time.sleep(0.1)
    return clock.result()


def numba_compile(number: int, folder: str) -> Any:
    clock = Clock()
    with clock.measure("imports"):
        import numba

    def function(values: Any) -> float:
        total = 0.0
        for value in values:
            total += value * number
        return total

    with clock.measure("JIT compilation"):
        numba.njit(function)((1.0, 2.0))
    with clock.measure("sleeping"):
        time.sleep(0.3)
    return clock.result()


def import_modules(number: int, folder: str) -> Any:
    import importlib
    import sys

    clock = Clock()
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    with clock.measure("imports"):
        for part in range(12):
            importlib.import_module(f"generated_{number * 12 + part}")
    with clock.measure("sleeping"):
        time.sleep(0.2)
    return clock.result()


def pickles(number: int, folder: str) -> Any:
    import pickle

    clock = Clock()
    content = [{"name": str(value), "values": list(range(10))} for value in range(300)]
    with clock.measure("pickling"):
        for _ in range(1200):
            pickle.dumps(content)
    with clock.measure("sleeping"):
        time.sleep(0.2)
    return clock.result()


def fifo(number: int, folder: str) -> Any:
    import subprocess

    clock, path = Clock(), str(Path(folder) / f"fifo-{number}")
    os.mkfifo(path)
    with clock.measure("other"):
        writer = subprocess.Popen(["sh", "-c", f"exec > {path}; echo a; sleep 0.3; echo b"])
    with clock.measure("local files"), open(path, "rb") as file:  # noqa: PTH123
        file.read()
    with clock.measure("subprocess"):
        writer.wait()
    with clock.measure("Python loops"):
        loop(0.15)
    return clock.result()


def http(number: int, folder: str) -> Any:
    import urllib.request

    clock = Clock()
    port = (Path(folder) / "port").read_text()
    with (
        clock.measure("network or storage"),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/{number}") as answer,
    ):
        answer.read()
    with clock.measure("Python loops"):
        loop(0.15)
    return clock.result()


def log_lines(number: int, folder: str) -> Any:
    clock = Clock()
    logger = logging.getLogger(f"busy.{number}")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.FileHandler(Path(folder) / f"log-{number}"))
    with clock.measure("logging and printing"):
        for line in range(6000):
            logger.info("line %d of %s", line, "the log")
    with clock.measure("sleeping"):
        time.sleep(0.2)
    return clock.result()


def dataframes(number: int, folder: str) -> Any:
    clock = Clock()
    with clock.measure("imports"):
        import numpy as np
        import pandas as pd
    random = np.random.default_rng(number)
    frame = pd.DataFrame(
        {"key": random.integers(0, 1000, 200_000), "x": random.random(200_000)}
    )
    with clock.measure("dataframes"):
        for _ in range(15):
            frame.groupby("key").agg({"x": ["mean", "max"]}).sort_values(("x", "max"))
    with clock.measure("sleeping"):
        time.sleep(0.15)
    return clock.result()


def mixed(number: int, folder: str) -> Any:
    clock, block = Clock(), (Path(folder) / "zlib").read_bytes()
    with clock.measure("imports"):
        import zlib

        import numpy as np
    with clock.measure("sleeping"):
        time.sleep(0.1)
    with clock.measure("decompressing"):
        for _ in range(8):
            zlib.decompress(block)
    with clock.measure("array kernels"):
        values = np.random.default_rng(number).random(1_000_000)
        for _ in range(3):
            np.sort(values)
    with clock.measure("Python loops"):
        loop(0.1)
    return clock.result()


def holds_the_gil(number: int, folder: str) -> Any:
    clock = Clock()
    with clock.measure("own code"):
        sum(range(40_000_000))
    with clock.measure("sleeping"):
        time.sleep(0.3)
    return clock.result()


# ruff: noqa: ARG001 - all programs have the same parameters

#: Number of tasks of each program.
PROGRAMS: Final[dict[Callable[[int, str], Any], int]] = {
    sleeping: 16,
    thread_lock: 16,
    distributed_lock: 16,
    nested: 14,
    subprocesses: 16,
    zlib_blocks: 16,
    lz4_frames: 16,
    gzip_file: 16,
    numpy_kernels: 10,
    python_loop: 14,
    numba_compile: 10,
    import_modules: 12,
    pickles: 12,
    fifo: 16,
    http: 16,
    log_lines: 12,
    dataframes: 10,
    mixed: 16,
    holds_the_gil: 6,
}


BY_NAME: Final = {program.__name__: program for program in PROGRAMS}


def prepare(folder: Path) -> None:
    """Write the files that tasks read, and start a slow HTTP server."""
    import gzip
    import random
    import threading
    import zlib
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    import lz4.frame

    content = b"".join(b"%d,%d;" % (random.getrandbits(20), i) for i in range(300_000))
    (folder / "zlib").write_bytes(zlib.compress(content))
    (folder / "lz4").write_bytes(lz4.frame.compress(content * 3))
    (folder / "gzip").write_bytes(gzip.compress(content))
    lines = "".join(
        f"def f{n}(a, b=[{n}, {{'x': ({n}, 'y')}}]):\n    return [a + i for i in b if i]\n\n"
        for n in range(250)
    )
    for number in range(200):
        (folder / f"generated_{number}.py").write_text(lines)

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "3000")
            self.end_headers()
            for _ in range(3):
                time.sleep(0.1)
                self.wfile.write(b"x" * 1000)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (folder / "port").write_text(str(server.server_port))


def record(name: str, folder: Path) -> None:
    """Run and record a program; write the seconds that its clocks measured."""
    from distributed import Client, LocalCluster

    import roast_recorder

    program = BY_NAME[name]
    prepare(folder)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        workers = list(client.scheduler_info()["workers"])
        if program is nested:
            # The inner tasks run on a worker of their own.
            cluster.scale(3)
            client.wait_for_workers(3)
            [last] = set(client.scheduler_info(n_workers=-1)["workers"]) - set(workers)
            (folder / "inner").write_text(last)
        with roast_recorder.record(client, folder / "trace.jsonl"):
            futures = [
                client.submit(
                    program, number, str(folder), workers=workers, key=f"work-{number}"
                )
                for number in range(PROGRAMS[program])
            ]
            results = client.gather(futures)
    walls, cpus, whole = defaultdict(float), defaultdict(float), 0.0
    for total, wall, cpu in results:
        whole += total
        for kind in wall:
            walls[kind] += wall[kind]
            cpus[kind] += cpu[kind]
    (folder / "clocks.json").write_text(json.dumps([whole, walls, cpus]))


#: Kinds in which no work is done, so that their wall time is the target.
WAITS: Final = (
    "sleeping", "lock", "another task", "subprocess", "local files", "network or storage",
)  # fmt: skip


def compare(folder: Path) -> list[tuple[str, float, float]]:
    """Return kind, measured and stated share (%) of the compute time of a program.

    A share of wall time includes that in which work of the kind was not on the CPU.
    """
    import roast_analyze

    _, walls, cpus = json.loads((folder / "clocks.json").read_text())
    with roast_analyze.Trace(folder / "trace.jsonl") as trace:
        [(compute,)] = trace.rows(
            "SELECT sum(seconds) FROM core_time WHERE prefix = 'work' AND use = 'kept result'"
        )
        stated = trace.rows(
            "SELECT kind, detail, sum(seconds) FROM busy_time "
            "WHERE prefix = 'work' GROUP BY ALL"
        )
    targets: dict[str, float] = defaultdict(float)
    for kind, wall in walls.items():
        busy = wall if kind in WAITS else min(cpus[kind], wall)
        targets[MERGED.get(kind, kind)] += busy
        targets[RUNNABLE] += wall - busy
        targets[f"{MERGED.get(kind, kind)} (wall)"] += wall
    results: dict[str, float] = defaultdict(float)
    for kind, detail, seconds in stated:
        results[MERGED.get(kind, kind)] += seconds
        # What was not on the CPU has its kind, or is own code.
        work = detail if kind == RUNNABLE else "own code" if kind == "not on the CPU" else kind
        results[f"{MERGED.get(work, work)} (wall)"] += seconds
    total = sum(seconds for *_, seconds in stated)
    assert abs(total - compute) < 1e-6, (total, compute)
    return [
        (kind, 100 * targets[kind] / compute, 100 * results[kind] / compute)
        for kind in sorted({*targets, *results}, key=lambda kind: ("(" in kind, -targets[kind]))
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--record", metavar="NAME", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="roast-busy-time-"))
    if arguments.record:
        record(arguments.record, folder)
        return 0
    failed = []
    print(f"{'program':18}{'kind':34}{'target (%)':>12}{'busy_time (%)':>15}{'difference':>12}")
    for name in arguments.names or BY_NAME:
        for repetition in range(arguments.repeat):
            own = folder / f"{name}-{repetition}"
            own.mkdir(parents=True)
            subprocess.run(
                [sys.executable, __file__, "--record", name, "--folder", str(own)],
                check=True, timeout=300,
            )  # fmt: skip
            found = compare(own)
            for kind, target, result in found:
                if max(target, result) >= 0.5:
                    mark = " *" if abs(result - target) > POINTS else ""
                    numbers = f"{target:12.1f}{result:15.1f}{result - target:+12.1f}"
                    print(f"{name:18}{kind:34}{numbers}{mark}")
            if all(abs(result - target) <= POINTS for _, target, result in found):
                break
        else:
            failed.append(name)
        sys.stdout.flush()
    print(f"{', '.join(failed)}: wrong" if failed else "all within five points")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
