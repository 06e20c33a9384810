"""Tables for the terminal, no wider than the terminal.

Text from a trace is untrusted. It passes through :func:`cell`, which removes control
characters, which a terminal would interpret, and markup, which rich would interpret.
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

from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from rich.console import JustifyMethod, RenderableType

#: Length limit of the text of a cell, which can have several lines.
CELL_LIMIT: Final = 400

#: Width of lines in a narrower terminal, or in one of an unknown width.
_LEAST_WIDTH: Final = 20

#: Stands for a no-break space until lines are wrapped, because rich wraps at all spaces.
_NO_BREAK: Final = "\ue000"


def cell(value: object, limit: int = CELL_LIMIT) -> Text:
    """Return any value as text of one line, with the middle left out if it is long."""
    text = "" if value is None else str(value).replace("\N{NO-BREAK SPACE}", _NO_BREAK)
    return Text(one_line(text, limit), overflow="fold")


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

    First texts are wrapped, then the headers of columns whose cells stay whole; then the space
    between columns is reduced, and last these cells are wrapped, too. Words of headers stay
    whole unless they alone do not fit.
    """
    # Rich would wrap all cells of a column before it wraps the headers of others, and break
    # the words of headers.
    natural, headed, whole, words = [], [], [], []
    for column, stays_whole in zip(table.columns, is_whole, strict=True):
        head = cast("Text", column.header)
        lines = [line for text in column.cells for line in cast("Text", text).split("\n")]
        content = max((line.cell_len for line in lines), default=0)
        word = max((cell_len(word) for word in head.plain.split()), default=0)
        natural.append(max(head.cell_len, content))
        headed.append(natural[-1] if stays_whole else word)
        whole.append(max(word, content) if stays_whole else word)
        words.append(word)
    for gap, widths, least in (
        (2, natural, headed),
        (2, natural, whole),
        (1, natural, whole),
        (1, whole, words),
        (1, natural, [1] * len(words)),
    ):
        room = width() - gap * (len(widths) - 1)
        if sum(least) <= room:
            break
    table.padding = (0, gap - 1, 0, 0)
    last = len(widths) - 1  # without a gap behind it
    # In a very narrow terminal, lines are longer than it.
    for _ in range(sum(widths) - max(room, sum(least))):
        spare = [place for place, size in enumerate(widths) if size > least[place]]
        widths[max(spare, key=lambda place: widths[place] + (place < last))] -= 1
    for column, size in zip(table.columns, widths, strict=True):
        column.width = size


def width() -> int:
    """Return the width of the terminal, at least 20, or 80 without one."""
    return max(_LEAST_WIDTH, Console().width)


def print_out(*parts: RenderableType) -> None:
    """Print to stdout, with colors if it is a terminal."""
    # The text is rendered before it is written, because rich exits on a broken pipe.
    target = Console()
    console = Console(
        file=StringIO(),
        width=width(),
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
        sys.stdout.write(line.rstrip().replace(_NO_BREAK, " ") + "\n")
