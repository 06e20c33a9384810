"""View busy_time: kinds of work of the compute time."""

from pathlib import Path

import pytest

from roast_analyze import Trace
from roast_analyze.errors import BrokenKinds
from roast_analyze.open.user_kinds import VARIABLE

SAMPLES = Path(__file__).parents[4] / "sample_traces"

QUERY = """
    SELECT category || ': ' || kind, detail, round(sum(seconds), 6)
    FROM busy_time GROUP BY ALL ORDER BY ALL
"""

#: Functions of the profiles below: own code, which calls numpy and waits for a queue.
FRAMES = [
    {"name": "work", "filename": "/home/ana/script.py", "line_number": 7},
    {"name": "sort", "filename": "/x/site-packages/numpy/core.py", "line_number": 1},
    {"name": "get", "filename": "/usr/lib/python3.11/queue.py", "line_number": 1},
]
OWN = "work (script.py:7)"


def cycle(start, own=0, numpy=0, queue=0, **fields):
    """Return a profiling cycle of a second, with the samples that ended in each function."""
    counts = [own + numpy + queue, numpy + queue, 0, 0]
    innermost = [0, own, numpy, queue]
    times = {"start_t": start, "stop_t": start + 1.0}
    return {**times, "nodes": [0, 1, 2, 3], "counts": counts, "innermost": innermost, **fields}


def called(own, seconds=None):
    """Return the fields of a cycle in which own code calls compiled functions, by name."""
    fields = {
        "call_nodes": [1] * len(own),
        "call_names": list(range(len(own))),
        "call_samples": list(own.values()),
    }
    if seconds is not None:
        fields |= {"innermost_seconds": seconds[0], "call_seconds": seconds[1]}
    return fields


def profile(*cycles, worker="w1", prefix="a", calls=(), **fields):
    tree = {
        "frames": FRAMES,
        "parents": [None, 0, 1, 1],
        "node_frames": [None, 0, 1, 2],
        "line_numbers": [None, 8, 2, 2],
        "calls": list(calls),
        "slices": list(cycles),
        **fields,
    }
    about = {"worker": worker, "server_id": f"id-{worker}-0.0", "prefix": prefix}
    times = {"start_t": 0.0, "stop_t": 100.0, "interval_seconds": 0.01}
    return {"kind": "profile", "t": 99.0, **about, **times, "tree": tree}


def cpu(seconds, noncpu, prefix="a", worker="w1"):
    about = {"kind": "fine_metric", "t": 90.0, "worker": worker, "context": "execute"}
    about |= {"server_id": f"id-{worker}-0.0", "prefix": prefix, "unit": "seconds"}
    return [
        {**about, "activity": "thread-cpu", "delta": seconds},
        {**about, "activity": "thread-noncpu", "delta": noncpu},
    ]


@pytest.fixture
def attempt(worker, task, run):
    """Return a worker whose only task computes from 10 s to 12 s."""
    return [worker("w1"), task("a-1"), *run("a-1", 10.0, 12.0)]


def test_samples_divide_the_compute_time(rows, attempt):
    profiled = profile(cycle(10.0, own=40, numpy=60), cycle(11.0, own=40, numpy=20, queue=40))

    assert rows(QUERY, *attempt, profiled) == [
        ("waiting: queue or event", OWN, 0.4),
        ("working: Python loops", OWN, 0.8),
        ("working: array kernels", "numpy", 0.8),
    ]


def test_compiled_functions(rows, attempt):
    names = called({"time.sleep": 60, "engine.start": 20})

    assert rows(QUERY, *attempt, profile(
        cycle(10.0, own=100, **names), cycle(11.0, own=100, **called({})),
        calls=["time.sleep", "engine.start"],
    )) == [
        ("waiting: sleeping", f"time.sleep, {OWN}", 0.6),
        ("working: Python loops", OWN, 1.2),
        ("working: own code", OWN, 0.2),
    ]  # fmt: skip


def test_late_samples_stand_for_the_time_since_those_before(rows, attempt):
    """A compiled function that holds the GIL for 1.5 s is sampled once."""
    names = called({"json.dumps": 1}, ([0.0, 1.6, 0.4, 0.0], [1.5]))

    assert rows(QUERY, *attempt, profile(
        cycle(11.0, own=11, numpy=40, **names), calls=["json.dumps"]
    )) == [
        ("working: Python loops", OWN, 0.1),
        ("working: array kernels", "numpy", 0.4),
        ("working: own code", OWN, 1.5),
    ]  # fmt: skip


def test_without_samples_and_with_few(rows, worker, task, run):
    """The profiler of w1 took a fifth of the samples; w2 sent none."""
    assert rows(
        "SELECT worker, kind, round(sum(seconds), 6) FROM busy_time GROUP BY ALL ORDER BY ALL",
        worker("w1"), worker("w2"), task("a-1"), task("b-1"),
        *run("a-1", 10.0, 12.0), *run("b-1", 10.0, 13.0, worker="w2"),
        profile(cycle(10.0, own=20), cycle(11.0, own=20)),
    ) == [
        ("w1", "Python loops", 0.8),
        ("w1", "profiler starved", 1.2),
        ("w2", "no samples", 3.0),
    ]  # fmt: skip


def test_few_samples_of_a_process_are_those_of_the_prefix(rows, worker, task, run):
    """w2 computed for 20 ms, and has no sample."""
    assert rows(
        "SELECT worker, kind, round(sum(seconds), 6) FROM busy_time GROUP BY ALL ORDER BY ALL",
        worker("w1"), worker("w2"), task("a-1"), task("a-2"),
        *run("a-1", 10.0, 12.0), *run("a-2", 10.0, 10.02, worker="w2"),
        profile(cycle(10.0, own=100), cycle(11.0, numpy=100)),
    ) == [
        ("w1", "Python loops", 1.0),
        ("w1", "array kernels", 1.0),
        ("w2", "Python loops", pytest.approx(0.01, abs=2e-4)),
        ("w2", "array kernels", pytest.approx(0.01, abs=2e-4)),
    ]  # fmt: skip


def test_work_that_took_less_cpu_time_than_it_was_sampled(rows, attempt):
    """Own code may have waited in a compiled function if those are not named."""
    named = [cycle(t, own=50, numpy=50, **called({})) for t in (10.0, 11.0)]
    older = [cycle(t, own=50, numpy=50) for t in (10.0, 11.0)]

    assert rows(QUERY, *attempt, profile(*named), *cpu(0.5, 1.5)) == [
        ("waiting: runnable but not on the CPU", "Python loops", 0.75),
        ("waiting: runnable but not on the CPU", "array kernels", 0.75),
        ("working: Python loops", OWN, 0.25),
        ("working: array kernels", "numpy", 0.25),
    ]
    assert rows(QUERY, *attempt, profile(*older), *cpu(1.1, 0.9)) == [
        ("not known: not on the CPU", OWN, 0.9),
        ("working: Python loops", OWN, 0.1),
        ("working: array kernels", "numpy", 1.0),
    ]


def test_a_difference_within_the_error_of_samples_is_no_wait(rows, attempt):
    profiled = profile(*[cycle(t, own=100, **called({})) for t in (10.0, 11.0)])

    assert rows(QUERY, *attempt, profiled, *cpu(1.99, 0.01)) == [
        ("working: Python loops", OWN, 2.0)
    ]


def test_measured_decompression_of_chunks(rows, attempt, chunk):
    """Samples of the chunk show none: the measurement is a quarter of it."""
    measured = chunk(
        "a-1", run_id=1, worker="w1", dataset="D", filename="f", start_t=10.0, stop_t=12.0,
        entry_start=0, entry_stop=9, seconds=2.0, read_seconds=1.0, decompress_seconds=0.5,
    )  # fmt: skip
    attempts = [dict(record) for record in attempt]
    for record in attempts:
        if record["kind"] == "transition":
            record["run_id"] = 1

    found = rows(
        "SELECT dataset, kind, detail, round(sum(seconds), 6) FROM busy_time GROUP BY ALL "
        "ORDER BY ALL",
        *attempts, measured, profile(cycle(10.0, numpy=100), cycle(11.0, own=100)),
    )  # fmt: skip

    assert found == [
        ("D", "Python loops", OWN, 0.75),
        ("D", "array kernels", "numpy", 0.75),
        ("D", "decompressing", "measured", 0.5),
    ]


@pytest.mark.parametrize(
    "damage",
    [
        {"parents": [None, 5, 1, 1]},
        {"node_frames": [None, 0]},
        {"slices": [{"start_t": 10.0, "stop_t": 11.0, "nodes": [0, 9], "counts": [1, 1]}]},
    ],
)
def test_damaged_profiles_are_no_samples(rows, attempt, damage):
    assert rows(QUERY, *attempt, profile(cycle(10.0, own=100), **damage)) == [
        ("not known: no samples", None, 2.0)
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "fields",
    [
        {"call_nodes": [1], "call_names": [7], "call_samples": [50]},
        {"call_nodes": [1, 1], "call_names": [0], "call_samples": [50]},
        {"call_nodes": [1], "call_names": [0], "call_samples": [5000]},
        {"call_nodes": [2], "call_names": [0], "call_samples": [50]},
        {"call_nodes": [1], "call_names": [0], "call_samples": [-5]},
        {"innermost_seconds": [1.0], "call_seconds": []},
        {"innermost_seconds": [0.0, -1.0, 0.0, 0.0], "call_nodes": [], "call_seconds": []},
    ],
)
def test_calls_that_cannot_be_true_are_left_out(rows, attempt, fields):
    cycles = [cycle(t, own=100, **fields) for t in (10.0, 11.0)]

    assert rows(QUERY, *attempt, profile(*cycles, calls=["time.sleep"])) == [
        ("working: Python loops", OWN, 2.0)
    ]


def test_innermost_functions_that_were_not_counted(rows, attempt):
    """Dask's counts leave out the innermost function, so two callees share the excess."""
    uncounted = {**cycle(10.0, own=0, numpy=0, queue=0), "counts": [100, 100, 0, 0]}
    del uncounted["innermost"]
    later = cycle(11.0, numpy=100)

    found = rows(QUERY, *attempt, profile(uncounted, later))

    assert sum(seconds for *_, seconds in found) == pytest.approx(2.0)
    assert [kind for kind, *_ in found] == [
        "waiting: queue or event", "working: Python loops", "working: array kernels",
    ]  # fmt: skip


@pytest.mark.exhaustive
def test_time_ranges_and_several_traces(write_traces, attempt):
    profiled = profile(cycle(10.0, own=100), cycle(11.0, numpy=100))
    paths = write_traces([*attempt, profiled], [*attempt])

    with Trace(paths[0], start=11.5) as part:
        assert part.rows(QUERY) == [("working: array kernels", "numpy", 0.5)]
    with Trace(*paths) as both:
        assert both.rows(
            "SELECT trace_id, kind, round(sum(seconds), 6) FROM busy_time "
            "GROUP BY ALL ORDER BY ALL"
        ) == [
            ("T0", "Python loops", 1.0),
            ("T0", "array kernels", 1.0),
            ("T1", "no samples", 2.0),
        ]  # fmt: skip


def test_an_empty_trace(rows):
    assert rows("FROM busy_time") == []


@pytest.mark.usefixtures("own_cache")
def test_patterns_of_the_user_are_not_kept(write_trace, attempt, monkeypatch, tmp_path):
    """Without them, and with them again, the same trace has other kinds."""
    path = write_trace(*attempt, profile(*[cycle(t, own=100) for t in (10.0, 11.0)]))
    kinds = tmp_path / "kinds.toml"
    kinds.write_text(
        '[kinds]\n"selection" = "working"\n[[pattern]]\nkind = "selection"\nfunction = "work"\n'
    )
    found = []
    for value in ("", str(kinds), ""):
        monkeypatch.setenv(VARIABLE, value)
        with Trace(path) as trace:
            found.append(trace.rows("SELECT DISTINCT kind FROM busy_time"))

    assert found == [[("Python loops",)], [("selection",)], [("Python loops",)]]


def test_a_broken_file_of_the_user_fails_only_where_it_is_needed(
    open_trace, attempt, monkeypatch, tmp_path
):
    (tmp_path / "kinds.toml").write_text("[[pattern]")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "kinds.toml"))
    trace = open_trace(*attempt)

    assert trace.rows("SELECT count(*) FROM task_runs") == [(1,)]
    with pytest.raises(BrokenKinds, match=r"kinds\.toml"):
        trace.rows("FROM busy_time")


@pytest.mark.parametrize("start", [None, 3.0])
@pytest.mark.parametrize("name", ["image_pipeline", "coffea_failures"])
def test_sums_are_those_of_core_time(name, start):
    with Trace(SAMPLES / f"{name}.jsonl.zst", start=start) as trace:
        groups = "worker, prefix, dataset, span_id, trace_id"
        differing = trace.rows(f"""
            SELECT *
            FROM (SELECT {groups}, sum(seconds) AS seconds FROM busy_time GROUP BY ALL) AS busy
            FULL JOIN (
                SELECT {groups}, sum(seconds) AS core_seconds
                FROM core_time
                WHERE category = 'busy' AND use NOT IN ('deserialize', 'disk')
                GROUP BY ALL
            ) AS core
                ON busy.worker = core.worker
                AND busy.prefix IS NOT DISTINCT FROM core.prefix
                AND busy.dataset IS NOT DISTINCT FROM core.dataset
                AND busy.span_id IS NOT DISTINCT FROM core.span_id
            WHERE coalesce(abs(seconds - core_seconds) > 1e-6, true)
        """)
        [(rows, wrong)] = trace.rows(
            "SELECT count(*), count(*) FILTER (NOT seconds > 0 OR samples < 0) FROM busy_time"
        )

    assert differing == []
    assert rows > 10
    assert wrong == 0
