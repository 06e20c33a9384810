"""A trace in plain Python: the decoded lines of one file, in order.

This module and those beside it use neither roast nor a database: they specify the views in
short Python, and the views are compared with them.
"""

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TypeVar

import zstandard

#: A row of a view, by column.
Row = dict[str, object]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Recording:
    """The lines of a trace of one segment, and the path of its file."""

    path: Path
    lines: list[dict]

    @classmethod
    def read(cls, path: Path) -> "Recording":
        """Decode a file."""
        return cls(path, [json.loads(line) for line in content(path).splitlines()])

    @cached_property
    def _by_kind(self) -> dict[str, list[dict]]:
        by_kind = defaultdict(list)
        for line in self.lines:
            by_kind[line["kind"]].append(line)
        return dict(by_kind)

    def of(self, kind: str) -> list[dict]:
        """Return the records of a kind, in the order of the file."""
        return self._by_kind.get(kind, [])

    @property
    def trace_id(self) -> str:
        """Trace ID: from the header, or else the name of the file."""
        headers = self.of("header")
        return headers[0]["trace_id"] if headers else self.path.name.split(".")[0]


def content(path: Path) -> bytes:
    """Return the decompressed content of a file."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        decompressor = zstandard.ZstdDecompressor()
        data = decompressor.stream_reader(data, read_across_frames=True).read()
    return data


def once(work_out: Callable[[Recording], T]) -> Callable[[Recording], T]:
    """Cache the result of a function per recording."""
    known: dict[Recording, T] = {}

    @wraps(work_out)
    def remembered(recording: Recording) -> T:
        if recording not in known:
            known[recording] = work_out(recording)
        return known[recording]

    return remembered
