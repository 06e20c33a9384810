"""Warnings of roast as lines on stderr."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from roast_analyze.errors import CacheNotUsed, ViewSkipped
from roast_analyze.safe_text import visible


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
        text = visible(str(message))
        # Names of files in the cache are random.
        same = re.sub("[0-9a-f]{32}", "", text)
        if same not in printed:
            printed.add(same)
            print(f"roast-analyze: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        for category in (ViewSkipped, CacheNotUsed):
            warnings.simplefilter("always", category)
        others, warnings.showwarning = warnings.showwarning, show
        yield
