"""Times as written by users."""

import pytest

from roast_analyze.errors import TraceError
from roast_analyze.open.time_parsing import parse_time

#: A run of 2 h 30 min that started on 2026-08-31 12:00 UTC, 14:00 in the cluster's zone.
START_T = 1788177600.0
STOP_T = START_T + 9000

SECONDS_AFTER_START = {
    90: 90, 90.5: 90.5, -600: 8400,
    "90": 90, "90.5": 90.5, "90s": 90, ".5s": 0.5,
    "5m": 300, "5min": 300, "1.5h": 5400, "1h30m": 5400, "1h5s": 3605, "1d": 86400, "90m": 5400,
    "1:30:00": 5400, "5:00": 300, "90:00": 5400, "0:00:01.5": 1.5,
    "-10m": 8400, "-90": 8910, "-0:30": 8970, " 5m ": 300,
    "2026-08-31T14:05": 300, "2026-08-31 14:05:30.5": 330.5, "2026-08-31T12:05Z": 300,
    "2026-08-31T08:05:00-04:00": 300, "2026-08-31": -14 * 3600,
}  # fmt: skip

INVALID = [
    "", "-", "s", "abc", "5x", "1m1h", "5 m", "1e3", "--5", "+5", "1:2:3:4", "1:75:00",
    "1:75", "2026-13-01", "2026-08-31T25:00", "2026-08-31 nonsense", "nan", "inf",
    float("nan"), float("inf"), "٥", "9" * 400 + "-01-01",
]  # fmt: skip


def test_times_after_the_start_before_the_end_and_by_the_calendar():
    found = {time: parse_time(time, START_T, STOP_T, 7200.0) for time in SECONDS_AFTER_START}

    assert {time: t - START_T for time, t in found.items()} == pytest.approx(
        SECONDS_AFTER_START
    )


def test_invalid_times_are_named_with_the_valid_forms():
    for time in INVALID:
        with pytest.raises(TraceError) as error:
            parse_time(time, START_T, STOP_T, 0.0)
        [line] = str(error.value).splitlines()
        assert line.startswith(f"invalid time {str(time)!r}: use seconds (90), 5m, 1h30m or")
        assert "-10m" in line
        assert "2026-08-31T14:05" in line
