"""Fetching what a recorder that was killed has left behind on the scheduler.

A client may be killed, closed with its terminal, or taken away by the batch system, while
its scheduler lives on and still holds what the client did not fetch. The recorder there
stays for a while (see :mod:`roast_recorder.scheduler.plugin`), so that the writing process, which has
outlived the client, can connect by itself, end the recording and fetch the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
from time import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client

    from roast_recorder.writer.process import BatchWriter

#: How long it may take to reach the scheduler and to fetch all.
RESCUE_TIMEOUT_SECONDS = 25.0


def rescue_order(client: Client, trace_id: str, clock_offset_seconds: float) -> Any:
    """Say how the recorder's scheduler is reached from another process.

    Returns
    -------
    dict or None
        None if it cannot be.
    """
    scheduler: Any = client.scheduler
    address = str(scheduler.address)
    if address.startswith("inproc://"):
        return None
    try:
        security = pickle.dumps(client.security)
    except Exception:  # noqa: BLE001 - somebody's own class of security
        return None
    return {
        "address": address,
        "security": security,
        "trace_id": trace_id,
        "clock_offset_seconds": clock_offset_seconds,
    }


def fetch_the_rest(writing: BatchWriter, order: dict[str, Any]) -> bool:
    """End the recording on the scheduler, write what is left and the trailer.

    Returns
    -------
    bool
        Whether everything could be fetched.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with contextlib.suppress(Exception):
        return asyncio.run(asyncio.wait_for(_fetch(writing, order), RESCUE_TIMEOUT_SECONDS))
    return False


async def _fetch(writing: BatchWriter, order: dict[str, Any]) -> bool:
    from distributed.core import rpc

    from roast_recorder.scheduler.plugin import operation_name

    security = pickle.loads(order["security"])  # noqa: S301 - from our own client
    arguments = security.get_connection_args("client")
    async with rpc(order["address"], connection_args=arguments, timeout=5) as scheduler:
        detach = getattr(scheduler, operation_name("detach", order["trace_id"]))
        pull = getattr(scheduler, operation_name("pull", order["trace_id"]))
        await detach(ending="the client has gone")
        while True:
            answer = await pull(received=writing.received)
            writing.write_batches(answer["batches"])
            if answer["ending"]:
                writing.finish(time() - order["clock_offset_seconds"], answer["ending"])
                return True
