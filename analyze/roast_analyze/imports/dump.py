"""Convert a Dask cluster dump to a trace."""

from __future__ import annotations

import importlib.util
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from roast_analyze.errors import MissingExtra, NotWritable
from roast_analyze.imports.append_import import (
    as_line,
    compressing,
    compression_of,
    digest,
    replacing,
)
from roast_analyze.imports.subprocess_reader import read_lines
from roast_analyze.open.names import SUFFIXES
from roast_analyze.report.quantities import counted
from roast_schemas import SCHEMA_VERSION


def convert(dump: Path, target: Path) -> str:
    """Convert a file that ``Client.dump_cluster_state`` wrote to a trace; return a summary.

    An older trace is replaced when the new one is complete. Raises TraceError if the file is
    not a dump, if the trace cannot be written, or if msgpack or PyYAML is not installed.
    """
    if not target.name.endswith(SUFFIXES):
        raise NotWritable(f"invalid trace name {str(target)!r}: use {', '.join(SUFFIXES)}")
    # `samefile` fails if the target does not exist yet.
    with suppress(OSError):
        if target.samefile(dump):
            raise NotWritable(f"{str(target)!r} is the dump itself: name another file")
    # Checked here, because any error of the subprocess counts as an error of the dump.
    for library in ("msgpack", "yaml"):
        if importlib.util.find_spec(library) is None:
            raise MissingExtra(
                f"reading cluster dumps needs {library}: "
                "pip install -U '.[analyze,dump]' in a clone of roast"
            )
    # Converting a dump again results in the same trace.
    identity = digest(dump)[:32]
    with (
        read_lines(dump, "dump_state", "a Dask cluster dump") as lines,
        replacing(target) as file,
        compressing(file, compression_of(target.name)) as segment,
    ):
        counts = _write(segment, map(orjson.loads, lines), dump, identity)
    kinds = ("task", "worker_added", "transition", "event")
    return ", ".join(counted(counts[kind], kind.removesuffix("_added")) for kind in kinds)


def _write(
    segment: Any, records: Iterator[dict[str, Any]], dump: Path, trace_id: str
) -> Counter[str]:
    """Write a complete segment; return the number of its records by kind."""
    counts: Counter[str] = Counter()
    crc32 = 0
    for record in records:
        if "kind" not in record:  # the last line is the summary
            break
        if record["kind"] == "header":
            record |= {
                "schema_version": SCHEMA_VERSION,
                "trace_id": trace_id,
                "segment": 1,
                "settings": {"imported_from": "cluster dump", "filename": dump.name},
            }
        line = as_line(record)
        segment.write(line)
        crc32 = zlib.crc32(line, crc32)
        counts[record["kind"]] += 1
    trailer = {
        "kind": "trailer",
        "t": record["stop_t"],
        "segment": 1,
        "reason": "the cluster dump was written",
        "records_by_kind": dict(counts),
        "dropped_by_kind": {},
        "redacted_values": record["redacted_values"],
    }
    line = as_line(trailer).removesuffix(b"}\n")
    segment.write(line + b',"crc32":%d}\n' % zlib.crc32(line, crc32))
    return counts
