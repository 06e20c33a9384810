"""Synthetic traces: what their maker says of them is what the analysis finds in them."""

import importlib
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest

from roast_analyze import Trace
from roast_schemas.describe import json_schema

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
synthetic = importlib.import_module("synthetic")

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@pytest.fixture(scope="module", params=[100_000, 400], ids=["calm", "workers get lost"])
def small(request, tmp_path_factory):
    """A trace of 2,000 tasks on 20 workers of two threads, and what its maker says of it."""
    path = tmp_path_factory.mktemp("synthetic") / "small.jsonl"
    return path, synthetic.make_trace(
        path, tasks=2000, workers=20, threads=2, seed=3, tasks_per_lost_worker=request.param
    )


@pytest.fixture(scope="module")
def records(small, read_lines):
    return read_lines(small[0])


@pytest.fixture(scope="module")
def moves(records):
    """Transitions by key."""
    moves = defaultdict(list)
    for record in records:
        if record["kind"] == "transition":
            moves[record["key"]].append(record)
    return moves


@pytest.fixture(scope="module")
def trace(small):
    with Trace(small[0]) as trace:
        yield trace


def test_every_line_is_valid(records):
    validator = jsonschema.Draft202012Validator(json_schema())

    assert [
        error.message for record in records for error in validator.iter_errors(record)
    ] == []


def test_fields_stand_in_the_order_of_recorded_ones(records, read_lines):
    def orders(records):
        apart = ("event", "environment", "header")
        return {(r["kind"], *r) for r in records if r["kind"] not in apart}

    recorded = [*read_lines(synthetic.DEFAULT_FIT[0]), *read_lines(synthetic.DEFAULT_FIT[1])]

    assert orders(records) <= orders(recorded)


def test_header_comes_first_and_trailer_counts_all(small, records):
    *body, trailer = records

    assert [record["kind"] for record in body].index("header") == 0
    assert trailer["kind"] == "trailer"
    assert trailer["records_by_kind"] == Counter(record["kind"] for record in body)
    assert small[1].records == Counter(record["kind"] for record in records)


def test_time_does_not_go_back(records):
    times = [record["t"] for record in records]

    assert times == sorted(times)


def test_each_transition_begins_in_the_state_where_the_last_one_ended(moves):
    assert len(moves) == 2000
    for of_task in moves.values():
        states = [(move["start"], move["finish"]) for move in of_task]
        assert states[0][0] == "released"
        assert all(before[1] == after[0] for before, after in pairwise(states))
        assert states[-1][1] == "forgotten"


def test_there_are_five_transitions_a_task(moves):
    assert sum(map(len, moves.values())) >= 5 * len(moves)


def test_no_task_is_sent_before_its_dependencies_are_in_memory(records):
    dependencies = {r["key"]: r["dependencies"] for r in records if r["kind"] == "task"}
    state = {}
    for record in records:
        if record["kind"] == "transition":
            if record["finish"] == "processing":
                held = [state[key] for key in dependencies[record["key"]]]
                assert set(held) <= {"memory"}, record
            state[record["key"]] = record["finish"]


def test_a_thread_does_one_thing_at_a_time(moves):
    spans = defaultdict(list)
    for move in (move for of_task in moves.values() for move in of_task):
        if "startstops" in move:
            compute = [part for part in move["startstops"] if part["action"] == "compute"]
            spans[move["worker"], move["thread"]] += [(p["start"], p["stop"]) for p in compute]
            assert all(part["stop"] <= move["t"] for part in move["startstops"])

    assert len(spans) >= 40
    for of_thread in spans.values():
        assert all(one[1] <= other[0] for one, other in pairwise(sorted(of_thread)))


def test_runs_end_as_their_maker_says(small, trace):
    runs = trace.sql("SELECT outcome, count(*) FROM task_runs GROUP BY outcome").fetchall()

    assert dict(runs) == small[1].runs
    assert set(small[1].runs) == {"memory", "retried", "erred", "lost", "rescheduled"}


def test_totals_are_those_of_the_maker(small, trace):
    made = small[1]
    totals = trace.sql(
        """
        SELECT
            (SELECT count(*) FROM tasks),
            (SELECT sum(compute_seconds) FROM task_runs),
            (SELECT sum(nbytes) FROM task_runs),
            (SELECT count(*) FROM chunks),
            (SELECT count(*) FROM workers),
            (SELECT count(*) FROM workers WHERE removed_t IS NOT NULL),
            (SELECT count(*) FROM loss)
        """
    ).fetchall()[0]

    assert totals == (
        made.tasks,
        pytest.approx(made.compute_seconds, abs=1e-3),
        made.output_bytes,
        made.chunks,
        made.workers,
        made.lost_workers,
        0,
    )
    assert made.tasks == 2000
    assert made.chunks > 100
    assert made.lost_workers >= 1


def test_fine_metrics_add_up_to_the_computing_time(trace):
    cpu, compute = trace.sql(
        """
        SELECT
            (SELECT sum(seconds) FROM activities WHERE context = 'execute'),
            (SELECT sum(compute_seconds) FROM task_runs)
        """
    ).fetchall()[0]

    assert cpu > compute


def test_prefixes_have_the_proportions_of_the_recorded_runs(trace):
    def shares(path):
        with Trace(path) as recorded:
            rows = recorded.sql("SELECT prefix, count(*) FROM tasks GROUP BY prefix").fetchall()
        return Counter(dict(rows))

    recorded = sum((shares(path) for path in synthetic.DEFAULT_FIT), Counter())
    made = Counter(
        dict(trace.sql("SELECT prefix, count(*) FROM tasks GROUP BY prefix").fetchall())
    )

    for prefix, tasks in recorded.items():
        assert made[prefix] / 2000 == pytest.approx(tasks / recorded.total(), abs=0.02)


def test_durations_are_those_of_the_recorded_prefix(trace):
    """The median of a log-normal distribution holds against stragglers and slow workers."""
    query = """
        SELECT median(compute_seconds) FROM task_runs
        WHERE prefix = 'chunk_sum' AND outcome = 'memory'
    """
    with Trace(synthetic.DEFAULT_FIT[1]) as recorded:
        expected = recorded.sql(query).fetchall()[0][0]

    assert trace.sql(query).fetchall()[0][0] == pytest.approx(expected, rel=0.2)


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    paths = [tmp_path / name for name in ("one.jsonl", "again.jsonl", "other.jsonl")]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        synthetic.make_trace(path, tasks=300, workers=10, seed=seed)
    one, again, other = [path.read_bytes() for path in paths]

    assert one == again
    assert one != other


@pytest.mark.parametrize("name", ["t.jsonl.zst", "t.jsonl.gz", "segments"])
def test_other_forms_hold_the_same(tmp_path, name):
    made = synthetic.make_trace(
        tmp_path / name, tasks=1500, workers=10, segment_bytes=1_000_000
    )

    with Trace(tmp_path / name) as trace:
        found = trace.sql("SELECT count(*), sum(nbytes) FROM task_runs").fetchall()[0]
        segments = trace.sql("SELECT count(*), bool_and(clean_end) FROM trace_info").fetchall()[
            0
        ]
        assert trace.sql("FROM loss").fetchall() == []

    assert found == (made.runs.total(), made.output_bytes)
    assert segments == (made.records["header"], True)
    assert (segments[0] > 1) == (name == "segments")


@pytest.mark.parametrize("name", ["coffea", "image_pipeline"])
def test_other_runs_can_be_fitted(tmp_path, name):
    fit = [SAMPLES / f"{name}.jsonl.zst"]

    made = synthetic.make_trace(tmp_path / "t.jsonl", tasks=400, workers=5, fit=fit)

    with Trace(tmp_path / "t.jsonl") as trace, Trace(fit[0]) as recorded:
        prefixes = "SELECT DISTINCT prefix FROM tasks ORDER BY prefix"
        assert trace.sql(prefixes).fetchall() == recorded.sql(prefixes).fetchall()
        assert trace.sql("SELECT count(*) FROM tasks").fetchall()[0] == (made.tasks,)


def test_a_run_without_tasks_cannot_be_fitted(tmp_path):
    path = tmp_path / "empty.jsonl"
    path.write_text('{"kind":"header","t":0.0}\n')

    with pytest.raises(ValueError, match=r"no task was computed in .*empty\.jsonl"):
        synthetic.make_trace(tmp_path / "t.jsonl", tasks=10, workers=1, fit=[path])
