"""What somebody named as a trace: which files those are, and what each is a part of.

A name is a file, a folder of segments, or a pattern for either. Which trace a file belongs
to, and where in it, is told by its header; a segment without one goes with its neighbours.
"""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from roast_analyze.errors import NotATrace, TraceNotFound
from roast_analyze.open.damage import Damage
from roast_analyze.open.decompress import Content
from roast_analyze.open.segment import Segment, read_segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Names of the files that a folder is searched for.
SUFFIXES: Final = (".jsonl", ".jsonl.zst", ".jsonl.gz")


@dataclass(frozen=True)
class Identity:
    """What a segment is a part of: trace and place in it."""

    trace_id: str
    segment: int


@dataclass(frozen=True)
class Part:
    """A segment that is to be read.

    Parameters
    ----------
    name : str
        What was named.
    segment : Segment
    identity : Identity
    """

    name: str
    segment: Segment
    identity: Identity


@dataclass(frozen=True)
class LeftOut:
    """A file that is not read, and why; ``segment`` is null if nobody knows which it is."""

    name: str
    damage: Damage
    trace_id: str
    segment: int | None


@dataclass(frozen=True)
class Inputs:
    """What is read, in order, and what is not."""

    parts: tuple[Part, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def nbytes(self) -> int:
        """Size of all files that are read."""
        return sum(part.segment.nbytes for part in self.parts)


def find_inputs(names: Iterable[Path]) -> Inputs:
    """Find the segments of what somebody named.

    Raises
    ------
    TraceNotFound, NotATrace, SchemaTooNew
        As :mod:`roast_analyze.errors` tells them apart.
    """
    parts: list[Part] = []
    left_out: list[LeftOut] = []
    for name in names:
        segments = [read_segment(path) for path in segment_paths(name)]
        full = _not_empty(name, segments)
        found = [
            Part(str(name), segment, identity)
            for segment, identity in zip(full, _identities(name, full), strict=True)
        ]
        parts += found
        for segment in segments:
            if segment.empty:
                damage = Damage("empty file", None, f"{segment.path.name} is empty")
                left_out.append(LeftOut(str(name), damage, found[-1].identity.trace_id, None))
    parts, twice = _without_duplicates(parts)
    return Inputs(tuple(parts), (*left_out, *twice))


def group_by_trace(names: Iterable[Path]) -> list[tuple[Path, ...]]:
    """Tell which traces somebody named: several names can be parts of one, one be of several.

    Parameters
    ----------
    names : iterable of Path
        Files, folders of segments, or patterns.

    Returns
    -------
    list of tuple of Path
        What to open each trace by, in the order in which they were named: what was named, or
        its files if there are others in what was named.

    Raises
    ------
    TraceNotFound, NotATrace, SchemaTooNew
        As :func:`find_inputs` does.
    """
    traces: dict[str, dict[Path, None]] = {}
    for name in names:
        segments = _not_empty(name, map(read_segment, segment_paths(name)))
        trace_ids = [identity.trace_id for identity in _identities(name, segments)]
        # Without a header its name is all that is known of a trace; another one, elsewhere,
        # can have the same.
        nameless = not any(segment.header for segment in segments)
        alone = len(set(trace_ids)) == 1
        for segment, trace_id in zip(segments, trace_ids, strict=True):
            trace = traces.setdefault(str(name.absolute()) if nameless else trace_id, {})
            trace[name if alone else segment.path] = None
    return [tuple(paths) for paths in traces.values()]


def segment_paths(name: Path) -> list[Path]:
    """List the files of a trace, in the order of their names.

    Parameters
    ----------
    name : Path
        A file, a folder of segments, or a pattern (``*``, ``?``, ``[…]``, ``**``) if
        nothing lies there.

    Raises
    ------
    TraceNotFound
        If nothing lies at the path.
    NotATrace
        If it is neither a file nor a folder with segments in it.
    """
    try:
        if name.is_file():
            return [name]
        if name.is_dir():
            return _segments_in(name)
        exists = name.exists()
        matches = [] if exists else glob.glob(str(name), recursive=True)  # noqa: PTH207
    except OSError as error:
        raise NotATrace(f"{str(name)!r} cannot be read: {error.strerror}") from None
    if exists:
        raise NotATrace(f"{str(name)!r} is neither a file nor a folder; name a trace")
    if not matches:
        raise TraceNotFound(
            f"there is no {str(name)!r}; name a trace file or a folder of segments"
        )
    return [
        path
        for match in sorted(map(Path, matches), key=_counting_order)
        for path in ([match] if match.is_file() else _segments_in(match))
    ]


def trace_name(path: Path) -> str:
    """Give the name of a trace without the ending that says how it is stored."""
    name = path.absolute().name
    ending = next((s for s in sorted(SUFFIXES, key=len)[::-1] if name.endswith(s)), "")
    return name.removesuffix(ending) or name


def _not_empty(name: Path, segments: Iterable[Segment]) -> list[Segment]:
    full = [segment for segment in segments if not segment.empty]
    if not full:
        raise NotATrace(f"{str(name)!r} is empty; name a trace that roast recorded")
    return full


def _segments_in(folder: Path) -> list[Path]:
    found = [
        entry
        for entry in folder.iterdir()
        if entry.name.endswith(SUFFIXES) and not entry.name.startswith(".") and entry.is_file()
    ]
    if not found:
        endings = ", ".join(SUFFIXES)
        raise NotATrace(
            f"no trace lies in the folder {str(folder)!r}; segments end in {endings}"
        )
    return sorted(found, key=_counting_order)


def _counting_order(path: Path) -> list[tuple[int, str]]:
    """Order names as people count: 2 before 10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", str(path))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _identities(name: Path, segments: list[Segment]) -> Iterator[Identity]:
    """Tell what the segments are; one without header goes with its neighbours."""
    headers = [segment.header for segment in segments if segment.header]
    trace_id = headers[0].trace_id if headers else trace_name(name)
    number = 0
    for segment in segments:
        if segment.header:
            trace_id, number = segment.header.trace_id, segment.header.segment
        else:
            number += 1
        yield Identity(trace_id, number)


def _without_duplicates(parts: list[Part]) -> tuple[list[Part], list[LeftOut]]:
    """Keep one file of each segment, in the order of traces and of segments in them."""
    copies: dict[Identity, list[Part]] = {}
    for part in parts:
        copies.setdefault(part.identity, []).append(part)
    order = {
        trace_id: i for i, trace_id in enumerate(dict.fromkeys(i.trace_id for i in copies))
    }
    kept, left_out = [], []
    for identity in sorted(copies, key=lambda i: (order[i.trace_id], i.segment)):
        # A file that was named twice is one file.
        files = list({part.segment.stamp: part for part in copies[identity]}.values())
        if len(files) > 1:
            files.sort(key=_content_bytes, reverse=True)
        best, *others = files
        kept.append(best)
        for other in others:
            damage = Damage("duplicate segment", *_comparison(other.segment, best.segment))
            left_out.append(LeftOut(other.name, damage, identity.trace_id, identity.segment))
    return kept, left_out


def _content_bytes(part: Part) -> int:
    return sum(len(data) for data in _content(part.segment))


def _comparison(other: Segment, best: Segment) -> tuple[int | None, str]:
    """Tell what is lost with the shorter one of two copies of a segment."""
    names = f"{other.path.name} was left out for {best.path.name}"
    if _begins_with(best, other):
        return 0, f"{names}, which has all that is in it"
    return None, f"{names}, which is longer and not the same"


def _begins_with(long: Segment, short: Segment) -> bool:
    theirs = _content(short)
    waiting = b""
    for data in _content(long):
        while len(waiting) < len(data):
            more = next(theirs, None)
            if more is None:
                return data.startswith(waiting)
            waiting += more
        if not waiting.startswith(data):
            return False
        waiting = waiting[len(data) :]
    return not waiting and next(theirs, None) is None


def _content(segment: Segment) -> Iterator[bytes]:
    with segment.path.open("rb") as file:
        for piece in Content(file, segment.compression, 0, segment.nbytes):
            yield bytes(piece.data)
