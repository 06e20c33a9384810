"""Gold rows: what the views of the sample traces are, in files under `gold`.

Of each view there are the number of rows, a sum of each column, and three rows; of the odd
traces only the sums. `make gold` writes them again, and Git shows what changed.
"""

import json
import zlib
from pathlib import Path

from nightly.comparison import Answer, is_measure, is_same, likeness
from nightly.recording import Row

FOLDER = Path(__file__).with_name("gold")

#: Columns that depend on where the trace is.
LEFT_OUT = ("path",)

#: Maximum characters of a text.
LONGEST = 120


def gold_of(answer: Answer) -> list[Row]:
    """Return the sums of a view, and its first, middle and last row in order of their text."""
    rows = sorted(answer.rows, key=likeness)
    if not rows:
        return [{"rows": 0}]
    places = sorted({0, len(rows) // 2, len(rows) - 1})
    return [sums(rows), *(_shortened(rows[place]) for place in places)]


def sums(rows: list[Row]) -> Row:
    """Return the number of rows, and a sum of each column.

    A float is multiplied by a number from the row's other values, since those that are swapped
    between rows would not change a plain sum. Other columns have a checksum of their values.
    """
    found: Row = {"rows": len(rows)}
    for each in rows:
        row = {name: value for name, value in each.items() if name not in LEFT_OUT}
        exact = {name: value for name, value in row.items() if not is_measure(name, value)}
        weight = 1 + _checksum(exact) / 2**32
        for name, value in row.items():
            if is_measure(name, value):
                found[name] = found.get(name, 0.0) + weight * value
            elif value is not None:
                label = f"{name} (checksum)"
                found[label] = (found.get(label, 0) + _checksum(value)) % 2**32
    # Enough digits for a comparison to 1e-9.
    return {
        name: float(f"{value:.12g}") if isinstance(value, float) else value
        for name, value in found.items()
    }


def _checksum(value: object) -> int:
    return zlib.crc32(json.dumps(value, sort_keys=True).encode())


def _shortened(row: Row) -> Row:
    """Return the values of a row that are known, long ones by beginning and checksum."""
    short = {}
    for name, value in row.items():
        text = json.dumps(value, sort_keys=True)
        if len(text) > LONGEST:
            short[name] = f"{text[:LONGEST]}… {zlib.crc32(text.encode())}"
        elif value is not None and name not in LEFT_OUT:
            short[name] = value
    return short


def differences_from_gold(found: list[Row], gold: list[Row]) -> list[str]:
    """Return the values that differ from the gold rows."""
    found = json.loads(json.dumps(found))
    if len(found) != len(gold):
        return [f"{found} instead of {gold}"]
    return [
        f"{'row ' + str(place) if place else 'sums'}: {name} is {row.get(name)!r}, "
        f"not {other.get(name)!r}; the row is {row}, not {other}"
        for place, (row, other) in enumerate(zip(found, gold, strict=True))
        for name in row | other
        if not is_same(name, row.get(name), other.get(name))
    ]


def read_gold(name: str) -> dict[str, list[Row]]:
    """Return the gold rows of a trace by view."""
    gold: dict[str, list[Row]] = {}
    for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines():
        [(view, row)] = json.loads(line).items()
        gold.setdefault(view, []).append(row)
    return gold


def read_odd() -> dict[str, dict[str, Row]]:
    """Return the sums of the views of the odd traces, by view and trace."""
    gold = {}
    for line in (FOLDER / "odd_traces.jsonl").read_text("utf-8").splitlines():
        view, columns, by_trace = json.loads(line)
        gold[view] = {
            trace: dict(zip(columns, values, strict=True)) for trace, values in by_trace.items()
        }
    return gold
