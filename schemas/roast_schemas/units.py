"""Units and contents of fields, and the annotation that describes a field."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Unit(StrEnum):
    """The unit of a field, as printed in the data dictionary."""

    #: Text, a flag or a structure.
    NONE = ""
    #: Seconds since 1970-01-01 UTC on the scheduler's clock.
    EPOCH_SECONDS = "s since epoch"
    SECONDS = "s"
    BYTES = "B"
    BYTES_PER_SECOND = "B/s"
    #: A number of objects.
    COUNT = "count"
    #: 100 is one fully used core.
    PERCENT_OF_CORE = "% of a core"
    PERCENT = "%"
    #: The field ``unit`` of the same record contains the unit.
    SEE_UNIT_FIELD = "see unit"


class Content(StrEnum):
    """Category of the texts of a field; ``roast-analyze scrub`` treats each differently."""

    #: Words and numbers of roast, Dask and file formats: states, kinds, stimuli.
    WORDS = "words"
    KEYS = "keys"
    #: Prefixes and groups of keys.
    PREFIXES = "prefixes"
    #: Functions and types.
    FUNCTIONS = "functions"
    #: Files and folders.
    FILES = "files"
    #: Hosts, addresses and names of workers.
    HOSTS = "hosts"
    DATASETS = "datasets"
    #: Branches, trees and tables of files.
    BRANCHES = "branches"
    #: The user's metadata of datasets.
    METADATA = "metadata"
    #: Names of spans and sections.
    SPANS = "spans"
    #: Activities of fine metrics, which users can add to.
    ACTIVITIES = "activities"
    ANNOTATIONS = "annotations"
    #: Identities that Dask, the recorder or a library created.
    IDENTITIES = "identities"
    EXCEPTIONS = "exceptions"
    #: Software versions by package.
    VERSIONS = "versions"
    #: Configuration, environment and settings.
    CONFIGURATION = "configuration"
    #: Topics and messages of Dask's events.
    EVENTS = "events"
    #: Source code and the layers of graphs.
    CODE = "code"
    #: Free text.
    TEXT = "text"


#: Largest valid amount: a double represents every integer up to it exactly.
LARGEST: Final = 2**53

#: Least and largest valid value of a number, by its unit. Durations can be negative where
#: clocks differ. Numbers without a unit are identities, which are not added up.
VALID: Final[dict[Unit, tuple[int, int]]] = {
    Unit.NONE: (-(2**63), 2**63 - 1),
    Unit.EPOCH_SECONDS: (-(2**33), 2**33),  # from the year 1697 to 2242
    Unit.SECONDS: (-(2**33), 2**33),
    Unit.BYTES: (0, LARGEST),
    Unit.BYTES_PER_SECOND: (0, LARGEST),
    Unit.COUNT: (0, LARGEST),
    Unit.PERCENT_OF_CORE: (0, 10**6),
    Unit.PERCENT: (0, 100),
    Unit.SEE_UNIT_FIELD: (-LARGEST, LARGEST),
}


class Field:
    """Description of a field, in ``Annotated[type, Field(...)]``.

    Parameters
    ----------
    meaning : str
        One sentence for the data dictionary.
    *about : Unit or Content
        Unit of the value, and what its texts name. Without one, it has none.
    required : bool
        Whether the recorder writes the field in every record of the kind. Other
        fields may be absent, which means the same as null.
    valid : tuple of int, optional
        Least and largest valid value, if it differs from that of the unit in :data:`VALID`.
    """

    def __init__(
        self,
        meaning: str,
        *about: Unit | Content,
        required: bool = False,
        valid: tuple[int, int] | None = None,
    ) -> None:
        self.meaning = meaning
        self.unit = next((one for one in about if isinstance(one, Unit)), Unit.NONE)
        self.content = next((one for one in about if isinstance(one, Content)), None)
        self.required = required
        self.valid = valid or VALID[self.unit]
