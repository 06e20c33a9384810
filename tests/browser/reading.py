"""A page read as people do: what stands there, and how exact a number is that is printed so.

Nothing here uses roast's own code: a number means what a reader takes it for.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

#: What is one of a unit, in seconds, bytes or ones.
UNITS = {
    "": 1, "1": 1, "%": 0.01, "million": 1e6, "billion": 1e9, "trillion": 1e12,
    "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400,
    "core-second": 1, "core-minute": 60, "core-hour": 3600,
    "core-seconds": 1, "core-minutes": 60, "core-hours": 3600,
    "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50,
}  # fmt: skip

#: Units in headings of columns, by how the name of the column ends.
HEADINGS = {
    "bytes_per_second": ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s", "PiB/s"],
    "per_second": ["1/s"],
    "seconds": ["µs", "ms", "s"],
    "seconds_per_event": ["µs", "ms", "s"],
    "t": ["s"],
    "bytes": ["B", "KiB", "MiB", "GiB", "TiB", "PiB"],
    "bytes_read": ["B", "KiB", "MiB", "GiB", "TiB", "PiB"],
    "share": ["%"],
    "cpu_cores": ["%"],
    "relative_error": ["%"],
}

_NUMBER = r"[<>]?[-−]?[0-9][0-9,]*(?:\.[0-9]+)?"
_UNIT = "|".join(sorted(UNITS.keys() - {"", "1"}, key=len, reverse=True))
#: Some numbers with their units that are one amount, such as "3 min 12 s"; or a dash.
AMOUNT = rf"–|{_NUMBER}(?: (?:{_UNIT})(?![\w/-])(?: {_NUMBER} (?:{_UNIT})(?![\w/-]))*)?"

#: All of the page that the tests read, in one go.
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
        lasted: text(document.querySelector('.when')),
        lead: text(document.querySelector('.lead')),
        wholeness: text(document.querySelector('.whole span + span')),
        tiles: all('.tiles div').map(tile => ['dt', 'b', 'span'].map(
            each => text(tile.querySelector(each)))),
        spent: all('.spent li').map(part),
        bar: all('.spent .bar i').map(i => [Number(i.style.flexGrow), i.title]),
        spoken: document.querySelector('.spent .bar')?.ariaLabel ?? '',
        caption: text(document.querySelector('.spent figcaption')),
        tables: all('.table').map(table),
    };
}"""


def read(page) -> dict[str, Any]:
    """Read a page that is open: its verdict and its tables, with plain spaces."""
    return _plain(page.evaluate(_READ))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\N{NO-BREAK SPACE}", " ")
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Amount:
    """What a printed amount says: between which bounds the number is."""

    least: float
    most: float

    def fits(self, number: float) -> bool:
        """Tell whether it may be this number; a hair is allowed for rounding in binary."""
        hair = 1e-9 * max(abs(number), abs(self.least), abs(self.most))
        return self.least - hair <= number <= self.most + hair


def amount(text: str, unit: str = "") -> Amount | None:
    """Read an amount, such as "12.3 GiB", "<1 %", "3 min 12 s"; None if it is a dash.

    It is exact to half of the last digit. "<0.01" is more than nothing.
    """
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
    """Give the units that the heading of a column may name: of counts, ratios and text none."""
    return next(
        (units for end, units in HEADINGS.items() if f"_{column}".endswith(f"_{end}")), [""]
    )


def differences(text: str, said: str, **numbers: float | None) -> list[str]:
    """Hold a sentence against what it should say; nothing if it does.

    Parameters
    ----------
    text : str
        What stands on the page.
    said : str
        The same with ``{name}`` for amounts, and ``(s)`` for what is there if the last
        amount before it is not one.
    **numbers : float or None
        The amounts by name; None is not known, and a dash.
    """
    pattern, names = "", []
    for literal, name in re.findall(r"([^{]*)(?:\{(\w+)\})?", said):
        pattern += re.escape(literal).replace(re.escape("(s)"), f"(?P<plural_{len(names)}>s?)")
        if name:
            pattern += f"(?P<amount_{len(names)}>{AMOUNT})"
            names.append(name)
    match = re.fullmatch(pattern, text)
    if match is None:
        return [f"{text!r} is not {said!r}"]
    found = match.groupdict()
    wrong = []
    for n, name in enumerate(names):
        printed, plural = found[f"amount_{n}"], found.get(f"plural_{n + 1}")
        if not is_printed(printed, numbers[name]):
            wrong.append(f"{text!r}: {name} is {numbers[name]!r}")
        if plural is not None and (plural == "") != (printed == "1"):
            wrong.append(f"{text!r}: one or many of {name}")
    return wrong


def is_printed(text: str, number: float | None) -> bool:
    """Tell whether an amount in a text is this number, as exactly as it is printed."""
    read = amount(text)
    return number is None if read is None else number is not None and read.fits(number)


def is_same(raw: float, number: float) -> bool:
    """Tell whether a raw value is a number: sums may differ by a part in 10⁹."""
    return math.isclose(raw, number, rel_tol=1e-9, abs_tol=1e-12)
