"""The recorder's settings: names, defaults and rules.

Every setting can be passed to :func:`roast_recorder.record` or ``roast-record``, or be set
in Dask's configuration as ``roast.recorder.<name>``: in a file, or by an environment
variable such as ``DASK_ROAST__RECORDER__FLUSH_INTERVAL_SECONDS``. The call takes precedence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, Final

import dask

#: Kinds of records that can be left out.
OPTIONAL_KINDS: Final = (
    "task", "transition", "worker_sample", "scheduler_sample", "stall", "span", "fine_metric",
    "chunk", "section", "profile", "event", "environment", "graph", "graph_update",
    "client_activity", "cluster_size", "computation", "wanted_keys",
)  # fmt: skip

#: Kinds of records that workers send only on request, and the setting that requests them.
OPT_IN_KINDS: Final = {
    "worker_transition": "worker_transitions",
    "spill": "worker_transitions",
    "transfer": "transfers",
}

#: Shortest intervals: a shared scheduler must not be loaded by a user's value.
MIN_INTERVALS: Final = {
    "flush_interval_seconds": 0.05,
    "sample_interval_seconds": 0.1,
    "profile_interval_seconds": 0.5,
}

#: Section of Dask's configuration that contains the settings.
CONFIGURATION: Final = "roast.recorder"

#: Names in that section that are not settings: see :mod:`roast_recorder.preload`.
CONFIGURATION_ONLY: Final = ("directory", "store")


@dataclass(frozen=True)
class Settings:
    """How a recording is made. An invalid value is a ValueError."""

    #: Name of the run in comparisons; also ``--label``.
    label: str | None = None
    #: Longest time between two writes to the trace; at least 0.05.
    flush_interval_seconds: float = 0.5
    #: Time between two samples of each worker; at least 0.1. Workers report at most every
    #: 0.5 s, so shorter intervals repeat values.
    sample_interval_seconds: float = 1.0
    #: Time between two messages with the samples of Dask's profiler; at least 0.5. A worker
    #: that dies loses up to this much of its profile.
    profile_interval_seconds: float = 10.0
    #: Memory on the scheduler for records that are not yet written. Beyond it, records are
    #: dropped and counted: samples and profiles first, then events, then the rest.
    buffer_limit_bytes: int = 64 * 2**20
    #: Kinds of records to write: some of :data:`OPTIONAL_KINDS`.
    kinds: tuple[str, ...] = OPTIONAL_KINDS
    #: Whether workers measure the chunks of coffea and uproot that they process. If not, a
    #: trace only contains what each chunk is, and Dask's measurements of its task.
    measure_chunks: bool = True
    #: Whether workers report every transfer of results, at both ends.
    transfers: bool = False
    #: Whether workers report every state change of a task, and spills to disk.
    worker_transitions: bool = False
    #: Whether code that submits work is recorded: of the recording client, and of others
    #: where ``distributed.diagnostics.computations.nframes`` is set.
    code: bool = False
    #: ``all``: names and versions of all installed packages. ``known``: of Dask, of what it
    #: runs on, and of the scientific stack only.
    packages: str = "all"
    #: Whether to record strings in Dask's configuration under names that no installed
    #: package declares.
    own_configuration: bool = False
    #: zstd compression level, from 1 to 19.
    compression_level: int = 6
    #: Size at which a trace that is a folder begins a new segment; at most a quarter of
    #: `retain_limit_bytes`.
    segment_limit_bytes: int = 256 * 2**20
    #: Age at which a trace that is a folder begins a new segment.
    segment_limit_seconds: float = 3600.0
    #: Size of all segments of a folder; with the preload, of all traces. Beyond it the oldest
    #: are removed, and the trace records that.
    retain_limit_bytes: int | None = None
    #: Whether secrets are replaced in everything that is written.
    redact: bool = True
    #: Further regular expressions for secrets.
    redact_patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if getattr(value, "ndim", None) == 0:  # a numpy number
                value = value.item()
            if field.name == "label" and type(value) in (int, float):
                value = str(value)  # Dask reads such a text from the environment as a number
            kind = re.split(r"\W", str(field.type))[0]
            is_valid, need = _RULES.get(field.name) or _RULES[kind]
            if not is_valid(value) and not (value is None is field.default):
                raise ValueError(f"invalid {field.name}={value!r}: use {need}")
            value = tuple(value) if isinstance(value, _COLLECTIONS) else value
            # The dataclass is frozen, so that settings do not change during a recording.
            object.__setattr__(self, field.name, value)
        for kind in self.kinds:
            if kind not in OPTIONAL_KINDS:
                raise ValueError(
                    f"invalid kind {kind!r}: choose from {', '.join(OPTIONAL_KINDS)}"
                )
        for pattern in self.redact_patterns:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise ValueError(
                    f"invalid redact_patterns: {pattern!r} is not a regular expression: {error}"
                ) from None

    def as_dict(self) -> dict[str, Any]:
        """Return the settings by name."""
        return asdict(self)

    def for_header(self) -> dict[str, Any]:
        """Return the settings by name, with the number of the user's secret patterns only."""
        return {**self.as_dict(), "redact_patterns": len(self.redact_patterns)}

    @classmethod
    def from_keywords(cls, keywords: dict[str, Any]) -> Settings:
        """Return settings from a call and from Dask's configuration.

        A keyword that is no setting is a TypeError, an unknown name in the configuration and an
        invalid value a ValueError.
        """
        names = [field.name for field in fields(cls)]
        use = f"choose from {', '.join(names)}"
        for name in keywords:
            if name not in names:
                raise TypeError(f"unknown setting {name!r}: {use}")
        section = dask.config.get(CONFIGURATION, None) or {}
        if not isinstance(section, dict):
            raise ValueError(  # noqa: TRY004 - the user has made no call with this value
                f"invalid {CONFIGURATION}={section!r} in Dask's configuration: "
                "use names and values"
            )
        configured = {str(name).replace("-", "_"): value for name, value in section.items()}
        for name in CONFIGURATION_ONLY:
            configured.pop(name, None)
        for name in configured:
            if name not in names:
                raise ValueError(
                    f"unknown setting {CONFIGURATION}.{name} in Dask's configuration: {use}"
                )
        return cls(**{**configured, **keywords})


_COLLECTIONS = (list, tuple, set, frozenset)


def _is_positive(value: Any, least: float = 0.0) -> bool:
    # For Python, True is the integer 1.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # Larger integers are not exact as floats.
    return is_number and 0 < value < 2**53 and value >= least


#: Rules and what they require, by name or, for all others, by the first word of the type.
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "compression_level": (
        lambda value: type(value) is int and 1 <= value <= 19,
        "a whole number from 1 to 19",
    ),
    "label": (
        lambda value: isinstance(value, str) and 0 < len(value.strip()) <= 100,
        "a string of 1 to 100 characters",
    ),
    "packages": (lambda value: value in ("all", "known"), "'all' or 'known'"),
    **{
        name: (partial(_is_positive, least=least), f"a number of seconds, at least {least}")
        for name, least in MIN_INTERVALS.items()
    },
    "float": (_is_positive, "a positive number"),
    "int": (_is_positive, "a positive number"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "tuple": (
        lambda value: (
            isinstance(value, _COLLECTIONS) and all(isinstance(text, str) for text in value)
        ),
        # With the quotes that a shell needs.
        """a list of strings, such as '["a", "b"]'""",
    ),
}


def recorded_kinds(settings: dict[str, Any]) -> frozenset[str]:
    """Return the kinds of records, beside those that always are, that settings select."""
    requested = (kind for kind, setting in OPT_IN_KINDS.items() if settings[setting])
    return frozenset([*settings["kinds"], *requested])
