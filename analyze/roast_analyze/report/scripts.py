"""Bundling of the page's JavaScript modules into classic inline scripts.

Modules import and export by name only::

    import { duration, percent as share } from "../shared/format.js";
    export function draw() { … }        // or async function, class, const

Each module becomes a function that runs once and returns its exports, so that names of modules
never collide.
"""

# Inline `<script type="module">` elements would be simpler, but they run only after the whole
# page is parsed, and the first chart is drawn while the browser still reads the rest.

from __future__ import annotations

import posixpath
import re
from functools import cache
from importlib.resources import files
from typing import Final

_IMPORT: Final = re.compile(r'^import (?:(\{[^}]*\}) from )?"(\.[^"]+)";$', re.MULTILINE)
_EXPORT: Final = re.compile(
    r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE
)
#: Comments of whole lines, which would be 2 % of the page.
_COMMENT: Final = re.compile(r"^ *(?://.*|/\*\*(?s:.*?)\*/)\n", re.MULTILINE)
_UNSUPPORTED: Final = re.compile(r"^(import|export)\b.*", re.MULTILINE)


@cache
def bundle(entry: str) -> str:
    """Return a script that runs a module of ``assets`` and what it imports.

    Raises
    ------
    ValueError
        A module uses another form of import or export, or imports are circular.
    """
    written: dict[str, str] = {}
    _add_module(entry, written, ())
    return "\n".join(['"use strict";', "(() => {", *written.values(), "})();", ""])


def asset(name: str) -> str:
    """Return the text of a file of ``assets``."""
    return files("roast_analyze.report").joinpath("assets", name).read_text(encoding="utf-8")


def _add_module(name: str, written: dict[str, str], importers: tuple[str, ...]) -> None:
    if name in importers:
        raise ValueError(f"circular import: {' → '.join((*importers, name))}")
    if name in written:
        return

    def bind_import(match: re.Match[str]) -> str:
        names, path = match.groups()
        imported = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        _add_module(imported, written, (*importers, name))
        number = list(written).index(imported)
        return f"const {names.replace(' as ', ': ')} = module{number};" if names else ""

    source = _IMPORT.sub(bind_import, _COMMENT.sub("", asset(name)))
    exports = ", ".join(exported for _, exported in _EXPORT.findall(source))
    source = _EXPORT.sub(r"\1", source)
    if other := _UNSUPPORTED.search(source):
        raise ValueError(f"cannot bundle {name}: unsupported {other[0]!r}")
    function = f"(() => {{\n{source}\nreturn {{ {exports} }};\n}})();"
    written[name] = f"const module{len(written)} = {function}"
