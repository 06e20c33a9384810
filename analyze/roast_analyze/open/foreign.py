"""Files that are no traces: what wrote them, by their content, and what reads them."""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

#: Bytes of a file, and of its decompressed content, that are searched.
_BEGINNING: Final = 65_536

#: Names that only a dump of the cluster state has at its top level, as YAML and as msgpack.
_DUMP_YAML: Final = (b"scheduler:\n", b"workers:\n", b"versions:\n")
_DUMP_MSGPACK: Final = (b"\xa9scheduler", b"\xa7workers", b"\xa8versions")

_IMPORT_YAPPI: Final = "import it with roast-analyze import yappi FILE --into TRACE"
_REMEDIES: Final = {
    "Darshan log": "import it with roast-analyze import darshan LOG --into TRACE",
    "Yappi profile": _IMPORT_YAPPI,
    "profile of Yappi or cProfile": _IMPORT_YAPPI,
    "Dask cluster dump": "import it with roast-analyze import dump FILE -o TRACE",
    "DuckDB database": "open it with duckdb, or name the trace that it was exported from",
    "Parquet file": "query it with duckdb, or name the trace that it was exported from",
    "Dask performance report": "it has no records to import; record a run, or dump its cluster",
    "HTML page": "open it in a browser, or name the trace of the report",
    "profile for another viewer": "open it there, or name the trace that it was exported from",
}


def describe(path: Path) -> str | None:
    """Return what a file is and what reads it, such as *is a Darshan log: import it with …*."""
    kind = _kind(path)
    if kind is None:
        return None
    return f"is {'an' if kind.startswith('H') else 'a'} {kind}: {_REMEDIES[kind]}"


def _kind(path: Path) -> str | None:
    with suppress(OSError):
        with path.open("rb") as file:
            data = file.read(_BEGINNING)
        if data.startswith(b"\x1f\x8b"):
            with suppress(zlib.error):
                data = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _BEGINNING)
        return _kind_of(data)
    return None


def _kind_of(data: bytes) -> str | None:
    start = data.lstrip()[:64].lower()
    # Its version is followed by the number 6567223, in either byte order.
    if data[8:11] == b"75d" or data[13:16] == b"d57":
        return "Darshan log"
    if data[8:12] == b"DUCK":
        return "DuckDB database"
    if data[:4] == b"PAR1":
        return "Parquet file"
    if start.startswith((b"<!doctype html", b"<html")):
        return "Dask performance report" if b"Dask Performance Report" in data else "HTML page"
    if data[:1] == b"\x80" and b"yappi" in data[:4096].lower():
        return "Yappi profile"
    # A dict in marshal, whose first key is a tuple.
    if data[:1] in (b"{", b"\xfb") and data[1:2] in (b"(", b")", b"\xa8", b"\xa9"):
        return "profile of Yappi or cProfile"
    if start.startswith((b"version: 1\ncreator: ", b"# callgrind format")):
        return "Yappi profile"
    is_map = data[:1] != b"" and 0x81 <= data[0] <= 0x8F
    if (is_map and data[1:].startswith(_DUMP_MSGPACK)) or data.startswith(_DUMP_YAML):
        return "Dask cluster dump"
    if start.startswith(
        (b'{"$schema": "https://www.speedscope', b'[\n{"ph":', b'{"traceevents"')
    ):
        return "profile for another viewer"
    return None
