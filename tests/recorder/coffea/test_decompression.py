"""Decompression time of chunks, compared with a timer around uproot's function."""

import functools
import time
from collections import Counter

import pytest

import roast_recorder
from roast_analyze import Trace

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


def is_close(recorded, timed):
    """Return whether two times differ by no more than metadata and the checksums of LZ4."""
    return recorded is None or recorded == pytest.approx(timed, rel=0.3, abs=0.005)


def test_seconds_and_algorithm_of_chunks_and_branches(fileset, tmp_path, monkeypatch):
    seconds, decompress = {}, uproot.compression.decompress

    @functools.wraps(decompress)
    def timed(chunk, *arguments, **keywords):
        started = time.perf_counter()
        try:
            return decompress(chunk, *arguments, **keywords)
        finally:
            path = chunk.source.file_path
            seconds[path] = seconds.get(path, 0.0) + time.perf_counter() - started

    executor = IterativeExecutor(status=False)
    options = {"schema": BaseSchema, "metadata_cache": {}, "chunksize": 400_000}
    runner = Runner(executor=executor, **options)
    chunks = list(runner.preprocess(fileset, treename="Events"))
    monkeypatch.setattr(uproot.compression, "decompress", timed)
    # A busy machine can stop this process between the two timers: three attempts.
    for attempt in range(3):
        seconds.clear()
        with roast_recorder.record(path=tmp_path / f"{attempt}.jsonl"):
            runner(chunks, treename="Events", processor_instance=process)

        with Trace(tmp_path / f"{attempt}.jsonl") as trace:
            found = trace.rows(
                "SELECT filename, compression, decompress_seconds, read_seconds FROM chunks"
            )
            branches = trace.rows(
                "SELECT filename, branch, decompress_seconds FROM chunk_branches"
            )
        if all(is_close(part, seconds.get(filename, 0.0)) for filename, _, part, _ in found):
            break
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
        assert is_close(decompress_seconds, seconds.get(filename, 0.0)), filename
        parts = {branch: part for of, branch, part in branches if of == filename}
        assert set(parts) == {"wide", "narrow"}
        assert sum(parts.values()) == pytest.approx(decompress_seconds)
        total.update(parts)
    assert total["wide"] > total["narrow"]
