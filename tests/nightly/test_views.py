"""Views of the sample traces, compared in three ways.

Attempts, chunks, workers, core time, the critical path and losses are computed a second time in
plain Python. All other views are compared with these, with each other and with the decoded
lines by the relations of :mod:`nightly.relations`. All have gold rows.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nightly import (
    chunks,
    core_time,
    critical_path,
    hosts,
    loss,
    relations,
    tasks,
    workers,
)
from nightly.comparison import Answer, differences
from nightly.gold import differences_from_gold, gold_of, read_gold
from nightly.invariants import Copy, Never, Relation
from nightly.recording import Recording, Row
from roast_analyze import Trace
from roast_analyze.open.views import view_names

TESTS = Path(__file__).parents[1]
SAMPLES = sorted((TESTS.parent / "sample_traces").glob("*.jsonl.zst"))
#: Traces in older formats, which must remain readable.
OLDER = [TESTS / "analyze" / "data" / "metadata_map.jsonl.zst"]

#: Views that are computed a second time.
COMPUTED: dict[str, Callable[[Recording], list[Row]]] = {
    function.__name__: function
    for function in (
        tasks.task_runs, tasks.tasks, tasks.transitions, tasks.task_phases, tasks.unattempted,
        tasks.task_states, tasks.wanted_keys, chunks.chunks, chunks.chunk_branches,
        workers.workers, workers.worker_samples, workers.pauses, core_time.core_time,
        critical_path.critical_path, critical_path.task_slack, loss.loss,
        hosts.host_samples,
    )
}  # fmt: skip

#: Each rule of the findings has its own tests.
VIEWS = [view for view in view_names() if view != "findings"]


def test_every_view_is_compared():
    related = {getattr(relation, "view", None) for relation in relations.RELATIONS}

    assert set(VIEWS) - related - COMPUTED.keys() == relations.ONLY_GOLD


def subject(relation: Relation) -> str:
    """Return the view of a relation, or what it forbids."""
    return relation.what if isinstance(relation, Never) else relation.view


def name_of(path: Path) -> str:
    """Return the name of the gold rows of a trace."""
    return f"{path.parent.name}-{path.name.split('.')[0]}"


@pytest.fixture(scope="module", params=[*SAMPLES, *OLDER], ids=name_of)
def sample(request) -> Iterator[tuple[Trace, Path]]:
    with Trace(request.param) as opened:
        yield opened, request.param


@pytest.fixture(scope="module")
def recording(sample) -> Recording:
    return Recording.read(sample[1])


@pytest.fixture(scope="module")
def copied(sample, recording) -> Copy:
    return copy_of(sample[0], [recording])


def copy_of(trace: Trace, recordings: list[Recording]) -> Copy:
    """Return a database with the views, and what they are compared with."""
    by_trace = {recording.trace_id: recording for recording in recordings}
    return Copy(trace, by_trace, VIEWS, relations.PREPARE)


@pytest.mark.parametrize("view", COMPUTED)
def test_second_computation(sample, recording, view):
    assert differences_of(view, Answer.of(sample[0].view(view)), recording) == []


@pytest.mark.parametrize("relation", relations.RELATIONS, ids=subject)
def test_relation(copied, relation):
    assert relation.differences(copied)[:20] == []


def test_conditions(copied):
    assert broken_conditions(copied) == {}


@pytest.mark.parametrize("view", ["concurrency", "utilization"])
def test_sums_over_time_are_those_of_the_run(sample, view):
    opened, _ = sample
    [run] = Answer.of(opened.view("run")).rows
    rows = Answer.of(opened.view(view)).rows

    for whole, part in (("compute_seconds",) * 2, ("core_seconds", "thread_seconds")):
        assert sum(row[part] for row in rows) == pytest.approx(run[whole])


@pytest.mark.parametrize("view", VIEWS)
def test_gold_rows(sample, view):
    opened, path = sample

    gold = read_gold(name_of(path))[view]

    assert differences_from_gold(gold_of(Answer.of(opened.view(view))), gold) == []


def differences_of(view: str, answer: Answer, recording: Recording) -> list[str]:
    """Return the differences from the second computation, in the columns that it has."""
    expected = [row | {"trace_id": recording.trace_id} for row in COMPUTED[view](recording)]
    in_order = view in ("critical_path", "workers")
    return differences(answer.only(expected), expected, in_order=in_order)


def broken_conditions(copied: Copy) -> dict[str, list[str]]:
    """Return the rows that break a condition on all views, a few of each."""
    found = {
        relation.what: relation.differences(copied)[:3]
        for relation in relations.conditions(copied.types)
    }
    return {what: rows for what, rows in found.items() if rows}


def all_differences(trace: Trace, recording: Recording) -> dict[str, list[str]]:
    """Return what differs from all relations and conditions, a few differences of each."""
    copied = copy_of(trace, [recording])
    found = [(subject(one), one.differences(copied)[:3]) for one in relations.RELATIONS]
    return {name: rows for name, rows in found if rows} | broken_conditions(copied)
