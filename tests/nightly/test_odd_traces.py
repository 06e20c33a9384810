"""Views of unusual and damaged recordings, compared as those of the samples are.

All are opened together, so that each view is queried once and must keep them apart.
"""

import pytest

from nightly import relations
from nightly.comparison import Answer
from nightly.gold import differences_from_gold, read_odd, sums
from nightly.odd_traces import reduced, write_odd_traces
from nightly.recording import Recording
from nightly.test_views import (
    COMPUTED,
    SAMPLES,
    VIEWS,
    broken_conditions,
    copy_of,
    differences_of,
    subject,
)
from roast_analyze import Trace

[SAMPLE] = [path for path in SAMPLES if path.name.startswith("coffea_failures.")]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory) -> dict[str, Recording]:
    """Return the changed samples, each with its own trace_id and few profiles."""
    paths = write_odd_traces(tmp_path_factory.mktemp("odd"), reduced(SAMPLE))
    return {name: Recording.read(path) for name, path in paths.items()}


@pytest.fixture(scope="module")
def opened(recordings):
    with Trace(*(recording.path for recording in recordings.values())) as trace:
        yield trace


@pytest.fixture(scope="module")
def copied(opened, recordings):
    return copy_of(opened, list(recordings.values()))


@pytest.mark.parametrize("view", VIEWS)
def test_odd_traces(opened, recordings, view):
    answer = Answer.of(opened.view(view))
    by_trace = {name: seq_from_zero(part) for name, part in answer.by("trace_id").items()}
    nothing = Answer(answer.types, [])
    gold = read_odd().get(view, {})

    wrong = {}
    for name, recording in recordings.items():
        part = by_trace.get(name, nothing)
        if view in COMPUTED:
            wrong[name] = differences_of(view, part, recording)
        else:
            found = [sums(part.rows)] if part.rows else []
            wrong[name] = differences_from_gold(found, [gold[name]] if name in gold else [])

    assert by_trace.keys() <= recordings.keys()
    assert {name: found[:5] for name, found in wrong.items() if found} == {}


@pytest.mark.parametrize("relation", relations.RELATIONS, ids=subject)
def test_relation(copied, relation):
    assert relation.differences(copied)[:20] == []


def test_conditions(copied):
    assert broken_conditions(copied) == {}


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
