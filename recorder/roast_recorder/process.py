"""What a process of the cluster runs with and on, told once.

Hundreds of workers have the same configuration and the same packages. So these are sheets,
named by what they hold: a process tells the names of its sheets, and a sheet is written
down the first time that anybody tells of it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
from collections.abc import Callable, Iterable
from typing import Any, Final

from roast_recorder import batch, configuration, machine, packages
from roast_recorder.scheduler.wire_format import pack, plain

logger = logging.getLogger("roast_recorder")

#: Section of the fact that tells of a process.
PROCESS: Final = "process"

#: Different sheets that one recording writes down. More come only of processes that differ
#: one from another.
MAX_SHEETS: Final = 300

#: Names of a worker's plugins that are told.
MAX_PLUGINS: Final = 200

Sheet = tuple[str, Any]


def describe(role: str, settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Sheet]]:
    """Describe this process. It reads some files, and belongs into a thread of its own.

    What cannot be found out is left out; nothing is raised.

    Parameters
    ----------
    role : str
        ``scheduler``, ``worker`` or ``client``.
    settings : dict
        As :class:`roast_recorder.settings.Settings` gives them.

    Returns
    -------
    process : dict
        role, pid, python, implementation, machine, jobs; and the names of the sheets:
        configuration, defaults, packages.
    sheets : dict
        Name to section and content.
    """
    process: dict[str, Any] = {
        "role": role,
        "pid": os.getpid(),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
    }
    sheets: dict[str, Sheet] = {}

    def put(section: str, content: Any) -> None:
        name = _name(content)
        process[section] = name
        sheets[name] = section, content

    def put_configuration() -> None:
        differing, defaults = configuration.effective(own=settings["own_configuration"])
        put("configuration", differing)
        put("defaults", defaults)

    _try(lambda: process.update(machine=machine.describe()))
    _try(lambda: process.update(jobs=batch.jobs()))
    _try(put_configuration)
    _try(lambda: put("packages", packages.installed(settings["packages"])))
    return process, sheets


def _try(step: Callable[[], None]) -> None:
    try:
        step()
    except Exception:
        logger.debug("roast: a fact of this process is not known", exc_info=True)


def _name(content: Any) -> str:
    text = json.dumps(plain(content), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def told_by_worker(settings: dict[str, Any], plugins: Iterable[str]) -> dict[str, Any]:
    """Give what a worker tells: the process, and its sheets packed, each for itself.

    Most of them are not unpacked: the scheduler knows them from other workers.
    """
    described, sheets = describe("worker", settings)
    names = sorted(name for name in map(str, plugins) if not name.startswith("roast-"))
    described["plugins"] = names[:MAX_PLUGINS]
    packed = {
        name: pack([{"section": section, "name": name, "value": content}])
        for name, (section, content) in sheets.items()
    }
    return {"process": pack([described]), "sheets": packed}


class Sheets:
    """Which sheets are written down already, in one recording and seen from one place."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def is_new(self, name: str) -> bool:
        """Tell whether a sheet is to be written down now."""
        if name in self._known or self.is_full:
            return False
        self._known.add(name)
        return True

    def lacks(self, name: str) -> bool:
        """Tell whether a sheet is none of those that are written down."""
        return name not in self._known

    @property
    def is_full(self) -> bool:
        """Tell whether no more can be written down."""
        return len(self._known) >= MAX_SHEETS


def facts_of(
    process: dict[str, Any], sheets: dict[str, Sheet], known: Sheets
) -> list[dict[str, Any]]:
    """Give the facts that are to be written down of a process: fields of records."""
    return [
        *(
            {"section": section, "name": name, "value": content}
            for name, (section, content) in sheets.items()
            if known.is_new(name)
        ),
        {"section": PROCESS, "name": process["role"], "value": process},
    ]
