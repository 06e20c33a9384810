"""Terms of the difference between random pairs of traces: samples, odd and synthetic ones."""

import importlib
import itertools
import random
import sys
from pathlib import Path

import pytest

from nightly.odd_traces import write_odd_traces
from nightly.recording import Recording
from nightly.test_views import SAMPLES
from roast_analyze import Trace
from roast_analyze.algorithms.decomposition import decompose, path_changes, summarize
from roast_analyze.run_amounts import query_amounts

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
synthetic = importlib.import_module("synthetic")

PAIRS = 100


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return wall time, core time (None without workers) and amounts of each trace."""
    folder = tmp_path_factory.mktemp("decomposition")
    paths = list(SAMPLES)
    [sample] = [path for path in SAMPLES if path.name.startswith("coffea_failures.")]
    paths += write_odd_traces(folder, Recording.read(sample).lines).values()
    for seed, (tasks, lost) in enumerate(itertools.product((50, 2000), (100, 100_000))):
        paths.append(folder / f"synthetic-{seed}.jsonl")
        synthetic.make_trace(
            paths[-1], tasks=tasks, workers=5, threads=2, seed=seed, tasks_per_lost_worker=lost
        )
    runs = {}
    for path, part in [*((path, {}) for path in paths), (sample, {"start": 2.0, "stop": -1.0})]:
        with Trace(path, **part) as trace:
            totals = trace.sql("SELECT wall_seconds, core_seconds FROM run").fetchall()
            runs[path.name, bool(part)] = (*totals[0], query_amounts(trace))
    return runs


def test_terms_add_up_to_the_difference(runs):
    draw = random.Random(1)
    for pair in [draw.sample(sorted(runs), 2) for _ in range(PAIRS)]:
        (base_wall, base_core, base), (new_wall, new_core, new) = (runs[name] for name in pair)
        terms, back = decompose(base, new), decompose(new, base)

        wall_seconds = max(base_wall, new_wall)
        found = terms["wall_seconds"].sum()
        assert found == pytest.approx(new_wall - base_wall, abs=1e-9 * wall_seconds), pair
        assert back["wall_seconds"].sum() == pytest.approx(-found, abs=1e-9 * wall_seconds)
        summed = summarize([base], new)["wall_seconds"].sum()
        assert summed == pytest.approx(found, abs=1e-9 * wall_seconds)
        path = path_changes([base], new)["wall_seconds"].sum()
        assert path == pytest.approx(found, abs=1e-9 * wall_seconds)
        if base_core and new_core:
            # The view core_time leaves out less than a nanosecond of each row.
            core_seconds = max(base_core, new_core)
            assert terms["core_seconds"].sum() == pytest.approx(
                new_core - base_core, abs=1e-6 * core_seconds
            )


def test_a_run_does_not_differ_from_itself(runs):
    assert {
        name: found.rows()
        for name, (*_, run) in runs.items()
        if not (found := summarize([run], run)).is_empty()
    } == {}
