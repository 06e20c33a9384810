"""What is printed for people: tables of text, as wide as the terminal.

Everything that a trace says is untrusted: it passes :func:`cell`, which leaves neither
control characters, which a terminal would obey, nor markup, which rich would.
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

#: Longest text of one cell; it may take several lines.
CELL_LIMIT: Final = 400


def cell(value: object, limit: int = CELL_LIMIT) -> Text:
    """Make a text of any value: one line, harmless, its middle left out if it is long."""
    line = " ".join(visible("" if value is None else str(value)).split())
    return Text(shortened(line, limit), overflow="fold")


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None
) -> Table:
    """Lay out rows; a column whose name begins with ``>`` is set to the right.

    Numbers and addresses of workers stay on one line, other texts take more if need be.

    Parameters
    ----------
    columns : sequence of str
    rows : iterable of sequence
        Values in the order of the columns.
    title : str, optional
    """
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
    """Give the width of the terminal; 80 if there is none."""
    return Console().width


def print_out(*parts: RenderableType, width: int | None = None) -> None:
    """Print to stdout, with colours if it is a terminal.

    Rendered first and written then: rich would end the process on a broken pipe.
    """
    target = Console()
    console = Console(
        file=StringIO(),
        width=width or target.width,
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
