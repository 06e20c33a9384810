"""Folded stacks, read with the pattern of flamegraph.pl."""

import re

import pytest


@pytest.fixture
def folded(export):
    """Export folded stacks; return counts by stack."""

    def folded(path, *options) -> dict[tuple[str, ...], int]:
        counts = {}
        for line in export(path, "folded", *options).splitlines():
            # The pattern of flamegraph.pl.
            stack, samples = re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line).groups()
            counts[tuple(stack.split(";"))] = int(samples)
        return counts

    return folded


def test_stacks_of_all_workers_are_added_up(folded, write_trace, profile):
    path = write_trace(
        profile("w1", functions=("main", "f"), counts=(3, 5)),
        profile("w2", functions=("main", "f"), counts=(2,)),
        profile("w2", functions=("main", "g"), counts=(1,)),
        profile(None, None, functions=("loop",), counts=(70,)),
    )

    main, f, g = "main (/lib/code.py:10)", "f (/lib/code.py:11)", "g (/lib/code.py:11)"
    assert folded(path) == {(main, f): 10, (main, g): 1}
    assert folded(path, "--worker", "w1") == {(main, f): 8}
    assert folded(path, "--worker", "scheduler") == {("loop (/lib/code.py:10)",): 70}


def test_separators_in_names_are_replaced(folded, write_trace, profile):
    path = write_trace(profile(functions=("a;b\nc 7", "\x00\u2028 9", "z" * 50_000)))

    [(stack, samples)] = folded(path).items()
    assert samples == 3
    assert len(stack) == 3
    assert stack[0] == "a,b c 7 (/lib/code.py:10)"


def test_a_time_range_without_samples(folded, write_trace, profile):
    assert folded(write_trace(profile()), "--from", 50) == {}
