"""Listeners to messages come and go in any order and leave the handler as it was."""

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
            keys = [message["key"] for message in seen[number] if message]
            assert keys == ["x", *order[:place]]


@pytest.mark.parametrize("fails", [False, True])
def test_a_listener_is_called_before_and_after_its_message_only(fails):
    calls = []

    def handler(*comm, address):
        calls.append("handled")
        if fails:
            raise RuntimeError(address)
        return comm, address

    handlers = {"heartbeat_worker": handler, "task-erred": print}
    listen(handlers, "heartbeat_worker", calls.append)

    try:
        result = handlers["heartbeat_worker"]("comm", address="w")
    except RuntimeError as error:
        result = error.args
    assert result == (("w",) if fails else (("comm",), "w"))
    assert calls == [{"address": "w"}, "handled", None]
    assert handlers["task-erred"] is print


def test_dask_awaits_a_handler_that_is_a_coroutine():
    async def update_graph(client):
        calls.append("handled")
        return client

    calls, handlers = [], {"update-graph": update_graph}
    remove = listen(handlers, "update-graph", calls.append)

    assert iscoroutinefunction(handlers["update-graph"])
    assert asyncio.run(handlers["update-graph"](client="c")) == "c"
    assert calls == [{"client": "c"}, "handled", None]
    remove()
    assert handlers["update-graph"] is update_graph


def test_an_error_of_a_listener_is_logged_and_the_message_handled(caplog):
    def fails(message):
        raise ValueError(message)

    handlers, seen = {"task-erred": lambda key: key}, []
    listen(handlers, "task-erred", fails)
    listen(handlers, "task-erred", seen.append)

    assert handlers["task-erred"](key="x") == "x"
    assert seen == [{"key": "x"}, None]
    assert [str(record.exc_info[1]) for record in caplog.records] == ["{'key': 'x'}", "None"]


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
    assert seen == ([{"key": "x", "extra": True}, None], [{"key": "x"}, None])
    assert handled == ["x", "y"]


def test_calls_of_a_method_are_messages_with_all_arguments_by_name():
    class Scheduler:
        def client_desires_keys(self, keys, client):
            return keys, client

    scheduler, seen = Scheduler(), []
    remove = listen_to_method(scheduler, "client_desires_keys", seen.append, ("keys", "client"))

    assert scheduler.client_desires_keys(["x"], client="c") == (["x"], "c")
    remove()
    scheduler.client_desires_keys(["y"], "c")

    assert seen == [{"keys": ["x"], "client": "c"}, None]
    assert Scheduler().client_desires_keys(["z"], "c") == (["z"], "c")
