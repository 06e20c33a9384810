"""Words: the parts of a text that scrubbing replaces or keeps.

A word is a run of letters, digits, underscores and all characters beyond ASCII. UUIDs, network
addresses, names with an address next to an underscore, dates and decimal numbers are single
words, although they contain punctuation. Numbers, sizes, durations and the field words of
:func:`field_words` are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, get_args, is_typeddict

from roast_analyze.algorithms.work_kinds import pattern_words
from roast_schemas.describe import fields_of, kinds

if TYPE_CHECKING:
    from roast_schemas.describe import FieldDescription

_LETTER: Final = r"[0-9A-Za-z_\u0080-\U0010ffff]"

#: The ``lastgroup`` of a match is the form of the word, which is kept or has a pseudonym of
#: this form.
WORD: Final = re.compile(
    rf"(?<!{_LETTER})(?:"
    r"(?P<date>\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|(?P<uuid>[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})"
    r"|(?P<ipv4>(?:::ffff:)?\d{1,3}(?:\.\d{1,3}){3})"
    r"|(?P<ipv6>(?:[0-9A-Fa-f]{0,4}:){3,7}[0-9A-Fa-f]{1,4}"
    r"|(?:[0-9A-Fa-f]{1,4}:)+(?::[0-9A-Fa-f]{1,4})+)"
    r"|(?<!\.)(?P<decimal>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]\d+)"
    rf"(?!\.{_LETTER}))(?!{_LETTER})"
    # An address within a name, such as log_192.0.2.1 or ip-192-0-2-1.
    rf"|(?P<word>(?:{_LETTER}*_)?(?<!\d)\d{{1,3}}(?:\.\d{{1,3}}){{3}}_{_LETTER}*"
    rf"|{_LETTER}*_\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?!{_LETTER})"
    rf"|ip(?:-\d{{1,3}}){{4}}(?!{_LETTER})|{_LETTER}+)",
    re.ASCII,
)

#: Words that are numbers up to those of ports, sizes, durations or parts of versions.
_MEASURE: Final = re.compile(
    r"\d{1,5}"
    r"|(?:\d{1,6}(?i:[kmgtp]i?b?|[kmg]?hz|b|s|ms|us|ns|min|h|d|w))+"
    r"|\d{1,4}(?:rc|a|b|dev|post)\d{1,4}|(?:rc|dev|post)\d{1,4}",
    re.ASCII,
)

#: A line of numbers: all of a text, of a file of limits, or of one of HTCondor's ads.
NUMBER_LINE: Final = re.compile(
    r"(?:(?P<name>\w+) = |max )?\s*+(?>(?:[+-]?[0-9]++(?>(?:\.[0-9]++)?)(?:[\s,]++|\Z))*)"
)

#: Counters of Darshan: names of a module and what it counts.
_COUNTER: Final = re.compile(
    r"(?:POSIX|MPIIO|STDIO|H5[DF]|PNETCDF|LUSTRE|HEATMAP)_[A-Z0-9_]{0,60}"
    r"(?:READ|WRITE|WRITTEN|OPEN|SEEK|STAT|TIME|SIZE|COUNT|ACCESS|BYTE|STRIDE|ALIGN|MMAP|MODE"
    r"|SYNC|FILENO|CONSEC|SEQ|RENAME|FLUSH|COLL|INDEP|SPLIT|NB|HINT|VIEW|RANK)[A-Z0-9_]{0,60}"
)

#: Addresses that every machine has.
_KEPT_ADDRESSES: Final = frozenset({"127.0.0.1", "0.0.0.0"})  # noqa: S104 - compared with

#: With at least one digit, because these letters can form words of a language, such as effaced.
_HEX: Final = re.compile(r"(?=[a-f]*[0-9])[0-9a-f]{7,}|[0-9a-f]{32}")

#: Comments and results of a view, which are not compared with the trace.
_SQL_RESULT: Final = re.compile(
    r"--[^\n]*|COMMENT ON .*?IS\s+(?:'(?:[^']|'')*'\s*)+;|(?:THEN|ELSE)\s+'(?:[^']|'')*'",
    re.DOTALL,
)
_SQL_TEXT: Final = re.compile(r"'(?:[^']|'')*'")

#: The beginning of a sentence for readers, as opposed to a name or a pattern.
_SENTENCE: Final = re.compile(r"'[A-Za-z,]+ ")


@cache
def field_words() -> frozenset[str]:
    """Return the words that are kept: those of roast, Dask, Python and file formats.

    They are the names of records and fields, the texts that views and kinds of work compare
    with, and those listed in ``words.txt``.
    """
    found = {*kinds(), *pattern_words()}
    for kind in kinds().values():
        found.update(_field_names(kind.fields))
    listed = (files("roast_analyze.scrub") / "words.txt").read_text("utf-8")
    for line in listed.splitlines():
        if not line.startswith("#"):
            found.update(line.split())
    # Views do not compare anything with the sentences of findings.
    folders = [f for f in (files("roast_analyze") / "sql").iterdir() if f.name != "rules"]
    for file in (file for folder in folders if folder.is_dir() for file in folder.iterdir()):
        if file.name.endswith(".sql"):
            sql = _SQL_RESULT.sub("", file.read_text("utf-8"))
            for text in _SQL_TEXT.findall(sql):
                if not _SENTENCE.match(text):
                    found.update(match[0] for match in WORD.finditer(text))
    return frozenset(found)


def words_in(text: str) -> Iterator[str]:
    """Yield the words of a text that are not kept."""
    return (match[0] for match in WORD.finditer(text) if not is_kept(match))


def names_in(text: str) -> Iterator[str]:
    """Yield the words of a text that are not kept, without those of lines of numbers."""
    for line in text.split("\n"):
        # They are kept in some fields and replaced in others, so finding them proves nothing.
        if not NUMBER_LINE.fullmatch(line):
            yield from words_in(line)


def is_kept(match: re.Match[str]) -> bool:
    """Return whether a word is not a name, so that it is kept."""
    word = match[0]
    match match.lastgroup:
        case "word":
            return (
                word in field_words()
                or _MEASURE.fullmatch(word) is not None
                or _COUNTER.fullmatch(word) is not None
                or not word.strip("_")
            )
        case "ipv4":
            return word in _KEPT_ADDRESSES
        case form:
            return form in ("date", "decimal")


def form_of(match: re.Match[str]) -> str:
    """Return the form of a word that is to be replaced, such as letters or digits."""
    word = match[0]
    if match.lastgroup != "word":
        return str(match.lastgroup)
    if word.isdecimal() and word.isascii():
        return "digits"
    if _HEX.fullmatch(word):
        return "hex"
    return "letters" if word.isalpha() else "mixed"


def nested_fields(field: FieldDescription) -> tuple[FieldDescription, ...]:
    """Return the fields of the structure that is the type of a field, or of its items."""
    parts = (field.type, *get_args(field.type))
    return next((fields_of(part) for part in parts if is_typeddict(part)), ())


def _field_names(fields: Iterable[FieldDescription]) -> Iterator[str]:
    for field in fields:
        yield field.name
        yield from _field_names(nested_fields(field))
