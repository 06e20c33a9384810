"""A time range contains the same rows in all exports, in SQL, in views and in Python."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

from roast_analyze import Trace

SAMPLES = Path(__file__).parents[3] / "sample_traces"

#: Name of a sample, and a range that cuts attempts at both ends.
RANGES = [("shuffle_reduce", "1.5", "4")]

#: Factor that moves times, which are decimal numbers, away from rounding boundaries.
ODD = 2**0.5


def texts(rows) -> list[str]:
    """Return sorted rows as text, without the last digits of floats, which can differ."""
    return sorted(
        repr([f"{value * ODD:.9g}" if isinstance(value, float) else value for value in row])
        for row in rows
    )


def times(name: str, start: str, stop: str) -> tuple[Path, list[str], dict[str, str]]:
    """Return the path of a sample, the options of commands, and those of a trace."""
    options = [f"--from={start}", f"--to={stop}"]
    return SAMPLES / f"{name}.jsonl.zst", options, {"start": start, "stop": stop}


@pytest.mark.exhaustive
def test_attempts_are_cut_in_every_output(analyze, write_trace, worker, task, run, tmp_path):
    path = write_trace(
        worker("w1"),
        *(task(key) for key in ("early-1", "cut-1", "in-1", "late-1")),
        *run("early-1", 1.0, 2.0),
        *run("cut-1", 2.0, 4.0),
        *run("in-1", 4.0, 5.0),
        *run("late-1", 7.0, 9.0),
    )
    query = "SELECT key, compute_start_t, compute_stop_t, compute_seconds FROM task_runs"
    expected = [("cut-1", 3.0, 4.0, 1.0), ("in-1", 4.0, 5.0, 1.0), ("late-1", 7.0, 8.0, 1.0)]
    places = {name: tmp_path / name for name in ("duckdb", "perfetto")}
    words = [f"--{name}={place}" for name, place in places.items()]
    options = ["--from", "3", "--to", "8"]

    assert analyze("export", path, *words, *options)[0] == 0

    with duckdb.connect(places["duckdb"], read_only=True) as database:
        assert sorted(database.sql(query).fetchall()) == expected
        assert database.sql("SELECT task_runs, compute_seconds FROM run").fetchall() == [
            (3, 3.0)
        ]
    drawn = [it for it in json.loads(places["perfetto"].read_text()) if it.get("cat") == "task"]
    found = sorted((it["args"]["key"], it["ts"] / 1e6, it["dur"] / 1e6) for it in drawn)
    assert found == [(key, start, seconds) for key, start, _, seconds in expected]
    columns = ("key", "compute_start_t", "compute_stop_t", "compute_seconds")
    for call in (("sql", path, query), ("view", path, "task_runs")):
        code, out, _ = analyze(*call, *options, "--format=json")
        assert code == 0
        assert sorted(tuple(row[c] for c in columns) for row in json.loads(out)) == expected
    with Trace(path, start=3, stop=8) as part:
        assert sorted(part.rows(query)) == expected
        assert sorted(part.frame("task_runs").select(columns).rows()) == expected


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "start", "stop"), RANGES[:1])
def test_exported_tables_are_the_views_of_the_range(analyze, tmp_path, name, start, stop):
    path, options, ends = times(name, start, stop)
    folder, file = tmp_path / "tables", tmp_path / "trace.duckdb"
    words = ["--parquet", folder, "--duckdb", file]
    assert analyze("export", path, *words, *options)[0] == 0

    with Trace(path, **ends) as part, duckdb.connect(file, read_only=True) as database:
        names = [view.name for view in part.views()]
        assert {place.stem for place in folder.iterdir()} == {*names}
        for view in names:
            rows = texts(part.view(view).fetchall())
            assert texts(database.sql(f"FROM {view}").fetchall()) == rows, view
            parquet = database.sql(f"FROM '{folder / view}.parquet'").fetchall()
            assert texts(parquet) == rows, view
        # The range contains a part of the attempts.
        [(attempts,)] = part.rows("SELECT task_runs FROM run")
    with Trace(path) as whole:
        assert 0 < attempts < whole.rows("SELECT task_runs FROM run")[0][0]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "start", "stop"), RANGES)
def test_totals_of_text_formats_are_those_of_the_range(analyze, tmp_path, name, start, stop):
    path, options, ends = times(name, start, stop)
    places = {form: tmp_path / form for form in ("folded", "speedscope", "perfetto")}
    words = [f"--{form}={place}" for form, place in places.items()]
    assert analyze("export", path, *words, *options)[0] == 0

    with Trace(path, **ends) as part:
        [(samples, seconds, stacks)] = part.rows(
            "SELECT coalesce(sum(counted) FILTER (worker IS NOT NULL), 0), sum(seconds), "
            "count(*) FROM (FROM profile_stacks SELECT *, coalesce(samples, 0) + "
            "coalesce(ambiguous_samples, 0) AS counted WHERE profiler = 'dask') "
            "WHERE counted > 0"
        )
        [(tasks, compute_seconds)] = part.rows(
            "SELECT count(*), sum(compute_stop_t - compute_start_t) FROM task_runs "
            "WHERE compute_start_t IS NOT NULL"
        )
        [(sampled,)] = part.rows("SELECT count(DISTINCT (worker, t)) FROM worker_samples")
    lines = places["folded"].read_text().splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == samples > 0
    profiles = json.loads(places["speedscope"].read_text())["profiles"]
    weights = [weight for profile in profiles for weight in profile["weights"]]
    assert (len(weights), sum(weights)) == (stacks, pytest.approx(seconds))
    events = json.loads(places["perfetto"].read_text())
    found = Counter(event.get("cat") for event in events)
    assert found["task"] == tasks > 0
    # Times are in whole microseconds, and tasks of a thread that seem to overlap are cut.
    durations = sum(event["dur"] for event in events if event.get("cat") == "task") / 1e6
    assert durations == pytest.approx(compute_seconds, rel=0.01)
    moments = {(event["pid"], event["ts"]) for event in events if event["ph"] == "C"}
    assert len(moments) == sampled


def test_a_flame_graph_of_a_range_has_the_slices_with_their_middle_in_it(
    open_trace, worker, profile
):
    # Slices of 1 s that begin at 1, 2, 3 and 4 s, and one of the second worker at 3 s.
    trace = open_trace(
        worker("w1"),
        worker("w2"),
        profile("w1", functions=("main", "f"), counts=(1, 2, 4, 8)),
        profile("w2", "b", functions=("main", "g"), counts=(16,), start_t=3.0),
    )

    def samples(start=None, stop=None, **part) -> dict[str, int]:
        stacks = trace.flamegraph(start=start, stop=stop, **part).stacks
        return {
            row["frames"][-1]["name"]: row["samples"]
            for row in stacks.filter(stacks["samples"] > 0).to_dicts()
        }

    assert samples() == {"f": 15, "g": 16}
    assert samples(start=2) == {"f": 14, "g": 16}
    assert samples(start=2.4, stop=3.6) == {"f": 6, "g": 16}
    assert samples(start=2.6, stop=3.5) == {}
    assert samples(stop="3s") == {"f": 3}
    assert samples(start="-97s", worker="w1") == {"f": 12}
    assert samples(start=3, prefix="b") == {"g": 16}
    # Adjacent ranges add up to the whole.
    ends = (0, 1.5, 2.5, 3.2, 4.5, 100)
    parts = [samples(*range_) for range_ in pairwise(ends)]
    assert sum(map(Counter, parts), Counter()) == samples()


def test_a_flame_graph_of_a_range_of_several_traces(write_traces, profile):
    header = {"kind": "event", "topic": "x"}
    paths = write_traces(
        [{**header, "t": 0.0}, profile("w1", functions=("main", "f"), counts=(1, 2))],
        [
            {**header, "t": 0.0},
            profile("w1", functions=("main", "g"), counts=(4, 8), start_t=50.0),
        ],
    )
    with Trace(*paths) as both:
        found = both.flamegraph(start="1970-01-01T00:00:02").stacks
    rows = found.filter(found["samples"] > 0).to_dicts()
    names = {row["frames"][-1]["name"]: row["samples"] for row in rows}
    assert names == {"f": 2, "g": 12}
