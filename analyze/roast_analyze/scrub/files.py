"""Scrubbing the files of a trace.

The files are read twice: first for their words, so that no pseudonym is one of them, then to
write them. The output is then read again to verify it: none of its words may be a word of the
trace, except for numbers, field words and what the user keeps. Memory is bounded: lines are
read in blocks, and words are on disk.

Order and number of lines stay, and so does damage. A line that cannot be read is replaced by
another one that cannot be read. The checksum of a trailer or an import is computed anew, or is
wrong if it was wrong.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final

import orjson

from roast_analyze.errors import NotATrace, NotWritable, TraceError
from roast_analyze.imports.append_import import compressing, compression_of
from roast_analyze.open.block_reader import group_lines, read_blocks
from roast_analyze.open.checksum import Checksum
from roast_analyze.open.decompress import SUFFIX, Content, open_for_content
from roast_analyze.open.discover import Segment, read_segment, segment_paths
from roast_analyze.open.lines import MAX_LINE_BYTES, parse_record
from roast_analyze.open.names import SUFFIXES
from roast_analyze.output_paths import refuse_to_overwrite, refuse_to_replace, writing
from roast_analyze.scrub.pseudonyms import Dictionary, open_dictionary
from roast_analyze.scrub.records import (
    Scrubber,
    contents_of,
    kept_texts,
    public_texts,
    texts_in,
)
from roast_analyze.scrub.words import names_in, words_in

if TYPE_CHECKING:
    from roast_analyze.open.database import Listener
    from roast_schemas.units import Content as FieldContent

#: Replacement of a line that cannot be read.
_UNREADABLE: Final = b"{\n"

#: Levels of nested values in a record; orjson writes at most 254.
_MAX_LEVELS: Final = 250

#: Size of the content of a compressed frame.
_FRAME_BYTES: Final = 2**22

#: Number of texts that are remembered, because most occur many times.
_REMEMBERED: Final = 100_000


@dataclass
class Summary:
    """What was scrubbed."""

    words: int = 0  # different ones that were replaced
    records: int = 0
    unreadable: int = 0  # lines that were replaced with unreadable ones
    damaged: int = 0  # places where the compression is damaged


def scrub(
    trace: Path,
    output: Path,
    *,
    keep: frozenset[FieldContent] = frozenset(),
    names: Path | None = None,
    listener: Listener = lambda _stage, _share: None,
) -> Summary:
    """Write a trace with pseudonyms in place of names.

    Parameters
    ----------
    trace : Path
        A trace file, or a folder of segments.
    output : Path
        The file to write, or the folder if the trace is one.
    keep : set of Content
        Contents of fields whose texts are kept.
    names : Path, optional
        Map of names and pseudonyms, which is created if it does not exist. With the same map,
        a name has the same pseudonym in all traces.
    listener : callable
        Called with the stage and the finished share.

    Raises
    ------
    TraceError
        If the trace cannot be read, the output cannot be written, or a word of the trace is
        left in it. Nothing is written then.
    """
    refuse_to_overwrite([trace], output)
    if names is not None:
        refuse_to_replace(names, output, "the map itself")
    segments = [read_segment(path, trace) for path in segment_paths(trace)]
    is_folder = len(segments) > 1 or trace.is_dir()
    files = _output_names(segments, output, is_folder=is_folder)
    summary = Summary()
    with (
        writing(output),
        open_dictionary(names) as dictionary,
        TemporaryDirectory(prefix=".scrub-", dir=output.absolute().parent) as temporary,
    ):
        folder = Path(temporary)
        # Until it is checked, the output can contain names.
        folder.chmod(0o700)
        checksums = [
            _read_words(lines, dictionary, keep)
            for lines in _read(segments, listener, "reading names")
        ]
        scrubber = Scrubber(dictionary, keep)
        for lines, name, checksum in zip(
            _read(segments, listener, "writing"), files, checksums, strict=True
        ):
            with (folder / name).open("wb") as file:
                writer = _Writer(file, compression_of(name))
                _write_segment(lines, writer, scrubber, checksum, summary)
        # Before the check, which would find nothing wrong with an empty file.
        if not summary.records:
            raise NotATrace(f"{str(trace)!r} has no readable records: name a trace")
        written = [read_segment(folder / name, folder) for name in files]
        for lines in _read(written, listener, "checking"):
            _prove(lines, dictionary)
        summary.words = dictionary.word_count()
        dictionary.commit()
        if is_folder:
            output.mkdir(exist_ok=True)
        for name in files:
            (folder / name).replace(output / name if is_folder else output)
    return summary


def _output_names(segments: list[Segment], output: Path, *, is_folder: bool) -> list[str]:
    """Return names of files that reveal nothing but number and compression."""
    if is_folder:
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise NotWritable(f"{str(output)!r} is not an empty folder: name a new one")
        return [
            f"{number}.jsonl{SUFFIX.get(segment.compression, '')}"
            for number, segment in enumerate(segments, start=1)
        ]
    if not output.name.endswith(SUFFIXES) or output.is_dir():
        raise NotWritable(
            f"{str(output)!r} is not the name of a trace file: "
            f"it must end in {', '.join(SUFFIXES)}"
        )
    return [output.name]


def _read(segments: list[Segment], listener: Listener, stage: str) -> Iterator[_Lines]:
    """Yield the lines of each segment; they report the finished share of the stage."""
    total = sum(segment.nbytes for segment in segments) or 1
    done = 0
    for segment in segments:

        def report(nbytes: int, begin: int = done) -> None:
            listener(stage, (begin + nbytes) / total)

        yield _Lines(segment, report)
        done += segment.nbytes


class _Lines:
    """The lines of a segment, and the damage found while reading them."""

    def __init__(self, segment: Segment, report: Callable[[int], None]) -> None:
        self._segment = segment
        self._report = report
        self.damaged = 0  # places where the compression is damaged
        self.checksum = Checksum()

    def __iter__(self) -> Iterator[bytes | None]:
        """Yield lines with their newlines, and None for an overlong one."""
        segment = self._segment
        with open_for_content(segment.path) as file:
            content = Content(file, segment.compression, 0, segment.nbytes)
            for block in read_blocks(content, anywhere=False):
                self.checksum.add(block.data, group_lines(block).by_kind)
                yield from [None] * block.too_long
                yield from io.BytesIO(block.data)
                self._report(file.tell())
            self.damaged = content.breaks.damaged + (content.breaks.cut_at is not None)


def _parse(line: bytes | None) -> dict[str, Any] | None:
    """Return the record of a line, or None if it has none."""
    if line is None or len(line) > MAX_LINE_BYTES:
        return None
    record = parse_record(line)
    # No record has more levels than brackets.
    if line.count(b"{") + line.count(b"[") <= _MAX_LEVELS:
        return record
    level: list[Any] = [record]
    for _ in range(_MAX_LEVELS):
        level = [
            item
            for value in level
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return record
    return None


def _read_words(
    lines: _Lines, dictionary: Dictionary, keep: frozenset[FieldContent]
) -> Checksum:
    """Add the words of a segment to the dictionary; return its checksum."""

    @lru_cache(_REMEMBERED)
    def add_words(text: str) -> None:
        dictionary.add_words(words_in(text))

    @lru_cache(_REMEMBERED)
    def keep_words(text: str) -> None:
        dictionary.keep(words_in(text))

    for line in lines:
        record = _parse(line)
        if record is not None:
            for text in texts_in(record):
                add_words(text)
            for text in public_texts(record):
                keep_words(text)
            if keep:
                for text in kept_texts(record, contents_of(record), keep):
                    keep_words(text)
    return lines.checksum


def _prove(lines: _Lines, dictionary: Dictionary) -> None:
    """Raise if a word of the trace is left in a scrubbed segment."""

    @lru_cache(_REMEMBERED)
    def check(text: str) -> None:
        found = dictionary.left_over(names_in(text))
        if found is not None:
            raise TraceError(
                f"{found!r} of the trace would be left in the output, so nothing was written: "
                "if you use --map, it may be a pseudonym of another trace; use another map"
            )

    for line in lines:
        if line is not None and line != _UNREADABLE:
            for text in texts_in(orjson.loads(line)):
                check(text)


class _Writer:
    """Writes lines as frames of a file, and computes their checksum."""

    def __init__(self, file: IO[bytes], compression: str) -> None:
        self._file = file
        self._compression = compression
        self._buffer = bytearray()
        self.crc32 = 0

    def write(self, line: bytes) -> None:
        self.crc32 = zlib.crc32(line, self.crc32)
        self._buffer += line
        if len(self._buffer) > _FRAME_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._buffer:
            with compressing(self._file, self._compression) as target:
                target.write(self._buffer)
            self._buffer.clear()


@dataclass
class _Import:
    """An ``import`` record whose lines are being scrubbed; it states their checksum."""

    record: dict[str, Any]
    awaited_bytes: int
    crc32: int = 0  # of the lines as they were
    scrubbed_crc32: int = 0
    lines: IO[bytes] = field(default_factory=TemporaryFile)

    def add(self, line: bytes, scrubbed: bytes) -> None:
        self.awaited_bytes -= len(line)
        self.crc32 = zlib.crc32(line, self.crc32)
        self.scrubbed_crc32 = zlib.crc32(scrubbed, self.scrubbed_crc32)
        self.lines.write(scrubbed)

    def write(self, writer: _Writer) -> None:
        """Write the record with the checksum of the scrubbed lines, and then these."""
        # Missing or changed lines must still be missing or changed.
        missing = max(self.awaited_bytes, 0)
        is_changed = not missing and self.crc32 != self.record["crc32"]
        self.record["nbytes"] = self.lines.tell() + missing
        self.record["crc32"] = self.scrubbed_crc32 ^ is_changed
        writer.write(orjson.dumps(self.record, option=orjson.OPT_APPEND_NEWLINE))
        self.lines.seek(0)
        for line in self.lines:
            writer.write(line)
        self.lines.close()


def _write_segment(
    lines: _Lines, writer: _Writer, scrubber: Scrubber, checksum: Checksum, summary: Summary
) -> None:
    current: _Import | None = None
    for line in lines:
        # Blank lines are no damage, and are not counted.
        if line is not None and not line.strip():
            continue
        record = _parse(line)
        # The checksum of a trailer is that of the scrubbed lines before it.
        scrubbed = _scrub_line(record, writer, scrubber, checksum)
        summary.records += scrubbed is not _UNREADABLE
        summary.unreadable += scrubbed is _UNREADABLE
        if current is not None:
            current.add(line or b"", scrubbed)
            if current.awaited_bytes <= 0:
                current.write(writer)
                current = None
        elif (
            record is not None
            and record["kind"] == "import"
            # Size and checksum of the lines that follow.
            and all(type(record.get(n)) is int and record[n] > 0 for n in ("nbytes", "crc32"))
        ):
            current = _Import(scrubber.record(record), record["nbytes"])
        else:
            writer.write(scrubbed)
    if current is not None:
        current.write(writer)
    writer.flush()
    summary.damaged += lines.damaged


def _scrub_line(
    record: dict[str, Any] | None, writer: _Writer, scrubber: Scrubber, checksum: Checksum
) -> bytes:
    if record is None:
        return _UNREADABLE
    scrubbed = scrubber.record(record)
    has_checksum = record["kind"] == "trailer" and scrubbed.pop("crc32", None) is not None
    line = orjson.dumps(scrubbed)
    if has_checksum and checksum.matches is not None:
        # The checksum covers everything before the comma.
        crc32 = zlib.crc32(line[:-1], writer.crc32) ^ (not checksum.matches)
        line = line[:-1] + b',"crc32":%d}' % crc32
    return line + b"\n" if len(line) < MAX_LINE_BYTES else _UNREADABLE
