"""Tables for the terminal, no wider than the terminal.

Text from a trace is untrusted. It passes through :func:`cell`, which removes control
characters, which a terminal would obey, and markup, which rich would.
"""

from __future__ import annotations

import sys
from io import StringIO
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

#: Length limit of the text of a cell, which can have several lines.
CELL_LIMIT: Final = 400


def cell(value: object, limit: int = CELL_LIMIT) -> Text:
    """Return any value as text of one line, with the middle left out if it is long."""
    line = " ".join(visible("" if value is None else str(value)).split())
    return Text(shortened(line, limit), overflow="fold")


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None
) -> Table:
    """Lay out rows; a column whose name begins with ``>`` is right-aligned."""
    result = Table(
        title=None if title is None else Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    for name in columns:
        right = name.startswith(">")
        # Numbers and addresses are compared and copied, so they are not wrapped.
        result.add_column(
            Text(name.removeprefix(">")),
            justify="right" if right else "left",
            no_wrap=right or name == "worker",
            overflow="fold",
        )
    for row in rows:
        result.add_row(*(value if isinstance(value, Text) else cell(value) for value in row))
    return result


def width() -> int:
    """Return the width of the terminal, or 80 without one."""
    return Console().width


def print_out(*parts: RenderableType) -> None:
    """Print to stdout, with colors if it is a terminal."""
    # The text is rendered before it is written, because rich exits on a broken pipe.
    target = Console()
    console = Console(
        file=StringIO(),
        width=target.width,
        force_terminal=target.is_terminal,
        color_system=target.color_system if target.is_terminal else None,  # type: ignore[arg-type]
        no_color=target.no_color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    for line in capture.get().splitlines():
        sys.stdout.write(line.rstrip() + "\n")
