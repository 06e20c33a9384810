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
NOT_ENDED = {"no trailer", "damaged compression", "last line unreadable"}


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("ending", "small_bytes"), [(".jsonl", database.SMALL_BYTES), (".jsonl.zst", 0)]
)
def test_answers_during_a_recording(client, tmp_path, monkeypatch, ending, small_bytes):
    monkeypatch.setattr(database, "SMALL_BYTES", small_bytes)
    monkeypatch.setenv("ROAST_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / f"trace{ending}"
    seen = []
    with roast_recorder.record(client, path, flush_interval_seconds=0.1):
        futures = client.map(slow, range(600), pure=False)
        while len(seen) < 8 or not all(future.done() for future in futures):
            if path.exists() and path.stat().st_size:
                seen.append(moment(path))
    whole = moment(path)

    assert whole["loss"] == set()
    assert whole["runs"] == whole["well"] == 600
    for before, after in zip(seen, [*seen[1:], whole], strict=True):
        # Records that were read once stay, in the same order.
        assert after["moves"][: len(before["moves"])] == before["moves"]
    for now in seen:
        assert now["loss"] <= NOT_ENDED
        assert now["begun"] == now["runs"]
        assert now["ended"] == now["well"]
    assert len({len(now["moves"]) for now in seen}) > 3


def moment(path):
    """Return what a trace contains now."""
    with Trace(path) as trace:
        moves = trace.sql("SELECT key, start, finish FROM transitions ORDER BY seq").fetchall()
        [(runs, well)] = trace.sql(
            "SELECT count(*), count(*) FILTER (outcome = 'memory') FROM task_runs"
        ).fetchall()
        reasons = {reason for (reason,) in trace.sql("SELECT reason FROM loss").fetchall()}
    return {
        "moves": moves,
        "runs": runs,
        "well": well,
        "begun": sum(finish == "processing" for _, _, finish in moves),
        "ended": sum(finish == "memory" for _, _, finish in moves),
        "loss": reasons,
    }
