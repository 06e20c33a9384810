"""Accounts of segments: counts of the lines read, and of those that could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from roast_analyze.errors import INSTALL_COMMAND
from roast_analyze.open.checksum import Checksum
from roast_analyze.open.damage import Damage
from roast_analyze.open.decompress import Breaks
from roast_analyze.open.discover import CURRENT_VERSION, version_numbers
from roast_analyze.open.lines import MAX_LINE_BYTES
from roast_schemas import SCHEMA_VERSION
from roast_schemas.describe import kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Unknown kinds beyond this number are counted together.
LISTED_UNKNOWN_KINDS: Final = 20

#: First schema version whose trailers contain a checksum.
_CHECKSUM_VERSION: Final = (2, 1)


@dataclass
class Invalid:
    """Values of a field of complete records that are not valid, and were read as null."""

    kind: str
    name: str  # of the field, such as startstops.stop
    records: int
    example: str  # one of the values, as JSON


@dataclass
class Account:
    """Counts of the lines and records read from a segment, and of unreadable ones."""

    lines: int = 0  # not counting blank ones
    records_by_kind: dict[str, int] = field(default_factory=dict)  # known kinds and others
    incomplete: dict[str, int] = field(default_factory=dict)  # those without a required field
    #: Of records whose required field is not valid: one that states the field and its value.
    incomplete_examples: dict[str, str] = field(default_factory=dict)
    invalid: list[Invalid] = field(default_factory=list)  # one per field
    unreadable: int = 0  # lines that are not a JSON object, or have no kind
    first_unreadable: int | None = None  # number of such a line, from 1
    last_unreadable: int | None = None
    too_long: int = 0  # lines longer than any record
    breaks: Breaks = field(default_factory=Breaks)
    checksum: Checksum = field(default_factory=Checksum)  # of everything that was read

    @property
    def complete_records(self) -> int:
        """Number of records of known kinds with all required fields."""
        known = sum(n for kind, n in self.records_by_kind.items() if kind in kinds())
        return known - sum(self.incomplete.values())

    def add_unreadable(self, number: int) -> None:
        """Count an unreadable line, given its number from 1."""
        self.unreadable += 1
        self.first_unreadable = min(self.first_unreadable or number, number)
        self.last_unreadable = max(self.last_unreadable or number, number)

    def add_invalid(self, kind: str, name: str, records: int, example: str) -> None:
        """Count the records in which a field is not valid."""
        for known in self.invalid:
            if (known.kind, known.name) == (kind, name):
                known.records += records
                return
        self.invalid.append(Invalid(kind, name, records, example))

    def damage(self, header: str | None) -> Iterator[Damage]:
        """Yield the damage of the segment; `header` is the schema version of its header."""
        version = version_numbers(header)
        if found := list(self._content_damage()):
            yield from found  # a checksum would add nothing
        elif self.checksum.matches is False:
            detail = "the checksum in the trailer does not match: any value may have changed"
            yield Damage("changed content", None, detail)
        elif (
            self.checksum.matches is None
            and "trailer" in self.records_by_kind
            and version
            and version >= _CHECKSUM_VERSION
        ):
            detail = "the trailer has no checksum: any value may have changed"
            yield Damage("changed content", None, detail)
        for invalid in self.invalid:
            detail = f"kind {invalid.kind!r}: {invalid.name} cannot be {invalid.example}"
            yield Damage("impossible values", invalid.records, detail)
        yield from self.checksum.import_damage()
        if header is None:
            yield Damage("no header", None, "the recorder's version and settings are unknown")
        elif version is None:
            yield Damage("unknown schema version", None, f"{header[:100]!r} is not a version")
        elif version[0] < CURRENT_VERSION[0]:
            detail = f"version {header} read as {SCHEMA_VERSION}: renamed fields are missing"
            yield Damage("older schema version", None, detail)
        elif version > CURRENT_VERSION:
            detail = f"version {header} read as {SCHEMA_VERSION}; upgrade: {INSTALL_COMMAND}"
            yield Damage("newer schema version", None, detail)

    def _content_damage(self) -> Iterator[Damage]:
        yield from self.breaks.damage()
        if self.too_long:
            detail = f"longer than {MAX_LINE_BYTES // 2**20} MiB, the limit of a record"
            yield Damage("overlong lines", self.too_long, detail)
        unreadable = self.unreadable
        if unreadable and self.last_unreadable == self.lines:
            detail = f"line {self.last_unreadable}; the file was cut off there"
            yield Damage("last line unreadable", 1, detail)
            unreadable -= 1
        if unreadable:
            detail = f"the first is line {self.first_unreadable}, not counting blank lines"
            yield Damage("unreadable lines", unreadable, detail)
        unknown = sorted(
            ((kind, n) for kind, n in self.records_by_kind.items() if kind not in kinds()),
            key=lambda item: (-item[1], item[0]),
        )
        for kind, records in unknown[:LISTED_UNKNOWN_KINDS]:
            yield Damage("unknown kind", records, f"kind '{kind[:100]}'")
        if rest := unknown[LISTED_UNKNOWN_KINDS:]:
            yield Damage("unknown kind", sum(n for _, n in rest), f"{len(rest)} more kinds")
        for kind, records in sorted(self.incomplete.items()):
            detail = f"kind {kind!r} needs {', '.join(required_names(kind))}"
            if example := self.incomplete_examples.get(kind):
                detail += f", and {example}"
            yield Damage("incomplete records", records, detail)


@dataclass(frozen=True)
class Progress:
    """Place up to which a segment was read, to continue when it has grown."""

    offset: int = 0  # in the file, where reading can continue
    account: Account = field(default_factory=Account)  # of everything before `offset`
    #: Number of rows loaded from after `offset`, from a line or frame that was cut. If there
    #: are any, reading cannot continue: they would be loaded twice, and deleting rows would
    #: change the rowid of others.
    rows_after: int = 0
    digest: str | None = None  # of the file, as in Content


def required_names(kind: str) -> list[str]:
    """Return the names of the fields that every record of a kind has."""
    return [field.name for field in kinds()[kind].fields if field.required]
