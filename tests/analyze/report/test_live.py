"""A run that is being recorded, as text."""

import pytest

from roast_analyze.algorithms.progress import Progress
from roast_analyze.report import live
from roast_analyze.report.live import Silence


@pytest.fixture
def progress(task, run, worker):
    """A run that has done two of five tasks, one of a dataset, in 10 s."""
    progress = Progress()
    chunk = {"kind": "chunk", "t": 1.0, "dataset": "d", "entry_start": 0, "entry_stop": 10}
    for record in (
        {"kind": "header", "t": 1.0, "segment": 1},
        worker("w1"),
        *(task(f"a-{n}", 1.0) for n in range(5)),
        *({**chunk, "key": f"a-{n}"} for n in range(2)),
        *run("a-0", 1.0, 6.0),
        *run("a-2", 6.0, 11.0),
        *run("a-3", 10.0),
    ):
        progress.add(record)
    return progress


def words(progress: Progress, silence: Silence) -> str:
    """Return all texts of the page of a run."""
    facts = [live.state(progress, silence), *live.facts(progress, silence)]
    rows = [*live.amounts(progress.prefixes, progress, silence)]
    texts = [": ".join(fact) for fact in facts] + [f"{row.rate} {row.left}" for row in rows]
    return "\n".join(texts).replace("\N{NO-BREAK SPACE}", " ")


def test_a_run_that_goes_on_has_a_rate_and_an_end(progress):
    text = words(progress, Silence(2.0))
    assert "Running: 10 s\n" in text
    assert "0.2 tasks/s, 15 s left" in text
    assert "events/s now" in text
    assert "assigned 1 s ago" in text
    assert text.endswith("\n0.2 15 s")


@pytest.mark.parametrize(
    ("silence", "state"),
    [
        (Silence(4.0), "Running: 10 s; nothing was written for 4 s"),
        (Silence(20.0, None), "Running: 10 s; nothing was written for 20 s"),
        (Silence(600.0, None), "No trailer: 10 s; nothing was written for 10 min"),
        (Silence(600.0), "Running: 10 s; nothing was written for 10 min"),
        (Silence(4.0, False), "Ended: after 10 s: stopped without a trailer"),
    ],
)
def test_a_silent_run_has_neither(progress, silence, state):
    text = words(progress, silence)
    assert f"{state}\n" in text
    for absent in ("/s", " left", " now", " ago"):
        assert absent not in text, text
    assert "2 of 5 done" in text
    assert silence.is_live == state.startswith("Running")


@pytest.mark.parametrize(
    ("settings", "usual"),
    [
        ({}, 3.0),
        ({"flush_interval_seconds": 2, "sample_interval_seconds": 10.0}, 24.0),
        ({"kinds": ["task", "transition"]}, 60.0),
        ({"kinds": ["task", "worker_sample"]}, 3.0),
        ({"flush_interval_seconds": "x", "kinds": 5}, 3.0),
        ("x", 3.0),
    ],
)
def test_the_usual_time_between_writes(settings, usual):
    progress = Progress()
    progress.add({"kind": "header", "t": 0.0, "settings": settings})
    assert live.usual_seconds(progress) == usual
