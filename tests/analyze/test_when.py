"""Instants as people write them."""

import pytest

from roast_analyze.errors import TraceError
from roast_analyze.open.time_parsing import parse_time

#: A run of 2 h 30 min that began on 2026-08-31 12:00 UTC, 14:00 where the cluster is.
START_T = 1788177600.0
STOP_T = START_T + 9000


@pytest.mark.parametrize(
    ("when", "seconds_after_the_start"),
    [
        (90, 90),
        (90.5, 90.5),
        (-600, 8400),
        ("90", 90),
        ("90.5", 90.5),
        ("90s", 90),
        (".5s", 0.5),
        ("5m", 300),
        ("5min", 300),
        ("1.5h", 5400),
        ("1h30m", 5400),
        ("1h5s", 3605),
        ("1d", 86400),
        ("90m", 5400),
        ("1:30:00", 5400),
        ("5:00", 300),
        ("90:00", 5400),
        ("0:00:01.5", 1.5),
        ("-10m", 8400),
        ("-90", 8910),
        ("-0:30", 8970),
        (" 5m ", 300),
        ("2026-08-31T14:05", 300),
        ("2026-08-31 14:05:30.5", 330.5),
        ("2026-08-31T12:05Z", 300),
        ("2026-08-31T08:05:00-04:00", 300),
        ("2026-08-31", -14 * 3600),
    ],
)
def test_what_is_meant(when, seconds_after_the_start):
    found = parse_time(when, START_T, STOP_T, utc_offset_seconds=7200.0)

    assert found - START_T == pytest.approx(seconds_after_the_start)


@pytest.mark.parametrize(
    "when",
    [
        "", "-", "s", "abc", "5x", "1m1h", "5 m", "1e3", "--5", "+5", "1:2:3:4", "1:75:00",
        "1:75", "2026-13-01", "2026-08-31T25:00", "2026-08-31 nonsense", "nan", "inf",
        float("nan"), float("inf"), "٥", "9" * 400 + "-01-01",
    ],
)  # fmt: skip
def test_what_is_no_time_is_named_with_the_way_out(when):
    with pytest.raises(TraceError) as error:
        parse_time(when, START_T, STOP_T, utc_offset_seconds=0.0)

    [line] = str(error.value).splitlines()
    assert line.startswith(f"{str(when)!r} is no time of the run; give seconds")
    assert "5m" in line
    assert "-10m" in line
    assert "2026-08-31T14:05" in line
