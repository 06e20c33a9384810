"""Numbers read from a page, as bounds of the values that they may stand for.

Nothing here imports roast.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

#: Units in seconds, bytes or ones.
UNITS = {
    "": 1, "1": 1, "%": 0.01, "million": 1e6, "billion": 1e9, "trillion": 1e12,
    "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400,
    "core-second": 1, "core-minute": 60, "core-hour": 3600,
    "core-seconds": 1, "core-minutes": 60, "core-hours": 3600,
    "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50,
}  # fmt: skip

#: Units in headings of columns, by the end of the column's name.
HEADINGS = {
    "bytes_per_second": ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s", "PiB/s"],
    "per_second": ["1/s"],
    "seconds": ["µs", "ms", "s"],
    "seconds_per_event": ["µs", "ms", "s"],
    "t": ["s"],
    "bytes": ["B", "KiB", "MiB", "GiB", "TiB", "PiB"],
    "bytes_read": ["B", "KiB", "MiB", "GiB", "TiB", "PiB"],
    "share": ["%"],
    "file_read_ratio": ["%"],
    "cpu_cores": ["%"],
    "relative_error": ["%"],
}

_NUMBER = r"[<>]?[-−]?[0-9][0-9,]*(?:\.[0-9]+)?"
_UNIT = "|".join(sorted(UNITS.keys() - {"", "1"}, key=len, reverse=True))

#: Reads the tiles, the time spent and the tables.
_READ = """() => {
    const text = (element) => element?.textContent ?? '';
    const all = (selector, within = document) => [...within.querySelectorAll(selector)];
    const alone = (element, inner) => {
        const copy = element.cloneNode(true);
        all(inner, copy).forEach(part => part.remove());
        return copy.textContent.trim();
    };
    const table = (block) => ({
        name: block.dataset.name,
        count: text(block.querySelector('.rows')),
        note: text(block.querySelector('.note')),
        columns: all('th', block).map(
            th => [th.dataset.column, text(th.querySelector('.unit'))]),
        rows: all('tbody tr', block).map(row => [...row.cells].map(cell => ({
            text: alone(cell, 'details, svg'),
            raw: cell.dataset.v ?? null,
            more: text(cell.querySelector('.more pre')),
        }))),
    });
    const part = (li) => ({
        name: text(li.querySelector('.what')),
        percent: text(li.querySelector('b')),
        seconds: text(li.querySelector('.seconds')),
        raw: Number(li.dataset.seconds),
    });
    return {
        tiles: all('.tiles div').map(tile => ['dt', 'b', 'span'].map(
            each => text(tile.querySelector(each)))),
        spent: all('.spent li').map(part),
        bar: all('.spent .bar i').map(i => [Number(i.style.flexGrow), i.title]),
        spoken: document.querySelector('.spent .bar')?.ariaLabel ?? '',
        tables: all('.table').map(table),
    };
}"""


def read(page) -> dict[str, Any]:
    """Return the tiles, the time spent and the tables of an open page, with plain spaces."""
    return _plain(page.evaluate(_READ))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\N{NO-BREAK SPACE}", " ")
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Amount:
    """The bounds of a printed number."""

    least: float
    most: float

    def fits(self, number: float) -> bool:
        """Return whether a number is within the bounds, except for rounding in binary."""
        hair = 1e-9 * max(abs(number), abs(self.least), abs(self.most))
        return self.least - hair <= number <= self.most + hair


def amount(text: str, unit: str = "") -> Amount | None:
    """Parse "12.3 GiB", "<1 %", "3 min 12 s" as bounds: ± half a unit of the last digit."""
    if text == "–":
        return None
    parts = re.findall(rf"({_NUMBER})(?: ({_UNIT}))?", text)
    assert parts, text
    read = [(number, UNITS[name or unit.removesuffix("/s")]) for number, name in parts]
    value = sum(_float(number) * size for number, size in read)
    last, size = read[-1]
    if last[0] in "<>":
        return Amount(*sorted((0.0, value)))
    half = 0.5 * 10.0 ** -len(last.partition(".")[2]) * size
    return Amount(value - half, value + half)


def _float(number: str) -> float:
    return float(number.lstrip("<>").replace(",", "").replace("−", "-"))


def units_of(column: str) -> list[str]:
    """Return the units that the header of a column may name: none for counts and text."""
    return next(
        (units for end, units in HEADINGS.items() if f"_{column}".endswith(f"_{end}")), [""]
    )


def is_printed(text: str, number: float | None) -> bool:
    """Return whether a printed amount may stand for this number."""
    read = amount(text)
    return number is None if read is None else number is not None and read.fits(number)


def is_same(raw: float, number: float) -> bool:
    """Return whether a raw value is this number; sums may differ by a part in 10⁹."""
    return math.isclose(raw, number, rel_tol=1e-9, abs_tol=1e-12)
