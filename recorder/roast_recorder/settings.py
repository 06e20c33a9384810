"""The recorder's settings: names, defaults, and errors that name the value.

Every setting can be given to :func:`roast_recorder.record`, to ``roast-record``, or in
Dask's configuration as ``roast.recorder.<name>`` (a file, or an environment variable such
as ``DASK_ROAST__RECORDER__FLUSH_INTERVAL_SECONDS``). What is given in the call wins.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

#: Kinds of records that can be left out, and what they cost or why one might not want them.
OPTIONAL_KINDS: Final = (
    "task",
    "transition",
    "worker_sample",
    "span",
    "fine_metric",
    "chunk",
    "section",
    "profile",
    "event",
    "environment",
    "graph",
    "computation",
)

#: Which packages are listed.
PACKAGES: Final = ("all", "known")

#: Kinds of records that workers tell if they are asked for it, and the setting that asks.
OPT_IN_KINDS: Final = {
    "worker_transition": "worker_transitions",
    "spill": "worker_transitions",
    "transfer": "transfers",
}

#: Settings that are times between two doings.
INTERVALS: Final = (
    "flush_interval_seconds",
    "sample_interval_seconds",
    "profile_interval_seconds",
)

#: Where Dask's configuration holds the settings.
CONFIGURATION: Final = "roast.recorder"


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
    profile_interval_seconds : float
        How often workers hand over what Dask's profiler saw; one that dies loses as much.
    buffer_limit_bytes : int
        Most memory that records may take on the scheduler while they cannot be written as
        fast as they come. What goes beyond is dropped, samples first, and counted.
    kinds : tuple of str
        Kinds of records to write, of :data:`OPTIONAL_KINDS`.
    measure_chunks : bool
        Whether workers measure the chunks of coffea and uproot that they process. Without
        it, a trace says only what each chunk is, and what Dask knows of its task.
    transfers : bool
        Whether workers tell of every transfer of results, at both of its ends.
    worker_transitions : bool
        Whether workers tell of every change of a task's state there, and of what they
        spill to disk.
    code : bool
        Whether the code that submits work is recorded: of the client that records, and of
        others if ``distributed.diagnostics.computations.nframes`` is set there.
    packages : str
        ``all``: names and versions of all that is installed. ``known``: of what runs Dask
        and of the scientific stack alone.
    own_configuration : bool
        Whether texts are recorded that Dask's configuration holds under names which no
        installed package declares.
    compression_level : int
        zstd's, from 1 to 19.
    segment_limit_bytes, segment_limit_seconds : int, float
        A trace that is a folder begins a new segment when one has reached this size or age.
    retain_limit_bytes : int or None
        Most bytes that the segments of a folder may take together. When there are more,
        the oldest are removed, and the trace says so. None keeps all.
    write_on : str
        ``client``: the trace is written where the client is. ``scheduler``: where the
        scheduler is, which needs roast-trace installed there; the path is one of its host.
    redact : bool
        Whether secrets are taken out of what is written.
    redact_patterns : tuple of str
        More regular expressions of what is secret.

    Raises
    ------
    ValueError
        If a value cannot be used.
    """

    flush_interval_seconds: float = 0.5
    sample_interval_seconds: float = 1.0
    profile_interval_seconds: float = 10.0
    buffer_limit_bytes: int = 64 * 2**20
    kinds: tuple[str, ...] = OPTIONAL_KINDS
    measure_chunks: bool = True
    transfers: bool = False
    worker_transitions: bool = False
    code: bool = False
    packages: str = "all"
    own_configuration: bool = False
    compression_level: int = 6
    segment_limit_bytes: int = 256 * 2**20
    segment_limit_seconds: float = 3600.0
    retain_limit_bytes: int | None = None
    write_on: str = "client"
    redact: bool = True
    redact_patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if getattr(value, "ndim", None) == 0:  # a number of numpy's
                object.__setattr__(self, field.name, value.item())
        for name in INTERVALS:
            self._check_number(name)
        for name in ("buffer_limit_bytes", "segment_limit_bytes", "segment_limit_seconds"):
            self._check_number(name)
        if self.retain_limit_bytes is not None:
            self._check_number("retain_limit_bytes")
        if type(self.compression_level) is not int or not 1 <= self.compression_level <= 19:
            self._refuse("compression_level", "a whole number from 1 to 19 is needed")
        if self.write_on not in ("client", "scheduler"):
            self._refuse("write_on", "client or scheduler is needed")
        if self.packages not in PACKAGES:
            self._refuse("packages", "all or known is needed")
        for name in (
            "redact", "measure_chunks", "transfers", "worker_transitions", "code",
            "own_configuration",
        ):  # fmt: skip
            if not isinstance(getattr(self, name), bool):
                self._refuse(name, "true or false is needed")
        self._check_texts("kinds")
        for kind in self.kinds:
            if kind not in OPTIONAL_KINDS:
                known = ", ".join(OPTIONAL_KINDS)
                raise ValueError(f"kinds: {kind!r} is not one of {known}")
        self._check_texts("redact_patterns")
        for pattern in self.redact_patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(
                    f"redact_patterns: {pattern!r} is no regular expression: {error}"
                ) from None

    def _check_number(self, name: str) -> None:
        value = getattr(self, name)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0 < value < 2**53:
            self._refuse(name, "a positive number is needed")

    def _check_texts(self, name: str) -> None:
        value = getattr(self, name)
        sequence = isinstance(value, (list, tuple, set, frozenset))
        if not sequence or not all(isinstance(text, str) for text in value):
            self._refuse(name, "a list of texts is needed")
        object.__setattr__(self, name, tuple(value))

    def _refuse(self, name: str, need: str) -> None:
        raise ValueError(f"{name}={getattr(self, name)!r}: {need}")

    def as_dict(self) -> dict[str, Any]:
        """Give the settings by name."""
        return asdict(self)

    def as_told(self) -> dict[str, Any]:
        """Give the settings as a trace's header tells them: without the user's patterns."""
        return {**self.as_dict(), "redact_patterns": len(self.redact_patterns)}

    @classmethod
    def from_keywords(cls, keywords: dict[str, Any]) -> Settings:
        """Build settings from a caller's keywords, and Dask's configuration below them.

        Raises
        ------
        TypeError
            If a keyword is not the name of a setting.
        ValueError
            If a value cannot be used, or the configuration has a name that is no setting.
        """
        names = [field.name for field in fields(cls)]
        for name in keywords:
            if name not in names:
                raise TypeError(f"{name!r} is not a setting; there are: {', '.join(names)}")
        return cls(**{**configured(names), **keywords})


def recorded_kinds(settings: dict[str, Any]) -> frozenset[str]:
    """Name the kinds of records that are wanted beside those that always are.

    Parameters
    ----------
    settings : dict
        As :meth:`Settings.as_dict` gives them.
    """
    asked = (kind for kind, setting in OPT_IN_KINDS.items() if settings[setting])
    return frozenset([*settings["kinds"], *asked])


#: What Dask's configuration holds beside the settings: see :mod:`roast_recorder.preload`.
CONFIGURATION_ONLY: Final = ("directory",)


def configured(names: list[str]) -> dict[str, Any]:
    """Give the settings that Dask's configuration holds.

    Raises
    ------
    ValueError
        If a name below ``roast.recorder`` is none of `names`.
    """
    import dask

    section = dask.config.get(CONFIGURATION, None) or {}
    if not isinstance(section, dict):
        raise ValueError(  # noqa: TRY004 - whoever configures makes no call
            f"Dask's configuration has {CONFIGURATION}={section!r}: names and values are needed"
        )
    found = {str(name).replace("-", "_"): value for name, value in section.items()}
    for name in CONFIGURATION_ONLY:
        found.pop(name, None)
    for name in found:
        if name not in names:
            raise ValueError(
                f"Dask's configuration has {CONFIGURATION}.{name}, which is not a setting; "
                f"there are: {', '.join(names)}"
            )
    return found
