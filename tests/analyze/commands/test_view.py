"""The list of views, one of them, and its columns."""

import csv
import json

import pytest

from roast_analyze.cli import main
from roast_analyze.trace import documented_views


def test_the_list_says_what_every_view_means(capsys, write_trace):
    assert main(["view", str(write_trace()), "--format", "json"]) == 0

    assert json.loads(capsys.readouterr().out) == [
        {"view": view.name, "meaning": view.comment} for view in documented_views()
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


@pytest.mark.parametrize("name", [view.name for view in documented_views()])
def test_every_view_is_printed(capsys, write_trace, task, run, name):
    assert main(["view", str(write_trace(task("a"), *run("a", 1.0, 2.0))), name]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("trace_id")
