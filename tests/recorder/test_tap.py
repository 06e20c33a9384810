"""Listeners of failed tasks come and go in any order and leave the handler as it was."""

import itertools
from types import SimpleNamespace

import pytest

from roast_recorder import tap


@pytest.mark.parametrize("order", itertools.permutations(range(3)))
def test_the_last_to_leave_takes_the_wrapper_away(order):
    handled = []
    original = handled.append
    scheduler = SimpleNamespace(stream_handlers={"task-erred": lambda **m: original(m)})
    before = scheduler.stream_handlers["task-erred"]
    heard = [[], [], []]
    leave = [tap.listen(scheduler, one.append) for one in heard]

    scheduler.stream_handlers["task-erred"](key="x")
    for number in order:
        leave[number]()
        scheduler.stream_handlers["task-erred"](key=f"after {number}")

    assert scheduler.stream_handlers["task-erred"] is before
    assert [message["key"] for message in handled] == ["x", *(f"after {n}" for n in order)]
    for place, number in enumerate(order):
        keys = [message["key"] for message in heard[number] if message]
        assert keys == ["x", *(f"after {n}" for n in order[:place])]


def test_an_error_of_the_handler_goes_through_and_ends_the_message():
    def handler(**message):
        raise RuntimeError(message["key"])

    scheduler = SimpleNamespace(stream_handlers={"task-erred": handler})
    heard = []
    tap.listen(scheduler, heard.append)

    with pytest.raises(RuntimeError, match="x"):
        scheduler.stream_handlers["task-erred"](key="x")

    assert heard == [{"key": "x"}, None]
