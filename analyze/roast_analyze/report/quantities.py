"""Text of quantities and lists, for sentences and headings.

None, NaN and infinities mean unknown and become a dash. A no-break space separates a number
from its unit.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Final, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Text of an unknown value.
UNKNOWN: Final = "–"
_NBSP: Final = "\N{NO-BREAK SPACE}"
_LARGE: Final = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
_BYTE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
#: Bound, unit and its length; values that would round up to the next unit are written in it.
_SHORT: Final = ((0.9995e-3, "µs", 1e-6), (0.9995, "ms", 1e-3), (59.95, "s", 1.0))
#: Bound, unit and its length, and the same of the smaller unit of the rest.
_LONG: Final = (
    (3600, 60, "min", 1, "s"),
    (86400, 3600, "h", 60, "min"),
    (math.inf, 86400, "d", 3600, "h"),
)


def seconds(value: float | None) -> str:
    """Format a duration, such as 12.3 ms, 3 min 12 s, or 2 h 5 min."""
    if not _is_known(value):
        return UNKNOWN
    if value < 0:
        return "−" + seconds(-value)
    if value == 0:
        return f"0{_NBSP}s"
    for bound, unit, length in _SHORT:
        if value < bound:
            return f"{_significant(value / length)}{_NBSP}{unit}"
    _, big, big_unit, small, small_unit = next(
        row for row in _LONG if round(value / row[3]) * row[3] < row[0]
    )
    whole = round(value / small) * small
    rest = whole % big // small
    tail = f" {rest}{_NBSP}{small_unit}" if rest else ""
    return f"{whole // big:,}{_NBSP}{big_unit}{tail}"


def byte_size(value: float | None) -> str:
    """Format a number of bytes in powers of 1024 as Dask does, such as 849 MiB."""
    if not _is_known(value):
        return UNKNOWN
    unit, divisor = byte_unit(value)
    return f"{_significant(value / divisor)}{_NBSP}{unit}"


def byte_unit(value: float) -> tuple[str, int]:
    """Return the unit for a number of bytes: its name and its size in bytes."""
    power = 0
    while abs(value) >= 1024 ** (power + 1) and power < len(_BYTE_UNITS) - 1:
        power += 1
    return _BYTE_UNITS[power], 1024**power


def count(value: float | None) -> str:
    """Format a number with separators; from ten million on in millions."""
    if not _is_known(value):
        return UNKNOWN
    if abs(value) >= 1e7:
        scale, words = next(name for name in _LARGE if abs(value) >= name[0])
        return f"{_significant(value / scale)}{_NBSP}{words}"
    return f"{value:,.0f}"


def counted(value: int | None, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun; without ``plural`` it ends in s."""
    return f"{count(value)}{_NBSP}{noun if value == 1 else plural or noun + 's'}"


def rate(value: float | None, what: str) -> str:
    """Format a number per second."""
    if not _is_known(value):
        return UNKNOWN
    return f"{_significant(value) if value < 100 else count(value)}{_NBSP}{what}/s"


def share(value: float | None) -> str:
    """Format a fraction in percent."""
    if not _is_known(value):
        return UNKNOWN
    # "0 %" would look as if there were nothing.
    return f"<1{_NBSP}%" if 0 < value < 0.01 else f"{100 * value:.0f}{_NBSP}%"


def times(value: float | None) -> str:
    """Format a ratio, such as ×1.32."""
    return f"×{_significant(value)}" if _is_known(value) else UNKNOWN


def number(value: float | None) -> str:
    """Format a number to three significant digits."""
    return _significant(value) if _is_known(value) else UNKNOWN


def core_time(core_seconds: float | None) -> tuple[str, str]:
    """Return core time as number and unit: core-hours, core-minutes or core-seconds."""
    if not _is_known(core_seconds):
        return UNKNOWN, "core-hours"
    units = (120, "core-second", 1), (7200, "core-minute", 60), (math.inf, "core-hour", 3600)
    unit, length = next((unit, length) for bound, unit, length in units if core_seconds < bound)
    text = _significant(core_seconds / length)
    return text, unit if text == "1" else f"{unit}s"


def instant(t: float | None, utc_offset_seconds: float | None) -> str:
    """Format an instant in the cluster's time zone, followed by the zone."""
    if not _is_known(t):
        return UNKNOWN
    shift = utc_offset_seconds if _is_known(utc_offset_seconds) else 0
    try:
        zone = timezone(timedelta(minutes=round(shift / 60)))
        moment = datetime.fromtimestamp(t, UTC).astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return f"{t} s since 1970"
    return f"{moment:%Y-%m-%d %H:%M:%S} ({zone.tzname(None)})"


def minute(t: float | None) -> str:
    """Format an instant in UTC, to the minute."""
    if not _is_known(t):
        return UNKNOWN
    try:
        return f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{t} s since 1970"


def series(parts: Sequence[str]) -> str:
    """Join parts of a sentence, such as: a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def and_more(total: int, named: int) -> str:
    """Return the end of a series that names only some; empty if it names all."""
    return f", and {count(total - named)} more" if total > named else ""


def as_float(value: object) -> float | None:
    """Return a number from a frame as a float; None for anything else."""
    return float(value) if isinstance(value, int | float) else None


def _is_known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _significant(value: float) -> str:
    """Format three significant digits without an exponent, and all digits of integers."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
