"""Reading a trace while it is recorded."""

import time

import pytest

import roast_recorder
from roast_analyze import Trace
from roast_analyze.open import database


def slow(i):
    time.sleep(0.01)
    return i


#: Losses of a trace that is still being written.
NOT_ENDED = {"no trailer", "last line unreadable"}


def read_now(path):
    """Return the transitions, the numbers of attempts and the losses of a trace."""
    with Trace(path) as trace:
        moves = trace.rows("SELECT key, start, finish FROM transitions ORDER BY seq")
        [attempts] = trace.rows(
            "SELECT count(*), count(*) FILTER (outcome = 'memory') FROM task_runs"
        )
        reasons = {reason for (reason,) in trace.rows("SELECT reason FROM loss")}
    return moves, attempts, reasons


@pytest.mark.exhaustive
@pytest.mark.cluster
@pytest.mark.parametrize(
    ("ending", "uncached_bytes"), [(".jsonl", database.UNCACHED_BYTES), (".jsonl.zst", 0)]
)
@pytest.mark.usefixtures("own_cache")
def test_answers_during_a_recording(client, tmp_path, monkeypatch, ending, uncached_bytes):
    monkeypatch.setattr(database, "UNCACHED_BYTES", uncached_bytes)
    path = tmp_path / f"trace{ending}"
    found, futures = [], []
    with roast_recorder.record(client, path, flush_interval_seconds=0.1):
        while not path.exists() or not path.stat().st_size:
            time.sleep(0.05)
        while len({len(moves) for moves, *_ in found}) < 5:
            futures += client.map(slow, range(50), pure=False)
            found.append(read_now(path))
        client.gather(futures)
    whole, attempts, reasons = read_now(path)

    assert (attempts, reasons) == ((len(futures), len(futures)), set())
    for moves, attempts, reasons in found:
        finishes = [finish for _, _, finish in moves]
        assert attempts == (finishes.count("processing"), finishes.count("memory"))
        assert reasons <= NOT_ENDED
    # Records that were read once remain, in the same order.
    for before, after in zip(found, [*found[1:], (whole, 0, 0)], strict=True):
        assert after[0][: len(before[0])] == before[0]
