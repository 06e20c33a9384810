"""Opening a page in the reader's browser."""

from __future__ import annotations

import sys
import webbrowser
from typing import TYPE_CHECKING

from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from pathlib import Path


def show(page: Path) -> None:
    """Open a page in the browser; if there is none, say on stderr where the page lies."""
    address = page.absolute().as_uri()
    try:
        opened = webbrowser.open(address)
    except (webbrowser.Error, OSError):  # the variable BROWSER names none that runs
        opened = False
    if not opened:
        print(
            visible(f"roast-analyze: no browser can be opened here; open {address} in yours"),
            file=sys.stderr,
        )
