"""Text from a trace, made safe to show.

Keys, file names and exceptions contain whatever the user's code put there.
"""

from __future__ import annotations

import re
from typing import Final

#: Default length limit of a label, in characters. Dask keys are usually shorter.
LABEL_LIMIT: Final = 120

# Control and bidirectional characters could drive a terminal or disguise the text around them.
#: C0 and C1 controls, bidirectional marks, line and paragraph separators, byte-order mark,
#: and unpaired surrogates. Tab and newline are kept.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)

#: Characters that Markdown interprets within a line: those of code, emphasis, links, HTML,
#: entities, tables and formulas.
_MARKUP: Final = re.compile(r"[\\`*\[\]>|~$]|<(?!\d)|(?<![^\W_])_|_(?![^\W_])|&(?=[#\w])")


def visible(text: str) -> str:
    r"""Replace invisible characters, except tab and newline, by visible symbols.

    Controls below 0x20 become Unicode control pictures, the others their code points.

    Examples
    --------
    >>> visible("a\x00b\u202ec")
    'a␀b⟨U+202E⟩c'
    """
    return _INVISIBLE.sub(
        lambda match: (
            chr(0x2400 + ord(match[0])) if match[0] < " " else f"⟨U+{ord(match[0]):04X}⟩"
        ),
        text,
    )


def shortened(text: str, limit: int = LABEL_LIMIT) -> str:
    """Return a text of at most `limit` characters, with the middle left out if necessary."""
    if len(text) <= limit:
        return text
    # Dask keys and file names differ at both ends, so both ends are kept.
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def one_line(text: str, limit: int = LABEL_LIMIT) -> str:
    """Return a text as one visible line of at most `limit` characters."""
    return shortened(" ".join(visible(text).split()), limit)


def named(value: object, nameless: str = "", limit: int = 60) -> str:
    """Return a name fit for a sentence; ``nameless`` if it is None."""
    return nameless if value is None else shortened(visible(str(value)), limit)


def markdown(text: str, limit: int = LABEL_LIMIT) -> str:
    r"""Return a text as one line that Markdown renders as it is, also in a cell of a table.

    Underscores within words, which are no markup, are kept.

    Examples
    --------
    >>> markdown("a_b | <b>*x*</b>\n`c` _d_")
    'a_b \\| \\<b\\>\\*x\\*\\</b\\> \\`c\\` \\_d\\_'
    """
    return _MARKUP.sub(r"\\\g<0>", one_line(text, limit))
