"""Listeners to messages come and go in any order and leave the handler as it was."""

import functools
import itertools

import pytest

from roast_recorder.scheduler import message_hooks as tap


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_last_to_leave_takes_the_wrapper_away(order):
    handled = []
    handlers = {"task-erred": lambda **message: handled.append(message)}
    before = handlers["task-erred"]
    heard = [[], [], []]
    leave = [tap.listen(handlers, "task-erred", one.append) for one in heard]

    handlers["task-erred"](key="x")
    for number in order:
        leave[number]()
        handlers["task-erred"](key=f"after {number}")

    assert handlers["task-erred"] is before
    assert [message["key"] for message in handled] == ["x", *(f"after {n}" for n in order)]
    for place, number in enumerate(order):
        keys = [message["key"] for message in heard[number] if message]
        assert keys == ["x", *(f"after {n}" for n in order[:place])]


def test_a_listener_hears_before_and_after():
    heard = []
    handlers = {"heartbeat_worker": lambda **_: heard.append("handled")}
    tap.listen(handlers, "heartbeat_worker", heard.append)

    handlers["heartbeat_worker"](address="tcp://w")

    assert heard == [{"address": "tcp://w"}, "handled", None]


def test_what_the_handler_takes_and_gives_goes_through():
    handlers = {"heartbeat_worker": lambda *comm, address: (comm, address)}
    tap.listen(handlers, "heartbeat_worker", lambda _: None)

    assert handlers["heartbeat_worker"]("comm", address="w") == (("comm",), "w")


def test_an_error_of_the_handler_goes_through_and_ends_the_message():
    def handler(**message):
        raise RuntimeError(message["key"])

    handlers = {"task-erred": handler}
    heard = []
    tap.listen(handlers, "task-erred", heard.append)

    with pytest.raises(RuntimeError, match="x"):
        handlers["task-erred"](key="x")

    assert heard == [{"key": "x"}, None]


def test_messages_of_other_kinds_are_left_alone():
    handlers = {
        "task-erred": lambda **_: None,
        "heartbeat_worker": lambda **_: None,
    }
    before = dict(handlers)
    heard = []
    leave = [
        tap.listen(handlers, "task-erred", lambda message: heard.append(("erred", message))),
        tap.listen(
            handlers, "heartbeat_worker", lambda message: heard.append(("beat", message))
        ),
    ]

    handlers["task-erred"](key="x")
    handlers["heartbeat_worker"](address="w")

    assert [said for said in heard if said[1]] == [
        ("erred", {"key": "x"}),
        ("beat", {"address": "w"}),
    ]
    for one in leave:
        one()
    assert handlers == before


@pytest.mark.parametrize("first_to_leave", [0, 1])
def test_somebody_elses_wrapper_in_between_stays(first_to_leave):
    """It copies our attributes, as `functools.wraps` does, and must not be taken for ours."""
    handled, heard = [], ([], [])
    handlers = {"task-erred": lambda **message: handled.append(message)}
    leave = [tap.listen(handlers, "task-erred", heard[0].append)]
    ours = handlers["task-erred"]

    @functools.wraps(ours)
    def theirs(**message):
        return ours(**message, seen=True)

    handlers["task-erred"] = theirs
    leave.append(tap.listen(handlers, "task-erred", heard[1].append))
    handlers["task-erred"](key="x")
    for number in (first_to_leave, 1 - first_to_leave):
        leave[number]()
    handlers["task-erred"](key="y")

    assert handlers["task-erred"] is theirs
    assert heard == ([{"key": "x", "seen": True}, None], [{"key": "x"}, None])
    assert [message["key"] for message in handled] == ["x", "y"]
