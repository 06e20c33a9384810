"""Failures and losses."""

import polars as pl
import pytest

from analyze.report.contexts import NOTHING, context_of
from analyze.report.reading import plain, texts
from roast_analyze.report.listing import Listing
from roast_analyze.report.run import SURPLUS, Run
from roast_analyze.report.topics import failures, loss


@pytest.fixture
def fail(task, move):
    """Return the records of a task that failed with an exception."""

    def fail(key, exception, **fields):
        return (
            task(key),
            move(1.0, key, "waiting>processing", worker="w1"),
            move(2.0, key, "processing>erred", "task-erred-1.0", exception=exception, **fields),
        )

    return fail


def test_long_texts_are_cut(open_trace, fail):
    """The beginning of an exception is kept, and the end of a traceback."""
    traceback = "first" + "line\n" * 1000 + "last"

    found = failures.query(open_trace(*fail("a", "E" * 2000, traceback=traceback)))

    [row] = found.rows.to_dicts()
    assert row["cause"] == "E" * (failures.EXCEPTION_CHARACTERS - 1) + "…"
    assert (row["traceback"][0], row["traceback"][-5:]) == ("…", "\nlast")
    assert len(row["traceback"]) == failures.TRACEBACK_CHARACTERS


@pytest.mark.parametrize(
    ("exceptions", "text"),
    [
        (["E()"], "1 failure; by kind: 1 × task erred. Exception: E()"),
        (["E()"] * 2, "2 failures; by kind: 2 × task erred. All have the same exception: E()"),
        (
            ["E at 0x7f01", "E at 0x8e22"],
            ("2 failures; by kind: 2 × task erred. All have the same exception, except for "
             "numbers: E at 0x7f01"),
        ),
        (
            ["OSError()", "E at 0x7f01", "E at 0x8e22"],
            "3 failures; by kind: 3 × task erred. Most frequent (2 ×): E at 0x7f01",
        ),
        ([None], "1 failure; by kind: 1 × task erred."),
        (
            ["E()", "E()", None],
            "3 failures; by kind: 3 × task erred. All 2 exceptions are the same: E()",
        ),
        (["E()", "F()"], "2 failures; by kind: 2 × task erred. First exception: E()"),
    ],
)  # fmt: skip
def test_the_most_frequent_exception(exceptions, text):
    unknown = ("t", "prefix", "key", "attempt", "worker", "exception", "detail", "traceback")
    rows = pl.DataFrame({"cause": exceptions}, {"cause": pl.String}).with_columns(
        what=pl.lit("task erred"), **dict.fromkeys(unknown)
    )
    found = Listing("failures", "", rows, rows.height)

    section = failures.section(found, context_of())

    assert plain(section.sentences[0]) == text


def test_the_most_frequent_exception_of_those_that_are_listed(sentences, fail):
    listed = failures.FAILURE_ROWS
    records = [r for i in range(listed) for r in fail(f"a-{i:03}", "E()")]

    assert sentences("failures", *records, *fail("b", "F()")) == (
        f"{listed + 1} failures; by kind among the first {listed}: {listed} × task erred. All "
        f"{listed} exceptions among the first {listed} are the same: E()"
    )


def test_without_transitions_failed_attempts_are_unknown(sentences, worker, task):
    assert sentences("failures", worker("w1"), task("a-1")) == (
        "No worker was lost. Failed attempts are not known without transitions."
    )


def test_a_traceback_can_be_expanded(section, sentences, fail):
    assert sentences("failures") == "No attempt failed and no worker was lost."
    table, *_ = section("failures", *fail("a-1", "E()", traceback="File a.py")).tables
    assert [cell.more for cell in table.rows[0] if cell.text == "E()"] == ["File a.py"]


def test_loss(section):
    lost = [{"kind": "loss", "t": 1.0, "reason": f"r{i}", "records": 9 - i} for i in range(4)]

    found = section("loss", *lost)

    assert [plain(text) for text in found.sentences] == [
        "The trace is incomplete: r0; r1; r2; and more. At least 30 records are missing."
    ]
    assert [row[0] for row in texts(found.tables[0])] == ["r0", "r1", "r2", "r3"]
    surplus = {**lost[0], "reason": SURPLUS}
    assert plain(section("loss", surplus).sentences[0]) == (
        "The trace is incomplete: more records than were written. 9 records are surplus."
    )


def test_several_losses_for_one_reason_and_no_loss():
    rows = pl.DataFrame({"reason": ["r0"] * 4, "records": [9, 8, 7, 6]})
    rows = rows.with_columns(detail=None, t=1.0)

    same = loss.section(Listing("loss", "", rows, 4), context_of(Run(lost_records=30)))
    none = loss.section(NOTHING, context_of(records=2))

    assert plain(same.sentences[0]).startswith("The trace is incomplete: r0. At least")
    assert plain(none.empty).startswith("The trace is complete: it contains 2 records")
