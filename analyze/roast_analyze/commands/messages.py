"""Lines for the user: results on stdout; notes, errors and warnings of roast on stderr."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from roast_analyze.errors import CacheNotUsed, ViewSkipped
from roast_analyze.safe_text import visible
from roast_schemas.urls import safe_message


def print_result(text: str) -> None:
    """Print a line on stdout."""
    # Numbers contain no-break spaces, at which some terminals do not wrap.
    print(visible(safe_message(text)).replace("\N{NO-BREAK SPACE}", " "))


def print_note(text: object) -> None:
    """Print a line on stderr, which begins with the name of the command."""
    print(visible(safe_message(f"roast-analyze: {text}")), file=sys.stderr, flush=True)


@contextmanager
def warning_lines() -> Iterator[None]:
    """Print each warning of roast in the block once, without the source line."""
    printed: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, ViewSkipped | CacheNotUsed):
            others(message, category, filename, lineno, file, line)
            return
        # Names of files in the cache are random.
        same = re.sub("[0-9a-f]{32}", "", str(message))
        if same not in printed:
            printed.add(same)
            print_note(message)

    with warnings.catch_warnings():
        for category in (ViewSkipped, CacheNotUsed):
            warnings.simplefilter("always", category)
        others, warnings.showwarning = warnings.showwarning, show
        yield
