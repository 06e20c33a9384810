"""Path of the user's own kinds of work, read by :mod:`roast_analyze.algorithms.work_kinds`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

#: Environment variable with the path; no file if it is empty.
VARIABLE: Final = "ROAST_KINDS"

#: Tables whose rows depend on the file, so that they are not kept while there is one.
TABLES: Final = ("_busy_time", "_seceded_samples")


def user_file() -> Path | None:
    """Return the path of the user's patterns, or None without any.

    It is that of :data:`VARIABLE`, or ``roast/kinds.toml`` in the user's configuration folder.
    """
    if (value := os.environ.get(VARIABLE)) is not None:
        return Path(value).expanduser() if value else None
    try:
        configured = os.environ.get("XDG_CONFIG_HOME")
        base = Path(configured) if configured else Path.home() / ".config"
        path = base / "roast" / "kinds.toml"
        return path if path.is_file() else None
    except (OSError, RuntimeError):  # an unreadable folder, or a user without a home
        return None
