"""Views of unusual and damaged recordings equal those computed in plain Python.

All are opened together, so that each view is queried once and must separate them.
"""

import json

import pytest

from nightly.comparison import Answer
from nightly.odd_traces import DAMAGED, UNUSUAL, make_odd, with_counts
from nightly.recording import Recording
from nightly.test_views import GOLD, SAMPLES, differences_of
from roast_analyze import Trace
from sealing import sealed

[SAMPLE] = [path for path in SAMPLES if path.name.startswith("coffea_failures.")]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory) -> dict[str, Recording]:
    """The changed samples, each with its own trace_id, with few of the large profiles."""
    whole = Recording.read(SAMPLE)
    left_out = [id(line) for line in whole.of("profile")[2:]]
    lines = with_counts([line for line in whole.lines if id(line) not in left_out])
    folder = tmp_path_factory.mktemp("make_odd")
    made = {}
    for oddity in (*UNUSUAL, *DAMAGED):
        name = oddity.__name__
        path = folder / f"{name}.jsonl"
        named = [
            line | {"trace_id": name} if line["kind"] == "header" else line
            for line in make_odd(oddity, lines)
        ]
        made_of = "".join(json.dumps(line) + "\n" for line in named).encode()
        path.write_bytes(made_of if oddity in DAMAGED else sealed(made_of))
        made[name] = Recording.read(path)
    return made


@pytest.fixture(scope="module")
def opened(recordings):
    with Trace(*(recording.path for recording in recordings.values())) as trace:
        yield trace


@pytest.mark.parametrize("view", GOLD)
def test_odd_traces(opened, recordings, view):
    answer = Answer.of(opened.view(view))
    by_trace = {name: seq_from_zero(part) for name, part in answer.by("trace_id").items()}
    nothing = Answer(answer.types, [])

    wrong = {
        name: differences_of(view, by_trace.get(name, nothing), recording)
        for name, recording in recordings.items()
    }

    assert by_trace.keys() <= recordings.keys()
    assert {name: found[:5] for name, found in wrong.items() if found} == {}


def test_steps_of_the_critical_path_add_up(opened):
    sums = opened.sql(
        "SELECT trace_id, sum(step.seconds) = run.wall_seconds, min(step.seconds) > 0 "
        "FROM run LEFT JOIN critical_path AS step USING (trace_id) "
        "GROUP BY trace_id, run.wall_seconds"
    ).fetchall()

    assert [row for row in sums if row[1:] != (True, True)] == []


def seq_from_zero(answer: Answer) -> Answer:
    """Count seq from 0, since it continues over several traces."""
    if "seq" not in answer.types:
        return answer
    first = min(row["seq"] for row in answer.rows)
    return Answer(answer.types, [row | {"seq": row["seq"] - first} for row in answer.rows])
