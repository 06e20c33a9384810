"""The user's own views: folders of SQL files."""

import warnings
from pathlib import Path

import pytest

from roast_analyze import Column, Trace, View
from roast_analyze.errors import BrokenView, ViewSkipped

SLOW = """\
-- Attempts that took long: one row per attempt,
-- the slowest first.

SELECT key, compute_seconds FROM task_runs WHERE compute_seconds > 1 ORDER BY 2 DESC
"""


@pytest.fixture
def folder(tmp_path):
    """Write a folder of views and return its path."""

    def folder(name: str = "views", **files: str) -> Path:
        (tmp_path / name).mkdir()
        for stem, text in files.items():
            (tmp_path / name / f"{stem}.sql").write_text(text, encoding="utf-8")
        return tmp_path / name

    return folder


@pytest.fixture
def path(write_trace, run):
    return write_trace(*run("a", 1.0, 2.0), *run("b", 1.0, 4.0), *run("c", 1.0, 3.0))


def own(trace: Trace) -> list[View]:
    return [view for view in trace.views() if view.topic == "yours"]


# -- valid files ---------------------------------------------------------------


def test_a_query_becomes_a_view_named_after_its_file(path, folder):
    with Trace(path, views=[folder(slow=SLOW)]) as trace:
        assert trace.frame("slow").rows() == [("b", 3.0), ("c", 2.0)]
        assert trace.rows("SELECT count(*) FROM slow") == [(2,)]
        assert own(trace) == [
            View(
                "slow",
                "yours",
                "Attempts that took long: one row per attempt, the slowest first.",
                (Column("key", "VARCHAR", ""), Column("compute_seconds", "DOUBLE", "")),
            )
        ]


def test_statements_create_views_with_comments(path, folder):
    text = """
        /* Two views, */ CREATE VIEW longest AS SELECT max(compute_seconds) AS s FROM task_runs;
        -- and what one of them means.
        COMMENT ON VIEW longest IS 'The run''s longest attempt.';
        comment on column "longest".s is 'How long it took.';
        create view shortest as select min(compute_seconds) as s from task_runs;
    """
    with Trace(path, views=[folder(extremes=text)]) as trace:
        assert own(trace) == [
            View(
                "longest",
                "yours",
                "The run's longest attempt.",
                (Column("s", "DOUBLE", "How long it took."),),
            ),
            View("shortest", "yours", "", (Column("s", "DOUBLE", ""),)),
        ]


def test_views_can_use_each_other_in_any_order(path, folder):
    first = folder("first", a="FROM b SELECT n + 1 AS n", c="SELECT 1 AS n")
    second = folder("second", b="FROM c SELECT n + 1 AS n", d="FROM a SELECT n + 1 AS n")

    with Trace(path, views=[first, second]) as trace:
        assert trace.frame("d").item() == 4
        assert [view.name for view in own(trace)] == ["a", "b", "c", "d"]


def test_files_and_views_that_are_not_listed(path, folder):
    views = folder(_block="SELECT 1 AS n", built="\ufeffFROM _block")
    (views / "README.md").write_text("no view")
    (views / "empty.sql.bak").write_text("no view")

    with Trace(path, views=[views]) as trace:
        assert [view.name for view in own(trace)] == ["built"]
        assert trace.frame("built").item() == 1


# -- invalid files ---------------------------------------------------------------------

NOT_ALLOWED = "is not allowed: use one query, or CREATE VIEW name AS … and COMMENT ON the views"


#: Files that contain statements other than queries, views, and comments on these views.
FOREIGN = [
    "SELECT 1; SELECT 2",
    "DROP VIEW tasks",
    "COPY tasks TO 'x'",
    "SET threads = 1",
    "UPDATE EXTENSIONS",
    "CREATE TABLE a AS SELECT 1",
    "CREATE MACRO a() AS 1",
    "CREATE TEMP VIEW a AS SELECT 1",
    "CREATE OR REPLACE VIEW tasks AS SELECT 1",
    "CREATE VIEW raw.a AS SELECT 1",
    'CREATE VIEW "raw"."a" AS SELECT 1',
    "COMMENT ON VIEW tasks IS 'x'",
    "CREATE VIEW a AS SELECT 1; COMMENT ON COLUMN tasks.key IS 'x'",
]

BROKEN = [
    ({"tasks": "SELECT 1"}, "tasks.sql': 'tasks' is a view of roast: choose another name"),
    ({"Tasks": "SELECT 1"}, "Tasks.sql': 'Tasks' is a view of roast"),
    ({"a": "CREATE VIEW _tasks AS SELECT 1"}, "a.sql': '_tasks' is a view of roast"),
    ({"a": "CREATE VIEW b AS SELECT 1", "b": "SELECT 2"}, "a.sql' also creates 'b': rename"),
    ({"a": "-- c\nSELECT\n  kye FROM tasks"}, "a.sql': line 3, column 3: Binder Error: Refer"),
    (
        {"a": "CREATE VIEW a AS SELECT 1;\nCREATE VIEW b AS\nFROM taks"},
        "a.sql': line 3, column 6: Catalog Error: Table with name taks does not exist",
    ),
    ({"a": "SELEC 1"}, "a.sql': line 1, column 1: Parser Error: syntax error at or near \"S"),
    ({"a": ""}, "a.sql': the file contains no query"),
    ({"a": "-- nothing"}, "a.sql': the file contains no query"),
    ({"a-b": "SELECT 1"}, "invalid view name 'a-b': use letters, digits and _"),
    ({"a": "SELECT 1; SELECT 2"}, f"'SELECT 1;' {NOT_ALLOWED}"),
    ({"a": "FROM read_text('/etc/passwd')"}, "a.sql': opening '/etc/passwd' is not allowed"),
    ({"a": "WITH a AS (DELETE FROM raw.task RETURNING *) FROM a"}, "not allowed"),
    ({"a": "FROM a"}, "Table with name a does not exist"),
    ({"a": "FROM b", "b": "FROM a"}, "Table with name b does not exist"),
    ({"a": "FROM b", "b": "FROM nowhere"}, "b.sql': line 1, column 6: "),
]


@pytest.mark.parametrize(("files", "message"), BROKEN, ids=range(len(BROKEN)))
@pytest.mark.exhaustive
def test_a_broken_file_is_named_with_the_reason(path, folder, files, message):
    with pytest.raises(BrokenView) as caught:
        Trace(path, views=[folder(**files)])

    assert message in str(caught.value).splitlines()[0]


def test_files_of_other_statements_are_not_allowed(path, folder, monkeypatch):
    views = folder(**{f"v{i}": text for i, text in enumerate(FOREIGN)})
    monkeypatch.setenv("ROAST_VIEWS", str(views))

    with pytest.warns(ViewSkipped) as caught:
        Trace(path).close()

    messages = [str(warning.message) for warning in caught]
    assert len(messages) == len(FOREIGN)
    assert [message for message in messages if NOT_ALLOWED not in message] == []


def test_unreadable_files_and_folders_are_named(path, folder, tmp_path):
    (folder() / "a.sql").write_bytes(b"SELECT '\xff'")

    for place, message in [
        (tmp_path / "views", "a.sql' is not UTF-8: save it as UTF-8"),
        (tmp_path / "nowhere", "nowhere' (No such file or directory): name a folder of .sql"),
        (path, "(Not a directory): name a folder of .sql files"),
    ]:
        with pytest.raises(BrokenView) as caught:
            Trace(path, views=[place])
        assert message in str(caught.value)


def test_an_unsafe_trace_allows_views_of_files(path, folder, tmp_path):
    (tmp_path / "x.csv").write_text("a\n7\n")
    views = folder(x=f"FROM '{tmp_path}/x.csv'")

    with Trace(path, views=[views], unsafe=True) as trace:
        assert trace.frame("x").item() == 7


# -- default folders ---------------------------------------------------------------


def test_the_default_folder(path, tmp_path, monkeypatch):
    monkeypatch.delenv("ROAST_VIEWS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with Trace(path) as trace:
        assert own(trace) == []

    views = tmp_path / "config" / "roast" / "views"
    views.mkdir(parents=True)
    (views / "slow.sql").write_text(SLOW)
    with Trace(path) as trace:
        assert [view.name for view in own(trace)] == ["slow"]
    with Trace(path, views=[]) as trace:
        assert own(trace) == []


def test_the_folders_of_the_environment_variable(path, folder, monkeypatch):
    first, second = folder("first", a="SELECT 1"), folder("second", b="SELECT 2")
    monkeypatch.setenv("ROAST_VIEWS", f"{first}:{second}")

    with warnings.catch_warnings(action="error"), Trace(path) as trace:
        assert [view.name for view in own(trace)] == ["a", "b"]
    for named in ([second], second, str(second)):
        with Trace(path, views=named) as trace:
            assert [view.name for view in own(trace)] == ["b"]


def test_broken_files_in_the_default_folders_are_skipped_with_a_warning(
    path, folder, monkeypatch
):
    views = folder(good="SELECT 1", bad="SELECT kye FROM tasks", worse="FROM bad")
    monkeypatch.setenv("ROAST_VIEWS", f"{views}:nowhere")

    with pytest.warns(ViewSkipped) as caught, Trace(path) as trace:
        assert [view.name for view in own(trace)] == ["good"]

    assert [str(warning.message).split(": ")[1] for warning in caught] == [
        "cannot read the folder of views 'nowhere' (No such file or directory)",
        f"'{views}/bad.sql'",
        f"'{views}/worse.sql'",
    ]
    assert {Path(warning.filename) for warning in caught} == {Path(__file__)}
