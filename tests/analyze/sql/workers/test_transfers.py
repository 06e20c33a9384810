"""View transfers: matching the reports of both ends."""

import pytest


@pytest.fixture
def word():
    """Return a report of a transfer from w1 to w2 by one end."""

    def word(who: str | None, start: float | None, stop: float, keys=None, **fields) -> dict:
        keys = keys or {"a": 10, "b": 20}
        ends = {"source": "w1", "destination": "w2", **fields}
        record = {
            "kind": "transfer",
            "t": stop,
            "start_t": start,
            "stop_t": stop,
            **ends,
        }
        record |= {"keys": keys, "nbytes": sum(keys.values())}
        if who == "w1":
            record["measured"] = {"sent_bytes": 7}
        return record | ({"worker": who} if who else {})

    return word


def test_reports_of_one_or_both_ends(rows, word):
    back = {"source": "w2", "destination": "w1"}

    assert rows(
        "SELECT start_t, stop_t, source, destination, bytes, source_bytes, reported_by, "
        "sizes_agree, source_stop_t, sent_bytes FROM transfers ORDER BY stop_t, source, bytes",
        # The order of keys does not matter.
        word("w1", 1.25, 2.125),
        word("w2", 1.0, 2.0, {"b": 20, "a": 10}),
        word("w1", 5.0, 6.0),
        word("w2", 9.0, 10.0),
        # The ends can report different sizes.
        word("w1", 11.0, 12.0, {"c": 10}),
        word("w2", 11.0, 12.0, {"c": 11}),
        # Other keys or the opposite direction are other transfers.
        word("w1", 13.0, 14.0),
        word("w2", 13.0, 14.0, {"a": 10}),
        word("w1", 13.0, 14.0, **back),
    ) == [
        (1.0, 2.0, "w1", "w2", 30, 30, "both", True, 2.125, 7),
        (5.0, 6.0, "w1", "w2", 30, 30, "source", None, 6.0, 7),
        (9.0, 10.0, "w1", "w2", 30, None, "destination", None, None, None),
        (11.0, 12.0, "w1", "w2", 11, 10, "both", False, 12.0, 7),
        (13.0, 14.0, "w1", "w2", 10, None, "destination", None, None, None),
        (13.0, 14.0, "w1", "w2", 30, 30, "source", None, 14.0, 7),
        (13.0, 14.0, "w2", "w1", 30, None, "destination", None, None, 7),
    ]


def test_reports_without_an_end(rows, word):
    """Older workers do not name the reporter, and clients do not report."""
    keys = {"a": 10, "b": 20}
    assert rows(
        "FROM transfers ORDER BY start_t, stop_t",
        word(None, 1.0, 3.0),
        word("w1", 4.0, 5.0, destination=None),
        word("w2", None, 5.0, source=None),
    ) == [
        (1.0, 3.0, "w1", "w2", 30, keys, 2.0, 15.0, *[None] * 6, "T"),
        (
            4.0, 5.0, "w1", None, 30, keys, 1.0, 30.0, 7, "source", None,
            4.0, 5.0, 30, "T",
        ),
        (None, 5.0, None, "w2", 30, keys, None, None, None, "destination", *[None] * 4, "T"),
    ]  # fmt: skip
