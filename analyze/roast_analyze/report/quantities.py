"""Quantities in words: numbers with their units, for sentences and headings.

Every function takes None, NaN or an infinity for what is not known and gives a dash for it.
Between a number and its unit stands a no-break space.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Final, TypeGuard

#: What is not known.
UNKNOWN: Final = "–"
_NBSP: Final = "\N{NO-BREAK SPACE}"
_LARGE: Final = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
_BYTE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def seconds(value: float | None) -> str:
    """Write a length of time.

    Examples
    --------
    >>> seconds(0.0123), seconds(12.34), seconds(192), seconds(7500)
    ('12.3 ms', '12.3 s', '3 min 12 s', '2 h 5 min')
    """
    if not _is_known(value):
        return UNKNOWN
    if value < 0:
        return "−" + seconds(-value)
    if value == 0:
        return f"0{_NBSP}s"
    for bound, unit, length in (
        # A little less than the next unit is one of these.
        (0.9995e-3, "µs", 1e-6),
        (0.9995, "ms", 1e-3),
        (59.95, "s", 1.0),
    ):
        if value < bound:
            return f"{_significant(value / length)}{_NBSP}{unit}"
    for bound, big, big_unit, small, small_unit in (
        (3600, 60, "min", 1, "s"),
        (86400, 3600, "h", 60, "min"),
        (math.inf, 86400, "d", 3600, "h"),
    ):
        whole = round(value / small) * small
        if whole < bound:
            rest = whole % big // small
            tail = f" {rest}{_NBSP}{small_unit}" if rest else ""
            return f"{whole // big:,}{_NBSP}{big_unit}{tail}"
    return UNKNOWN


def byte_size(value: float | None) -> str:
    """Write an amount of bytes in powers of 1024, as Dask does.

    Examples
    --------
    >>> byte_size(890388480)
    '849 MiB'
    """
    if not _is_known(value):
        return UNKNOWN
    unit, divisor = byte_unit(value)
    return f"{_significant(value / divisor)}{_NBSP}{unit}"


def byte_unit(value: float) -> tuple[str, int]:
    """Choose the unit for an amount of bytes: its name and its size in bytes."""
    power = 0
    while abs(value) >= 1024 ** (power + 1) and power < len(_BYTE_UNITS) - 1:
        power += 1
    return _BYTE_UNITS[power], 1024**power


def count(value: float | None) -> str:
    """Write how many, with separators; from ten million on in millions.

    Examples
    --------
    >>> count(12345), count(23_400_000)
    ('12,345', '23.4 million')
    """
    if not _is_known(value):
        return UNKNOWN
    if abs(value) >= 1e7:
        scale, words = next(name for name in _LARGE if abs(value) >= name[0])
        return f"{_significant(value / scale)}{_NBSP}{words}"
    return f"{value:,.0f}"


def counted(value: int, noun: str, plural: str | None = None) -> str:
    """Write how many of what.

    Examples
    --------
    >>> counted(1, "worker"), counted(3, "worker"), counted(2, "retry", "retries")
    ('1 worker', '3 workers', '2 retries')
    """
    return f"{count(value)}{_NBSP}{noun if value == 1 else plural or noun + 's'}"


def rate(value: float | None, what: str) -> str:
    """Write how many of something a second."""
    if not _is_known(value):
        return UNKNOWN
    number = f"{value:,.0f}" if 100 <= value < 1e7 else count(value)
    if value < 100:
        number = _significant(value)
    return f"{number}{_NBSP}{what}/s"


def share(value: float | None) -> str:
    """Write a fraction in percent."""
    if not _is_known(value):
        return UNKNOWN
    percent = 100 * value
    if 0 < percent < 1:
        return f"<1{_NBSP}%"
    return f"{percent:.0f}{_NBSP}%"


def times(value: float | None) -> str:
    """Write how many times as much something is.

    Examples
    --------
    >>> times(1.318), times(0.25)
    ('×1.32', '×0.25')
    """
    return f"×{_significant(value)}" if _is_known(value) else UNKNOWN


def number(value: float | None) -> str:
    """Write a number to three significant digits."""
    return _significant(value) if _is_known(value) else UNKNOWN


def core_time(core_seconds: float | None) -> tuple[str, str]:
    """Write core time as number and unit: core-hours, or less if it is little."""
    if not _is_known(core_seconds):
        return UNKNOWN, "core-hours"
    for bound, unit, length in ((120, "core-seconds", 1), (7200, "core-minutes", 60)):
        if core_seconds < bound:
            return _significant(core_seconds / length), unit
    return _significant(core_seconds / 3600), "core-hours"


def instant(t: float | None, utc_offset_seconds: float | None) -> str:
    """Write an instant in the cluster's zone, and say which zone that is.

    Examples
    --------
    >>> instant(0.0, 3600)
    '1970-01-01 01:00:00 (UTC+01:00)'
    """
    if not _is_known(t):
        return UNKNOWN
    shift = utc_offset_seconds if _is_known(utc_offset_seconds) else 0
    try:
        offset = timedelta(seconds=round(shift / 60) * 60)
        zone = timezone(offset)
        moment = datetime.fromtimestamp(t, UTC).astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return f"{t} s since 1970"
    return f"{moment:%Y-%m-%d %H:%M:%S} ({zone.tzname(None)})"


def _is_known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _significant(value: float) -> str:
    """Write three significant digits without an exponent, but all of a whole part."""
    if not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
