"""``roast-analyze store``, and ``sql`` of a store."""

import pytest

from roast_analyze import dask_cluster


def test_from_adding_to_removing(analyze, write_trace, task, tmp_path):
    store = tmp_path / "store"

    assert analyze("store", "add", write_trace(task("x-1")), "--to", store)[:2] == (
        0,
        "1 trace added\n",
    )
    assert "T " in analyze("store", "list", store)[1]
    assert analyze("sql", store, "SELECT trace_id FROM runs", "--format", "csv")[1] == (
        "trace_id\nT\n"
    )
    assert analyze("store", "check", store)[0] == 0
    assert analyze("store", "remove", store, "T")[0] == 0
    assert analyze("store", "compact", store, "--grace", "0")[0] == 0
    assert analyze("sql", store, "SELECT trace_id FROM runs", "--format", "csv")[1] == (
        "trace_id\n"
    )


@pytest.mark.exhaustive
def test_runs_are_removed_by_age_and_size(analyze, write_trace, tmp_path):
    for number in range(4):
        path = write_trace(trace_id=f"T{number}", stop_t=1e6 + number, name=f"{number}.jsonl")
        text = path.read_bytes().replace(b'"t": 0.0', b'"t": %d' % (1e6 * number), 1)
        path.write_bytes(text)
        analyze("store", "add", path, "--to", tmp_path / "store")

    def names() -> list[str]:
        query = "SELECT trace_id FROM runs"
        return analyze("sql", tmp_path / "store", query, "--format", "csv")[1].split()[1:]

    analyze("store", "remove", tmp_path / "store", "--before", "1970-01-05")
    assert names() == ["T1", "T2", "T3"]
    most = 2 * path.stat().st_size + 10
    analyze("store", "remove", tmp_path / "store", "--most", most)
    assert names() == ["T2", "T3"]


def test_options_that_a_query_of_a_store_does_not_have(analyze, write_trace, tmp_path):
    analyze("store", "add", write_trace(), "--to", tmp_path / "store")

    code, _, errors = analyze("sql", tmp_path / "store", "FROM runs", "--from", "5m")

    assert code == 2
    assert "not options of a store" in errors


def test_unreadable_traces_are_listed_at_the_end(analyze, write_trace, tmp_path):
    code, out, errors = analyze(
        "store", "add", tmp_path / "no.jsonl", write_trace(), "--to", tmp_path / "store"
    )

    assert (code, out) == (1, "1 trace added, 1 not read\n")
    assert "no.jsonl: " in errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["merge", "s"],
            "unknown action 'merge': choose from add, list, remove, compact, check",
        ),
        (["add", "t.jsonl"], "store add needs --to STORE"),
        (["list", "s", "--to", "s"], "store list needs STORE"),
        (["remove", "s"], "store remove needs STORE TRACE_ID…, --before or --most"),
        (["list", "s", "t"], "expected one store, got 2"),
        (["check", "nothing-here"], "is not a store: create it with roast-analyze store add"),
        (["add", "t", "--to", "s", "--workers", "2", "--scheduler", "x"], "exclude each other"),
        (
            ["add", "t", "--to", "s", "--scheduler", "tcp://127.0.0.1:1"],
            "cannot connect to the",
        ),
    ],
)
def test_a_wrong_call_is_explained(analyze, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dask_cluster, "CONNECT_TIMEOUT_SECONDS", 0.1)

    code, _, errors = analyze("store", *words)

    assert code == 2
    assert message in errors
