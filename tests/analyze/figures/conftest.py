"""Frames as the views give them, written by hand."""

import polars as pl
import pytest

RUN = {
    "key": pl.String,
    "prefix": pl.String,
    "attempt": pl.Int64,
    "worker": pl.String,
    "thread": pl.Int64,
    "outcome": pl.String,
    "processing_t": pl.Float64,
    "end_t": pl.Float64,
    "compute_start_t": pl.Float64,
    "compute_stop_t": pl.Float64,
    "compute_seconds": pl.Float64,
}
WORKER = {
    "worker": pl.String,
    "name": pl.String,
    "nthreads": pl.Int64,
    "added_t": pl.Float64,
    "removed_t": pl.Float64,
    "lost": pl.Boolean,
}


@pytest.fixture
def runs():
    """A frame of task runs from ``(key, worker, thread, start, stop, outcome)``."""

    def frame(*rows: tuple) -> pl.DataFrame:
        told = [
            {
                "key": key,
                "prefix": key.split("-")[0],
                "attempt": 1,
                "worker": worker,
                "thread": thread,
                "outcome": outcome,
                "processing_t": start or stop,
                "end_t": stop,
                "compute_start_t": start,
                "compute_stop_t": None if start is None else stop,
                "compute_seconds": None if start is None else stop - start,
            }
            for key, worker, thread, start, stop, outcome in rows
        ]
        return pl.DataFrame(told, schema=RUN)

    return frame


@pytest.fixture
def workers():
    """A frame of workers from ``(worker, nthreads, added_t, removed_t, lost)``."""

    def frame(*rows: tuple) -> pl.DataFrame:
        names = ("worker", "nthreads", "added_t", "removed_t", "lost")
        told = [{**dict(zip(names, row, strict=True)), "name": row[0]} for row in rows]
        return pl.DataFrame(told, schema=WORKER)

    return frame
