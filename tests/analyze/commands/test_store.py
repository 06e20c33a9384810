"""``roast-analyze store``, and ``sql`` of a store."""

import pytest
from deltalake import DeltaTable

from roast_analyze import dask_cluster


def test_traces_are_added_listed_and_removed(analyze, write_trace, task, tmp_path):
    store, path, missing = tmp_path / "store", write_trace(task("x-1")), tmp_path / "no.jsonl"

    def trace_ids() -> str:
        query = "SELECT trace_id FROM runs"
        return analyze("sql", store, query, "--format", "csv")[1]

    code, out, errors = analyze("store", "add", missing, path, "--to", store)
    assert (code, out) == (1, "1 trace added, 1 not read\n")
    assert errors.startswith(f"roast-analyze: {missing}: ")
    added = analyze("store", "add", path, "--to", store)
    assert added == (0, "0 traces added, 1 unchanged\n", "")
    assert "T " in analyze("store", "list", store)[1]
    assert trace_ids() == "trace_id\nT\n"
    assert analyze("store", "check", store) == (0, f"{store}: all rows are present\n", "")
    assert analyze("store", "remove", store, "T") == (0, "1 trace removed\n", "")
    assert "roast-analyze store compact removes" in analyze("store", "check", store)[1]
    for hours in (2**63 - 1, 0):
        assert analyze("store", "compact", store, "--grace", hours)[0] == 0
    assert trace_ids() == "trace_id\n"
    code, _, errors = analyze("sql", store, "FROM runs", "--from", "5m")
    assert (code, "not options of a store" in errors) == (2, True)

    analyze("store", "add", path, "--to", store)
    DeltaTable(f"{store}/task").delete()
    code, out, _ = analyze("store", "check", store)
    assert code == 1
    assert out.startswith(f"{store}: 1 difference\n")


@pytest.mark.exhaustive
def test_a_list_fits_into_80_columns(analyze, write_trace, tmp_path):
    program = {"section": "client", "name": "program", "value": "dijet_analysis.py"}
    path = write_trace({"kind": "environment", "t": 0.0, **program}, trace_id="0d1f" * 8)
    analyze("store", "add", path, "--to", tmp_path / "store")

    lines = analyze("store", "list", tmp_path / "store")[1].splitlines()

    assert max(map(len, lines)) <= 80
    assert f"{'0d1f' * 8} 1970-01-01 00:00 dijet" in " ".join(lines[3].split())


@pytest.mark.exhaustive
def test_runs_are_removed_by_age_and_size(analyze, write_trace, tmp_path):
    store = tmp_path / "store"
    for number in range(4):
        path = write_trace(trace_id=f"T{number}", stop_t=1e6 + number, name=f"{number}.jsonl")
        text = path.read_bytes().replace(b'"t": 0.0', b'"t": %d' % (1e6 * number), 1)
        path.write_bytes(text)
        analyze("store", "add", path, "--to", store)

    most = 2 * path.stat().st_size + 10
    for limit, kept in [
        (["--before", "1970-01-05"], ["T1", "T2", "T3"]),
        (["--most", most], ["T2", "T3"]),
    ]:
        analyze("store", "remove", store, *limit)
        names = analyze("sql", store, "SELECT trace_id FROM runs", "--format", "csv")[1]
        assert names.split()[1:] == kept


def test_an_invalid_call_is_explained(analyze, write_trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_trace(name="t.jsonl")
    monkeypatch.setattr(dask_cluster, "CONNECT_TIMEOUT_SECONDS", 0.1)
    for words, message in {
        "merge s": "unknown action 'merge': choose from add, list, remove, compact, check",
        "add t.jsonl": "store add needs --to STORE",
        "list s --to s": "store list needs STORE",
        "remove s": "store remove needs STORE TRACE_ID…, --before or --most",
        "list s t": "expected one store, got 2",
        "add t.jsonl --to t.jsonl": "t.jsonl/runs): name a folder or a URL that you can",
        "list s --most 5GB": "--most is an option of store remove, not of store list",
        "check no-store": "is not a store: create it with roast-analyze store add",
        "list http://": "'http://' names no store: write the whole URL, or a folder",
        "add t.jsonl --to file://": "'file://' names no store: write the whole URL",
        "add t --to s --workers 2 --scheduler x": "exclude each other",
        "add t --to s --tls-cert c.pem": "add --scheduler ADDRESS",
        "add t --to s --scheduler tcp://127.0.0.1:1": "cannot connect to the",
    }.items():
        code, _, errors = analyze("store", *words.split())
        assert (code, message in errors) == (2, True), errors


@pytest.mark.parametrize("hours", ["-5", "nan", "inf", "x"])
def test_hours_are_a_number(analyze, hours):
    code, _, errors = analyze("store", "compact", "s", f"--grace={hours}")

    assert code == 2
    assert f"invalid number of hours '{hours}': use 0 or 24" in errors


@pytest.mark.exhaustive
def test_a_store_of_any_name_is_queried_into_a_file(analyze, write_trace, tmp_path):
    store, output = tmp_path / "[1] 'ümläut' #h?", tmp_path / "runs.csv"
    assert analyze("store", "add", write_trace(), "--to", store)[0] == 0

    assert analyze("sql", store, "SELECT trace_id FROM runs", "-o", output) == (0, "", "")

    assert output.read_text() == "trace_id\nT\n"
