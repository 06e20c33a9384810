"""The recorder's settings: names, defaults, and errors that name the value."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Settings:
    """How a recording is made.

    Parameters
    ----------
    flush_interval_seconds : float
        How long a fact may wait before it is in the file.
    sample_interval_seconds : float
        Time between two samples of each worker. Workers report every 0.5 s at the most,
        so shorter intervals repeat values.
    buffer_limit_bytes : int
        Most memory that encoded records may take on the scheduler while the client does
        not keep up. What goes beyond is dropped and counted.

    Raises
    ------
    ValueError
        If a value is not a positive number.
    """

    flush_interval_seconds: float = 0.5
    sample_interval_seconds: float = 1.0
    buffer_limit_bytes: int = 64 * 2**20

    def __post_init__(self) -> None:
        for name, value in self.as_dict().items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not 0 < value < 2**53:
                raise ValueError(f"{name}={value!r}: a positive number is needed")

    def as_dict(self) -> dict[str, Any]:
        """Give the settings by name, numpy's numbers as Python's."""
        return {
            name: value.item() if hasattr(value, "item") else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_keywords(cls, keywords: dict[str, Any]) -> Settings:
        """Build settings from a caller's keywords.

        Raises
        ------
        TypeError
            If a keyword is not the name of a setting.
        """
        names = [field.name for field in fields(cls)]
        for name in keywords:
            if name not in names:
                raise TypeError(f"{name!r} is not a setting; there are: {', '.join(names)}")
        return cls(**keywords)
