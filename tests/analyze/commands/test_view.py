"""The list of views, one of them, and its columns."""

import csv
import json
import sys

import pytest

from roast_analyze.cli import main
from roast_analyze.open.database import documented_views
from roast_analyze.open.views import TOPICS


def test_the_list_says_what_every_view_means(capsys, write_trace):
    assert main(["view", str(write_trace()), "--format", "json"]) == 0

    assert json.loads(capsys.readouterr().out) == [
        {"view": view.name, "topic": view.topic, "meaning": view.comment}
        for view in documented_views()
    ]


def test_a_view(capsys, write_trace, task):
    path = write_trace(task("a"), task("b"))

    assert main(["view", str(path), "tasks", "--format", "csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["key"] for row in rows] == ["a", "b"]


def test_the_columns_of_a_view(capsys, write_trace):
    assert main(["view", str(write_trace()), "loss", "--describe", "--format", "csv"]) == 0

    [_, *rows] = csv.reader(capsys.readouterr().out.splitlines())
    [loss] = [view for view in documented_views() if view.name == "loss"]
    assert rows == [["loss", c.name, c.type, c.comment] for c in loss.columns]


def test_the_columns_of_all_views(capsys, write_trace):
    assert main(["view", str(write_trace()), "--describe", "--format", "jsonl"]) == 0

    named = {json.loads(line)["view"] for line in capsys.readouterr().out.splitlines()}
    assert named == {view.name for view in documented_views()}


def test_only_so_many_rows_of_a_view(capsys, write_trace, task):
    path = str(write_trace(task("a"), task("b")))

    assert main(["view", path, "tasks", "--format", "csv", "--limit", "1"]) == 0
    captured = capsys.readouterr()
    assert [row["key"] for row in csv.DictReader(captured.out.splitlines())] == ["a"]
    assert captured.err == "only the first 1 rows; --limit 0 gives all\n"


def test_a_terminal_gets_the_list_by_topic(capsys, monkeypatch, write_trace):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")

    assert main(["view", str(write_trace())]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    topics = [line for line in lines if line in TOPICS]
    assert topics == list(TOPICS)
    for view in documented_views():
        assert any(line.startswith(view.name) for line in lines), view.name


def test_views_of_the_users_own_are_listed_described_and_printed(
    capsys, tmp_path, write_trace, task
):
    (tmp_path / "keys.sql").write_text("-- The keys.\nSELECT key FROM tasks")
    words = ["view", str(write_trace(task("a"))), "--views", str(tmp_path), "--format", "csv"]

    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "keys,yours,The keys."
    assert main([*words, "keys", "--describe"]) == 0
    assert capsys.readouterr().out == "view,column,type,meaning\nkeys,key,VARCHAR,\n"
    assert main([*words, "keys"]) == 0
    assert capsys.readouterr().out == "key\na\n"
    assert main([*words, "kyes"]) == 2
    assert "no view is named 'kyes'; did you mean 'keys'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", [view.name for view in documented_views()])
def test_every_view_is_printed(capsys, write_trace, task, run, name):
    assert main(["view", str(write_trace(task("a"), *run("a", 1.0, 2.0))), name]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("trace_id")
