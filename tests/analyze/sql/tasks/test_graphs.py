"""Views graph_updates, graph_layers, computations and restrictions."""

import pytest


@pytest.fixture
def update():
    """Return Dask's event for a graph."""

    def update(stimulus_id, t, topic="scheduler", status="OK", **metrics):
        payload = {"action": "update-graph", "stimulus_id": stimulus_id, "status": status}
        if metrics:
            payload["metrics"] = metrics
        return {"kind": "event", "t": t, "topic": topic, "payload": payload}

    return update


@pytest.fixture
def sent():
    """Return a graph recorded by the client."""

    def sent(t, key, **value):
        return {"kind": "graph", "t": t, "client": "C", "key": key, "value": value}

    return sent


def test_costs_of_graphs(rows, task, update):
    """The graph `u2` is cancelled, and `u3` has no event, as with older schedulers."""
    metrics = {
        "tasks": 3, "new_tasks": 2, "key_collisions": 0, "duration_seconds": 0.5,
        "start_timestamp_seconds": 1.0, "materialization_duration_seconds": 0.2,
        # Dask reports these with the wrong sign.
        "ordering_duration_seconds": -0.125, "state_initialization_duration_seconds": -0.25,
    }  # fmt: skip

    assert rows(
        "SELECT stimulus_id, client, status, t, start_t, tasks, new_tasks, groups, edges, "
        "update_seconds, materialization_seconds, ordering_seconds, state_seconds "
        "FROM graph_updates",
        update("u1", 1.5, **metrics),
        update("u1", 1.5, topic="C", **metrics),
        task("a", 1.25, stimulus_id="u1", group="a", client="C"),
        task("b", 1.25, stimulus_id="u1", group="b", client="C", dependencies=["a"]),
        update("u2", 2.0, status="cancelled"),
        update("u2", 2.0, "C", "cancelled"),
        task("c", 3.0, stimulus_id="u3", group="c", client="D"),
    ) == [
        ("u1", "C", "OK", 1.25, 1.0, 3, 2, 2, 1, 0.5, 0.2, 0.125, 0.25),
        ("u2", "C", "cancelled", 2.0, *[None] * 9),
        ("u3", "D", None, 3.0, None, None, 1, 1, *[None] * 5),
    ]


def test_sizes_of_graphs_and_of_their_tasks(ask, task):
    groups = [{"group": "a", "tasks": 30, "examined": 10, "nbytes": 5_000}]
    received = {"kind": "graph_update", "t": 1.0, "client": "C", "stimulus_id": "u1"}
    found = ask(
        *(task(f"a-{n}", 1.0, stimulus_id="u1", group="a") for n in range(30)),
        task("b", 1.0, stimulus_id="u1", group="b"),
        task("c", 2.0, stimulus_id="u2", group="a"),
        {**received, "nbytes": 2_000_000, "value": {"groups": groups}},
    )

    assert found("SELECT stimulus_id, graph_bytes FROM graph_updates") == [
        ("u1", 2_000_000),
        ("u2", None),
    ]
    assert found("SELECT stimulus_id, layer, tasks, task_bytes FROM graph_layers") == [
        ("u1", "a", 30, 15_000),
        ("u1", "b", 1, None),
        ("u2", "a", 1, None),
    ]


def test_layers_before_and_after_optimization(ask, task, sent):
    layers = [
        {"name": "ones-1", "type": "Blockwise", "tasks": 4},
        {"name": "sum-1", "type": "SimpleShuffleLayer", "tasks": None},
    ]
    found = ask(
        # The client's clock is slightly ahead.
        sent(1.05, "total", layers=layers, collections=["dask.array.Array"]),
        task("total", 1.0, stimulus_id="u1", group="total"),
        *(task(f"ones-{n}", 1.0, stimulus_id="u1", group="ones-sum-1") for n in range(4)),
        # Graphs with the same key as an earlier one, and a later one without tasks.
        sent(5.0, "total", layers=layers[:1], collections=[]),
        task("total", 5.1, stimulus_id="u2", group="total"),
        sent(9.0, "total", layers=layers[:1], collections=[]),
    )

    query = "SELECT stimulus_id, stage, layer, layer_type, tasks FROM graph_layers ORDER BY ALL"
    assert found(query) == [
        ("u1", "scheduled", "ones-sum-1", "ones", 4),
        ("u1", "scheduled", "total", "total", 1),
        ("u1", "sent", "ones-1", "Blockwise", 4),
        ("u1", "sent", "sum-1", "SimpleShuffleLayer", None),
        ("u2", "scheduled", "total", "total", 1),
        ("u2", "sent", "ones-1", "Blockwise", 4),
        (None, "sent", "ones-1", "Blockwise", 4),
    ]
    query = "SELECT layers_sent, collections FROM graph_updates ORDER BY t"
    assert found(query) == [(2, ["dask.array.Array"]), (1, [])]


def test_computations_and_their_code(rows, task, sent):
    code = {"digest": "d", "filename": "a.py", "line_number": 11}
    text = {"first_line": 10, "text": "def f():\n    x.compute()\n"}
    piece = {**code, "digest": "e", "line_number": 1, "first_line": 1, "text": "go()"}
    begun = {"kind": "computation", "client": "C"}

    assert rows(
        "SELECT computation, t, graphs, tasks, filename, line_number, line, code "
        "FROM computations",
        {**begun, "t": 1.001, "name": "c1", "stimulus_id": "u1"},  # after its tasks
        sent(0.9, "k1", code={**code, **text}),
        task("k1", 1.0, stimulus_id="u1"),
        task("k2", 1.5, stimulus_id="u2"),
        {**begun, "t": 3.0, "name": "c2", "stimulus_id": "u3"},
        sent(2.9, "k3", code=code),  # its text was recorded before
        task("k3", 3.0, stimulus_id="u3"),
        {**begun, "t": 4.0, "name": "no code", "stimulus_id": "u4"},
        {**begun, "t": 5.0, "name": "of the scheduler", "value": {"codes": [piece]}},
    ) == [
        ("c1", 1.0, 2, 2, "a.py", 11, "x.compute()", text["text"]),
        ("c2", 3.0, 1, 1, "a.py", 11, "x.compute()", text["text"]),
        ("no code", 4.0, 0, 0, None, None, None, None),
        ("of the scheduler", 5.0, 0, 0, "a.py", 1, "go()", "go()"),
    ]


def test_restrictions(rows, task):
    assert rows(
        "SELECT key, workers, resources, allow_other_workers, retries, priority "
        "FROM restrictions",
        task("a", annotations={"workers": ["w1", "w2"], "allow_other_workers": True}),
        task("b", annotations={"workers": "w1", "retries": 2}),
        task("c", annotations={"resources": {"GPU": 1}, "priority": 10}),
        task("d", annotations={"mine": 1}),
        task("e"),
    ) == [
        ("a", ["w1", "w2"], None, True, None, None),
        ("b", ["w1"], None, None, 2, None),
        ("c", None, '{"GPU":1}', None, None, 10.0),
    ]
