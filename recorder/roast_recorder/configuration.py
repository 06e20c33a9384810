"""Dask's configuration, as a process has it: what it is, and what the packages say it is.

A name that an installed package declares, with a default, is known: what it holds is
written down. Anything else in the configuration is somebody's own, or belongs to a package
that is not loaded here: numbers and flags are written down, texts are not unless they are
asked for. Whatever may hold environment variables, arguments, headers, credentials or
paths of certificates is withheld here, before the recorder's redaction looks at the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import dask

#: What stands for a value that is not written down.
WITHHELD: Final = "<withheld>"

#: Parts of a name below which values may be anything of the user's.
PRIVATE_PARTS: Final = frozenset(
    {
        "environ",
        "pre-spawn-environ",
        "env",
        "env-extra",
        "environment",
        "extra",
        "headers",
        "auth",
        "kwargs",
        "client-options",
        "storage-options",
        "security",
        "security-loader",
        "tls",
        "preload-argv",
        "job-script-prologue",
        "job-script-epilogue",
        "job-extra",
        "job-extra-directives",
        "job-directives-skip",
        "worker-command-line",
        "worker-extra-args",
        "submit-command-extra",
        "cancel-command-extra",
        "worker-template-path",
        "scheduler-template-path",
    }
)

#: Names below those that are known to hold no secret.
PUBLIC_NAMES: Final = frozenset({"ciphers", "min-version", "max-version"})

#: Environment variables that are known to hold a number, and to matter.
PUBLIC_VARIABLES: Final = ("_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX")

#: Below these there is nothing of Dask's: the recorder's own settings are in the header,
#: and what a process inherits is in its configuration already.
LEFT_OUT: Final = ("roast.", "internal-inherit-config")

#: What Dask sets by itself: a client as it becomes the default one, a nanny for its worker
#: (its process id).
SET_BY_DASK: Final = frozenset({"scheduler", "shuffle", "parent"})

#: A configuration of more names is not written down beyond these.
MAX_NAMES: Final = 2_000

#: Longer texts, and the texts of longer lists, are cut.
MAX_LENGTH: Final = 1_000
MAX_ITEMS: Final = 100


def effective(*, own: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give what differs from the defaults in this process, and the defaults.

    Parameters
    ----------
    own : bool
        Whether texts under names that no package declares are given, too.

    Returns
    -------
    differing : dict
        Name to value: of what is not as the packages declare it. What is withheld here is
        :data:`WITHHELD`.
    defaults : dict
        Name to what the packages that are loaded here declare.
    """
    declared = dict(_named(dask.config.merge(*dask.config.defaults)))
    defaults = {name: _shown(value) for name, value in declared.items()}
    spelt = {_canonical(name): name for name in declared}
    differing = {}
    for its_name, value in _named(dask.config.config):
        name = spelt.get(_canonical(its_name), its_name)
        if name not in declared:
            differing[name] = _withheld(name, value) if own else _of_somebody(name, value)
        elif not _same(value, declared[name]):
            differing[name] = _withheld(name, value)
    return differing, defaults


def _named(configuration: Mapping[str, Any], beginning: str = "") -> Iterator[tuple[str, Any]]:
    """Give each value with its whole name, as ``dask.config.get`` takes it."""
    for part, value in list(configuration.items())[:MAX_NAMES]:
        name = f"{beginning}{part}"[:MAX_LENGTH]
        if _canonical(name).startswith(LEFT_OUT) or name in SET_BY_DASK:
            continue
        if isinstance(value, Mapping) and value and name.count(".") < 20:
            yield from _named(value, f"{name}.")
        else:
            yield name, value


def _canonical(name: str) -> str:
    """Give the spelling that Dask's ones have in common."""
    return name.replace("_", "-")


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def _of_somebody(name: str, value: Any) -> Any:
    plain = value is None or isinstance(value, (bool, int, float))
    return _withheld(name, value) if plain else WITHHELD


def _withheld(name: str, value: Any) -> Any:
    """Give a value, unless it stands where secrets do."""
    *above, last = name.split(".")
    if value is None or isinstance(value, bool) or value in ("", [], {}, ()):
        return _shown(value)
    if last.endswith(PUBLIC_VARIABLES) and str(value).isdecimal():
        return str(value)
    if last in PUBLIC_NAMES:
        return _shown(value)
    if PRIVATE_PARTS.isdisjoint(map(_canonical, (*above, last))):
        return _shown(value)
    return WITHHELD


def _shown(value: Any) -> Any:
    """Give a value as JSON has it, and no longer than it may be."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        # Several lines are code, or a script.
        return WITHHELD if "\n" in value.strip() else value[:MAX_LENGTH]
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return [_shown(item) for item in list(items)[:MAX_ITEMS]]
    if isinstance(value, Mapping):
        return {
            str(name)[:MAX_LENGTH]: _withheld(str(name), item)
            for name, item in list(value.items())[:MAX_ITEMS]
        }
    # Its text may be anything; a class or function is known by its name.
    what = value if isinstance(value, type) or callable(value) else type(value)
    return f"<{getattr(what, '__module__', '?')}.{getattr(what, '__qualname__', '?')}>"
