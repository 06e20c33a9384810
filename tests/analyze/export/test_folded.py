"""Folded stacks, read with the pattern of flamegraph.pl."""

import re

import pytest


@pytest.fixture
def folded(export):
    """Return the number of samples of each stack."""

    def folded(trace, **part) -> dict[tuple[str, ...], int]:
        lines = [
            re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line).groups()  # that of flamegraph.pl
            for line in export(trace, "folded", **part).splitlines()
        ]
        return {tuple(stack.split(";")): int(samples) for stack, samples in lines}

    return folded


def test_stacks_of_all_workers_are_added_up(folded, open_trace, profile):
    trace = open_trace(
        profile("w1", functions=("main", "f"), counts=(3, 5)),
        profile("w2", functions=("main", "f"), counts=(2,)),
        profile("w2", functions=("main", "g"), counts=(1,)),
        profile(None, None, functions=("loop",), counts=(70,)),
    )

    main, f, g = "main (/lib/code.py:10)", "f (/lib/code.py:11)", "g (/lib/code.py:11)"
    assert folded(trace) == {(main, f): 10, (main, g): 1}
    assert folded(trace, worker="w1") == {(main, f): 8}
    assert folded(trace, worker="scheduler") == {("loop (/lib/code.py:10)",): 70}


def test_functions_of_the_recorder_are_folded(folded, open_trace, profile):
    wrappers = {"recorder": ("timed", "measured")}
    trace = open_trace(
        profile(functions=("main", "timed", "read"), **wrappers),
        profile(functions=("main", "measured", "read"), **wrappers),
        profile(functions=("main", "timed", "measured"), **wrappers),
    )

    main, read = "main (/lib/code.py:10)", "read (/lib/code.py:12)"
    assert folded(trace) == {(main, read): 6, (main, "(roast recorder)"): 3}


def test_separators_in_names_are_replaced(folded, open_trace, profile):
    trace = open_trace(profile(functions=("a;b\nc 7", "\x00\u2028 9", "z" * 50_000)))

    [(stack, samples)] = folded(trace).items()
    assert (samples, len(stack), stack[0]) == (3, 3, "a,b c 7 (/lib/code.py:10)")
