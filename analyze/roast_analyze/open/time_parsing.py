"""Instants as people write them: after the start of a run, before its end, or by the calendar.

:func:`instant_of` makes seconds since the epoch of what stands on the command line or in a
call; it knows nothing of traces but when the run was, and in which zone.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from roast_analyze.errors import TraceError

#: Forms that a message names.
FORMS: Final = (
    "give seconds after the start of the run (90), 5m, 1h30m or 1:30:00, the same before its "
    "end (-10m), or a date (2026-08-31T14:05)"
)

_NUMBER: Final = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_SECONDS: Final = re.compile(rf"({_NUMBER})s?")
_UNITS: Final = re.compile(
    rf"(?:({_NUMBER})d)?(?:({_NUMBER})h)?(?:({_NUMBER})m(?:in)?)?(?:({_NUMBER})s)?"
)
_CLOCK: Final = re.compile(r"(?:([0-9]+):)?([0-9]+):([0-9]+(?:\.[0-9]*)?)")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*")
_UNIT_SECONDS: Final = (86400, 3600, 60, 1)


def instant_of(
    when: float | str, start_t: float, stop_t: float, utc_offset_seconds: float
) -> float:
    """Find the instant that is meant.

    Parameters
    ----------
    when : float or str
        Seconds after the start, before the end if negative; or a text: ``90``, ``90.5s``,
        ``5m``, ``1h30m``, ``1:30:00``; ``-10m`` is before the end; ``2026-08-31T14:05`` is a
        date and time, in the cluster's zone if it names none.
    start_t, stop_t : float
        When the run began and ended, in seconds since the epoch.
    utc_offset_seconds : float
        The cluster's local time minus UTC.

    Returns
    -------
    float
        Seconds since the epoch.

    Raises
    ------
    TraceError
        If it is none of these.

    Examples
    --------
    >>> instant_of("1h30m", 1000.0, 9000.0, 0.0), instant_of("-10m", 1000.0, 9000.0, 0.0)
    (6400.0, 8400.0)
    """
    if not isinstance(when, str):
        if not math.isfinite(when):
            raise _no_time(when)
        return stop_t + when if when < 0 else start_t + when
    text = when.strip()
    if _DATE.fullmatch(text):
        return _of_calendar(text, utc_offset_seconds)
    if text.startswith("-"):
        return stop_t - _length_seconds(text[1:], when)
    return start_t + _length_seconds(text, when)


def _length_seconds(text: str, when: str) -> float:
    if match := _SECONDS.fullmatch(text):
        return float(match[1])
    if match := _CLOCK.fullmatch(text):
        hours, minutes, seconds = match.groups(default="0")
        if float(seconds) < 60 and (match[1] is None or int(minutes) < 60):
            return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    elif text and (match := _UNITS.fullmatch(text)):
        parts = zip(match.groups(default="0"), _UNIT_SECONDS, strict=True)
        return sum(float(number) * unit for number, unit in parts)
    raise _no_time(when)


def _of_calendar(text: str, utc_offset_seconds: float) -> float:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            zone = timezone(timedelta(seconds=round(utc_offset_seconds / 60) * 60))
            moment = moment.replace(tzinfo=zone)
        return moment.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        raise _no_time(text) from None


def _no_time(when: object) -> TraceError:
    return TraceError(f"{str(when)!r} is no time of the run; {FORMS}")
