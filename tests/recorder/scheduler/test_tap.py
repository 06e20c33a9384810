"""Listeners can be added and removed in any order, and the handler is restored."""

import asyncio
import functools
import itertools
from collections import Counter
from inspect import iscoroutinefunction
from types import SimpleNamespace

import pytest

from roast_recorder.scheduler.tap import MAX_REASONS, Tap


def listen(handlers, operation, before=None, after=None):
    """Listen as one of several recordings; return what ends it."""
    tap = Tap(print)
    tap.message("event", handlers, operation, before, after)
    return tap.close


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


def test_errors_of_a_listener_are_counted_and_the_message_handled(caplog):
    handlers, seen, losses = {"task-erred": lambda key: key}, [], []
    tap = Tap(lambda *loss: losses.append(loss))
    tap.message("transition", handlers, "task-erred", lambda _: 1 / 0)
    tap.message("event", handlers, "task-erred", None, lambda message: message["y"])
    tap.message("event", handlers, "task-erred", seen.append)

    assert [handlers["task-erred"](key=key) for key in "xz"] == ["x", "z"]
    assert seen == [{"key": "x"}, {"key": "z"}]
    division = "an error in the recorder: ZeroDivisionError: division by zero"
    missing = "an error in the recorder: 'y' is missing"
    assert losses == [("transition", division, 1), ("event", missing, 1)] * 2
    # Each is logged once.
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2


def test_reasons_are_bounded_though_texts_of_errors_differ():
    losses = Counter()
    tap = Tap(lambda kind, reason, records: losses.update({(kind, reason): records}))
    for number in range(10 * MAX_REASONS):
        with tap.guard("event"):
            raise ValueError(number)

    assert len(losses) == MAX_REASONS + 1
    assert losses.total() == 10 * MAX_REASONS


def test_a_source_is_installed_as_a_whole_or_not_at_all():
    class Scheduler:
        def first(self):
            return 1

    scheduler, handlers, items, losses = Scheduler(), {"a": print, "b": print}, [], []
    tap = Tap(lambda *loss: losses.append(loss))
    with tap.source("event", "stall"):
        tap.item(items, "ours")
        tap.method("event", scheduler, "first", print)
        tap.message("event", handlers, "a", print)
        tap.message("event", handlers, "missing", print)
    assert (items, vars(scheduler), handlers) == ([], {}, {"a": print, "b": print})
    with tap.source("event"):
        tap.message("event", handlers, "b", print)
    assert handlers["a"] is print
    assert handlers["b"] is not print
    tap.close()
    assert handlers["b"] is print

    reason = "cannot be recorded with this version of Dask: 'missing' is missing"
    assert losses == [("event", reason, 0), ("stall", reason, 0)]


def test_a_hook_that_cannot_be_removed_does_not_keep_the_others():
    handlers, items = {"a": print}, []
    tap = Tap(print)
    tap.message("event", handlers, "a", print)
    tap.item(items, "ours")
    items.clear()

    tap.close()

    assert handlers == {"a": print}


def test_attributes_that_are_missing_or_raise_are_reported_once():
    class Task:
        group = None
        prefix = SimpleNamespace(name="p")

        @property
        def run_id(self):
            raise RuntimeError("no")

    losses = []
    tap = Tap(lambda *loss: losses.append(loss))
    for _ in range(2):
        read = functools.partial(tap.read, "task", Task())
        paths = "prefix.name", "group.name", "run_id", "key"
        assert [read(path) for path in paths] == ["p", None, None, None]
        assert read("key", "x") == "x"
    null = "null with this version of Dask: Task"
    assert losses == [
        ("task", f"{null}.run_id raises RuntimeError: no", 0),
        ("task", f"{null}.key is missing", 0),
    ]


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
    tap = Tap(print)
    tap.method("event", scheduler, "client_desires_keys", seen.append, positional=names)

    assert scheduler.client_desires_keys(["x"], client="c") == (["x"], "c")
    tap.close()
    scheduler.client_desires_keys(["y"], "c")

    assert seen == [{"keys": ["x"], "client": "c"}]
    assert Scheduler().client_desires_keys(["z"], "c") == (["z"], "c")


def test_sending_continues_after_an_error():
    answers = [ValueError("unexpected"), None]

    def send():
        if answer := answers.pop(0):
            raise answer

    async def send_all():
        tap = Tap(print)
        tap.every("event", 0.0, send)
        while answers:  # noqa: ASYNC110
            await asyncio.sleep(0)
        tap.close()

    asyncio.run(send_all())
