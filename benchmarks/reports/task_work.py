"""What tasks do inside: compile, import, load, loop, log, print, pickle, read."""

from __future__ import annotations

import gc
import http.server
import importlib
import io
import logging
import pickle
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from distributed import get_worker
from situation import Run, clocked, reported


def smooth(number: int) -> float:
    # As a function that a notebook defines, or that a class makes for each object.
    import numba

    @numba.njit
    def kernel(values: np.ndarray) -> float:
        total = 0.0
        for place in range(1, len(values) - 1):
            total += (values[place - 1] + values[place] + values[place + 1]) / 3
        return total

    values = np.arange(100_000.0) + number
    with clocked():
        kernel(values[:3])
    return kernel(values)


@reported(
    "https://github.com/holoviz/datashader/issues/684",
    "inside-tasks",
    entities="smooth",
    words="JIT|compil once|cache|module",
    also="first-tasks",
)
def jit_in_tasks(run: Run) -> None:
    """Each task compiles its function with numba again."""
    with run.recorded(
        prepare=lambda client: client.run(importlib.import_module, "numba")
    ) as client:
        client.gather(client.map(smooth, range(20)))


def write_package(folder: Path) -> None:
    """Write a package whose import takes some seconds, as on a shared file system."""
    (folder / "corrections").mkdir()
    (folder / "corrections" / "__init__.py").write_text(
        "".join(f"from corrections import part{part}\n" for part in range(60))
    )
    lines = "".join(
        f"def f{name}(x):\n    return [x + {name} for _ in range(3)]\n" for name in range(400)
    )
    for part in range(60):
        (folder / "corrections" / f"part{part}.py").write_text(lines)


def apply_corrections(number: int, folder: str) -> list:
    if folder not in sys.path:
        sys.path.insert(0, folder)
    with clocked():
        import corrections
    time.sleep(0.1)
    return corrections.part0.f0(number)


@reported(
    "https://github.com/LiberTEM/LiberTEM/issues/218",
    "inside-tasks",
    entities="apply_corrections",
    words="import",
    also="first-tasks slow-worker long-tail",
)
def imports_in_tasks(run: Run) -> None:
    """The first task of each process imports a package of 60 modules."""
    write_package(run.scratch)
    with run.recorded() as client:
        client.gather(client.map(apply_corrections, range(30), folder=str(run.scratch)))


def classify(number: int, path: str) -> int:
    with clocked(), Path(path).open("rb") as file:
        model = pickle.load(file)
    time.sleep(0.02)
    return model[number]["weight"]


@reported(
    "https://github.com/borglab/gtsfm/issues/110",
    "inside-tasks",
    entities="classify",
    words="pickl|load once|worker|per.process|cache",
)
def model_in_tasks(run: Run) -> None:
    """Each task loads a pickled model of 200,000 nodes before it applies it."""
    path = run.scratch / "model.pickle"
    nodes = [
        {"weight": number, "left": number - 1, "right": f"node {number}"}
        for number in range(200_000)
    ]
    path.write_bytes(pickle.dumps(nodes))
    with run.recorded() as client:
        client.gather(client.map(classify, range(24), path=str(path)))


def select(number: int) -> float:
    momenta = np.random.default_rng(number).gamma(2.0, 30.0, 400_000)
    total = 0.0
    with clocked():
        for momentum in momenta:
            if momentum > 25.0 and momentum < 500.0:
                total += momentum
    return total


@reported(
    "https://github.com/dask/dask/issues/5994",
    "inside-tasks",
    entities="select",
    words="Python.loop|loops? numpy|vector|array|numba|column",
)
def loop_over_events(run: Run) -> None:
    """Tasks loop over the events of an array in Python."""
    with run.recorded() as client:
        client.gather(client.map(select, range(40)))


def convert(number: int) -> int:
    with clocked():
        done = subprocess.run(
            [sys.executable, "-c", f"import json, decimal; print({number})"],
            capture_output=True,
            check=True,
        )
    return int(done.stdout)


@reported(
    "https://github.com/pangeo-data/pangeo/issues/194",
    "inside-tasks",
    entities="convert",
    words="subprocess|program|process(es)?.that",
    also="starved-host",
)
def subprocess_in_tasks(run: Run) -> None:
    """Each task starts a program and waits for it."""
    with run.recorded() as client:
        client.gather(client.map(convert, range(60)))


def filter_rows(number: int) -> int:
    logger = logging.getLogger("analysis")
    logger.handlers = [logging.StreamHandler(io.StringIO())]
    logger.setLevel(logging.DEBUG)
    with clocked():
        for row in range(12_000):
            logger.debug("row %d of part %d is selected", row, number)
    time.sleep(0.05)
    return number


@reported(
    "https://github.com/dask/distributed/pull/5217",
    "inside-tasks",
    entities="filter_rows",
    words="logging|printing",
)
def logging_in_tasks(run: Run) -> None:
    """Tasks log a line for each row, at level DEBUG."""
    with run.recorded() as client:
        client.gather(client.map(filter_rows, range(40)))


def simulate(number: int) -> int:
    worker = get_worker()
    with clocked():
        for event in range(500):
            worker.log_event("progress", {"part": number, "event": event})
    return number


@reported(
    "https://github.com/dask/distributed/issues/5776",
    "event-flood",
    words="log_event|events|logging topic",
    also="blocked-event-loop scheduler-saturated",
)
def event_flood(run: Run) -> None:
    """Tasks send 500 events each to the scheduler, 20,000 in all."""
    with run.recorded() as client:
        client.gather(client.map(simulate, range(40)))


class Track:
    """An object that is slow to pickle, as it has many small parts."""

    def __init__(self, number: int) -> None:
        self.points = [{"x": float(place), "label": f"{number}:{place}"} for place in range(60)]


def find_tracks(number: int) -> bytes:
    tracks = [Track(number + event) for event in range(600)]
    with clocked():
        return pickle.dumps(tracks, protocol=0)


def count_tracks(parts: list[bytes]) -> int:
    return sum(map(len, parts))


@reported(
    "https://github.com/gem/oq-engine/issues/4274",
    "inside-tasks transfers",
    entities="find_tracks",
    words="pickl|serializ array|smaller|numpy|columns",
)
def pickling_in_tasks(run: Run) -> None:
    """Tasks pickle lists of many small objects before they return them."""
    with run.recorded() as client:
        client.submit(count_tracks, client.map(find_tracks, range(30))).result()


@contextmanager
def slow_server(delay: float) -> Iterator[str]:
    """Serve 64 kB at any path on the loopback, after a delay; yield the address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(delay)
            self.send_response(200)
            self.send_header("Content-Length", "65536")
            self.end_headers()
            self.wfile.write(bytes(65536))

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def read_csv(number: int, address: str) -> int:
    total = 0
    with clocked():
        for block in range(5):
            with urllib.request.urlopen(f"{address}/{number}/{block}") as answer:
                total += len(answer.read())
    return total


@reported(
    "https://github.com/coiled/benchmarks/issues/1125",
    "inside-tasks slow-storage",
    entities="read_csv",
    words="network|storage|socket threads|requests|larger|nearer|local|workers",
)
def slow_network(run: Run) -> None:
    """Tasks read blocks of 64 kB from a server that takes 80 ms for each request."""
    with slow_server(0.08) as address, run.recorded() as client:
        client.gather(client.map(read_csv, range(40), address=address))


KEPT: list[dict] = []


def parse_events(number: int) -> int:
    if not KEPT:
        KEPT.extend({"id": n, "tags": [n, str(n)]} for n in range(600_000))
    rows = []
    for n in range(60_000):
        rows.append({"n": n, "parts": [n, (number,)]})
        if n % 20_000 == 0:
            with clocked():
                gc.collect()  # as libraries do to keep memory low
    return len(rows)


@reported(
    "https://github.com/dask/distributed/issues/2801",
    "inside-tasks",
    entities="parse_events",
    words="garbage fewer.Python.objects|gc.freeze",
    also="blocked-event-loop gil",
)
def collected_garbage(run: Run) -> None:
    """Workers keep many Python objects, and tasks call the garbage collector."""
    with run.recorded() as client:
        client.gather(client.map(parse_events, range(20)))
