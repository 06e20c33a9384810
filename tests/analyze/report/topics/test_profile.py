"""The flame graph, the table of functions and the sentence of the profile."""

import json
from itertools import accumulate

import polars as pl
import pytest

from roast_analyze.report.topics import profile as topic
from roast_analyze.report.topics.profile import flame_graph
from roast_analyze.report.topics.profile.data import Profiles

LIBRARY = "/env/lib/python3.11/site-packages/uproot/reading.py"


def frame(name, filename="mine.py", line=1):
    return {"name": name, "filename": filename, "line_number": line}


def stacks(*rows):
    """Profiles of (stack in letters, worker, prefix, bucket, samples, ambiguous)."""
    together = {}
    for stack, worker, prefix, at, samples, ambiguous in rows:
        together.setdefault(stack, []).append(
            {"log": None, "worker": worker, "prefix": prefix, "interval_seconds": 0.01,
             "bucket": at, "samples": samples, "ambiguous": ambiguous}
        )  # fmt: skip
    frames = [[frame(name) for name in stack] for stack in together]
    frame_schema = {"name": pl.String, "filename": pl.String, "line_number": pl.Int64}
    schema = {"frames": pl.List(pl.Struct(frame_schema))}
    table = pl.DataFrame({"frames": frames}, schema=schema)
    return Profiles(0.0, 1.0, 10, table.with_columns(parts=pl.Series(list(together.values()))))


def built(profiles):
    return flame_graph.build(profiles, start_t=0.0, names={}, command="")


@pytest.fixture
def read(unpack):
    """Decode samples by (stack, worker, prefix, bucket), as the page does."""
    return lambda graph: samples_of(unpack(graph.embedded))


def samples_of(raw):
    paths = [""]
    for node, (back, frame_number) in enumerate(
        zip(raw["parents"], raw["nodeFrames"], strict=True), start=1
    ):
        paths.append(f"{paths[node - back]}/{raw['names'][frame_number]}")
    rows = zip(accumulate(raw["nodes"]), raw["of"], raw["bins"], raw["samples"], strict=True)
    return {
        (paths[node], *raw["groups"][group][:2], at): samples
        for node, group, at, samples in rows
    }


def test_a_stack_becomes_a_path_of_the_tree(read):
    graph = built(
        stacks(("abc", "w1", "p", 0, 3, 0), ("ab", "w1", "p", 0, 2, 0),
               ("ad", "w1", "p", 1, 1, 0), ("ad", "w2", "q", 2, 4, 0))
    )  # fmt: skip

    # Workers and prefixes by their samples: w1 and p have 6, w2 and q 4.
    assert read(graph) == {
        ("/a/b/c", 0, 0, 0): 3,
        ("/a/b", 0, 0, 0): 2,
        ("/a/d", 0, 0, 1): 1,
        ("/a/d", 1, 1, 2): 4,
    }
    assert [(c.value, c.text) for c in graph.workers] == [(0, "w1"), (1, "w2")]
    assert (graph.samples, graph.ambiguous, graph.rare) == (10, 0, 0)


def test_ambiguous_samples_have_their_own_nodes(read):
    graph = built(stacks(("ab", "w", "p", 0, 3, 2), ("", "w", "p", 0, 0, 1)))

    assert read(graph) == {
        ("/a/b", 0, 0, 0): 3,
        ("/a/b/(one of several)", 0, 0, 0): 2,
        ("/(one of several)", 0, 0, 0): 1,
    }
    assert graph.ambiguous == 3


def test_samples_of_the_scheduler(read):
    graph = built(stacks(("a", None, None, 0, 3, 0), ("a", "w", None, 0, 1, 0)))

    assert read(graph) == {("/a", -1, -1, 0): 3, ("/a", 0, 0, 0): 1}
    assert graph.has_scheduler
    assert [choice.text for choice in graph.workers] == ["w"]
    assert [choice.text for choice in graph.prefixes] == ["(none)"]


def test_a_large_tree_loses_its_rarest_parts(read, monkeypatch):
    monkeypatch.setattr(flame_graph, "MOST_NODES", 6)

    graph = built(
        stacks(("abc", "w", "p", 0, 9, 0), ("abd", "w", "p", 0, 1, 0),
               ("abe", "w", "p", 1, 1, 0), ("fg", "w", "p", 0, 1, 0), ("h", "w", "p", 0, 5, 0))
    )  # fmt: skip

    assert read(graph) == {
        ("/a/b/c", 0, 0, 0): 9,
        ("/a/b/(rare)", 0, 0, 0): 1,
        ("/a/b/(rare)", 0, 0, 1): 1,
        ("/(rare)", 0, 0, 0): 6,
    }
    assert (graph.samples, graph.rare) == (17, 8)


def test_workers_and_prefixes_beyond_the_limit_share_a_group(read, monkeypatch):
    monkeypatch.setattr(flame_graph, "MOST_WORKERS", 1)
    monkeypatch.setattr(flame_graph, "MOST_PREFIXES", 1)

    graph = built(
        stacks(("a", "w1", "p", 0, 9, 0), ("a", "w2", "q", 0, 2, 0), ("a", "w3", "r", 0, 1, 0))
    )

    assert read(graph) == {("/a", 0, 0, 0): 9, ("/a", 1, 1, 0): 3}
    assert [choice.text for choice in graph.workers] == ["w1", "(2 other workers)"]
    assert [choice.text for choice in graph.prefixes] == ["p", "(2 other prefixes)"]


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


def profile(frames, counts, **fields):
    """A record of one stack, seen as often as ``counts`` says in each second from 1.0."""
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
    ((frames, _, parts),) = found.stacks.rows()
    assert [f["name"] for f in frames] == ["f", "g"]
    assert sorted((part["bucket"], part["samples"]) for part in parts) == [(0, 3), (3, 4)]


def test_the_section(section, open_trace, worker):
    records = (
        worker("w1"),
        profile([frame("f"), frame("g", LIBRARY)], [30]),
        profile([frame("f"), frame("h")], [10]),
    )

    built = section("inside", *records)

    assert built.sentences[0].replace("\N{NO-BREAK SPACE}", " ") == (
        "Dask's profilers took 40 samples. The width of a function is its total time: "
        "self time "
        f"and the time of the functions that it calls. g ({LIBRARY}:1) has the highest self "
        "time, 75 % of the total."
    )
    (table,) = built.tables
    assert [[cell.text for cell in row[1:]] for row in table.rows] == [
        ["0.300", "75", "0.300", "75", "30"],
        ["0.100", "25", "0.100", "25", "10"],
        ["0.000", "0", "0.400", "100", "40"],
    ]
    assert open_trace(*records).sql(table.query).fetchall()[0][0] == f"g ({LIBRARY}:1)"


def test_a_function_that_calls_itself_counts_once(open_trace):
    found = topic.query(open_trace(profile([frame("f"), frame("f"), frame("g")], [10])))

    assert found.functions.rows.select("function", "self_seconds", "total_seconds").rows() == [
        ("g (mine.py:1)", 0.1, 0.1), ("f (mine.py:1)", 0.0, 0.1),
    ]  # fmt: skip


def test_names_cannot_close_the_element_of_the_data(open_trace, unpack):
    hostile = "</script><img src=x><!--\u2028\x00"
    found = topic.query(open_trace(profile([frame(hostile, hostile), frame("g")], [1])))

    graph = built(found)

    assert unpack(graph.embedded)["names"][3].startswith("</script><img src=x>")
    assert not set("<>&") & set(graph.embedded)


def test_the_size_of_the_page_is_bounded(unpack):
    def of(functions):
        long = [
            frame(f"{'long' * 30}{i}", f"/{'folder/' * 30}{i}.py") for i in range(functions)
        ]
        table = stacks(*((chr(300 + i), "w", "p", i % 10, 1 + i % 3, 0) for i in range(1000)))
        parts = pl.concat([table.stacks["parts"]] * (functions // 1000))
        rows = pl.DataFrame({"frames": [[one] for one in long], "parts": parts})
        return len(json.dumps(unpack(built(Profiles(0.0, 1.0, 10, rows)).embedded)))

    assert of(2000) > 300_000
    assert of(30_000) < 1.2 * flame_graph.MOST_CHARACTERS
