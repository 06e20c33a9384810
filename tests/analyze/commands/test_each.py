"""``roast-analyze each``."""


def test_rows_of_all_traces_that_can_be_read(analyze, write_trace, task, tmp_path):
    path, missing = write_trace(task("x-1")), tmp_path / "no.jsonl"
    query = ["SELECT key FROM tasks", "--format", "csv"]

    rows = f"key,trace_id,path\nx-1,T,{path}\n"
    assert analyze("each", path, *query) == (0, rows, "")
    code, out, errors = analyze("each", missing, path, *query)
    assert (code, out) == (1, rows)
    assert errors.startswith(f"roast-analyze: {missing}: ")
    output = tmp_path / "rows.csv"
    assert analyze("each", missing, path, query[0], "-o", output)[0] == 1
    assert output.read_text() == rows
    code, _, errors = analyze("each", path)
    assert (code, "pass the query last" in errors) == (2, True)
