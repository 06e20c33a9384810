"""The records of a trace that is still being written, as they are appended.

A :class:`GrowingTrace` reads each byte once. The blocks of the next append to a zstd frame
overwrite the three bytes that end the frame, so these are read only once something follows.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import zstandard

from roast_analyze.errors import TraceError
from roast_analyze.open.lines import MAX_LINE_BYTES, parse_record

#: Last block of a zstd frame, as the recorder writes it: raw and empty.
FRAME_END: Final = b"\x01\x00\x00"

#: Bytes of a file that are read at once, and that are decompressed at once: a hostile file
#: expands so many to 64 MiB.
_READ_BYTES: Final = 2**20
_STEP_BYTES: Final = {".zst": 2**11, ".gz": 2**16}

#: A trace that was replaced more often is damaged.
_MAX_RESTARTS: Final = 3


class _GrowingFile:
    """The lines of one file so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read_bytes = 0
        self._rest = b""
        self._frame: Any = None

    def lines(self) -> Iterator[bytes]:
        """Yield the whole lines that were appended since the last call.

        Raises
        ------
        ValueError
            If the file is shorter than before, or cannot be decompressed: it was replaced,
            or a failed append was cut off.
        """
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            if size < self.read_bytes:
                raise ValueError(f"{self.path} was replaced")
            file.seek(self.read_bytes)
            while data := file.read(_READ_BYTES):
                if self.path.suffix == ".zst" and self.read_bytes + len(data) >= size:
                    data = data.removesuffix(FRAME_END)
                self.read_bytes += len(data)
                for content in self._decompress(data):
                    *whole, self._rest = (self._rest + content).split(b"\n")
                    yield from whole
                    if len(self._rest) > MAX_LINE_BYTES:
                        raise ValueError(f"{self.path} has a line that is too long")
                if not data or self.read_bytes + len(FRAME_END) >= size:
                    return

    def _decompress(self, data: bytes) -> Iterator[bytes]:
        """Yield the content of the next bytes of the file in pieces of a limited size."""
        step = _STEP_BYTES.get(self.path.suffix)
        if step is None:
            yield data
            return
        for start in range(0, len(data), step):
            rest = data[start : start + step]
            while rest:
                frame = self._frame or _decompressor(self.path)
                try:
                    yield frame.decompress(rest)
                except (zlib.error, zstandard.ZstdError) as error:
                    raise ValueError(f"{self.path} cannot be decompressed: {error}") from None
                rest, self._frame = frame.unused_data, None if frame.eof else frame


def _decompressor(path: Path) -> Any:
    if path.suffix == ".gz":
        return zlib.decompressobj(31)
    return zstandard.ZstdDecompressor().decompressobj()


class GrowingTrace:
    """The records of a trace as they are appended: of files, or of a folder of segments."""

    def __init__(self, *paths: Path) -> None:
        self.paths = paths
        self._files: list[_GrowingFile] = []
        self._restarts = 0

    def records(self) -> Iterator[dict[str, Any] | None]:
        """Yield the records since the last call; None if reading begins again from the front.

        A trace that does not exist yet has none. A damaged one is a TraceError.
        """
        with suppress(FileNotFoundError):
            for file in self._current():
                try:
                    for line in file.lines():
                        if (record := parse_record(line)) is not None:
                            yield record
                except ValueError as error:
                    self._restarts += 1
                    if self._restarts > _MAX_RESTARTS:
                        raise TraceError(
                            f"cannot follow: {error}: roast-analyze check lists the damage"
                        ) from None
                    self._files = []
                    yield None
                    return

    def _current(self) -> Iterator[_GrowingFile]:
        """Yield the file that was read last, and those that were begun since."""
        segments = list(self.paths)
        if self.paths[0].is_dir():
            [folder] = self.paths
            segments = sorted(path for path in folder.iterdir() if ".jsonl" in path.suffixes)
        known = {file.path for file in self._files}
        if self._files:
            yield self._files[-1]
        for path in segments:
            if path not in known:
                self._files.append(_GrowingFile(path))
                yield self._files[-1]
