"""Work of the client: graphs, large data, and computation between graphs."""

from __future__ import annotations

import time
from pathlib import Path

import dask.array
import numpy as np
from dask import delayed
from distributed import as_completed
from situation import Run, clocked, reported


def load(number: int) -> int:
    with clocked():
        time.sleep(0.35)
    return number


@reported(
    "https://github.com/dask/dask/issues/2614",
    "recomputed-keys",
    entities="load",
    words="persist|together|once",
)
def repeated_inputs(run: Run) -> None:
    """Three computes over the same lazy inputs load them three times."""
    with run.recorded():
        inputs = [delayed(load)(number, dask_key_name=f"load-{number}") for number in range(12)]
        for reduce in (sum, max, min):
            delayed(reduce)(inputs).compute()
        run.true_seconds = 2 * 12 * 0.35


def correct(value: float, factor: float) -> float:
    return value * factor


@reported(
    "https://github.com/dask-contrib/dask-awkward/issues/446",
    "large-graph late-start",
    words="graph",
    also="short-tasks scheduler-saturated",
)
def slow_graph(run: Run) -> None:
    """The client builds a graph of thousands of layers, while the workers wait."""
    with run.recorded() as client:
        begin = time.perf_counter()
        values = [delayed(float)(number) for number in range(100)]
        for layer in range(15):
            values = [delayed(correct)(value, 1.0 + layer) for value in values]
            # Each collection describes itself, as that of an array does.
            time.sleep(0.3)
        total = delayed(sum)(values)
        run.true_seconds = time.perf_counter() - begin
        client.compute(total, sync=True)


@reported(
    "https://github.com/dask/dask/issues/3514",
    "short-tasks large-graph scheduler-saturated",
    words="chunk|larger|fewer.tasks|blocks",
    also="short-tasks large-graph scheduler-saturated transfers",
)
def small_array_chunks(run: Run) -> None:
    """An array of 8 MB has 1,600 chunks, so that nearly all time is spent on the graph."""
    with run.recorded() as client:
        values = dask.array.ones((1000, 1000), chunks=25)
        client.compute((values + values.T).sum(), sync=True)


def simulate(number: int) -> np.ndarray:
    time.sleep(0.2)
    return np.full(1000, number)


@reported(
    "https://github.com/dask/distributed/issues/7066",
    "client-gaps",
    words="client|between.graphs",
    also="low-parallelism",
)
def client_between(run: Run) -> None:
    """The client fits a model for a second between graphs, while all workers are idle."""
    with run.recorded() as client:
        run.true_seconds = 0.0
        for first in range(0, 40, 8):
            parts = client.gather(client.map(simulate, range(first, first + 8)))
            begin = time.perf_counter()
            while time.perf_counter() - begin < 1.2:
                np.linalg.svd(np.resize(parts[0], (200, 200)))
            run.true_seconds += time.perf_counter() - begin


def predict(number: int, model: np.ndarray) -> float:
    time.sleep(0.05)
    return float(model[number])


@reported(
    "https://github.com/asapdiscovery/asapdiscovery/issues/364",
    "large-graph",
    words="MB|MiB scatter|load|file",
    also="scheduler-saturated blocked-event-loop transfers spilling",
)
def model_in_arguments(run: Run) -> None:
    """A model of 8 MB is an argument of each of 40 calls, and is sent with each of them."""
    with run.recorded() as client:
        model = np.random.default_rng(0).random(1_000_000)
        client.gather([client.submit(predict, number, model + number) for number in range(40)])


def histogram(part: np.ndarray) -> int:
    time.sleep(0.1)
    return int(part[0])


@reported(
    "https://github.com/dask/dask/issues/5768",
    "large-graph late-start client-gaps transfers",
    words="scatter|sen[dt]|data load|read|workers",
    also="transfers spilling",
)
def large_scatter(run: Run) -> None:
    """The client sends 1.2 GB to the workers, which wait for it, and compute for 3 s."""
    with run.recorded(memory="3GB") as client:
        begin = time.perf_counter()
        random = np.random.default_rng(0)
        parts = [client.scatter(random.random(2_500_000)) for _ in range(60)]
        run.true_seconds = time.perf_counter() - begin
        client.gather(client.map(histogram, parts))


def make_image(number: int) -> np.ndarray:
    time.sleep(0.02)
    return np.random.default_rng(number).random(2_000_000)


@reported(
    "https://github.com/dask/dask/issues/1412",
    "transfers",
    words="client|result reduce|smaller|write|aggregate|file",
    also="client-gaps spilling scheduler-saturated blocked-event-loop",
)
def large_results(run: Run) -> None:
    """The client gathers results of 16 MB each, 480 MB in all, instead of their sum."""
    with run.recorded(memory="2GB") as client:
        futures = client.map(make_image, range(30))
        images = client.gather(futures)
        len(images)


def simulate_one(number: int) -> int:
    time.sleep(0.1)
    return number


@reported(
    "https://github.com/dask/community/issues/301",
    "client-gaps low-parallelism excess-workers",
    words="in.flight|at.once|submit",
    also="low-parallelism excess-workers client-gaps",
)
def result_in_loop(run: Run) -> None:
    """The client waits for each result before it submits the next task."""
    with run.recorded() as client:
        for number in range(60):
            client.submit(simulate_one, number).result()


def row_sum(part: np.ndarray) -> float:
    time.sleep(0.1)
    return float(part.sum())


@reported(
    "https://github.com/dask/distributed/issues/2270",
    "large-graph",
    entities="row_sum",
    words="MB|MiB scatter|load|file",
    also="scheduler-saturated blocked-event-loop transfers spilling late-start",
)
def array_in_graph(run: Run) -> None:
    """Slices of an array of 200 MB in the client are arguments of delayed calls."""
    with run.recorded(memory="2GB") as client:
        values = np.random.default_rng(0).random((40, 625_000))
        parts = [
            delayed(row_sum)(row, dask_key_name=("row_sum", n)) for n, row in enumerate(values)
        ]
        client.compute(delayed(sum)(parts), sync=True)


def fill(number: int) -> np.ndarray:
    time.sleep(0.2)
    return np.full(200_000, float(number))


@reported(
    "https://github.com/scikit-hep/coffea/issues/434",
    "unused-cluster",
    words="add tasks.do|combine",
)
def slow_consumer(run: Run) -> None:
    """The client adds up results more slowly than the workers make them."""

    def add(total: np.ndarray, part: np.ndarray) -> np.ndarray:
        until = time.perf_counter() + 0.4
        while time.perf_counter() < until:
            sum(range(10_000))
        return total + part

    with run.recorded() as client:
        total, added_seconds = np.zeros(200_000), 0.0
        futures = client.map(fill, range(50))
        for future in as_completed(futures):
            total = add(total, future.result())
            is_last = all(one.done() for one in futures)
            added_seconds += 0.4 if is_last else 0.0
        run.true_seconds = added_seconds


def score(model: np.ndarray, number: int) -> float:
    time.sleep(0.2)
    return float(model[number])


@reported(
    "https://github.com/dask/distributed/issues/6573",
    "transfers late-start",
    words="broadcast|load client",
    wrong="reduce.the.results in.one.call",
    also="low-parallelism long-tail idle-threads",
)
def data_sent_once(run: Run) -> None:
    """The client sends a model of 200 MB to one worker, and 60 tasks need it."""
    with run.recorded(workers=4, memory="2GB") as client:
        model = client.scatter(np.random.default_rng(0).random(25_000_000))
        client.gather([client.submit(score, model, number) for number in range(60)])


def write_file(number: int, folder: str) -> None:
    time.sleep(0.3)
    Path(folder, f"{number}.txt").write_text("x")


@reported(
    "https://github.com/dask/distributed/issues/950",
    "dropped-futures",
    entities="write_file",
    words="fire_and_forget 40.tasks",
    wrong="fewer.workers",
    also="unused-cluster",
)
def dropped_futures(run: Run) -> None:
    """The program keeps no futures of tasks that write files, so that Dask cancels them."""
    with run.recorded() as client:
        for number in range(40):
            client.submit(write_file, number, str(run.scratch))
        time.sleep(6)


def converge(number: int) -> int:
    with clocked():
        time.sleep(7)
    return number


@reported(
    "https://github.com/dask/distributed/issues/2617",
    "cancelled-tasks",
    entities="converge",
    words="not.interrupted Event|Variable",
    also="inside-tasks",
)
def cancelled_while_computing(run: Run) -> None:
    """Tasks that the client cancels go on, and others wait for their threads."""
    with run.recorded() as client:
        futures = client.map(converge, range(2))
        time.sleep(1)
        client.cancel(futures)
        client.gather(client.map(load, range(10)))
        run.true_seconds = 2 * 7
