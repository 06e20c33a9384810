"""Writer of synthetic traces: lines as the recorder writes them, segment by segment.

A :class:`SyntheticTrace` writes records with their fields in the recorder's order. Repeated
texts are passed as JSON. It counts the records, and buffers one megabyte at most.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from recorded_shape import Record, as_json
from roast_recorder.writer.trace_file import ENDINGS, TraceFile

#: Size of the text that is buffered before it is compressed and written.
FLUSH_CHARACTERS = 1_000_000


class SyntheticTrace:
    """Write the segments of a trace.

    Parameters
    ----------
    path : path
        A file, or a folder if it has none of the suffixes of a trace.
    header : dict
        Header of every segment, without its number.
    segment_bytes : int
        Uncompressed size at which the next segment begins; for folders.

    Attributes
    ----------
    written : Counter
        Records of all segments by kind, headers and trailers included.
    nbytes : int
        Size of the files.
    """

    def __init__(self, path: Path, header: Record, segment_bytes: int) -> None:
        self.written: Counter[str] = Counter()
        self.nbytes = 0
        self._path = path
        self._header = header
        self._is_folder = not path.name.endswith(ENDINGS)
        self._segment_bytes = segment_bytes
        self._segment = 0
        self._lines: list[str] = []
        self._held = 0
        self._begin_segment(header["t"])

    def _begin_segment(self, t: float) -> None:
        self._segment += 1
        self._segment_nbytes = 0
        self._segment_crc32 = 0
        self._counts: Counter[str] = Counter()
        if self._is_folder:
            self._path.mkdir(parents=True, exist_ok=True)
        name = self._path / f"{self._segment:06d}.jsonl.zst" if self._is_folder else self._path
        self._file = TraceFile(name)
        self.record("header", t, {**self._header, "segment": self._segment})

    def record(self, kind: str, t: float, fields: Record) -> None:
        """Write a record given as a dict, which is slower than :meth:`line`."""
        rest = {name: value for name, value in fields.items() if name not in ("kind", "t")}
        self.line(kind, t, as_json(rest)[1:-1])

    def line(self, kind: str, t: float, fields: str) -> None:
        """Write a record; `fields` are those after ``kind`` and ``t``, as JSON."""
        line = f'{{"kind":"{kind}","t":{t:.7f},{fields}}}\n'
        self._counts[kind] += 1
        self._lines.append(line)
        self._held += len(line)
        if self._held > FLUSH_CHARACTERS:
            self._flush()
            if self._is_folder and self._segment_nbytes > self._segment_bytes:
                self._end_segment(t, "segment is full")
                self._begin_segment(t)

    def moved(self, t: float, key: str, states: str, stimulus: str, more: str = "") -> None:
        """Write a transition; `states` and `more` are JSON of its fields."""
        self.line("transition", t, f'"key":{key},{states},"stimulus_id":"{stimulus}"{more}')

    def sent(self, t: float, key: str, start: str, stimulus: str, run_id: int, to: str) -> None:
        """Write the transition of a task to ``processing``."""
        states = f'"start":"{start}","finish":"processing"'
        self.moved(t, key, states, stimulus, f',"run_id":{run_id},"worker":"{to}"')

    def close(self, t: float) -> None:
        """Write the trailer."""
        self._end_segment(t, "recording was stopped")

    def _end_segment(self, t: float, reason: str) -> None:
        trailer = {
            "segment": self._segment,
            "reason": reason,
            "records_by_kind": dict(self._counts),
            "dropped_by_kind": {},
            "redacted_values": 0,
        }
        self._flush()
        before = f'{{"kind":"trailer","t":{t:.7f},{as_json(trailer)[1:-1]}'.encode()
        checksum = zlib.crc32(before, self._segment_crc32)
        self._file.append(before + b',"crc32":%d}\n' % checksum)
        self._counts["trailer"] += 1
        self._file.close()
        self.nbytes += self._file.nbytes
        self.written += self._counts

    def _flush(self) -> None:
        text = "".join(self._lines).encode()
        self._segment_nbytes += len(text)
        self._segment_crc32 = zlib.crc32(text, self._segment_crc32)
        self._file.append(text)
        self._lines.clear()
        self._held = 0


def parts_as_json(parts: Iterable[tuple[str, float, float, str | None]]) -> str:
    """Encode the phases of an attempt: action, start, stop, and the source of a transfer."""
    return ",".join(
        f'{{"action":"{action}","start":{start:.7f},"stop":{stop:.7f}'
        + (f',"source":"{source}"}}' if source else "}")
        for action, start, stop, source in parts
    )
