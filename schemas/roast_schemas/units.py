"""Units of fields, and the annotation that assigns a unit and a description to a field."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
    #: The field ``unit`` of the same record contains the unit.
    SEE_UNIT_FIELD = "see unit"


@dataclass(frozen=True)
class Field:
    """Unit and description of a field, in ``Annotated[type, Field(...)]``.

    Parameters
    ----------
    meaning : str
        One sentence for the data dictionary.
    unit : Unit
        Unit of the value.
    required : bool
        Whether the recorder writes the field in every record of the kind. Other
        fields may be absent, which means the same as null.
    """

    meaning: str
    unit: Unit = Unit.NONE
    required: bool = False
