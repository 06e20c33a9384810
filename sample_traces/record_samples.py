"""Record the sample traces: ``make samples``, or this script with names of samples.

Each trace is a real run on a LocalCluster of this machine, written by the recorder. The
runs use relative paths in a temporary folder, so that a trace contains no path of the
recording machine.
"""

import argparse
import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import dask_image.imread
import dask_image.ndfilters
import dask_image.ndmeasure
import dask_image.ndmorph
import numpy as np
import pandas as pd
import psutil
import tifffile
import yappi
from coffea.processor import DaskExecutor, Runner
from distributed import Client, LocalCluster, span, wait
from scipy import ndimage

from roast_recorder import record, section
from roast_recorder.commands.run import darshan_variables
from roast_recorder.demo import files
from roast_recorder.demo.dijet import DijetProcessor, run_analysis

HERE = Path(__file__).resolve().parent

#: Variable with the path of libdarshan.so, and that path if it is set.
DARSHAN_VARIABLE = "ROAST_DARSHAN_LIBRARY"
DARSHAN_LIBRARY = os.environ.get(DARSHAN_VARIABLE) and str(
    Path(os.environ[DARSHAN_VARIABLE]).resolve()
)

DATASETS = (
    files.Dataset("DYJets", files=3, events=200_000, jets=2.0, resonance_mass=91.0),
    files.Dataset("TTbar", files=3, events=160_000, jets=5.5, resonance_mass=173.0),
    files.Dataset("QCD", files=2, events=220_000, jets=3.5, resonance_mass=60.0),
)


@contextlib.contextmanager
def recorded_cluster(
    name: str, workers: int, memory_limit: str = "auto", **settings: object
) -> Iterator[tuple[LocalCluster, Client]]:
    """Start single-threaded worker processes and record them into ``name``.jsonl.zst."""
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=memory_limit,
            dashboard_address="127.0.0.1:0",
            local_directory="scratch",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
        record(client, HERE / f"{name}.jsonl.zst", **settings),
    ):
        yield cluster, client


def coffea() -> None:
    """Run the dijet analysis of the demo over three datasets in eight files."""
    Path("nanoaod").mkdir()
    list(files.write_files(Path("nanoaod"), DATASETS))
    with recorded_cluster("coffea", workers=3) as (_, client):
        run_analysis(client, files.fileset(Path("nanoaod"), DATASETS), chunksize=20_000)


def coffea_failures() -> None:
    """Run the same analysis, kill a worker during the run, and damage a file."""
    Path("damaged").mkdir()
    list(files.write_files(Path("damaged"), DATASETS))
    fileset = files.fileset(Path("damaged"), DATASETS)
    bad = Path(fileset["QCD"][-1])
    with bad.open("r+b") as file:
        file.seek(bad.stat().st_size * 3 // 4)
        file.write(bytes(200_000))
    with recorded_cluster("coffea_failures", workers=3) as (cluster, client):
        killer = threading.Timer(4.0, kill_a_worker, [cluster])
        killer.start()
        runner = Runner(
            executor=DaskExecutor(client=client, retries=2), chunksize=20_000, savemetrics=True
        )
        with contextlib.suppress(Exception):
            runner(fileset, treename="Events", processor_instance=SlowProcessor())
        killer.join()


class SlowProcessor(DijetProcessor):
    """The dijet analysis with extra computation, so that a killed worker is busy."""

    def process(self, events):
        until = time.perf_counter() + 0.2
        while time.perf_counter() < until:
            np.linalg.svd(np.ones((60, 60)))
        return super().process(events)


def kill_a_worker(cluster: LocalCluster) -> None:
    worker = next(iter(cluster.scheduler.workers.values()))
    os.kill(worker.pid, signal.SIGKILL)


def shuffle_reduce() -> None:
    """Set the index of a dataframe, group it, and reduce an array."""
    with recorded_cluster("shuffle_reduce", workers=3):
        random = np.random.default_rng(0)
        frame = pd.DataFrame(
            {"station": random.integers(0, 300, 400_000), "value": random.normal(size=400_000)}
        )
        table = dd.from_pandas(frame, npartitions=24)
        shuffled = table.set_index("station")
        means = table.groupby("station").value.agg(["mean", "std"])
        dask.compute(shuffled.value.sum(), means)
        array = da.random.default_rng(0).normal(size=(6_000, 6_000), chunks=(1_000, 1_000))
        ((array + array.T) @ array).std(axis=0).max().compute()


def image_pipeline() -> None:
    """Run a dask.delayed pipeline: read, smooth, segment, measure and collect images."""

    @dask.delayed
    def read_image(number: int) -> np.ndarray:
        random = np.random.default_rng(number)
        image = random.normal(0.0, 0.3, (700, 700))
        for row, column in random.integers(20, 680, (60, 2)):
            image[row - 4 : row + 4, column - 4 : column + 4] += 2.0
        return image

    @dask.delayed
    def smooth(image: np.ndarray) -> np.ndarray:
        return ndimage.gaussian_filter(image, 3.0)

    @dask.delayed
    def segment(image: np.ndarray) -> np.ndarray:
        return ndimage.label(image > 0.5)[0]

    @dask.delayed
    def measure(image: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
        indices = np.arange(1, labels.max() + 1)
        return pd.DataFrame(
            {
                "area": ndimage.sum_labels(np.ones_like(image), labels, indices),
                "brightness": ndimage.mean(image, labels, indices),
            }
        )

    with recorded_cluster("image_pipeline", workers=2) as (_, client):
        measured = []
        for number in range(60):
            image = read_image(number)
            measured.append(measure(smooth(image), segment(smooth(image))))
        wait(client.compute(dask.delayed(pd.concat)(measured)))


def metadata_map() -> None:
    """Run Dask's image-processing example with every record kind, Yappi and Darshan."""
    if not DARSHAN_LIBRARY:
        print(f"metadata_map: without Darshan, since {DARSHAN_VARIABLE} is not set")
    elif DARSHAN_LIBRARY not in os.environ.get("LD_PRELOAD", ""):
        # Darshan must be loaded before Python starts, and writes its logs when processes end.
        variables = darshan_variables(DARSHAN_LIBRARY, str(Path.cwd() / "run.jsonl"))
        command = [sys.executable, __file__, "metadata_map"]
        subprocess.run(command, env={**os.environ, **variables}, check=True)
        import_into_map("darshan", *sorted(Path("run.darshan").glob("*.darshan")))
        return
    Path("images").mkdir()
    for number in range(8):
        tifffile.imwrite(Path("images") / f"{number:02}.tif", generated_image(number))
    layers = {"code": True, "transfers": True, "worker_transitions": True}
    with (
        # Low thresholds, so that results are spilled and a large one pauses its worker.
        dask.config.set(
            {
                "distributed.worker.memory.target": 0.002,
                "distributed.worker.memory.pause": 0.6,
                "distributed.worker.memory.terminate": False,
            }
        ),
        recorded_cluster("metadata_map", workers=2, memory_limit="1GB", **layers) as (
            _,
            client,
        ),
    ):
        pids = client.run(os.getpid)
        workers = list(client.run(start_yappi))
        with span("image processing"), dask.annotate(priority=1):
            count_cells("images/*.tif")
        client.submit(hold, 600_000_000, workers=workers[:1]).result()
        saved = client.run(stop_yappi)
        # Workers take seconds to end; one that Dask kills meanwhile leaves no log of Darshan.
        processes = [psutil.Process(pid) for pid in pids.values()]
        client.retire_workers(workers)
        psutil.wait_procs(processes, timeout=60)
    for worker in workers:
        import_into_map("yappi", saved[worker], "--worker", worker)


def import_into_map(program: str, *arguments: str | Path) -> None:
    command = [sys.executable, "-m", "roast_analyze", "import", program, *arguments]
    command += ["--into", HERE / "metadata_map.jsonl.zst"]
    subprocess.run(command, env={**os.environ, "LD_PRELOAD": ""}, check=True)


def generated_image(number: int) -> np.ndarray:
    """Return an image of bright cells on a noisy background, in three colors."""
    random = np.random.default_rng(number)
    image = random.integers(0, 60, (256, 256, 3))
    for row, column in random.integers(10, 240, (20, 2)):
        image[row - 6 : row + 6, column - 6 : column + 6] += 150
    return image.astype(np.uint8)


def count_cells(pattern: str) -> np.ndarray:
    """Convert images to gray, find bright regions and measure them, as in Dask's notebook."""
    images = dask_image.imread.imread(pattern)
    grey = (images * np.array([0.2125, 0.7154, 0.0721])).sum(axis=-1)
    bright = grey > dask_image.ndfilters.threshold_local(grey, (1, 31, 31))
    opened = dask_image.ndmorph.binary_opening(bright, structure=np.ones((1, 3, 3)))
    labels, count = dask_image.ndmeasure.label(opened)
    return dask.compute(count, (labels > 0).mean(axis=(1, 2)), grey.mean(axis=(1, 2)))


def hold(nbytes: int) -> None:
    """Allocate memory for 1.5 s."""
    with section("a large buffer"):
        buffer = np.ones(nbytes, dtype=np.uint8)
        time.sleep(1.5)
        del buffer


def start_yappi() -> None:
    yappi.set_clock_type("cpu")
    yappi.start()


def stop_yappi() -> str:
    yappi.stop()
    path = Path.cwd() / f"{os.getpid()}.ystat"
    functions = yappi.get_func_stats()
    for function in functions:  # which functions are coroutines
        code = yappi._fn_descriptor_dict[function.full_name]
        vars(function)["code_flags"] = getattr(code, "co_flags", None)
    functions.save(str(path), type="ystat")
    return str(path)


SAMPLES = {
    sample.__name__: sample
    for sample in (coffea, coffea_failures, shuffle_reduce, image_pipeline, metadata_map)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*SAMPLES, []], metavar="NAME")
    for name in parser.parse_args().names or SAMPLES:
        with tempfile.TemporaryDirectory(prefix="roast-") as folder, contextlib.chdir(folder):
            SAMPLES[name]()
        print(f"{name}: {(HERE / f'{name}.jsonl.zst').stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
