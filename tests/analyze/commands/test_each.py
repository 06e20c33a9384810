"""``roast-analyze each``."""


def test_rows_in_any_format(analyze, write_trace, task):
    path = write_trace(task("x-1"))

    code, out, _ = analyze("each", path, "SELECT key FROM tasks", "--format", "csv")

    assert code == 0
    assert out == f"key,trace_id,path\nx-1,T,{path}\n"


def test_unreadable_traces_are_listed_at_the_end(analyze, write_trace, task, tmp_path):
    code, out, errors = analyze(
        "each", tmp_path / "no.jsonl", write_trace(task("x-1")), "FROM tasks", "--format", "csv"
    )

    assert code == 1
    assert len(out.splitlines()) == 2
    assert "no.jsonl: " in errors


def test_a_query_is_needed(analyze, write_trace):
    code, _, errors = analyze("each", write_trace())

    assert code == 2
    assert "pass the query last" in errors
