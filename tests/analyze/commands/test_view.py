"""The command ``view``: list, description and rows of views."""

import csv
import json

import pytest

from roast_analyze.cli import main
from roast_analyze.open.database import documented_views
from roast_analyze.open.views import TOPICS


@pytest.fixture(scope="module")
def views():
    return documented_views()


def test_the_list_has_one_short_line_per_view(capsys, monkeypatch, write_trace, views):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["view"]) == 0
    text = capsys.readouterr().out

    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line in TOPICS] == list(TOPICS)
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed == [view.name for view in views]
    [loss] = [line for line in lines if line.startswith("  loss ")]
    comment = next(view.comment for view in views if view.name == "loss")
    assert comment.startswith(loss.removeprefix("  loss").strip().removesuffix("…"))
    assert main(["view", str(write_trace())]) == 0
    assert capsys.readouterr().out == text


def test_lists_and_descriptions_for_programs(capsys, write_trace, views):
    assert main(["view", str(write_trace()), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"view": view.name, "topic": view.topic, "meaning": view.comment} for view in views
    ]
    assert main(["view", "--describe", "--format", "csv"]) == 0
    [_, *rows] = csv.reader(capsys.readouterr().out.splitlines())
    assert rows == [[v.name, c.name, c.type, c.comment] for v in views for c in v.columns]


def test_the_description_of_a_view(capsys, views):
    assert main(["view", "--describe", "loss"]) == 0
    text = " ".join(capsys.readouterr().out.split())

    [loss] = [view for view in views if view.name == "loss"]
    assert text.startswith(f"loss (trace) {loss.comment} column type meaning ")
    for column in loss.columns:
        assert f"{column.name} {column.type} " in text
    assert main(["view", "--describe", "los"]) == 2
    assert "unknown view 'los'; did you mean 'loss'?" in capsys.readouterr().err


def test_a_view(capsys, write_trace, task):
    path = str(write_trace(task("a"), task("b")))

    assert main(["view", path, "tasks", "--format", "csv", "--limit", "1"]) == 0
    captured = capsys.readouterr()
    assert [row["key"] for row in csv.DictReader(captured.out.splitlines())] == ["a"]
    assert captured.err == "only the first 1 rows are shown; use --limit 0 for all\n"
    assert main(["view", "tasks"]) == 2
    assert "no trace given for 'tasks'" in capsys.readouterr().err


def test_a_trace_with_the_name_of_a_view(capsys, monkeypatch, tmp_path, write_trace, task):
    monkeypatch.chdir(tmp_path)
    write_trace(task("a"), name="tasks")

    assert main(["view", "tasks", "tasks"]) == 0  # both are the existing file
    assert "task_runs" in capsys.readouterr().out
    assert main(["view", "tasks", "task_runs", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("key,prefix,")


def test_user_views(capsys, tmp_path, write_trace, task):
    (tmp_path / "keys.sql").write_text("-- The keys.\nSELECT key FROM tasks")
    words = ["view", str(write_trace(task("a"))), "--views", str(tmp_path), "--format", "csv"]

    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "keys,yours,The keys."
    assert main([*words, "keys", "--describe"]) == 0
    assert capsys.readouterr().out == "view,column,type,meaning\nkeys,key,VARCHAR,\n"
    assert main([*words, "keys"]) == 0
    assert capsys.readouterr().out == "key\na\n"
    assert main([*words, "kyes"]) == 2
    assert "unknown view 'kyes'; did you mean 'keys'?" in capsys.readouterr().err
