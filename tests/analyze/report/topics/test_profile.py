"""The flame graph, the table of functions and the sentence of the profile."""

import json
from itertools import accumulate

import polars as pl
import pytest

from analyze.report.reading import plain, texts, unpack
from roast_analyze.report.topics import profile as topic
from roast_analyze.report.topics.profile import flame_graph

LIBRARY = "/env/lib/python3.11/site-packages/uproot/reading.py"
FRAMES = pl.List(pl.Struct({"name": pl.String, "filename": pl.String, "line_number": pl.Int64}))


def frame(name, filename="mine.py", line=1):
    return {"name": name, "filename": filename, "line_number": line}


def part(worker, prefix, bucket, samples, ambiguous=0):
    return {"log": None, "worker": worker, "prefix": prefix, "interval_seconds": 0.01,
            "bucket": bucket, "samples": samples, "ambiguous": ambiguous}  # fmt: skip


def built(stacks):
    """Return the flame graph of pairs of frames and counts."""
    table = pl.DataFrame({"frames": pl.Series([frames for frames, _ in stacks], dtype=FRAMES)})
    counts = pl.DataFrame(
        [
            {"place": place, **count}
            for place, (_, found) in enumerate(stacks)
            for count in found
        ],
        infer_schema_length=None,
        schema_overrides={"log": pl.String, "worker": pl.String, "prefix": pl.String},
    )
    profiles = topic.Profiles(
        0.0, 1.0, 10, table, counts, 0, functions=None, lines=None, sections=None
    )
    return flame_graph.build(profiles, start_t=0.0, names={}, command="")


@pytest.fixture
def graph():
    """Return the flame graph of (stack in letters, *part), and its decoded samples.

    Samples are by (stack, worker, prefix, bucket).
    """

    def graph(*rows):
        together = {}
        for stack, *about in rows:
            together.setdefault(stack, []).append(part(*about))
        flame = built([([frame(f) for f in stack], some) for stack, some in together.items()])
        raw, paths = unpack(flame.embedded), [""]
        for back, number in zip(raw["parents"], raw["nodeFrames"], strict=True):
            paths.append(f"{paths[len(paths) - back]}/{raw['names'][number]}")
        counts = (raw[name] for name in ("of", "bins", "samples"))
        samples = {
            (paths[node], *raw["groups"][group][:2], at): n
            for node, group, at, n in zip(accumulate(raw["nodes"]), *counts, strict=True)
        }
        return flame, samples

    return graph


def test_a_stack_becomes_a_path_of_the_tree(graph):
    flame, samples = graph(
        ("abc", "w1", "p", 0, 3), ("ab", "w1", "p", 0, 2),
        ("ad", "w1", "p", 1, 1), ("ad", "w2", "q", 2, 4),
    )  # fmt: skip

    # Workers and prefixes are ranked by samples: w1 and p have 6, w2 and q 4.
    assert samples == {
        ("/a/b/c", 0, 0, 0): 3,
        ("/a/b", 0, 0, 0): 2,
        ("/a/d", 0, 0, 1): 1,
        ("/a/d", 1, 1, 2): 4,
    }
    assert [(c.value, c.text) for c in flame.workers] == [(0, "w1"), (1, "w2")]
    assert (flame.samples, flame.ambiguous, flame.rare) == (10, 0, 0)


def test_ambiguous_samples_have_their_own_nodes(graph):
    flame, samples = graph(("ab", "w", "p", 0, 3, 2), ("", "w", "p", 0, 0, 1))

    assert samples == {
        ("/a/b", 0, 0, 0): 3,
        ("/a/b/(one of several)", 0, 0, 0): 2,
        ("/(one of several)", 0, 0, 0): 1,
    }
    assert flame.ambiguous == 3


def test_samples_of_the_scheduler(graph):
    flame, samples = graph(("a", None, None, 0, 3), ("a", "w", None, 0, 1))

    assert samples == {("/a", -1, -1, 0): 3, ("/a", 0, 0, 0): 1}
    assert flame.has_scheduler
    assert [choice.text for choice in flame.workers] == ["w"]
    assert [choice.text for choice in flame.prefixes] == ["(none)"]


def test_a_large_tree_loses_its_rarest_parts(graph, monkeypatch):
    monkeypatch.setattr(flame_graph, "MOST_NODES", 6)

    flame, samples = graph(
        ("abc", "w", "p", 0, 9), ("abd", "w", "p", 0, 1), ("abe", "w", "p", 1, 1),
        ("fg", "w", "p", 0, 1), ("h", "w", "p", 0, 5),
    )  # fmt: skip

    assert samples == {
        ("/a/b/c", 0, 0, 0): 9,
        ("/a/b/(rare)", 0, 0, 0): 1,
        ("/a/b/(rare)", 0, 0, 1): 1,
        ("/(rare)", 0, 0, 0): 6,
    }
    assert (flame.samples, flame.rare) == (17, 8)


def test_workers_and_prefixes_beyond_the_limit_share_a_group(graph, monkeypatch):
    monkeypatch.setattr(flame_graph, "MOST_WORKERS", 1)
    monkeypatch.setattr(flame_graph, "MOST_PREFIXES", 1)

    flame, samples = graph(
        ("a", "w1", "p", 0, 9), ("a", "w2", "q", 0, 2), ("a", "w3", "r", 0, 1)
    )

    assert samples == {("/a", 0, 0, 0): 9, ("/a", 1, 1, 0): 3}
    assert [choice.text for choice in flame.workers] == ["w1", "(2 other workers)"]
    assert [choice.text for choice in flame.prefixes] == ["p", "(2 other prefixes)"]


def test_kinds_of_functions():
    kinds = {
        "/home/me/dask-analysis/process.py": flame_graph.OWN,
        "/tmp/ipykernel_12/123.py": flame_graph.OWN,
        "C:\\Users\\me\\run.py": flame_graph.OWN,
        "<string>": flame_graph.OWN,
        LIBRARY: flame_graph.LIBRARY,
        "C:\\Python311\\Lib\\threading.py": flame_graph.LIBRARY,
        "/usr/lib/python3/dist-packages/yaml/loader.py": flame_graph.LIBRARY,
        "/usr/lib/python3.11/threading.py": flame_graph.LIBRARY,
        "<frozen importlib._bootstrap>": flame_graph.LIBRARY,
        "/env/lib/python3.11/site-packages/dask/core.py": flame_graph.DASK,
        "/src/distributed/distributed/worker.py": flame_graph.DASK,
    }

    assert {file: flame_graph.library_kind(file) for file in kinds} == kinds


@pytest.mark.parametrize(("limit", "functions"), [(20_000, 100), (200_000, 1000)])
def test_the_size_of_the_page_is_bounded(monkeypatch, limit, functions):
    monkeypatch.setattr(flame_graph, "MOST_CHARACTERS", limit)
    stacks = [
        (
            [frame(f"{'long' * 30}{i}", f"/{'folder/' * 30}{i}.py")],
            [part("w", "p", 0, 1 + i % 3)],
        )
        for i in range(functions)
    ]

    size = len(json.dumps(unpack(built(stacks[: functions // 2]).embedded)))
    bounded = len(json.dumps(unpack(built(stacks).embedded)))

    assert size > limit / 2
    assert bounded < 1.2 * limit


def profile(frames, counts, **fields):
    """Return a record of one stack, with `counts` samples by second, from 1.0."""
    depth = range(1, len(frames) + 1)
    return {
        "kind": "profile", "t": 9.0, "start_t": 1.0, "stop_t": 9.0, "interval_seconds": 0.01,
        "worker": "w1", "server_id": "i", "prefix": "P", **fields,
        "tree": {
            "frames": frames, "parents": [None, *(n - 1 for n in depth)],
            "node_frames": [0, *range(len(frames))],
            "slices": [
                {"start_t": second, "stop_t": second + 1.0, "nodes": [0, *depth],
                 "counts": [count] * len(frames) + [0]}
                for second, count in enumerate(counts, start=1)
            ],
        },
    }  # fmt: skip


def test_samples_are_added_up_by_bucket(open_trace):
    trace = open_trace(profile([frame("f"), frame("g", LIBRARY)], [3, 0, 0, 4]))

    found = topic.query(trace)

    # No bucket is shorter than a slice of the profile.
    assert (found.start_t, found.buckets, found.bucket_seconds) == (1.0, 4, 1.0)
    ((frames, _),) = found.stacks.rows()
    assert [f["name"] for f in frames] == ["f", "g"]
    assert sorted(found.counts.select("place", "bucket", "samples").rows()) == [
        (0, 0, 3),
        (0, 3, 4),
    ]


def test_the_section(opened, worker):
    trace, about = opened(
        worker("w1"),
        profile([frame("f"), frame("g", LIBRARY)], [30]),
        # A function that calls itself counts once.
        profile([frame("f"), frame("f"), frame("h")], [10]),
    )

    built = topic.section(topic.query(trace), about)

    assert plain(built.sentences[0]) == (
        "Dask's profilers took 40 samples. The width of a function is its total time: "
        f"self time and the time of the functions that it calls. g ({LIBRARY}:1) has the "
        "highest self time, 75 % of the total."
    )
    (table,) = built.tables
    assert texts(table) == [
        [f"g ({LIBRARY}:1)", "0.300", "75", "0.300", "75", "30"],
        ["h (mine.py:1)", "0.100", "25", "0.100", "25", "10"],
        ["f (mine.py:1)", "0.000", "0", "0.400", "100", "40"],
    ]
    assert [name for name, *_ in trace.rows(table.query)] == [row[0] for row in texts(table)]


def test_own_code_by_line_and_the_time_of_samples(section, worker, task, run):
    """In the second cycle, the first sample of f was in another line; g is of a library."""
    first = profile([frame("f"), frame("g", LIBRARY)], [30])
    second = profile([frame("f"), frame("f")], [10])
    first["tree"]["line_numbers"] = [None, 7, 9]
    second["tree"]["line_numbers"] = [None, 8, 8]

    built = section("inside", worker("w1"), task("P-1"), *run("P-1", 1.0, 2.0), first, second)

    lines, _ = built.tables
    assert texts(lines) == [["f (mine.py:7)", "0.300", "75"], ["f (mine.py:8)", "0.100", "25"]]
    assert plain(built.sentences[1]).startswith(
        "The samples of tasks stand for 400 ms, and tasks computed for 1 s. A sample stands for"
    )


def test_ambiguous_samples_are_no_self_time(section):
    """Of 30 samples in f, one is in g and one in h; the others are in either of them."""
    several = profile([frame(name) for name in "fghk"], [])
    several["tree"] |= {
        "parents": [None, 0, 1, 1, 0],
        "slices": [{"start_t": 1.0, "stop_t": 2.0, "nodes": [0, 1, 2, 3, 4],
                    "counts": [40, 30, 0, 0, 10]}],
    }  # fmt: skip

    found = section("inside", several)

    assert texts(found.tables[0]) == [
        ["k (mine.py:1)", "0.100", "25", "0.100", "25", "10"],
        ["g (mine.py:1)", "0.010", "2", "0.010", "2", "1"],
        ["h (mine.py:1)", "0.010", "2", "0.010", "2", "1"],
        ["f (mine.py:1)", "0.000", "0", "0.300", "75", "30"],
    ]
    assert "k (mine.py:1) has the highest self time" in found.sentences[0]


def test_functions_of_the_recorder_are_left_out(section):
    recorder, demo = "/env/roast_recorder/coffea/hooks.py", "/env/roast_recorder/demo/dijet.py"
    wrapped = [
        frame("call", "executor.py"),
        frame("measured", recorder),
        frame("read", recorder),
    ]

    built = section(
        "inside",
        profile([*wrapped, frame("process", demo)], [30]),
        profile(wrapped, [2]),
        profile([frame("call", "executor.py")], [1]),
    )

    text = plain(built.sentences[0])
    assert text.startswith("Dask's profilers took 33 samples.")
    assert text.endswith(
        "Functions of roast's recorder were in the stacks of 32 samples. They are left out: "
        "what they call is attached to their caller, and their self time is shown as (roast "
        "recorder)."
    )
    assert [row[::5] for row in texts(built.tables[0])] == [
        [f"process ({demo}:1)", "30"],
        ["(roast recorder)", "2"],
        ["call (executor.py:1)", "33"],
    ]
    flame = unpack(built.flame.embedded)
    kinds = dict(zip(flame["names"][3:], flame["kinds"][3:], strict=True))
    assert kinds == {
        "call": flame_graph.OWN,
        "process": flame_graph.OWN,
        "(roast recorder)": flame_graph.LIBRARY,
    }
    assert "roast_recorder/coffea" not in str(flame)


def test_samples_of_the_scheduler_alone_and_rare_functions(section, monkeypatch):
    monkeypatch.setattr(flame_graph, "MOST_NODES", 2)
    # On the scheduler Dask counts the innermost function.
    frames = [frame("f"), frame("g"), frame("(counts 0)")]

    built = section("inside", profile(frames, [5], worker=None, prefix=None))

    text = plain(built.sentences[0])
    assert text.endswith(
        "The stacks of 5 samples are cut off at nodes named (rare), to keep this page small."
    )
    assert [row[0] for row in texts(built.tables[0])] == ["g (mine.py:1)", "f (mine.py:1)"]
