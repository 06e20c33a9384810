"""Convert a Dask cluster dump to a trace."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import orjson

from roast_analyze.errors import MissingExtra, NotWritable, TraceError
from roast_analyze.imports.append_import import compressing
from roast_analyze.imports.subprocess_reader import read_lines
from roast_analyze.open.discover import SUFFIXES
from roast_analyze.report.quantities import counted
from roast_schemas import SCHEMA_VERSION

if TYPE_CHECKING:
    from pathlib import Path

#: Command that installs the readers of dumps.
_INSTALL: Final = "pip install -U 'roast-trace[analyze,dump]'"

_COMPRESSIONS: Final = {".jsonl": "uncompressed", ".jsonl.zst": "zstd", ".jsonl.gz": "gzip"}


def convert(dump: Path, target: Path) -> str:
    """Convert a dump to a trace.

    Parameters
    ----------
    dump : Path
        File that ``Client.dump_cluster_state`` wrote: msgpack or YAML.
    target : Path
        Trace to write; an older one is replaced when the new one is complete.

    Returns
    -------
    str
        Summary of the trace.

    Raises
    ------
    MissingExtra
        If msgpack or PyYAML is not installed.
    TraceError
        If the file is not a dump, or the trace cannot be written.
    """
    compression = _compression(dump, target)
    for library in ("msgpack", "yaml"):
        if importlib.util.find_spec(library) is None:
            raise MissingExtra(f"reading cluster dumps needs {library}: {_INSTALL}")
    try:
        with dump.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TraceError(f"{str(dump)!r} cannot be read: {error.strerror}") from None
    draft = target.with_name(f".{target.name}.importing")
    with read_lines(dump, "dump_state", "a Dask cluster dump") as lines:
        try:
            draft.unlink(missing_ok=True)
            # Traces hold the user's names and error messages: private to the user.
            descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            with os.fdopen(descriptor, "r+b") as file:
                with compressing(file, compression) as segment:
                    counts = _write(segment, map(orjson.loads, lines), dump, digest)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except OSError as error:
            raise NotWritable(
                f"{str(target)!r} cannot be written: {error.strerror or error}"
            ) from None
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
    nouns = {
        "task": "task",
        "worker_added": "worker",
        "transition": "transition",
        "event": "event",
    }
    return ", ".join(counted(counts[kind], noun) for kind, noun in nouns.items())


def _compression(dump: Path, target: Path) -> str:
    """Return the compression that the name of a trace selects."""
    ending = next((s for s in sorted(SUFFIXES, key=len)[::-1] if target.name.endswith(s)), None)
    if ending is None:
        raise NotWritable(f"invalid trace name {str(target)!r}: use {', '.join(SUFFIXES)}")
    with contextlib.suppress(OSError):
        if target.samefile(dump):
            raise NotWritable(f"{str(target)!r} is the dump itself: name another file")
    return _COMPRESSIONS[ending]


def _write(segment: Any, records: Any, dump: Path, digest: str) -> Counter[str]:
    """Write a complete segment; return the number of its records by kind."""
    counts: Counter[str] = Counter()
    crc32 = 0
    header = {
        "kind": "header",
        "schema_version": SCHEMA_VERSION,
        # Converting a dump again results in the same trace.
        "trace_id": digest[:32],
        "segment": 1,
        **next(records),
        "settings": {"imported_from": "cluster dump", "filename": dump.name},
    }
    record, following = header, next(records)
    while True:
        line = _line(record)
        segment.write(line)
        crc32 = zlib.crc32(line, crc32)
        counts[record["kind"]] += 1
        if "kind" not in following:  # the last line is the summary
            break
        record, following = following, next(records)
    trailer = {
        "kind": "trailer",
        "t": following["stop_t"],
        "segment": 1,
        "reason": "made of a cluster dump",
        "records_by_kind": dict(counts),
        "dropped_by_kind": {},
        "redacted_values": following["redacted_values"],
    }
    line = _line(trailer).removesuffix(b"}\n")
    segment.write(line + b',"crc32":%d}\n' % zlib.crc32(line, crc32))
    return counts


def _line(record: dict[str, Any]) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
