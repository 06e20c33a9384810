"""Compiled functions are named as the code that calls them does."""

import contextlib
import random
import sys
import threading
import time
import types
import zlib
from time import sleep

import numpy as np
import numpy.random  # NumPy loads it when it is used
import pytest

from roast_recorder.process_state import here
from roast_recorder.worker.compiled_calls import (
    _Instructions,
    _known_name,
    _name,
    compiled_call,
)

LOCK = threading.Lock()


def calls(function):
    """Return the names of all calls in a function, in their order."""
    code, frame = function.__code__, sys._getframe()
    found = [_Instructions(code).callee(unit) for unit in range(len(code.co_code) // 2)]
    names = [_name(callee, frame) for callee in found if callee is not None]
    return list(dict.fromkeys(names))


def by_module():
    time.sleep(1)


def by_name():
    sleep(1)


def in_lines(path):
    return (path
            .read_bytes())  # fmt: skip


def by_local(file):
    file.read()


def chained(path):
    path.open().read(len(path))


def nested(block):
    return zlib.decompress(bytes(block))


def with_global():
    with LOCK:
        pass


def with_local(lock):
    with lock:
        pass


def by_keywords(file):
    print("x", file=file)


def by_bound_method():
    np.random.normal(random.gauss())  # noqa: NPY002 - as programs do


def operators(a, b):
    return (a @ b)[0] + 1


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (by_module, ["time.sleep"]),
        (by_name, ["time.sleep"]),
        (in_lines, ["path.read_bytes"]),
        (by_local, ["file.read"]),
        (chained, ["path.open", "builtins.len", "path.open().read"]),
        (nested, ["builtins.bytes", "zlib.decompress"]),
        (with_global, ["_thread.lock.__enter__", "_thread.lock.__exit__"]),
        (with_local, ["lock.__enter__", "lock.__exit__"]),
        (by_keywords, ["builtins.print"]),
        (
            by_bound_method,
            ["random.Random.gauss", "numpy.random.mtrand.RandomState.normal"],
        ),
        (operators, ["operator @", "operator []", "operator +"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_names_of_calls(function, expected):
    assert calls(function) == expected


def sampled(function, *arguments):
    """Return what a thread that runs a function is calling, a moment after its start."""
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            frame = sys._current_frames().get(thread.ident)
            if frame is not None and frame.f_code is function.__code__:
                return compiled_call(frame)
            time.sleep(0.001)
    finally:
        with contextlib.suppress(RuntimeError):
            LOCK.release()
        thread.join()
    raise AssertionError(function)


def test_a_thread_that_waits_for_a_lock_and_one_that_sleeps():
    LOCK.acquire()

    assert sampled(with_global) == "_thread.lock.__enter__"
    assert sampled(by_module) == "time.sleep"


def test_a_function_without_positions_has_no_names(monkeypatch):
    frame = sys._getframe()
    monkeypatch.setattr(here(), "compiled_calls", {})

    class Frame:
        f_code = by_module.__code__.replace(co_linetable=b"")
        f_lasti = max(
            2 * unit
            for unit in range(len(by_module.__code__.co_code) // 2)
            if _Instructions(by_module.__code__).callee(unit)
        )
        f_globals, f_builtins = frame.f_globals, frame.f_builtins

    assert compiled_call(Frame) is None


def test_codes_are_forgotten_when_they_are_many(monkeypatch):
    known = {}
    monkeypatch.setattr(here(), "compiled_calls", known)
    monkeypatch.setattr("roast_recorder.worker.compiled_calls._MAX_CODES", 3)

    for number in range(10):
        scope = {}
        exec(f"import sys\ndef f{number}(): return sys._getframe()", scope)
        compiled_call(scope[f"f{number}"]())

    assert len(known) <= 3


def test_names_of_the_program_do_not_call_its_code():
    """A proxy and a lazy module are of classes of their own."""

    class Proxy:
        __class__ = property(lambda _self: pytest.fail("a property was read"))

        def __getattr__(self, name):
            pytest.fail(f"{name} was read")

    class LazyModule(types.ModuleType):
        def __getattribute__(self, name):
            pytest.fail(f"{name} was read")

    assert _known_name(Proxy()).endswith("Proxy")
    assert _known_name(LazyModule("lazy")).endswith("LazyModule")
