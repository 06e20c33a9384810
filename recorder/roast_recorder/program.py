"""The name of the user's program, and how it was started."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def program_name() -> str:
    """Return the file name of the program or, in Jupyter, of the notebook if it is known."""
    notebook = Path(os.environ.get("JPY_SESSION_NAME", ""))
    program = Path(sys.argv[0] or "python").name
    return notebook.name if notebook.suffix == ".ipynb" else program


def start_of_program(program: str) -> dict[str, str]:
    """Return the ``module`` of ``python -m``, or the ``path`` below the working folder."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name != "__main__":  # the name for a folder or an archive
        return {"module": spec.name.removesuffix(".__main__")[:300]}
    path = os.path.relpath(program) if os.path.isabs(program) else os.path.normpath(program)  # noqa: PTH117 - no link is followed
    is_below = os.path.dirname(path) and not path.startswith(os.pardir)  # noqa: PTH120
    return {"path": path[:300]} if is_below else {}
