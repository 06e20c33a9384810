"""The dictionary of names and pseudonyms, and the words of the trace that is scrubbed.

It is a SQLite database, because a trace can have more names than the memory holds. The table
``names`` is the map that its owner can keep; the words of the trace are in temporary tables.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Final

from roast_analyze.errors import NotWritable, TraceError
from roast_analyze.scrub.words import field_words, form_of

#: Identifies a map among SQLite databases: "rost".
_APPLICATION_ID: Final = 0x726F7374
_VERSION: Final = 1

_MAP: Final = f"""
BEGIN;
CREATE TABLE names (name TEXT PRIMARY KEY, pseudonym TEXT NOT NULL UNIQUE) WITHOUT ROWID;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
COMMIT;
"""

#: In files, because a trace can have more words than the memory holds.
_TEMPORARY: Final = """
PRAGMA temp_store = FILE;
CREATE TEMP TABLE words (word TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP TABLE kept (word TEXT PRIMARY KEY) WITHOUT ROWID;
"""

#: Maximum number of words in memory before they are written to disk.
_BATCH: Final = 100_000

#: A consonant and a vowel, so that pseudonyms can be spoken.
_SYLLABLES: Final = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


class Dictionary:
    """Pseudonyms of names, in a database with the table ``names``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.executescript(_TEMPORARY)
        [(known,)] = connection.execute("SELECT count(*) FROM names")
        # With a map, numbers continue after those of the last trace.
        self._numbers = count(known)
        self._cache: dict[str, str] = {}
        self._new: dict[str, set[str]] = {"words": set(), "kept": set()}
        # One transaction: the map is written when the output is complete, or not at all.
        connection.execute("BEGIN")

    def add_words(self, words: Iterable[str]) -> None:
        """Add words of the trace: no pseudonym will be one of them."""
        self._add("words", words)

    def keep(self, words: Iterable[str]) -> None:
        """Add words to keep."""
        self._add("kept", words)

    def pseudonym(self, match: re.Match[str]) -> str:
        """Return the pseudonym of a word, after all words were added."""
        return self._cache.get(match[0]) or self._find(match[0], form_of(match))

    def pseudonym_of_text(self, text: str) -> str:
        """Return the pseudonym of a text as a whole."""
        return self._cache.get(text) or self._find(text, "letters")

    def left_over(self, words: Iterable[str]) -> str | None:
        """Return one of the words that occurs in the trace and is not kept, or None."""
        self._flush()
        for word in words:
            if self._has("words", word) and not self._has("kept", word):
                return word
        return None

    def word_count(self) -> int:
        """Return the number of different words of the trace that are not kept."""
        self._flush()
        [(words,)] = self._connection.execute(
            "SELECT count(*) FROM words WHERE word NOT IN (SELECT word FROM kept)"
        )
        return int(words)

    def commit(self) -> None:
        """Write the map to disk."""
        self._connection.execute("COMMIT")

    def _add(self, table: str, words: Iterable[str]) -> None:
        new = self._new[table]
        new.update(words)
        if len(new) > _BATCH:
            self._flush()

    def _flush(self) -> None:
        for table, new in self._new.items():
            if not new:
                continue
            self._connection.executemany(
                f"INSERT OR IGNORE INTO {table} VALUES (?)",  # noqa: S608 - one of two
                ((word,) for word in sorted(new)),
            )
            new.clear()

    def _has(self, table: str, word: str) -> bool:
        found = self._connection.execute(f"SELECT 1 FROM {table} WHERE word = ?", (word,))  # noqa: S608
        return found.fetchone() is not None

    def _find(self, name: str, form: str) -> str:
        self._flush()
        found = self._connection.execute(
            "SELECT word FROM kept WHERE word = ? UNION ALL "
            "SELECT pseudonym FROM names WHERE name = ?",
            (name, name),
        ).fetchone()
        pseudonym: str | None = found[0] if found else None
        while pseudonym is None:
            new = _spell(next(self._numbers), form, name)
            # None of the trace's own words, and none of another name.
            if new not in field_words() and not self._has("words", new):
                created = self._connection.execute(
                    "INSERT OR IGNORE INTO names VALUES (?, ?)", (name, new)
                )
                pseudonym = new if created.rowcount else None
        if len(self._cache) > _BATCH:
            self._cache.clear()
        self._cache[name] = pseudonym
        return pseudonym


@contextmanager
def open_dictionary(path: Path | None) -> Iterator[Dictionary]:
    """Open the map of names of a file, which is created if needed, or a temporary one.

    Nothing is written without :meth:`Dictionary.commit`.
    """
    is_new = path is None or not path.exists()
    try:
        if path is not None and is_new:
            # Private to the user, because it contains the names to hide.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(path or "", isolation_level=None)) as connection:
            if is_new:
                connection.executescript(_MAP)
            found = [
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("application_id", "user_version")
            ]
            if found != [_APPLICATION_ID, _VERSION]:
                raise TraceError(f"{str(path)!r} is not a map of names: name another file")
            yield Dictionary(connection)
            is_new = is_new and connection.in_transaction  # not committed
    except sqlite3.DatabaseError as error:
        # Operational errors are a full disk, missing permissions or another process.
        if path is None or is_new or isinstance(error, sqlite3.OperationalError):
            raise NotWritable(f"cannot store names: {error}") from None
        raise TraceError(f"{str(path)!r} is not a map of names: {error}") from None
    except OSError as error:
        if error.filename != str(path):
            raise
        raise NotWritable(f"cannot write {str(path)!r}: {error.strerror}") from None
    finally:
        if path is not None and is_new:
            path.unlink(missing_ok=True)


def _spell(number: int, form: str, name: str) -> str:
    """Return the pseudonym with a number, in the form and mostly in the length of a name."""
    if form == "digits":
        return str(10 ** (len(name) - 1) + number)
    if form == "ipv4":
        return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    if form == "ipv6":
        return f"fd00:0:0:0:0:0:{number >> 16:x}:{number & 0xFFFF:x}"
    if form in ("hex", "uuid"):
        # It begins with a letter: with a digit, it could be read as part of a number before it.
        digits = hashlib.sha256(str(number).encode()).hexdigest() * (len(name) // 64 + 1)
        digits = "abcdef"[number % 6] + digits[1:]
        if form == "hex":
            return digits[: len(name)]
        digits = digits.upper() if name.upper() == name else digits
        return "-".join(digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
    syllables: list[str] = []
    while number or len(syllables) < 3:
        number, rest = divmod(number, len(_SYLLABLES))
        syllables.append(_SYLLABLES[rest])
    # A word that is not only letters ends the prefix of a key.
    return "".join(reversed(syllables)) + ("" if form == "letters" else "0")
