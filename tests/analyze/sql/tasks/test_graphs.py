"""Views graph_updates, graph_layers, computations and restrictions."""

import pytest


@pytest.fixture
def update():
    """Return Dask's event of a graph."""

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


def test_cost_of_a_graph(rows, task, update):
    metrics = {
        "tasks": 3, "new_tasks": 2, "key_collisions": 0, "duration_seconds": 0.5,
        "start_timestamp_seconds": 1.0, "materialization_duration_seconds": 0.2,
        # Dask reports these with the wrong sign.
        "ordering_duration_seconds": -0.125, "state_initialization_duration_seconds": -0.25,
    }  # fmt: skip
    records = [
        update("u1", 1.5, **metrics),
        update("u1", 1.5, topic="C", **metrics),
        task("a", 1.25, stimulus_id="u1", group="a", client="C"),
        task("b", 1.25, stimulus_id="u1", group="b", client="C", dependencies=["a"]),
    ]

    query = (
        "SELECT stimulus_id, client, t, start_t, tasks, new_tasks, groups, edges, "
        "update_seconds, materialization_seconds, ordering_seconds, state_seconds "
        "FROM graph_updates"
    )
    assert rows(query, *records) == [("u1", "C", 1.25, 1.0, 3, 2, 2, 1, 0.5, 0.2, 0.125, 0.25)]


def test_cancelled_graph_and_older_scheduler(rows, task, update):
    query = "SELECT stimulus_id, client, status, new_tasks, update_seconds FROM graph_updates"

    assert rows(
        query, update("u1", 1.0, status="cancelled"), update("u1", 1.0, "C", "cancelled"),
        task("a", 2.0, stimulus_id="u2", client="D"),
    ) == [("u1", "C", "cancelled", None, None), ("u2", "D", None, 1, None)]  # fmt: skip


def test_layers_before_and_after_optimization(rows, task, sent):
    layers = [
        {"name": "ones-1", "type": "Blockwise", "tasks": 4},
        {"name": "sum-1", "type": "SimpleShuffleLayer", "tasks": None},
    ]
    records = [
        # The client's clock is slightly ahead.
        sent(1.05, "total", layers=layers, collections=["dask.array.Array"]),
        task("total", 1.0, stimulus_id="u1", group="total"),
        *(task(f"ones-{n}", 1.0, stimulus_id="u1", group="ones-sum-1") for n in range(4)),
    ]

    query = "SELECT stimulus_id, stage, layer, layer_type, tasks FROM graph_layers ORDER BY ALL"
    assert rows(query, *records) == [
        ("u1", "scheduled", "ones-sum-1", "ones", 4),
        ("u1", "scheduled", "total", "total", 1),
        ("u1", "sent", "ones-1", "Blockwise", 4),
        ("u1", "sent", "sum-1", "SimpleShuffleLayer", None),
    ]
    assert rows("SELECT layers_sent, collections FROM graph_updates", *records) == [
        (2, ["dask.array.Array"])
    ]


def test_graphs_with_the_same_key(rows, task, sent):
    layers = [{"name": "x", "type": "Blockwise", "tasks": 1}]
    records = [
        task("k", 1.0, stimulus_id="u1"),
        sent(5.0, "k", layers=layers, collections=[]),
        task("k", 5.1, stimulus_id="u2"),
        sent(9.0, "k", layers=layers, collections=[]),
    ]

    query = "SELECT stimulus_id FROM graph_layers WHERE stage = 'sent' ORDER BY t"
    assert rows(query, *records) == [("u2",), (None,)]


def test_computations_and_their_code(rows, task, sent):
    code = {"digest": "d", "filename": "a.py", "line_number": 11}
    text = {"first_line": 10, "text": "def f():\n    x.compute()\n"}
    records = [
        {"kind": "computation", "t": 1.0, "name": "c1", "client": "C", "stimulus_id": "u1"},
        sent(0.9, "k1", code={**code, **text}),
        task("k1", 1.0, stimulus_id="u1"),
        task("k2", 1.5, stimulus_id="u2"),
        {"kind": "computation", "t": 3.0, "name": "c2", "client": "C", "stimulus_id": "u3"},
        sent(2.9, "k3", code=code),
        task("k3", 3.0, stimulus_id="u3"),
    ]

    query = (
        "SELECT computation, t, graphs, tasks, filename, line_number, line, code "
        "FROM computations"
    )
    whole = text["text"]
    assert rows(query, *records) == [
        ("c1", 1.0, 2, 2, "a.py", 11, "x.compute()", whole),
        ("c2", 3.0, 1, 1, "a.py", 11, "x.compute()", whole),
    ]


def test_computations_without_code(rows):
    begun = {"kind": "computation", "t": 1.0, "name": "c1", "stimulus_id": "u1"}

    assert rows("SELECT computation, tasks, code FROM computations", begun) == [("c1", 0, None)]


def test_code_from_the_scheduler(rows):
    piece = {
        "digest": "d",
        "filename": "a.py",
        "line_number": 1,
        "first_line": 1,
        "text": "go()",
    }
    begun = {"kind": "computation", "t": 1.0, "name": "c1", "value": {"codes": [piece]}}

    assert rows("SELECT line, code FROM computations", begun) == [("go()", "go()")]


def test_restrictions(rows, task):
    records = [
        task("a", annotations={"workers": ["w1", "w2"], "allow_other_workers": True}),
        task("b", annotations={"workers": "w1", "retries": 2}),
        task("c", annotations={"resources": {"GPU": 1}, "priority": 10}),
        task("d", annotations={"mine": 1}),
        task("e"),
    ]

    query = (
        "SELECT key, workers, resources, allow_other_workers, retries, priority "
        "FROM restrictions"
    )
    assert rows(query, *records) == [
        ("a", ["w1", "w2"], None, True, None, None),
        ("b", ["w1"], None, None, 2, None),
        ("c", None, '{"GPU":1}', None, None, 10.0),
    ]
