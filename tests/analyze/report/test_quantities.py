import pytest

from roast_analyze.report import quantities as q

NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0, "0 s"),
        (2.5e-6, "2.5 µs"),
        (0.0123, "12.3 ms"),
        (1, "1 s"),
        (0.99999, "1 s"),
        (0.000999999, "1 ms"),
        (12.34, "12.3 s"),
        (59.96, "1 min"),
        (192, "3 min 12 s"),
        (7500, "2 h 5 min"),
        (7559, "2 h 6 min"),
        (86_399, "1 d"),
        (3e8, "3,472 d 5 h"),
        (90_000, "1 d 1 h"),
        (-3, "−3 s"),
    ],
)
def test_seconds(value, words):
    assert q.seconds(value).replace(NBSP, " ") == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "–"), (0, "0 B"), (1023, "1,023 B"), (1536, "1.5 KiB"), (3 * 1024**3, "3 GiB")],
)
def test_bytes(value, words):
    assert q.byte_size(value).replace(NBSP, " ") == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (12_345, "12,345"),
        (23_400_000, "23.4 million"),
        (5_200_000_000, "5.2 billion"),
        (10**15, "1,000 trillion"),
    ],
)
def test_count(value, words):
    assert q.count(value).replace(NBSP, " ") == words


def test_counted():
    assert [q.counted(n, "try", "tries").replace(NBSP, " ") for n in (0, 1, 2)] == [
        "0 tries",
        "1 try",
        "2 tries",
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "–"), (0, "0 %"), (0.004, "<1 %"), (0.755, "76 %"), (1, "100 %")],
)
def test_share(value, words):
    assert q.share(value).replace(NBSP, " ") == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(90, "90 core-seconds"), (600, "10 core-minutes"), (7200, "2 core-hours")],
)
def test_core_time(value, words):
    assert " ".join(q.core_time(value)) == words


@pytest.mark.parametrize(
    ("t", "offset", "words"),
    [
        (0.0, 0, "1970-01-01 00:00:00 (UTC)"),
        (0.0, -19800.2, "1969-12-31 18:30:00 (UTC-05:30)"),
        (None, 0, "–"),
        (1e300, 0, "1e+300 s since 1970"),
    ],
)
def test_instant(t, offset, words):
    assert q.instant(t, offset) == words


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite_are_unknown(value):
    words = (
        q.seconds(value), q.byte_size(value), q.count(value), q.rate(value, "events"),
        q.share(value), q.number(value), q.core_time(value)[0], q.instant(value, 0),
    )  # fmt: skip

    assert set(words) == {"–"}
    assert q.instant(0.0, value) == q.instant(0.0, 0)


@pytest.mark.parametrize(
    ("value", "words"), [(None, "–"), (1.318, "×1.32"), (0.25, "×0.25"), (1, "×1")]
)
def test_times(value, words):
    assert q.times(value) == words


def test_series_and_the_rest():
    assert q.series(["a"]) + q.and_more(1, 1) == "a"
    assert q.series(["a", "b", "c"]) + q.and_more(1234, 3) == "a, b and c, and 1,231 more"
