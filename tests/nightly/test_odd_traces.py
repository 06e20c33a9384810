"""Views of unusual and damaged recordings equal those computed in plain Python.

All are opened together, so that each view is queried once and must keep them apart.
"""

import pytest

from nightly.comparison import Answer
from nightly.odd_traces import with_counts, write_odd_traces
from nightly.recording import Recording
from nightly.test_views import GOLD, SAMPLES, differences_of
from roast_analyze import Trace

[SAMPLE] = [path for path in SAMPLES if path.name.startswith("coffea_failures.")]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory) -> dict[str, Recording]:
    """Return the changed samples, each with its own trace_id and few profiles."""
    whole = Recording.read(SAMPLE)
    left_out = [id(line) for line in whole.of("profile")[2:]]
    lines = with_counts([line for line in whole.lines if id(line) not in left_out])
    paths = write_odd_traces(tmp_path_factory.mktemp("odd"), lines)
    return {name: Recording.read(path) for name, path in paths.items()}


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
    """Count seq from 0, since it continues across traces."""
    if "seq" not in answer.types:
        return answer
    first = min(row["seq"] for row in answer.rows)
    return Answer(answer.types, [row | {"seq": row["seq"] - first} for row in answer.rows])
