"""Whether the tests read numbers as a reader does, and notice when one is wrong."""

import pytest

from browser.reading import amount, differences


@pytest.mark.parametrize(
    ("text", "unit", "fits", "not_that"),
    [
        ("1,234", "", 1234.4, 1234.6),
        ("12.34", "ms", 0.012344, 0.012346),
        ("12.3 GiB", "", 12.34 * 2**30, 12.4 * 2**30),
        ("45 %", "", 0.4549, 0.456),
        ("45", "%", 0.4549, 0.456),
        ("1.5", "MiB/s", 1.54 * 2**20, 1.6 * 2**20),
        ("1.5", "1/s", 1.54, 1.6),
        ("<0.01", "s", 0.004, 0.011),
        (">-0.01", "s", -0.004, 0.001),
        ("<1 %", "", 0.004, 0.02),
        ("3 min 12 s", "", 192.4, 193.0),
        ("2 h 5 min", "", 7520.0, 7531.0),
        ("23.4 million", "", 23_440_000, 23_460_000),
        ("−5 s", "", -5.4, 5.0),
    ],
)
def test_an_amount_is_as_exact_as_it_is_printed(text, unit, fits, not_that):
    read = amount(text, unit)

    assert read.fits(fits)
    assert not read.fits(not_that)


def test_a_sentence_that_is_right():
    said = "{n} task(s), {m} attempt(s), in {time} ({threads} thread(s)): {rate} events/s."
    text = "1 task, 2 attempts, in 3 min 12 s (4 threads): 1,111 events/s."

    assert differences(text, said, n=1, m=2, time=192.2, threads=4, rate=1111.1) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("2 tasks in 5 s", "n is 1"),
        ("1 tasks in 5 s", "one or many"),
        ("1 task in 6 s", "time is 5"),
        ("1 task in –", "time is 5"),
        ("1 task in 5 s, and 7 more", "is not"),
    ],
)
def test_a_sentence_that_is_wrong(text, wrong):
    [told] = differences(text, "{n} task(s) in {time}", n=1, time=5)

    assert wrong in told
