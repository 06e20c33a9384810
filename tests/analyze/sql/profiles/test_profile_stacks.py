"""View profile_stacks of Dask's profiler: innermost functions and ambiguous samples."""

import pytest

#: A tree: functions by name, with their callees.
OUTLINE = {"f": {"a": {"x": {}}, "b": {}, "c": {}}, "g": {}}


def as_tree(outline, *slices):
    """Return a profile tree with counts by name for each slice of a second."""
    frames, parents, node_frames, numbers = [], [None], [None], {"root": 0}

    def walk(outline, parent):
        for name, below in outline.items():
            numbers[name] = len(parents)
            parents.append(parent)
            node_frames.append(len(frames))
            frames.append({"name": name, "filename": "a.py", "line_number": len(frames)})
            walk(below, numbers[name])

    walk(outline, 0)
    told = [
        {
            "start_t": float(i),
            "stop_t": i + 1.0,
            "nodes": [numbers[name] for name in counts],
            "counts": list(counts.values()),
        }
        for i, counts in enumerate(slices)
    ]
    return {
        "frames": frames,
        "parents": parents,
        "node_frames": node_frames,
        "line_numbers": [None, *range(100, 100 + len(frames))],
        "slices": told,
    }


def profile(tree, **fields):
    about = {"worker": "w1", "server_id": "id", "prefix": "load", "interval_seconds": 0.01}
    times = {"start_t": 0.0, "stop_t": 10.0}
    return {"kind": "profile", "t": 10.0, **about, **times, "tree": tree, **fields}


@pytest.fixture
def found(open_trace):
    """Return stacks by function names: samples, ambiguous and counted samples."""

    def found(*records):
        rows = open_trace(*records).sql(
            "SELECT [f.name FOR f IN frames], sum(samples)::INT, sum(ambiguous_samples)::INT, "
            "sum(counted_samples)::INT FROM profile_stacks GROUP BY 1"
        )
        return {"/".join(names): tuple(numbers) for names, *numbers in rows.fetchall()}

    return found


def test_columns_of_a_stack(rows):
    tree = as_tree({"f": {"a": {}}}, {"root": 5, "f": 5, "a": 0})

    frames = [
        {"name": "f", "filename": "a.py", "line_number": 0},
        {"name": "a", "filename": "a.py", "line_number": 1},
    ]
    assert rows("FROM profile_stacks WHERE samples > 0", profile(tree)) == [
        ("w1", "load", 0.0, 1.0, ["f (a.py:0)", "a (a.py:1)"], 5, 0.05, 0, 0, frames,
         [100, 101], "id", 0.01, "dask", None, "T")
    ]  # fmt: skip


def test_recorded_innermost_counts_are_used(found):
    tree = as_tree(
        {"f": {"a": {"x": {}}, "b": {}}}, {"root": 9, "f": 9, "a": 1, "b": 0, "x": 0}
    )
    [piece] = tree["slices"]
    assert [*piece["nodes"]] == [0, 1, 2, 4, 3]
    piece["innermost"] = [0, 2, 3, 3, 1]

    assert found(profile(tree)) == {
        "f": (2, 0, 8),
        "f/a": (3, 0, 1),
        "f/b": (3, 0, 0),
        "f/a/x": (1, 0, 0),
    }


@pytest.mark.parametrize("innermost", [[1], [1, 2, 3], [0, -1], [0, None]])
def test_invalid_innermost_counts_are_damage(open_trace, innermost):
    tree = as_tree({"f": {}}, {"root": 1, "f": 0})
    tree["slices"][0]["innermost"] = innermost

    trace = open_trace(profile(tree))

    assert trace.sql("FROM profile_stacks").fetchall() == []
    assert trace.sql("SELECT reason, records FROM loss").fetchall() == [("damaged profiles", 1)]


def test_excess_belongs_to_an_only_child(found):
    spinning = {"f": {"spin_a": {}, "spin_b": {}}}
    on_a, on_b = ({"root": 100, "f": 100, f"spin_{i}": 0} for i in "ab")

    assert found(profile(as_tree(spinning, on_a, on_a, on_b, on_a))) == {
        "f": (0, 0, 400),
        "f/spin_a": (300, 0, 0),
        "f/spin_b": (100, 0, 0),
    }


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # Each function without counts was innermost at least once.
        (
            {"root": 9, "f": 9, "b": 0, "c": 0},
            {"f": (0, 7, 9), "f/b": (1, 0, 0), "f/c": (1, 0, 0)},
        ),
        # ... and here no more than that.
        (
            {"root": 2, "f": 2, "b": 0, "c": 0},
            {"f": (0, 0, 2), "f/b": (1, 0, 0), "f/c": (1, 0, 0)},
        ),
        # A function with counts can have been innermost, too.
        (
            {"root": 9, "f": 9, "a": 4, "x": 0, "b": 0},
            {"f": (0, 4, 5), "f/a": (0, 0, 4), "f/a/x": (4, 0, 0), "f/b": (1, 0, 0)},
        ),
        # Samples between outermost functions belong to none of them.
        (
            {"root": 5, "f": 2, "b": 0, "g": 0},
            {"": (0, 2, 3), "g": (1, 0, 0), "f": (0, 0, 2), "f/b": (2, 0, 0)},
        ),
        ({"root": 5, "g": 0}, {"": (0, 0, 5), "g": (5, 0, 0)}),
        # Low-level profiling counts the innermost function too.
        ({"root": 3, "f": 3, "b": 3}, {"f/b": (3, 0, 3)}),
        # Inconsistent: more functions without counts than samples.
        ({"root": 1, "f": 1, "b": 0, "c": 0}, {"f": (0, 1, 1)}),
        ({"root": 1, "f": 5, "b": 0}, {"f": (0, 0, 5), "f/b": (5, 0, 0)}),
        ({"root": 0}, {}),
    ],
    ids=str,
)  # fmt: skip
def test_certain_and_ambiguous_samples(found, counts, expected):
    assert found(profile(as_tree(OUTLINE, counts))) == expected


def test_scheduler_counts_include_the_innermost_function(found):
    tree = as_tree(OUTLINE, {"root": 3, "f": 3, "b": 1, "c": 1})

    assert found(profile(tree, worker=None, prefix=None)) == {
        "f": (1, 0, 1),
        "f/b": (1, 0, 1),
        "f/c": (1, 0, 1),
    }


def test_samples_add_up(rows):
    slices = [
        {"root": 9, "f": 7, "a": 4, "x": 0, "b": 0, "c": 0, "g": 0},
        {"root": 6, "f": 6, "b": 0, "c": 0},
    ]
    assert rows(
        "SELECT start_t, sum(samples + ambiguous_samples)::INT, sum(seconds) "
        "FROM profile_stacks GROUP BY 1 ORDER BY 1",
        profile(as_tree(OUTLINE, *slices)),
    ) == [(0.0, 9, pytest.approx(0.09)), (1.0, 6, pytest.approx(0.06))]


WHOLE = as_tree({"f": {"a": {}}}, {"root": 5, "f": 5, "a": 0})


def sliced(**fields):
    return {**WHOLE, "slices": [{**WHOLE["slices"][0], **fields}]}


@pytest.mark.parametrize(
    "tree",
    [
        None,
        {},
        {**WHOLE, "parents": []},
        {**WHOLE, "parents": None},
        {**WHOLE, "parents": [None, 0]},
        {**WHOLE, "parents": [None, 0, 7]},
        {**WHOLE, "parents": [None, 0, -1]},
        {**WHOLE, "parents": [None, 2, 1]},
        {**WHOLE, "parents": [None, 1, 2]},
        {**WHOLE, "parents": [None, 0, None]},
        {**WHOLE, "parents": [0, 0, 1]},
        {**WHOLE, "node_frames": [None, 0]},
        {**WHOLE, "node_frames": [None, 0, 2]},
        {**WHOLE, "node_frames": [None, 0, None]},
        {**WHOLE, "frames": None},
        {**WHOLE, "frames": [*WHOLE["frames"], None]},
        {**WHOLE, "slices": [None]},
        sliced(nodes=[0, 1]),
        sliced(nodes=[0, 1, 3]),
        sliced(nodes=[0, 1, -1]),
        sliced(nodes=[0, 1, 1]),
        sliced(nodes=[0, 1, None]),
        sliced(nodes=None),
        sliced(nodes=[2], counts=[5]),
        sliced(counts=[5, 5, None]),
        sliced(counts=[5, 5, -1]),
        sliced(counts=[9_223_372_036_854_775_807, 5, 0]),
    ],
    ids=str,
)
def test_malformed_trees_are_excluded_and_counted(open_trace, tree):
    trace = open_trace(profile(tree), profile(WHOLE))

    assert trace.sql("SELECT sum(samples)::INT FROM profile_stacks").fetchall() == [(5,)]
    assert trace.sql("SELECT reason, records FROM loss").fetchall() == [("damaged profiles", 1)]


@pytest.mark.parametrize(
    "tree",
    [
        {**WHOLE, "line_numbers": None},
        {**WHOLE, "line_numbers": [None]},
        {**WHOLE, "frames": [{}, {"name": "a"}]},
        sliced(start_t=None, stop_t=None),
        {**WHOLE, "slices": [{"nodes": [], "counts": []}, *WHOLE["slices"]]},
    ],
    ids=str,
)
def test_unknown_values_are_null(open_trace, tree):
    trace = open_trace(profile(tree))

    [(samples, stack)] = trace.sql(
        "SELECT samples, stack FROM profile_stacks WHERE samples > 0"
    ).fetchall()
    assert (samples, len(stack)) == (5, 2)
    assert trace.frame("loss").height == 0
    assert trace.flamegraph().nodes["total_samples"][0] == 5
    assert trace.flamegraph().counted()["samples"].to_list() == [5]


@pytest.mark.timeout(60)
def test_depth_of_stacks_is_bounded(rows):
    n = 5000
    tree = {
        "frames": [{"name": "f", "filename": "a.py", "line_number": 1}],
        "parents": [None, *range(n)],
        "node_frames": [None, *([0] * n)],
        "line_numbers": [],
        "slices": [{"nodes": list(range(n + 1)), "counts": list(range(n, -1, -1))}],
    }

    assert rows("SELECT max(len(stack)) FROM profile_stacks", profile(tree)) == [(400,)]
