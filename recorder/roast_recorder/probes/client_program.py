"""The program, user and host of each client.

A client reports it when it connects, if it records or has Dask's preload
:mod:`roast_recorder.client_program`.
"""

from __future__ import annotations

import contextlib
import getpass
import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Any, Final

from roast_recorder.probes import ClientProbe, SchedulerProbe
from roast_recorder.program import program_name, start_of_program

if TYPE_CHECKING:
    from distributed import Client


logger = logging.getLogger("roast_recorder")

#: Topic of the event.
TOPIC: Final = "roast-client-program"

#: Longest text of a record.
MAX_LENGTH: Final = 300


class OnScheduler(SchedulerProbe):
    """Record the reports of clients, of earlier ones too."""

    def _install(self) -> None:
        with self.core.tap.guard("client_program", 0):
            for _, report in self.core.scheduler.get_events(TOPIC):
                self.on_event(TOPIC, report)

    def on_event(self, topic: Any, message: Any) -> bool:
        """Record a report."""
        if topic == TOPIC and (fields := fields_of(message)):
            self.core.record("client_program", **fields)
            return True
        return False


class OnClient(ClientProbe):
    """Report the program that records."""

    def _install(self) -> None:
        self.core.run(report_program(self.core.client))


async def report_program(client: Client) -> None:
    """Report the program of a client to its scheduler."""
    # The program of a task that submits tasks is Dask's worker.
    if client.id.startswith("Client-worker-"):
        return
    try:
        about = {"client": client.id, **program_facts()}
        scheduler: Any = client.scheduler
        await scheduler.log_event(topic=TOPIC, msg=about)
    except Exception:  # the program must run
        logger.debug("roast: the program is not reported", exc_info=True)


def program_facts() -> dict[str, Any]:
    """Return program, user, host and process; arguments are left out, as they may be private.

    In JupyterHub the user is the hub's: all users of a hub can have one account in their pods.
    """
    user = os.environ.get("JUPYTERHUB_USER")
    with contextlib.suppress(Exception):  # there is no name for this number
        user = user or getpass.getuser()
    place = {"name": program_name(), "host": socket.gethostname(), "pid": os.getpid()}
    return {**place, "user_name": user, **start_of_program(sys.argv[0])}


def fields_of(report: Any) -> dict[str, Any]:
    """Return the fields of a ``client_program`` record; empty if a report is not one.

    Any client can send one, with anything in it.
    """
    if not isinstance(report, dict):
        return {}
    texts = {
        name: text[:MAX_LENGTH]
        for name in ("client", "name", "host", "user_name", "path", "module")
        if isinstance(text := report.get(name), str)
    }
    if not {"client", "name"} <= texts.keys():
        return {}
    value = {name: texts.pop(name) for name in ("user_name", "path", "module") if name in texts}
    pid = report.get("pid")
    is_pid = type(pid) is int and 0 <= pid < 2**31
    return {**texts, "pid": pid if is_pid else None, "value": value}
