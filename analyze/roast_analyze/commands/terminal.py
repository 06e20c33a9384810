"""Tables for the terminal, no wider than the terminal.

Text from a trace is untrusted. It passes through :func:`cell`, which removes control
characters, which a terminal would obey, and markup, which rich would.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Final, cast

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from rich.console import JustifyMethod, RenderableType

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
        show_edge=False,
    )
    for name in columns:
        justify: JustifyMethod = "right" if name.startswith(">") else "left"
        result.add_column(Text(name.removeprefix(">")), justify=justify, overflow="fold")
    for row in rows:
        result.add_row(*(value if isinstance(value, Text) else cell(value) for value in row))
    # Numbers and addresses are compared and copied, so they are the last to be wrapped.
    _fit(result, [name.startswith(">") or name == "worker" for name in columns])
    return result


def _fit(table: Table, is_whole: Sequence[bool]) -> None:
    """Set widths with which a table fits into the terminal.

    First texts are wrapped, then the headers of columns whose cells stay whole; last the space
    between columns is reduced, and these cells are wrapped, too.
    """
    # Rich would wrap all cells of a column before it wraps the headers of others, and break
    # the words of headers.
    widths, steps = [], []
    for column, whole in zip(table.columns, is_whole, strict=True):
        head = cast("Text", column.header)
        lines = [line for text in column.cells for line in cast("Text", text).split("\n")]
        content = max((line.cell_len for line in lines), default=0)
        word = max((cell_len(word) for word in head.plain.split()), default=0)
        widths.append(max(head.cell_len, content))
        steps.append((widths[-1], max(word, content), word) if whole else (word,) * 3)
    for gap, least in zip((2, 2, 1), zip(*steps, strict=True), strict=True):
        table.padding = (0, gap - 1, 0, 0)
        room = width() - gap * (len(widths) - 1)
        for _ in range(sum(widths) - room):
            spare, place = max(
                (size if size > floor else 0, place)
                for place, (size, floor) in enumerate(zip(widths, least, strict=True))
            )
            widths[place] -= spare > 0
        if sum(widths) <= room:
            break
    for column, size in zip(table.columns, widths, strict=True):
        column.width = size


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
