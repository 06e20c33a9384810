"""The command ``view``: list, description and rows of views."""

import csv
import json

import pytest

from roast_analyze.open.database import documented_views
from roast_analyze.open.views import TOPICS


@pytest.fixture(scope="module")
def views():
    return documented_views()


def test_the_list_has_one_short_line_per_view(analyze, monkeypatch, write_trace, views):
    monkeypatch.setenv("COLUMNS", "80")
    code, text, _ = analyze("view")

    lines = text.splitlines()
    assert code == 0
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line in TOPICS] == list(TOPICS)
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed == [view.name for view in views]
    [loss] = [line for line in lines if line.startswith("  loss ")]
    comment = next(view.comment for view in views if view.name == "loss")
    assert comment.startswith(loss.removeprefix("  loss").strip().removesuffix("…"))
    assert analyze("view", write_trace()) == (0, text, "")


def test_lists_and_descriptions(analyze, write_trace, views):
    assert json.loads(analyze("view", write_trace(), "--format", "json")[1]) == [
        {"view": view.name, "topic": view.topic, "meaning": view.comment} for view in views
    ]
    [_, *rows] = csv.reader(analyze("view", "--describe", "--format", "csv")[1].splitlines())
    assert rows == [[v.name, c.name, c.type, c.comment] for v in views for c in v.columns]
    text = " ".join(analyze("view", "--describe", "loss")[1].split())
    [loss] = [view for view in views if view.name == "loss"]
    assert text.startswith(f"loss (trace) {loss.comment} column type meaning ")
    for column in loss.columns:
        assert f"{column.name} {column.type} " in text
    code, _, err = analyze("view", "--describe", "los")
    assert (code, "unknown view 'los'; did you mean 'loss'?" in err) == (2, True)


def test_the_rows_of_a_view(analyze, monkeypatch, tmp_path, write_trace, task):
    monkeypatch.chdir(tmp_path)
    write_trace(task("a"), task("b"), name="tasks")  # the trace has the name of a view

    code, out, err = analyze("view", "tasks", "task_runs", "--format", "csv")
    assert (code, out[:11], err) == (0, "key,prefix,", "")
    assert "task_runs" in analyze("view", "tasks", "tasks")[1]  # both name the file
    (tmp_path / "tasks").rename("t")
    code, out, err = analyze("view", "t", "tasks", "--format", "csv", "--limit", "1")
    assert [row["key"] for row in csv.DictReader(out.splitlines())] == ["a"]
    assert err == "only the first 1 rows are shown; use --limit 0 for all\n"
    assert "no trace given for 'tasks'" in analyze("view", "tasks")[2]

    (tmp_path / "keys.sql").write_text("-- The keys.\nSELECT key FROM tasks")
    words = ["view", "t", "--views", tmp_path, "--format", "csv"]
    assert analyze(*words)[1].splitlines()[-1] == "keys,yours,The keys."
    description = "view,column,type,meaning\nkeys,key,VARCHAR,\n"
    assert analyze(*words, "keys", "--describe") == (0, description, "")
    assert analyze(*words, "keys") == (0, "key\na\nb\n", "")
