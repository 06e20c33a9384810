"""Listeners can be added and removed in any order, and the handler is restored."""

import asyncio
import functools
import itertools
from inspect import iscoroutinefunction

import pytest

from roast_recorder.scheduler.message_hooks import listen, listen_to_method


def test_the_last_listener_removes_the_wrapper():
    for order in itertools.permutations(range(3)):
        handled, seen = [], [[], [], []]
        handlers = {"task-erred": lambda key, handled=handled: handled.append(key)}
        before = handlers["task-erred"]
        remove = [listen(handlers, "task-erred", one.append) for one in seen]

        handlers["task-erred"](key="x")
        for number in order:
            remove[number]()
            handlers["task-erred"](key=number)

        assert handlers["task-erred"] is before
        assert handled == ["x", *order]
        for place, number in enumerate(order):
            assert [message["key"] for message in seen[number]] == ["x", *order[:place]]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("waits", [False, True])
def test_listeners_are_called_before_and_after_their_message_only(waits, fails):
    calls = []

    def handler(*comm, address):
        calls.append("handled")
        if fails:
            raise RuntimeError(address)
        return comm, address

    async def coroutine(*comm, address):
        return handler(*comm, address=address)

    handlers = {"heartbeat_worker": coroutine if waits else handler, "task-erred": print}
    before, after = (
        lambda message, at=at: calls.append((at, message)) for at in ("before", "after")
    )
    listen(handlers, "heartbeat_worker", before, after)
    called = handlers["heartbeat_worker"]

    try:
        result = called("comm", address="w")
        result = asyncio.run(result) if waits else result
    except RuntimeError as error:
        result = error.args
    assert result == (("w",) if fails else (("comm",), "w"))
    message = {"address": "w"}
    assert calls == [("before", message), "handled", ("after", message)]
    assert iscoroutinefunction(called) == waits  # Dask awaits only coroutine functions
    assert handlers["task-erred"] is print


def test_the_first_error_of_a_listener_is_logged_and_the_message_handled(caplog):
    handlers, seen = {"task-erred": lambda key: key}, []
    listen(handlers, "task-erred", lambda _: 1 / 0)
    listen(handlers, "task-erred", None, lambda message: message["y"])
    listen(handlers, "task-erred", seen.append)

    # Only the first error of each listener is logged.
    assert [handlers["task-erred"](key=key) for key in "xz"] == ["x", "z"]
    assert seen == [{"key": "x"}, {"key": "z"}]
    assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError, KeyError]


@pytest.mark.parametrize("first_removed", [0, 1])
def test_a_wrapper_of_another_library_in_between_stays(first_removed):
    """It has our attributes, which `functools.wraps` copies, but is not ours."""
    handled, seen = [], ([], [])
    handlers = {"task-erred": lambda **message: handled.append(message["key"])}
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
    assert seen == ([{"key": "x", "extra": True}], [{"key": "x"}])
    assert handled == ["x", "y"]


def test_calls_of_a_method_are_messages_with_all_arguments_by_name():
    class Scheduler:
        def client_desires_keys(self, keys, client):
            return keys, client

    scheduler, seen = Scheduler(), []
    names = "keys", "client"
    remove = listen_to_method(scheduler, "client_desires_keys", seen.append, positional=names)

    assert scheduler.client_desires_keys(["x"], client="c") == (["x"], "c")
    remove()
    scheduler.client_desires_keys(["y"], "c")

    assert seen == [{"keys": ["x"], "client": "c"}]
    assert Scheduler().client_desires_keys(["z"], "c") == (["z"], "c")
