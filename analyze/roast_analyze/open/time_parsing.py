"""Parsing of times: seconds after the start of a run, before its end, or a date.

:func:`parse_time` needs only the start, the end and the time zone of the run.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from roast_analyze.errors import TraceError

_NUMBER: Final = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_SECONDS: Final = re.compile(rf"({_NUMBER})s?")
_UNITS: Final = re.compile(
    rf"(?:({_NUMBER})d)?(?:({_NUMBER})h)?(?:({_NUMBER})m(?:in)?)?(?:({_NUMBER})s)?"
)
_CLOCK: Final = re.compile(r"(?:([0-9]+):)?([0-9]+):([0-9]+(?:\.[0-9]*)?)")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*")
_UNIT_SECONDS: Final = (86400, 3600, 60, 1)


def parse_time(
    time: float | str, start_t: float, stop_t: float, utc_offset_seconds: float
) -> float:
    """Parse a time of a run into seconds since the epoch.

    Parameters
    ----------
    time : float or str
        Seconds after the start of the run, or before its end if negative; or a text: ``90``,
        ``90.5s``, ``5m``, ``1h30m``, ``1:30:00``, ``-10m`` (before the end), or a date and
        time such as ``2026-08-31T14:05``, in the cluster's time zone unless it names one.
    start_t, stop_t : float
        Start and end of the run, in seconds since the epoch.
    utc_offset_seconds : float
        Local time of the cluster minus UTC.

    Examples
    --------
    >>> parse_time("1h30m", 1000.0, 9000.0, 0.0), parse_time("-10m", 1000.0, 9000.0, 0.0)
    (6400.0, 8400.0)
    """
    try:
        if not isinstance(time, str):
            if math.isfinite(time):
                return stop_t + time if time < 0 else start_t + time
        elif _DATE.fullmatch(text := time.strip()):
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                zone = timezone(timedelta(seconds=round(utc_offset_seconds / 60) * 60))
                moment = moment.replace(tzinfo=zone)
            return moment.astimezone(UTC).timestamp()
        else:
            seconds = _parse_duration(text.removeprefix("-"))
            return stop_t - seconds if text.startswith("-") else start_t + seconds
    except (ValueError, OverflowError):
        pass
    raise TraceError(
        f"invalid time {str(time)!r}: use seconds (90), 5m, 1h30m or 1:30:00 after the start "
        "of the run, -10m before its end, or a date (2026-08-31T14:05)"
    )


def _parse_duration(text: str) -> float:
    """Parse a duration into seconds; raise ValueError if it is not one."""
    if match := _SECONDS.fullmatch(text):
        return float(match[1])
    if match := _CLOCK.fullmatch(text):
        hours, minutes, seconds = match.groups(default="0")
        if float(seconds) < 60 and (match[1] is None or int(minutes) < 60):
            return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    elif text and (match := _UNITS.fullmatch(text)):
        parts = zip(match.groups(default="0"), _UNIT_SECONDS, strict=True)
        return sum(float(number) * unit for number, unit in parts)
    raise ValueError(text)
