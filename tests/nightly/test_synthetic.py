"""Synthetic traces are valid, and the analysis returns what their generator reports."""

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


@pytest.fixture(scope="module", params=[100_000, 400], ids=["stable", "lost workers"])
def made(request, tmp_path_factory):
    """Return a trace of 2,000 tasks on 20 workers, and the report of the generator."""
    path = tmp_path_factory.mktemp("synthetic") / "small.jsonl"
    return path, synthetic.make_trace(
        path, tasks=2000, workers=20, threads=2, seed=3, tasks_per_lost_worker=request.param
    )


def test_records_are_valid_and_in_order(made, read_lines):
    path, report = made
    records = read_lines(path)
    validator = jsonschema.Draft202012Validator(json_schema())
    recorded = [line for fit in synthetic.DEFAULT_FIT for line in read_lines(fit)]

    def orders_of_fields(lines):
        free = ("event", "environment", "header")
        return {(line["kind"], *line) for line in lines if line["kind"] not in free}

    assert [e.message for record in records for e in validator.iter_errors(record)] == []
    assert orders_of_fields(records) <= orders_of_fields(recorded)
    assert (records[0]["kind"], records[-1]["kind"]) == ("header", "trailer")
    assert records[-1]["records_by_kind"] == Counter(r["kind"] for r in records[:-1])
    assert report.records == Counter(record["kind"] for record in records)
    assert [r["t"] for r in records] == sorted(r["t"] for r in records)


def test_transitions_are_possible(made, read_lines):
    records = read_lines(made[0])
    dependencies = {r["key"]: r["dependencies"] for r in records if r["kind"] == "task"}
    state, computing = {}, defaultdict(list)
    for move in (record for record in records if record["kind"] == "transition"):
        assert move["start"] == state.get(move["key"], "released")
        if move["finish"] == "processing":
            assert {state[key] for key in dependencies[move["key"]]} <= {"memory"}
        for part in move.get("startstops", ()):
            assert part["stop"] <= move["t"]
            if part["action"] == "compute":
                computing[move["worker"], move["thread"]].append((part["start"], part["stop"]))
        state[move["key"]] = move["finish"]

    assert Counter(state.values()) == {"forgotten": 2000}
    assert len(computing) >= 40
    for of_thread in computing.values():
        assert all(one[1] <= other[0] for one, other in pairwise(sorted(of_thread)))


def test_totals_are_those_of_the_generator(made):
    path, report = made
    with Trace(path) as trace:
        runs = trace.sql("SELECT outcome, count(*) FROM task_runs GROUP BY outcome").fetchall()
        [totals] = trace.sql(
            "SELECT (SELECT count(*) FROM tasks), (SELECT sum(nbytes) FROM task_runs), "
            "(SELECT count(*) FROM chunks), (SELECT count(*) FROM workers), "
            "(SELECT count(*) FROM workers WHERE removed_t IS NOT NULL), "
            "(SELECT count(*) FROM loss)"
        ).fetchall()
        [(compute, metrics)] = trace.sql(
            "SELECT (SELECT sum(compute_seconds) FROM task_runs), "
            "(SELECT sum(seconds) FROM activities WHERE context = 'execute')"
        ).fetchall()

    assert dict(runs) == report.runs
    assert set(report.runs) == {"memory", "retried", "erred", "lost", "rescheduled"}
    assert totals == (
        2000, report.output_bytes, report.chunks, report.workers, report.lost_workers, 0
    )  # fmt: skip
    assert compute == pytest.approx(report.compute_seconds, abs=1e-3)
    assert metrics > compute


def test_prefixes_and_durations_are_those_of_the_recorded_runs(made):
    query = (
        "SELECT prefix, count(*), median(compute_seconds) FILTER (outcome = 'memory') "
        "FROM task_runs WHERE attempt = 1 GROUP BY prefix"
    )

    def by_prefix(path):
        with Trace(path) as trace:
            rows = trace.sql(query).fetchall()
        return Counter({row[0]: row[1] for row in rows}), {row[0]: row[2] for row in rows}

    recorded = [by_prefix(path) for path in synthetic.DEFAULT_FIT]
    expected = recorded[0][0] + recorded[1][0]
    counts, medians = by_prefix(made[0])

    for prefix, count in expected.items():
        assert counts[prefix] / 2000 == pytest.approx(count / expected.total(), abs=0.02)
    assert medians["chunk_sum"] == pytest.approx(recorded[1][1]["chunk_sum"], rel=0.2)


def test_same_seed_writes_the_same_bytes(tmp_path):
    paths = [tmp_path / name for name in ("one.jsonl", "again.jsonl", "other.jsonl")]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        synthetic.make_trace(path, tasks=300, workers=10, seed=seed)
    one, again, other = [path.read_bytes() for path in paths]

    assert one == again
    assert one != other


@pytest.mark.parametrize("name", ["t.jsonl.zst", "t.jsonl.gz", "segments"])
def test_compressed_traces_and_segments(tmp_path, name):
    path = tmp_path / name
    report = synthetic.make_trace(path, tasks=1500, workers=10, segment_bytes=1_000_000)

    with Trace(path) as trace:
        found = trace.sql("SELECT count(*), sum(nbytes) FROM task_runs").fetchall()
        segments = trace.sql("SELECT count(*), bool_and(clean_end) FROM trace_info").fetchall()

    assert found == [(report.runs.total(), report.output_bytes)]
    assert segments == [(report.records["header"], True)]
    assert (report.records["header"] > 1) == (name == "segments")


def test_run_without_tasks_is_refused(tmp_path):
    path = tmp_path / "empty.jsonl"
    path.write_text('{"kind":"header","t":0.0}\n')

    with pytest.raises(ValueError, match=r"empty\.jsonl"):
        synthetic.make_trace(tmp_path / "t.jsonl", tasks=10, workers=1, fit=[path])
