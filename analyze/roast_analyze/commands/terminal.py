"""Tables for the terminal, no wider than the terminal.

Text from a trace is untrusted. It passes through :func:`cell`, which removes control
characters, which a terminal would interpret, and markup, which rich would interpret.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, cast

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.containers import Lines
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

#: Boundaries in a name: after - _ / and between dotted names, but not within a number.
_BOUNDARY: Final = re.compile(
    r"(?<=[^\W_])[-_/]+(?![-_/\s]|$)(?!(?<=\d-)\d)(?!(?<=\de-)\d)|/+(?![/\s]|$)"
    r"|(?<=[^\W\d])\.(?=[^\W\d])"
)

#: A number, with or without signs and a unit.
_NUMBER: Final = re.compile(r"[^\w.:]*\d[\d,–]*(\.\d+)?[^\w.:]*(\ue000\S*)?")

#: Space between two sentences.
_SENTENCE_END: Final = re.compile(r"(?<=\.) (?=[A-Z0-9])")


class _Words(Text):
    """Text that wraps between words, then at boundaries of names.

    Longer parts of names are cut in the middle, or folded with `folds`.
    """

    folds = False

    def wrap(
        self,
        console: Console,
        width: int,
        *,
        justify: JustifyMethod | None = None,
        **_: Any,
    ) -> Lines:
        """Return the lines."""
        result = Lines()
        for line in self.split(allow_blank=True):
            result.extend(_wrapped(line, max(1, width), self.folds))
        if justify:
            result.justify(console, width, justify=justify, overflow="ignore")
        return result


def _wrapped(line: Text, width: int, folds: bool) -> list[Text]:
    lines = [Text()]
    end = 0  # of the last line
    for word in re.finditer(r"\S+\s*|\s+", line.plain):
        size = cell_len(word[0].rstrip())
        for start, stop in [word.span()] if size <= width else _parts(word):
            part = line[start:stop]
            size = cell_len(part.plain.rstrip())
            if end and end + size > width:
                lines.append(Text())
                end = 0
            if size > width and folds | (size != len(part.plain.rstrip())):
                part.rstrip()
                *full, part = part.wrap(Console(), width, overflow="fold")
                lines[-1:] = [*full, Text()]
            elif size > width and not _NUMBER.fullmatch(part.plain.rstrip()):
                part.rstrip()
                head = width // 2
                tail = width - 1 - head
                part = part[:head].append("…").append_text(part[len(part) - tail :])
            lines[-1].append_text(part)
            end += part.cell_len
    for line in lines:
        line.rstrip()
    return lines


def _parts(word: re.Match[str]) -> Iterable[tuple[int, int]]:
    """Return start and end of the parts of a name."""
    cuts = [word.start() + match.end() for match in _BOUNDARY.finditer(word[0])]
    return pairwise([word.start(), *cuts, word.end()])


def cell(value: object, limit: int = CELL_LIMIT) -> Text:
    """Return any value as text of one line, with the middle left out if it is long."""
    text = "" if value is None else str(value).replace("\N{NO-BREAK SPACE}", _NO_BREAK)
    return _Words(one_line(text, limit))


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
        result.add_column(_Words(name.removeprefix(">")), justify=justify)
    for row in rows:
        result.add_row(*(value if isinstance(value, Text) else cell(value) for value in row))
    _fit(result, [name.startswith(">") for name in columns])
    for column in result.columns:
        _keep_distinct(
            [text for text in column.cells if isinstance(text, _Words)], column.width
        )
    return result


def natural_width(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    """Return the width of the lines of a table whose texts are not wrapped."""
    cells = [[name.removeprefix(">") for name in columns], *rows]
    widths = [max(cell_len(text) for text in column) for column in zip(*cells, strict=True)]
    return sum(widths) + 2 * (len(widths) - 1)


def leading_sentences(text: str, lines: int) -> str:
    """Return the first sentence, and those that fit into some lines with it."""
    first, *others = _SENTENCE_END.split(text)
    for sentence in others:
        if len(first) + len(sentence) + 3 > lines * width():
            return f"{first} …"
        first = f"{first} {sentence}"
    return first


def _fit(table: Table, is_whole: Sequence[bool]) -> None:
    """Set widths with which a table fits into the terminal.

    First texts are wrapped between words, then headers; then the space between columns is
    reduced, texts are wrapped within names, and last long parts of names and words of headers
    are cut. Numbers stay whole, although the lines can then be longer than the terminal.
    """
    natural, worded, numbers, names = [], [], [], []
    heads = [cast("Text", column.header).plain for column in table.columns]
    for column, head, stays_whole in zip(table.columns, heads, is_whole, strict=True):
        lines = [line for text in column.cells for line in cast("Text", text).split("\n")]
        content = max((line.cell_len for line in lines), default=0)
        words = [word for line in lines for word in re.finditer(r"\S+", line.plain)]
        parts = [word.string[start:end] for word in words for start, end in _parts(word)]
        natural.append(max(cell_len(head), content))
        worded.append(
            content if stays_whole else max((cell_len(w[0]) for w in words), default=0)
        )
        whole = [part for part in parts if _NUMBER.fullmatch(part)]
        numbers.append(content if stays_whole else max(map(cell_len, whole), default=0))
        names.append(content if stays_whole else max(map(cell_len, parts), default=0))
    head_words = [max(map(cell_len, head.split()), default=0) for head in heads]

    def limited(limit: int, head_limit: int) -> list[int]:
        """Return widths with parts of names and words of headers cut to limits."""
        columns = zip(numbers, names, head_words, strict=True)
        return [max(n, min(part, limit), min(h, head_limit)) for n, part, h in columns]

    unbroken = list(map(max, worded, head_words))
    steps: list[tuple[int, list[int]]] = [
        (
            2,
            [
                n if whole else w
                for n, w, whole in zip(natural, unbroken, is_whole, strict=True)
            ],
        ),
        (2, unbroken),
        (1, unbroken),
        *((1, limited(limit, 20)) for limit in (40, 24, 16, 12, 9)),
        *((1, limited(limit, limit)) for limit in (9, 7, 5, 3, 1)),
    ]
    for gap, least in steps:
        room = width() - gap * (len(least) - 1)
        if sum(least) <= room:
            break
    table.padding = (0, gap - 1, 0, 0)
    widths = list(natural)
    last = len(widths) - 1  # without a gap behind it
    for _ in range(sum(widths) - max(room, sum(least))):
        spare = [place for place, size in enumerate(widths) if size > least[place]]
        widths[max(spare, key=lambda place: widths[place] + (place < last))] -= 1
    for column, size in zip(table.columns, widths, strict=True):
        column.width = size
    if sum(least) > room:
        table.width = sum(widths) + gap * last


def _keep_distinct(cells: Sequence[_Words], width: int | None) -> None:
    """Fold the texts of a column that would be equal with their middle left out."""
    shown: dict[str, list[_Words]] = {}
    for text in cells:
        lines = _wrapped(text, max(1, width or 1), folds=False)
        shown.setdefault("\n".join(line.plain for line in lines), []).append(text)
    for equal in shown.values():
        if len({text.plain for text in equal}) > 1:
            for text in equal:
                text.folds = True


def width() -> int:
    """Return the width of the terminal, at least 20, or 80 without one."""
    return max(_LEAST_WIDTH, Console().width)


def print_out(*parts: RenderableType) -> None:
    """Print to stdout, with colors if it is a terminal."""
    # The text is rendered before it is written, because rich exits on a broken pipe.
    for line in _rendered(parts):
        sys.stdout.write(line.rstrip().replace(_NO_BREAK, " ") + "\n")


def line_count(*parts: RenderableType) -> int:
    """Return the number of lines in which parts are printed."""
    return len(_rendered(parts))


def _rendered(parts: Iterable[RenderableType]) -> list[str]:
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
            console.print(part, crop=False)  # a table can be wider than a narrow terminal
    return capture.get().splitlines()
