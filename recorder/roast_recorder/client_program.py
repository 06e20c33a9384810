"""Dask's client preload that reports which program, user and host a client belongs to.

::

    distributed.client.preload: [roast_recorder.client_program]

in Dask's configuration, where the clients of a shared scheduler run. The report is an event of
the scheduler, so it costs one message when a client connects, and a scheduler that is not
recorded ignores it. Clients that record report it as well.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from roast_recorder.probes import part_of

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger("roast_recorder")


async def dask_setup(client: Client) -> None:
    """Report the program of a client to its scheduler, if the probe is there."""
    try:
        await part_of("client_program", "report_program")(client)
    except Exception:  # the program must run
        logger.debug("roast: the program is not reported", exc_info=True)
