"""Units of fields, and the annotation that assigns a unit and a description to a field."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """What a field is measured in, as the data dictionary prints it."""

    #: Text, a flag or a structure: nothing that is measured.
    NONE = ""
    #: An instant: seconds since 1970-01-01 UTC on the scheduler's clock.
    EPOCH_SECONDS = "s since epoch"
    SECONDS = "s"
    BYTES = "B"
    BYTES_PER_SECOND = "B/s"
    #: A number of things.
    COUNT = "count"
    #: 100 is one core kept busy.
    PERCENT_OF_CORE = "% of a core"
    #: The unit stands in another field of the same record.
    SEE_UNIT_FIELD = "see unit"


@dataclass(frozen=True)
class Field:
    """What stands beside a type in ``Annotated[type, Field(...)]``.

    Parameters
    ----------
    meaning : str
        One sentence for the data dictionary.
    unit : Unit
        What the value is measured in.
    required : bool
        Whether the recorder writes the field in every record of the kind. Other
        fields may be absent, which means the same as null.
    """

    meaning: str
    unit: Unit = Unit.NONE
    required: bool = False
