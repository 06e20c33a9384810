"""The lines of a trace: how they begin, and how long they can be."""

from typing import Final

#: No record is longer than this, and DuckDB parses no longer line.
MAX_LINE_BYTES: Final = 16 * 2**20

#: Bytes before the kind, as written by the recorder and by Python's json.
OPENINGS: Final = (b'{"kind":"', b'{"kind": "')
