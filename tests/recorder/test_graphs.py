"""Graphs that a client sends: their layers, and if asked for the code that sends them."""

import dask
import dask.array as da
import pytest
from packaging.version import Version

import roast_recorder
from roast_recorder.graphs import LINES_AROUND, MAX_CODE_CHARACTERS, describe_code

pytestmark = pytest.mark.cluster

#: Older clients make tasks of collections themselves: what they send has no layers.
has_layers = pytest.mark.skipif(
    Version(dask.__version__) < Version("2025.4"), reason="graphs are sent without layers"
)


@pytest.fixture
def recorded(client, tmp_path, read_lines):
    """Records of some kinds, of what a function does while recording."""

    def recorded(work, *kinds, **settings):
        path = tmp_path / "trace.jsonl"
        with roast_recorder.record(client, path, **settings):
            work(client)
        return [line for line in read_lines(path) if line["kind"] in kinds]

    return recorded


def sum_of_ones(_client):
    return da.ones((40, 40), chunks=20).sum().compute()


@has_layers
def test_layers_of_a_collection(recorded, client):
    [graph] = recorded(sum_of_ones, "graph")

    layers = graph["value"]["layers"]
    assert graph["client"] == client.id
    by_name = {layer["name"].rpartition("-")[0]: layer for layer in layers}
    assert by_name["ones_like"]["tasks"] == 4
    assert by_name["ones_like"]["type"] == "Blockwise"
    assert "code" not in graph["value"]


@has_layers
def test_the_graph_is_found_again_by_its_key(recorded):
    records = recorded(sum_of_ones, "graph", "task")

    [graph] = [line for line in records if line["kind"] == "graph"]
    assert [line for line in records if line["kind"] == "task" and line["key"] == graph["key"]]


def test_single_tasks_have_no_layers(recorded):
    assert recorded(lambda client: client.gather(client.map(abs, [1, 2])), "graph") == []


def test_no_graphs_unless_they_are_wanted(recorded):
    def work(client):
        assert "_graph_to_futures" not in vars(client)
        return sum_of_ones(client)

    assert recorded(work, "graph", kinds=["task"]) == []


def test_nothing_is_left_behind_whichever_recorder_goes_first(client, tmp_path):
    one = roast_recorder.record(client, tmp_path / "1.jsonl")
    two = roast_recorder.record(client, tmp_path / "2.jsonl")
    one.start()
    two.start()
    one.stop()
    assert "_graph_to_futures" in vars(client)
    two.stop()

    assert "_graph_to_futures" not in vars(client)


def test_code_is_recorded_if_it_is_asked_for(recorded):
    def work(client):
        for _ in range(3):
            client.submit(sum, [1], pure=False).result()
        sum_of_ones(client)
        sum_of_ones(client)

    graphs = recorded(work, "graph", code=True)

    codes = [graph["value"]["code"] for graph in graphs]
    # Three times one line, and twice another one.
    assert [code["is_new"] for code in codes][:2] == [True, True]
    assert codes[0]["filename"] == "test_graphs.py"
    assert "client.submit(sum, [1], pure=False)" in codes[0]["text"]
    assert codes[1]["text"].splitlines()[1].strip().startswith("return da.ones")
    for code in codes[2:]:
        assert (code["is_new"], code["digest"]) == (False, codes[1]["digest"])
        assert "text" not in code


def test_a_secret_in_code_is_replaced(recorded):
    def work(client):
        password = "c4n4ry"
        return client.submit(len, password).result()

    [graph] = recorded(work, "graph", code=True)

    assert "c4n4ry" not in graph["value"]["code"]["text"]
    assert "<redacted>" in graph["value"]["code"]["text"]


def test_long_code_is_cut_around_the_line_that_submits():
    text = "".join(f"line {n} " + "x" * 50 + "\n" for n in range(1, 2_001))

    code = describe_code(text, "/somewhere/a.py", 1_000, 1)

    assert len(code["text"]) <= MAX_CODE_CHARACTERS
    assert code["text"].startswith(f"line {1_000 - LINES_AROUND} ".replace("960", "960"))
    assert code["text"].splitlines()[1_000 - code["first_line"]].startswith("line 1000 ")
    assert code["filename"] == "a.py"


def test_a_computation_is_told_once(recorded):
    def work(client):
        for _ in range(3):
            client.submit(sum, [1], pure=False).result()

    computations = recorded(work, "computation")

    names = [line["name"] for line in computations]
    assert 1 <= len(set(names)) == len(names) <= 3
    assert all("value" not in line for line in computations)


def test_code_that_clients_send_to_the_scheduler(recorded):
    def work(client):
        with dask.config.set(
            {
                "distributed.diagnostics.computations.nframes": 1,
                "distributed.diagnostics.computations.ignore-files": [],
            }
        ):
            client.submit(sum, [1], pure=False).result()  # fmt: skip

    with_code = recorded(work, "computation", code=True)
    without_code = recorded(work, "computation")

    [code] = with_code[0]["value"]["codes"]
    # Dask finds the user's code, not the recorder that stands between.
    assert "client.submit(sum" in code["text"]
    assert all("value" not in line for line in without_code)
