"""From the buffer to the writer, batch by batch, until recording ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roast_recorder.writer.client import Writer

#: Takes the number of the last batch that is written, gives what
#: :meth:`roast_recorder.scheduler.plugin.RecorderPlugin.pull` gives.
Pull = Callable[[int], Awaitable[dict[str, Any]]]


async def pump(pull: Pull, writer: Writer) -> str:
    """Pull and write until there is nothing more.

    A batch is only acknowledged, with the next pull, when it is in the trace.

    Returns
    -------
    str
        How the recording ended.
    """
    received = 0
    while True:
        answer = await pull(received)
        batches = [tuple(batch) for batch in answer["batches"]]
        if batches:
            await writer.write_batches(batches)
            received = batches[-1][0]
        if answer["ending"]:
            return str(answer["ending"])
