"""View concurrency. Recordings begin at 0 s."""

import re

import pytest

from roast_analyze.errors import QueryError

COUNTS = (
    "t, seconds, executing, transferring, processing, queued, no_worker, waiting, workers, "
    "nthreads"
)


def test_time_is_divided_between_buckets(rows, worker, move):
    phases = [("transfer", 4.0, 5.0, "w2"), ("compute", 5.0, 11.0)]

    assert rows(
        f"SELECT {COUNTS} FROM concurrency_by(5)",
        worker("w1", 1.0, nthreads=2),
        move(0.0, "a", "released>waiting"),
        move(2.0, "a", "waiting>queued"),
        move(3.0, "a", "queued>no-worker"),
        move(4.0, "a", "no-worker>processing", worker="w1"),
        move(12.0, "a", "processing>memory", worker="w1", phases=phases),
        stop_t=18.0,  # the last bucket ends with the recording
    ) == [
        (0.0, 5.0, 0.0, 0.2, 0.2, 0.2, 0.2, 0.4, 0.8, 1.6),
        (5.0, 5.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 2.0),
        (10.0, 5.0, 0.2, 0.0, 0.4, 0.0, 0.0, 0.0, 1.0, 2.0),
        (15.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0),
    ]


@pytest.mark.parametrize(
    ("stop_t", "width", "buckets"),
    [
        (0.0, None, 0), (0.001, 5e-6, 200), (1.0, 0.005, 200), (40.0, 0.1, 400),
        (41.0, 0.2, 205), (80.0, 0.2, 400), (81.0, 0.5, 162), (200.0, 0.5, 400),
        (201.0, 1.0, 201), (3600.0, 10.0, 360), (86400.0, 500.0, 173),
    ],
)  # fmt: skip
@pytest.mark.exhaustive
def test_default_bucket_width(rows, stop_t, width, buckets):
    query = "SELECT max(seconds), count(*) FROM concurrency"

    assert rows(query, stop_t=stop_t) == [(pytest.approx(width), buckets)]


def test_invalid_bucket_width(ask):
    found = ask()
    for seconds, message in [
        ("0", "a bucket takes more than 0 s, not 0"),
        ("-1.5", "a bucket takes more than 0 s, not -1.5"),
        ("1e-9", "a bucket of 1e-09 s makes more than a million of them"),
    ]:
        with pytest.raises(QueryError, match=re.escape(message)):
            found(f"FROM concurrency_by({seconds})")
