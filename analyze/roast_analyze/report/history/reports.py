"""Reports of runs that a page of a store links to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from roast_analyze.open.discover import trace_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


def report_name(store: str, *trace_ids: str) -> str:
    """Return the name of the page of a store, or of the report of one of its traces."""
    return f"{'-'.join([Path(store).name, *trace_ids])}.html"


def find_reports(store: str, runs: Iterable[Mapping[str, Any]], folder: Path) -> dict[str, str]:
    """Return the addresses, relative to a folder, of the reports that exist, by trace.

    They are searched for in the folder, and next to the files of the traces.

    Parameters
    ----------
    store : str
    runs : iterable of mapping
        ``trace_id`` and ``paths``, the files of the trace when it was added.
    folder : Path
        Folder of the page.
    """
    found: dict[str, str] = {}
    for run in runs:
        traces = [Path(path) for path in run["paths"] or ()]
        places = [
            folder / report_name(store, run["trace_id"]),
            *(path.parent / f"{trace_name(path)}.html" for path in traces[:1]),
        ]
        for place in filter(Path.is_file, places):
            address = Path(os.path.relpath(place, folder)).as_posix()
            found.setdefault(run["trace_id"], quote(address))
    return found
