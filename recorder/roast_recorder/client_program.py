"""Dask's client preload that reports which program, user and host a client belongs to.

::

    distributed.client.preload: [roast_recorder.client_program]

in Dask's configuration, where the clients of a shared scheduler run. The report is an event of
the scheduler, so it costs one message when a client connects, and a scheduler that is not
recorded ignores it. Clients that record report it as well.
"""

from __future__ import annotations

import contextlib
import getpass
import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Any, Final

from roast_recorder.environment import program_name, start_of_program

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger("roast_recorder")

#: Topic of the event.
TOPIC: Final = "roast-client-program"

#: Longest text of a record.
MAX_LENGTH: Final = 300


async def dask_setup(client: Client) -> None:
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
