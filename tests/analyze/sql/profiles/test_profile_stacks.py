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
    return {
        "frames": frames,
        "parents": parents,
        "node_frames": node_frames,
        "line_numbers": [None, *range(100, 100 + len(frames))],
        "slices": [
            {
                "start_t": float(i),
                "stop_t": i + 1.0,
                "nodes": [numbers[name] for name in counts],
                "counts": list(counts.values()),
            }
            for i, counts in enumerate(slices)
        ],
    }


def profile(tree, **fields):
    about = {"worker": "w1", "server_id": "id", "prefix": "load", "interval_seconds": 0.01}
    times = {"start_t": 0.0, "stop_t": 10.0}
    return {"kind": "profile", "t": 10.0, **about, **times, "tree": tree, **fields}


@pytest.fixture
def found(rows):
    """Return stacks by prefix and function names: samples, ambiguous and counted samples."""

    def found(*records):
        stacks = {}
        for prefix, names, *numbers in rows(
            "SELECT prefix, [f.name FOR f IN frames], sum(samples)::INT, "
            "sum(ambiguous_samples)::INT, sum(counted_samples)::INT "
            "FROM profile_stacks GROUP BY 1, 2",
            *records,
        ):
            stacks.setdefault(prefix, {})["/".join(names)] = tuple(numbers)
        return stacks

    return found


WHOLE = as_tree({"f": {"a": {}}}, {"root": 5, "f": 5, "a": 0})


def sliced(**fields):
    return {**WHOLE, "slices": [{**WHOLE["slices"][0], **fields}]}


def test_columns_of_a_stack(rows):
    frames = WHOLE["frames"]
    assert frames == [
        {"name": "f", "filename": "a.py", "line_number": 0},
        {"name": "a", "filename": "a.py", "line_number": 1},
    ]
    assert rows("FROM profile_stacks WHERE samples > 0", profile(WHOLE)) == [
        ("w1", "load", 0.0, 1.0, ["f (a.py:0)", "a (a.py:1)"], 5, 0.05, 0, 0, frames,
         [100, 101], "id", 0.01, "dask", None, "T")
    ]  # fmt: skip


CASES = {
    "each function without counts was innermost at least once": (
        {"root": 9, "f": 9, "b": 0, "c": 0},
        {"f": (0, 7, 9), "f/b": (1, 0, 0), "f/c": (1, 0, 0)},
    ),
    "samples within functions without counts belong to none": (
        {"root": 2, "f": 2, "b": 0, "c": 0},
        {"f": (0, 0, 2), "f/b": (1, 0, 0), "f/c": (1, 0, 0)},
    ),
    "a function with counts can have been innermost, too": (
        {"root": 9, "f": 9, "a": 4, "x": 0, "b": 0},
        {"f": (0, 4, 5), "f/a": (0, 0, 4), "f/a/x": (4, 0, 0), "f/b": (1, 0, 0)},
    ),
    "samples between outermost functions belong to none of them": (
        {"root": 5, "f": 2, "b": 0, "g": 0},
        {"": (0, 2, 3), "g": (1, 0, 0), "f": (0, 0, 2), "f/b": (2, 0, 0)},
    ),
    "one outermost function": ({"root": 5, "g": 0}, {"": (0, 0, 5), "g": (5, 0, 0)}),
    "low-level profiling counts the innermost function": (
        {"root": 3, "f": 3, "b": 3},
        {"f/b": (3, 0, 3)},
    ),
    "more functions without counts than samples": (
        {"root": 1, "f": 1, "b": 0, "c": 0},
        {"f": (0, 1, 1)},
    ),
    "fewer samples than counts": (
        {"root": 1, "f": 5, "b": 0},
        {"f": (0, 0, 5), "f/b": (5, 0, 0)},
    ),
    "nothing": ({"root": 0}, {}),
}


def test_certain_and_ambiguous_samples(found):
    profiles = (profile(as_tree(OUTLINE, counts), prefix=n) for n, (counts, _) in CASES.items())

    assert found(*profiles) == {n: stacks for n, (_, stacks) in CASES.items() if stacks}


MALFORMED = [
    None,
    {},
    *(
        {**WHOLE, "parents": parents}
        for parents in (
            [], None, [None, 0], [None, 0, 7], [None, 0, -1], [None, 2, 1], [None, 1, 2],
            [None, 0, None], [0, 0, 1],
        )
    ),
    *({**WHOLE, "node_frames": f} for f in ([None, 0], [None, 0, 2], [None, 0, None])),
    {**WHOLE, "frames": None},
    {**WHOLE, "frames": [*WHOLE["frames"], None]},
    {**WHOLE, "slices": [None]},
    *(sliced(nodes=n) for n in ([0, 1], [0, 1, 3], [0, 1, -1], [0, 1, 1], [0, 1, None], None)),
    sliced(nodes=[2], counts=[5]),
    *(sliced(counts=c) for c in ([5, 5, None], [5, 5, -1], [9_223_372_036_854_775_807, 5, 0])),
    *(sliced(innermost=i) for i in ([1], [1, 2, 3, 4], [0, -1, 0], [0, None, 0])),
]  # fmt: skip


def test_malformed_trees_are_excluded_and_counted(ask):
    malformed = (profile(tree, prefix=str(n)) for n, tree in enumerate(MALFORMED))
    found = ask(*malformed, profile(WHOLE))

    query = "SELECT prefix, sum(samples)::INT FROM profile_stacks GROUP BY 1"
    assert found(query) == [("load", 5)]
    losses = [("damaged profiles", len(MALFORMED))]
    # Numbers that cannot be true are a loss of their own.
    query = "SELECT reason, records FROM loss WHERE reason <> 'impossible values'"
    assert found(query) == losses


def test_unknown_values_are_null(open_trace):
    trees = [
        {**WHOLE, "line_numbers": None},
        {**WHOLE, "line_numbers": [None]},
        {**WHOLE, "frames": [{}, {"name": "a"}]},
        sliced(start_t=None, stop_t=None),
        {**WHOLE, "slices": [{"nodes": [], "counts": []}, *WHOLE["slices"]]},
    ]
    trace = open_trace(*(profile(tree, prefix=str(n)) for n, tree in enumerate(trees)))

    query = (
        "SELECT prefix, samples, len(stack) FROM profile_stacks WHERE samples > 0 ORDER BY 1"
    )
    assert trace.rows(query) == [(str(n), 5, 2) for n in range(len(trees))]
    assert trace.frame("loss").is_empty()
    assert trace.flamegraph().nodes["total_samples"][0] == 5 * len(trees)
    assert trace.flamegraph().counted()["samples"].sum() == 5 * len(trees)


def test_counted_samples_name_the_line_first_seen(open_trace):
    """The heaviest stack was seen later than the first line of its caller."""
    first = as_tree({"f": {"a": {}}}, {"root": 2, "f": 2, "a": 1})
    later = as_tree({"f": {"b": {}}}, {"root": 9, "f": 9, "b": 8})
    later["line_numbers"] = [None, 200, 201]
    later["slices"][0] |= {"start_t": 5.0, "stop_t": 6.0}

    counted = open_trace(profile(later), profile(first)).flamegraph().counted()

    assert counted.select("stack", "samples").rows() == [
        (["@:0", "f@a.py:100", "b@a.py:201"], 8),
        (["@:0", "f@a.py:100"], 2),
        (["@:0", "f@a.py:100", "a@a.py:101"], 1),
    ]


def test_flame_graphs_leave_out_the_recorder(open_trace):
    outline = {"f": {"(wrap)": {"a": {}, "(measure)": {}}}}
    tree = as_tree(outline, {"root": 9, "f": 9, "(wrap)": 9, "a": 0, "(measure)": 0})
    tree["slices"][0]["innermost"] = [0, 0, 0, 7, 2]
    for function in tree["frames"]:
        if function["name"].startswith("("):
            function["filename"] = "C:\\roast_recorder\\hooks.py"
    graph = open_trace(profile(tree)).flamegraph()

    assert graph.nodes.select("depth", "name", "self_samples", "total_samples").rows() == [
        (0, None, 0, 9), (1, "f", 0, 9), (2, "a", 7, 7), (2, "(roast recorder)", 2, 2),
    ]  # fmt: skip
    # Dask's counts contain all functions.
    assert graph.counted()["stack"].list.len().to_list() == [3]


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
