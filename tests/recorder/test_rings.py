"""A ring that forgets is heard whole, and is there as before when nobody listens."""

from collections import deque
from types import SimpleNamespace

import pytest

from roast_recorder.worker.rings import listen


@pytest.fixture
def owner():
    """Somebody with a ring of three."""
    return SimpleNamespace(log=deque("abc", maxlen=3))


def test_each_entry_from_now_on_is_heard_once(owner):
    heard = []
    listen(owner, "log", heard.append)

    for entry in "defghij":
        owner.log.append(entry)

    assert heard == list("defghij")


def test_to_everybody_else_it_is_the_same_ring(owner):
    listen(owner, "log", lambda _: None)

    for entry in "de":
        owner.log.append(entry)

    assert isinstance(owner.log, deque)
    assert (list(owner.log), owner.log.maxlen, len(owner.log)) == (list("cde"), 3, 3)
    assert list(owner.log.copy()) == list("cde")


def test_several_listen_from_when_they_came_until_they_went(owner):
    one, other = [], []
    leave = listen(owner, "log", one.append)
    owner.log.append("d")
    listen(owner, "log", other.append)
    owner.log.append("e")
    leave()
    owner.log.append("f")

    assert (one, other) == (list("de"), list("ef"))


def test_the_last_one_leaves_a_ring_as_it_was(owner):
    leave, leave_too = (listen(owner, "log", lambda _: None) for _ in range(2))
    owner.log.append("d")

    leave()
    assert type(owner.log) is not deque
    leave_too()

    assert type(owner.log) is deque
    assert (list(owner.log), owner.log.maxlen) == (list("bcd"), 3)


def test_a_ring_without_a_limit_has_none_afterwards(owner):
    owner.log = deque("abc")

    listen(owner, "log", lambda _: None)()

    assert (list(owner.log), owner.log.maxlen) == (list("abc"), None)


def test_a_ring_that_somebody_else_put_there_is_left_alone(owner):
    leave = listen(owner, "log", lambda _: None)
    theirs = owner.log = deque("x")

    leave()

    assert owner.log is theirs
