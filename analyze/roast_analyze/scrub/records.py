"""Replacing the names in a record.

How a text is treated depends on the :class:`roast_schemas.units.Content` of its field. Within
JSON values of any structure, names and values are replaced alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from roast_analyze.algorithms.work_kinds import public_place
from roast_analyze.scrub.words import NUMBER_LINE, WORD, field_words, is_kept, nested_fields
from roast_schemas.describe import kinds
from roast_schemas.units import Content

if TYPE_CHECKING:
    from roast_analyze.scrub.pseudonyms import Dictionary
    from roast_schemas.describe import FieldDescription

#: Names of JSON values with free text.
_FREE_TEXT: Final = {
    Content.CODE: {"text"},
    Content.EVENTS: {"args", "exception", "message", "msg", "text", "traceback"},
    Content.CONFIGURATION: {"label"},
}

#: Words of names whose numbers are amounts. Any other number can be a name, such as that of a
#: user or a job. The text of a file is that of a control group.
_AMOUNTS: Final = frozenset({
    "text", "memory", "mem", "bytes", "cpu", "cpus", "core", "cores", "slot", "slots", "nodes",
    "nnodes", "tasks", "ntasks", "threads", "seconds", "date", "time", "walltime", "size",
    "limit", "disk", "swap", "quota", "period", "usage", "count", "total",
})  # fmt: skip
_NAME_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
#: Names of functions, as opposed to any other text.
_FUNCTION: Final = re.compile(r"[\w.<>]+")
#: No amount begins with a zero.
_LEADING_ZERO: Final = re.compile(r"(?<![\d.])0\d")

#: Number of texts whose replacement is remembered.
_REMEMBERED: Final = 100_000


class Scrubber:
    """Replaces names in records, except in fields with contents to keep."""

    def __init__(self, dictionary: Dictionary, keep: frozenset[Content]) -> None:
        self._dictionary = dictionary
        self._keep = keep
        # Most texts occur many times.
        self._words = lru_cache(_REMEMBERED)(self._replace)

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record with pseudonyms in place of names."""
        scrubbed: dict[str, Any] = self._field(record, contents_of(record))
        return scrubbed

    def _field(self, value: Any, content: Any) -> Any:
        if isinstance(content, dict):
            if isinstance(value, list):
                return [self._field(item, content) for item in value]
            if isinstance(value, dict):
                return {
                    name if name in content else self._words(name): self._field(
                        item, content.get(name)
                    )
                    for name, item in value.items()
                }
            content = None
        if content in self._keep:
            return value
        if isinstance(value, str):
            return self._lines(value) if content == Content.TEXT else self._words(value)
        return self._json(value, content, "")

    def _json(self, value: Any, content: Content | None, name: str) -> Any:
        """Return the replacement of a JSON value that has a name in another value."""
        if isinstance(value, dict):
            return {
                self._words(name): self._json(item, content, name)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self._json(item, content, name) for item in value]
        if not isinstance(value, str):
            return value
        if content is not None and name in _FREE_TEXT.get(content, ()):
            return self._lines(value)
        return "\n".join(
            line if _is_number(line, name) else self._words(line) for line in value.split("\n")
        )

    def _replace(self, text: str) -> str:
        pseudonym = self._dictionary.pseudonym
        return WORD.sub(lambda word: word[0] if is_kept(word) else pseudonym(word), text)

    def _lines(self, text: str) -> str:
        """Return a text with a pseudonym for each line; space around it stays."""
        lines = []
        for line in text.split("\n"):
            content = line.strip()
            before, _, after = line.partition(content) if content else ("", "", line)
            name = self._dictionary.pseudonym_of_text(content) if content else ""
            lines.append(before + name + after)
        return "\n".join(lines)


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, names included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def kept_texts(value: Any, content: Any, keep: frozenset[Content]) -> Iterator[str]:
    """Yield the texts in a record with these contents, in fields with contents to keep."""
    if not isinstance(content, dict):
        if content in keep:
            yield from texts_in(value)
        return
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            for name, part in item.items():
                yield from kept_texts(part, content.get(name), keep)


def public_texts(value: Any) -> Iterator[str]:
    """Yield the modules and names of functions of Python and of widely used packages.

    The kinds of work in ``busy_time`` depend on them.
    """
    if isinstance(value, dict):
        name, filename = value.get("name"), value.get("filename")
        if (
            isinstance(filename, str)
            and isinstance(name, str)
            and (place := public_place(filename)) is not None
            and _FUNCTION.fullmatch(name)
        ):
            yield from (place, name)
        value = value.values()
    if not isinstance(value, str) and isinstance(value, Iterable):
        for item in value:
            yield from public_texts(item)


def _is_number(line: str, name: str) -> bool:
    match = NUMBER_LINE.fullmatch(line)
    if match is None:
        return False
    name = match["name"] or name
    words = {word.lower() for word in _NAME_WORD.findall(name)}
    is_amount = name in field_words() and not _AMOUNTS.isdisjoint(words)
    return is_amount and not _LEADING_ZERO.search(line)


def contents_of(record: dict[str, Any]) -> dict[str, Any]:
    """Return the content of each declared field, and a mapping for a structure."""
    return _contents().get(record["kind"], {"kind": Content.WORDS, "t": None})


@cache
def _contents() -> dict[str, dict[str, Any]]:
    def by_name(fields: Iterable[FieldDescription]) -> dict[str, Any]:
        return {field.name: by_name(nested_fields(field)) or field.content for field in fields}

    return {kind.name: by_name(kind.fields) for kind in kinds().values()}
