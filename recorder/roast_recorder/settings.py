"""The recorder's settings: names, defaults and rules.

Every setting can be passed to :func:`roast_recorder.record` or ``roast-record``, or be set
in Dask's configuration as ``roast.recorder.<name>``: in a file, or by an environment
variable such as ``DASK_ROAST__RECORDER__FLUSH_INTERVAL_SECONDS``. The call takes precedence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain
from typing import Any, Final

import dask
import dask.utils

from roast_recorder.probes import PROBES

#: Kinds of records that workers send only on request, and the setting that requests them.
OPT_IN_KINDS: Final = {
    "worker_transition": "worker_transitions",
    "spill": "worker_transitions",
    "transfer": "transfers",
}

#: Kinds of records that can be left out: those of the core, and those of probes.
OPTIONAL_KINDS: Final = tuple(
    kind
    for kind in dict.fromkeys(("task", "transition", *chain(*PROBES.values())))
    if kind not in OPT_IN_KINDS
)

#: Shortest intervals: a shared scheduler must not be loaded by a user's value.
MIN_INTERVALS: Final = {
    "flush_interval_seconds": 0.05,
    "sample_interval_seconds": 0.1,
    "host_interval_seconds": 1.0,
    "profile_interval_seconds": 0.5,
}

#: Smallest limits of sizes: a buffer must hold a few batches, and a segment repeats records.
MIN_LIMITS: Final = {
    "buffer_limit_bytes": 64 * 2**10,
    "segment_limit_bytes": 4 * 2**10,
    "retain_limit_bytes": 64 * 2**10,
}
MAX_LIMIT_BYTES: Final = 2**50

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
    #: 0.5 s, so shorter intervals repeat values. In a cluster whose workers report rarely, the
    #: time is longer: at most 400 samples are taken per second.
    sample_interval_seconds: float = 1.0
    #: Time between two samples of each host; at least 1. One worker of a host takes them, or
    #: the scheduler where there is none.
    host_interval_seconds: float = 5.0
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
    #: are removed, and the trace records that. Default: no limit; with the preload, 16 GiB,
    #: and at most half of the space that the traces and the free disk have together. Every
    #: trace leaves 1 % of the disk free, at most 256 MiB: beyond it, records are dropped and
    #: counted, with this limit after the oldest segments have been removed.
    retain_limit_bytes: int | None = None
    #: Whether secrets are replaced in everything that is written.
    redact: bool = True
    #: Further regular expressions for secrets.
    redact_patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # fields() finds none in a class that an older cloudpickle has unpickled by value, which
        # happens in a process that is client and scheduler.
        for field in self.__dataclass_fields__.values():
            value = getattr(self, field.name)
            if not (value is None is field.default):
                parse, need = _RULES[field.name]
                try:
                    value = parse(value.item() if _is_numpy_scalar(value) else value)
                except Exception as error:  # noqa: BLE001 - a value can be of any class
                    reason = f" ({error})" if isinstance(error, _ItemError) else ""
                    raise ValueError(
                        f"invalid {field.name}={_shown(value)}: use {need}{reason}"
                    ) from None
            # The dataclass is frozen, so that settings do not change during a recording.
            object.__setattr__(self, field.name, value)

    def as_dict(self) -> dict[str, Any]:
        """Return the settings by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def for_header(self) -> dict[str, Any]:
        """Return the settings by name, with the number of the user's secret patterns only."""
        return {**self.as_dict(), "redact_patterns": len(self.redact_patterns)}

    @classmethod
    def from_keywords(cls, keywords: dict[str, Any]) -> Settings:
        """Return settings from a call and from Dask's configuration.

        A keyword that is no setting is a TypeError, an unknown name in the configuration and an
        invalid value a ValueError.
        """
        names = list(cls.__dataclass_fields__)
        for name in keywords:
            if name not in names:
                raise TypeError(f"unknown setting {name!r}: {_choices(name, names)}")
        section = dask.config.get(CONFIGURATION, None) or {}
        if not isinstance(section, dict):
            raise ValueError(  # noqa: TRY004 - the user has made no call with this value
                f"invalid {CONFIGURATION}={_shown(section)} in Dask's configuration: "
                "use names and values"
            )
        configured = {str(name).replace("-", "_"): value for name, value in section.items()}
        for name in CONFIGURATION_ONLY:
            configured.pop(name, None)
        for name in configured:
            if name not in names:
                raise ValueError(
                    f"unknown setting {CONFIGURATION}.{name} in Dask's configuration: "
                    f"{_choices(name, names)}"
                )
        # Dask reads such a text, as from the environment, as a number.
        if type(configured.get("label")) in (int, float):
            configured["label"] = str(configured["label"])
        return cls(**{**configured, **keywords})


# -- rules of the values -----------------------------------------------------------------

_COLLECTIONS = (list, tuple, set, frozenset)


class _ItemError(ValueError):
    """One item of a list is invalid; the text names it and the reason."""


def _seconds(value: Any, least: float, most: float) -> float:
    # For Python, True is the integer 1.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    if not least <= value <= most:  # NaN is in no range
        raise ValueError
    return value


def _nbytes(value: Any, least: int, most: int) -> int:
    if isinstance(value, str):
        value = dask.utils.parse_bytes(value)
    if _seconds(value, least, most) != int(value):
        raise ValueError
    return int(value)


def _whole(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _label(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value.strip()) <= 100:
        raise ValueError
    return str(value)


def _one_of(value: Any, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValueError
    return str(value)


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, _COLLECTIONS) or not all(isinstance(text, str) for text in value):
        raise TypeError
    return tuple(map(str, value))


def _kinds(value: Any) -> tuple[str, ...]:
    kinds = _strings(value)
    for kind in kinds:
        if kind in OPT_IN_KINDS:
            raise _ItemError(f"{kind!r} is recorded with {OPT_IN_KINDS[kind]}=true")
        if kind not in OPTIONAL_KINDS:
            raise _ItemError(f"unknown kind {kind!r}: {_choices(kind, OPTIONAL_KINDS)}")
    if not kinds:
        raise _ItemError("it is empty")
    return kinds


def _patterns(value: Any) -> tuple[str, ...]:
    patterns = _strings(value)
    for pattern in patterns:
        try:
            compiled = re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise _ItemError(f"{pattern!r} is not one: {error}") from None
        if compiled.search(""):
            raise _ItemError(f"{pattern!r} matches an empty text")
    return patterns


def _is_numpy_scalar(value: Any) -> bool:
    return getattr(value, "ndim", None) == 0


def _shown(value: Any) -> str:
    """Return the text of an invalid value for a message of one line."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - an object of the user's
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= 100 else f"{text[:99]}…"


def _choices(name: object, names: Iterable[str]) -> str:
    """Return what to use instead of an unknown name: similar names, or all."""
    similar = difflib.get_close_matches(str(name), names := tuple(names), n=1)
    return f"did you mean {similar[0]!r}?" if similar else f"choose from {', '.join(names)}"


#: For each setting, the function that returns its value or raises, and what is valid.
_RULES: Final[dict[str, tuple[Callable[[Any], Any], str]]] = {
    "label": (_label, "a string of 1 to 100 characters"),
    "compression_level": (partial(_whole, least=1, most=19), "a whole number from 1 to 19"),
    "packages": (partial(_one_of, choices=("all", "known")), "'all' or 'known'"),
    # With the quotes that a shell needs.
    "kinds": (_kinds, """a list of kinds, such as '["task", "transition"]'"""),
    "redact_patterns": (_patterns, """a list of regular expressions, such as '["a+", "b"]'"""),
    **{
        name: (
            partial(_seconds, least=least, most=most),
            f"a number of seconds from {least:g} to {most:,}",
        )
        for name, (least, most) in {
            **{name: (least, 86_400) for name, least in MIN_INTERVALS.items()},
            "segment_limit_seconds": (1.0, 31_536_000),
        }.items()
    },
    **{
        name: (
            partial(_nbytes, least=least, most=MAX_LIMIT_BYTES),
            (
                f"a whole number of bytes, such as {64 * 2**20} or '64 MiB', from "
                f"{least // 2**10} KiB to 1 PiB"
            ),
        )
        for name, least in MIN_LIMITS.items()
    },
    **{
        field.name: (_flag, "true or false")
        for field in fields(Settings)
        if isinstance(field.default, bool)
    },
}


def recorded_kinds(settings: dict[str, Any]) -> frozenset[str]:
    """Return the kinds of records, beside those that always are, that settings select."""
    requested = (kind for kind, setting in OPT_IN_KINDS.items() if settings[setting])
    return frozenset([*settings["kinds"], *requested])
