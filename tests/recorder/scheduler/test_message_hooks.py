"""Listeners to messages come and go in any order and leave the handler as it was."""

import functools
import itertools

import pytest

from roast_recorder.scheduler.message_hooks import listen


def test_the_last_listener_removes_the_wrapper():
    for order in itertools.permutations(range(3)):
        handled, seen = [], [[], [], []]
        handlers = {"task-erred": lambda handled=handled, **message: handled.append(message)}
        before = handlers["task-erred"]
        remove = [listen(handlers, "task-erred", one.append) for one in seen]

        handlers["task-erred"](key="x")
        for number in order:
            remove[number]()
            handlers["task-erred"](key=f"after {number}")

        assert handlers["task-erred"] is before
        assert [message["key"] for message in handled] == ["x", *(f"after {n}" for n in order)]
        for place, number in enumerate(order):
            keys = [message["key"] for message in seen[number] if message]
            assert keys == ["x", *(f"after {n}" for n in order[:place])]


def test_a_listener_is_called_before_and_after_its_message_only():
    calls = []

    def handler(*comm, address):
        calls.append("handled")
        return comm, address

    handlers = {"heartbeat_worker": handler, "task-erred": print}
    listen(handlers, "heartbeat_worker", calls.append)

    assert handlers["heartbeat_worker"]("comm", address="w") == (("comm",), "w")
    assert calls == [{"address": "w"}, "handled", None]
    assert handlers["task-erred"] is print


def test_an_error_of_the_handler_is_raised_and_ends_the_message():
    def handler(**message):
        raise RuntimeError(message["key"])

    handlers = {"task-erred": handler}
    seen = []
    listen(handlers, "task-erred", seen.append)

    with pytest.raises(RuntimeError, match="x"):
        handlers["task-erred"](key="x")

    assert seen == [{"key": "x"}, None]


@pytest.mark.parametrize("first_removed", [0, 1])
def test_a_wrapper_of_another_library_in_between_stays(first_removed):
    """It has our attributes, which `functools.wraps` copies, but is not ours."""
    handled, seen = [], ([], [])
    handlers = {"task-erred": lambda **message: handled.append(message)}
    remove = [listen(handlers, "task-erred", seen[0].append)]
    ours = handlers["task-erred"]

    @functools.wraps(ours)
    def theirs(**message):
        return ours(**message, extra=True)

    handlers["task-erred"] = theirs
    remove.append(listen(handlers, "task-erred", seen[1].append))
    handlers["task-erred"](key="x")
    for number in (first_removed, 1 - first_removed):
        remove[number]()
    handlers["task-erred"](key="y")

    assert handlers["task-erred"] is theirs
    assert seen == ([{"key": "x", "extra": True}, None], [{"key": "x"}, None])
    assert [message["key"] for message in handled] == ["x", "y"]
