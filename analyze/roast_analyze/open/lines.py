"""The lines of a trace: their first bytes, their maximum length and their records."""

from typing import Any, Final

import orjson

#: No record is longer than this, and DuckDB parses no longer line.
MAX_LINE_BYTES: Final = 16 * 2**20

#: Bytes before the kind, as written by the recorder and by Python's json.
OPENINGS: Final = (b'{"kind":"', b'{"kind": "')


def parse_record(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line, or None if it has none."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    is_record = isinstance(record, dict) and isinstance(record.get("kind"), str)
    return record if is_record else None
