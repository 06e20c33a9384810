"""Decompression time of chunks, compared with a timer around uproot's function."""

import functools
import time
from collections import Counter

import pytest

import roast_recorder
from roast_analyze import Trace
from roast_recorder.coffea import instrumentation

pytest.importorskip("coffea")
import awkward as ak
import numpy as np
import uproot
from coffea.nanoevents import BaseSchema
from coffea.processor import IterativeExecutor, Runner

ALGORITHMS = {
    "ZSTD": uproot.ZSTD(5),
    "LZMA": uproot.LZMA(1),
    "LZ4": uproot.LZ4(4),
    "ZLIB": uproot.ZLIB(1),
    None: None,
}


def process(events):
    return {"sum": float(ak.sum(events.wide)) + float(ak.sum(events.narrow))}


@pytest.fixture
def fileset(tmp_path):
    """Write a file for each algorithm; `wide` is slower to decompress than `narrow`."""
    random = np.random.default_rng(1)
    events = {
        "wide": np.round(random.exponential(30.0, 400_000), 1),
        "narrow": np.zeros(400_000, "i4"),
        "unread": np.zeros(400_000, "i4"),
    }
    for name, compression in ALGORITHMS.items():
        with uproot.recreate(tmp_path / f"{name}.root", compression=compression) as file:
            file.mktree("Events", {name: kind.dtype for name, kind in events.items()})
            file["Events"].extend(events)
    with uproot.recreate(tmp_path / "ntuple.root", compression=uproot.ZSTD(5)) as file:
        file.mkrntuple("Events", events)
    return {"DY": [str(path) for path in sorted(tmp_path.glob("*.root"))]}


def test_seconds_and_algorithm_of_chunks_and_branches(fileset, tmp_path, monkeypatch):
    seconds, decompress = {}, uproot.compression.decompress

    @functools.wraps(decompress)
    def timed(chunk, *arguments, **keywords):
        started = time.thread_time()
        try:
            return decompress(chunk, *arguments, **keywords)
        finally:
            path = chunk.source.file_path
            seconds[path] = seconds.get(path, 0.0) + time.thread_time() - started

    executor = IterativeExecutor(status=False)
    options = {"schema": BaseSchema, "metadata_cache": {}, "chunksize": 400_000}
    runner = Runner(executor=executor, **options)
    chunks = list(runner.preprocess(fileset, treename="Events"))
    monkeypatch.setattr(uproot.compression, "decompress", timed)
    # Both timers take CPU time: a busy machine can stop this process between them.
    monkeypatch.setattr(instrumentation, "perf_counter", time.thread_time)
    with roast_recorder.record(path=tmp_path / "t.jsonl"):
        runner(chunks, treename="Events", processor_instance=process)

    with Trace(tmp_path / "t.jsonl") as trace:
        found = trace.rows(
            "SELECT filename, compression, decompress_seconds, read_seconds FROM chunks"
        )
        branches = trace.rows("SELECT filename, branch, decompress_seconds FROM chunk_branches")
    assert len(found) == len(ALGORITHMS) + 1
    total = Counter()
    for filename, compression, decompress_seconds, read_seconds in found:
        expected = filename.rpartition("/")[2].removesuffix(".root")
        expected = {"ntuple": "ZSTD", "None": None}.get(expected, expected)
        assert compression == expected, filename
        if compression is None:
            assert decompress_seconds is None
            continue
        assert decompress_seconds <= read_seconds
        # It excludes the file's metadata and the checksums of LZ4.
        assert decompress_seconds == pytest.approx(
            seconds.get(filename, 0.0), rel=0.3, abs=0.005
        )
        parts = {branch: part for of, branch, part in branches if of == filename}
        assert set(parts) == {"wide", "narrow"}
        assert sum(parts.values()) == pytest.approx(decompress_seconds)
        total.update(parts)
    assert total["wide"] > total["narrow"]
