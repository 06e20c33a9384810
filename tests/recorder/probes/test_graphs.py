"""Graphs that a client sends: their layers, and on request the code that sends them."""

from collections import deque
from functools import partial
from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import wait
from packaging.version import Version

import roast_recorder
from roast_recorder.probes import graphs
from roast_recorder.scheduler.tap import Tap

pytestmark = pytest.mark.cluster

#: Older clients convert collections to tasks themselves and send no layers.
HAS_LAYERS = Version(dask.__version__) >= Version("2025.4")


@pytest.fixture
def recorded(client, trace, by_kind):
    """Return a function that records three single tasks and two graphs."""

    def recorded(**settings):
        with roast_recorder.record(client, trace, **settings):
            work(client)
        return by_kind(trace)

    return recorded


def work(client):
    password = "c4n4ry"
    section = "distributed.diagnostics.computations"
    with dask.config.set({f"{section}.nframes": 1, f"{section}.ignore-files": []}):
        for _ in range(3):
            client.submit(len, password, pure=False).result()
        sum_of_ones()
        sum_of_ones()


def sum_of_ones():
    return da.ones((40, 40), chunks=20).sum().compute()


def test_a_client_that_cannot_be_patched_is_recorded_without_its_graphs(
    recorded, monkeypatch, caplog
):
    monkeypatch.setattr(graphs.OnClient, "__init__", lambda *_: {}["_graph_to_futures"])

    lines = recorded()

    assert {"task", "transition", "trailer"} <= lines.keys()
    assert lines["graph"] == []
    [loss] = lines["loss"]
    assert loss["reason"].endswith("with this version of Dask: '_graph_to_futures' is missing")
    assert lines["trailer"][0]["dropped_by_kind"] == {"graph": 1}
    assert loss["reason"] in caplog.text


def test_layers_and_computations(recorded, client):
    lines = recorded()

    assert len(lines["graph"]) == 2 * HAS_LAYERS  # single tasks have no layers
    for graph in lines["graph"]:
        assert graph["client"] == client.id
        assert graph["key"] in {task["key"] for task in lines["task"]}
        layers = {layer["name"].rpartition("-")[0]: layer for layer in graph["value"]["layers"]}
        ones = layers["ones_like"]
        assert (ones["type"], ones["tasks"]) == ("Blockwise", 4)
        assert "code" not in graph["value"]
    names = [line["name"] for line in lines["computation"]]
    assert 1 <= len(set(names)) == len(names) <= 5
    assert all("value" not in line for line in lines["computation"])


def test_a_scheduler_that_keeps_no_computations(recorded, client, caplog):
    client.run_on_scheduler(limit_computations, 0)
    try:
        lines = recorded()
    finally:
        client.run_on_scheduler(limit_computations, 100)

    assert lines["task"]
    assert "computation" not in lines
    assert "IndexError" not in caplog.text


def limit_computations(number, dask_scheduler):
    """Replace the computations, as ``diagnostics.computations.max-history`` limits them."""
    dask_scheduler.computations = deque(maxlen=number)


def test_code_is_recorded_if_it_is_requested(recorded):
    lines = recorded(code=True)

    codes = [graph["value"]["code"] for graph in lines["graph"]]
    # One line submits three times, another one twice.
    assert [code["is_new"] for code in codes] == [True, True, False][: 2 + HAS_LAYERS]
    assert codes[0]["filename"] == "test_graphs.py"
    assert "client.submit(len, password, pure=False)" in codes[0]["text"]
    assert "c4n4ry" not in codes[0]["text"]
    assert "<redacted:" in codes[0]["text"]
    assert codes[1]["text"].splitlines()[1].strip().startswith("return da.ones")
    for code in codes[2:]:
        assert code["digest"] == codes[1]["digest"]
        assert "text" not in code
    # Dask finds the user's code although the recorder's wrapper is in the stack.
    codes = [code for line in lines["computation"] for code in line["value"]["codes"]]
    texts = [code["text"] for code in codes if "text" in code]
    assert "client.submit(len, password" in texts[0]
    assert len(texts) == 2


def test_sizes_of_graphs_and_of_the_data_in_their_tasks(client, trace, by_kind):
    big = np.zeros(150_000)

    class Processor:
        def __init__(self):
            self.weights = big

        def process(self, number):
            return number

    class Callable(Processor):
        __module__ = "__main__"

        def __call__(self, number):
            return number

    with roast_recorder.record(client, trace):
        client.submit(abs, -1, key="small").result()
        futures = [
            client.submit(len, big, key="argument"),
            client.submit(partial(max, big), 1, key="partial"),
            client.submit(lambda number: big[0] + number, 1, key="closure"),
            client.submit(Processor().process, 1, key="method"),
            client.submit(Callable(), 1, key="callable"),
            *client.map(partial(divmod, big), range(20), key=[f"map-{n}" for n in range(20)]),
        ]
        wait(futures)

    small, *large = by_kind(trace)["graph_update"]
    assert small["nbytes"] < 10_000
    assert "value" not in small
    assert {line["client"] for line in (small, *large)} == {client.id}
    found = {}
    for line in large:
        assert line["nbytes"] == pytest.approx(big.nbytes, rel=0.1)  # pickled once
        [group] = line["value"]["groups"]
        name = group.pop("group")
        assert group.pop("nbytes") == pytest.approx(group["examined"] * big.nbytes, rel=0.1)
        found[name] = group
    one = {"tasks": 1, "examined": 1}
    assert found == {
        **dict.fromkeys(["argument", "partial", "closure", "method", "callable"], one),
        "map": {"tasks": 20, "examined": 10},
    }


def listen(tap, client, found, *, code=False):
    """Append the value of each graph that a client submits."""
    graphs.OnClient(
        SimpleNamespace(
            tap=tap,
            client=client,
            settings=SimpleNamespace(code=code),
            record=lambda _, **fields: found.append(fields["value"]),
        )
    )


def test_nothing_is_left_behind_whichever_recorder_ends_first(client):
    found = [], []
    taps = [Tap(print), Tap(print)]
    for tap, one in zip(taps, found, strict=True):
        listen(tap, client, one, code=True)
    taps[0].close()
    assert client._graph_to_futures.roast_listeners
    sum_of_ones()
    taps[1].close()

    assert [len(one) for one in found] == [0, 1]
    assert "_graph_to_futures" not in vars(client)


@pytest.mark.skipif(not HAS_LAYERS, reason="graphs are sent without layers")
def test_steps_of_an_expression(client, monkeypatch):
    pandas = pytest.importorskip("pandas")
    dataframe = pytest.importorskip("dask.dataframe")
    frame = pandas.DataFrame({"layers": [1, 2, 3]})  # not the layers of a graph
    monkeypatch.setattr(graphs, "MAX_LAYERS", 3)
    found = []
    tap = Tap(print)
    listen(tap, client, found)

    (dataframe.from_pandas(frame, npartitions=2).layers + 1).sum().compute()
    tap.close()

    [value] = found
    steps = [(step["type"], step["tasks"]) for step in value["layers"]]
    assert steps == [("TreeReduce", 1), ("Chunk", 2), ("Add", 2)]
    assert value["more_layers"] == 2
