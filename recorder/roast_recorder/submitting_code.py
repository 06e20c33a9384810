"""Code that submits work: of the client that records, and what Dask keeps of others."""

from __future__ import annotations

import hashlib
import inspect
import linecache
import re
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import dask

#: Longest name of a file.
MAX_FILENAME_CHARACTERS: Final = 300

#: Longest text of a piece of code, and most pieces of code in one recording.
MAX_CODE_CHARACTERS: Final = 10_000
MAX_CODES: Final = 500

#: Maximum numbers of described stacks of a computation, and of frames of a stack.
MAX_STACKS: Final = 20

#: Lines kept before and after the one that submits, of code that is too long.
LINES_AROUND: Final = 40

Fields = dict[str, Any]


class CodeRegistry:
    """Pieces of code that submit work: the text of each is recorded once."""

    def __init__(self) -> None:
        self._places: dict[tuple[CodeType, int], Fields] = {}
        self._digests: set[str] = set()

    def submitting(self, frame: FrameType | None) -> Fields | None:
        """Describe the user's innermost code at or above a frame.

        Dask's configuration lists the modules that are not the user's. ``is_new`` is whether
        this line submits for the first time. Return None if there is no such code, or if too
        many lines have been recorded.
        """
        modules = dask.config.get("distributed.diagnostics.computations.ignore-modules", ())
        ignored = "|".join(f"(?:{module})" for module in (*modules, "roast_recorder"))
        while frame is not None and (
            frame.f_code.co_name in ("<listcomp>", "<dictcomp>", "<genexpr>")
            or re.match(ignored, str(frame.f_globals.get("__name__", "")))
        ):
            frame = frame.f_back
        if frame is None:
            return None
        place = (frame.f_code, frame.f_lineno)
        if place in self._places:
            return self._places[place]
        if len(self._places) >= MAX_CODES:
            return None
        filename = frame.f_code.co_filename
        if frame.f_code.co_name == "<module>":
            lines, first_line = linecache.getlines(filename, frame.f_globals), 1
        else:
            try:
                lines, first_line = inspect.getsourcelines(frame.f_code)
            except (OSError, TypeError):
                lines, first_line = [], frame.f_code.co_firstlineno
        described = describe_code("".join(lines), filename, frame.f_lineno, first_line)
        self._places[place] = {**_without_text(described), "is_new": False}
        return {**self._register(described), "is_new": True}

    def of_stacks(self, stacks: list[Any]) -> list[Fields]:
        """Describe the code that Dask keeps with a computation.

        Clients send it if ``distributed.diagnostics.computations.nframes`` of their
        configuration is not 0.
        """
        return [
            self._register(
                describe_code(
                    frame.code,
                    frame.filename,
                    frame.lineno_frame,
                    frame.lineno_frame - frame.lineno_relative,
                )
            )
            for stack in stacks[:MAX_STACKS]
            for frame in stack[:MAX_STACKS]
        ]

    def _register(self, described: Fields) -> Fields:
        """Return a description, without its text if that has been recorded."""
        if described["digest"] in self._digests or len(self._digests) >= MAX_CODES:
            return _without_text(described)
        self._digests.add(described["digest"])
        return described


def _without_text(described: Fields) -> Fields:
    return {name: described[name] for name in ("digest", "filename", "line_number")}


def describe_code(text: str, filename: str, line_number: int, first_line: int) -> Fields:
    """Describe a piece of code, which begins at `first_line` and submits at `line_number`."""
    if len(text) > MAX_CODE_CHARACTERS:
        lines = text.splitlines(keepends=True)
        start = max(line_number - first_line - LINES_AROUND, 0)
        text = "".join(lines[start : start + 2 * LINES_AROUND + 1])[:MAX_CODE_CHARACTERS]
        first_line += start
    return {
        "digest": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16],
        "filename": Path(filename).name[:MAX_FILENAME_CHARACTERS],
        "line_number": line_number,
        "first_line": first_line,
        "text": text,
    }
