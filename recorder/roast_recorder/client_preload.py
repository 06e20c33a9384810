"""Dask's client preload, which records every scheduler that a program's clients connect to.

``roast-record run`` starts the program with an environment in which Dask loads this module
into each ``Client``. The first client that connects to a scheduler records it. Other
clients, including those that tasks create on workers, find its claim in a folder of the run.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from roast_schemas.urls import safe_message

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger("roast_recorder")

#: Environment variable with the plan of the run.
VARIABLE: Final = "ROAST_RECORDER_RUN"


@dataclass(frozen=True)
class Plan:
    """Arguments of ``roast-record run`` for the program's processes."""

    #: The trace of the first scheduler; others are numbered.
    target: str
    #: Folder of this run's claims.
    claims: str
    #: As in :func:`roast_recorder.record`.
    settings: dict[str, Any]

    def traces(self) -> Iterator[str]:
        """Yield the traces of this run in the order of their start."""
        names = (path.name for path in Path(self.claims).glob("trace-*"))
        for number in sorted(int(name.partition("-")[2]) for name in names):
            yield numbered(self.target, number)

    def claim(self, scheduler_id: str) -> Path | None:
        """Claim a scheduler; return None if it is claimed or this run has another folder."""
        claim = Path(self.claims) / f"scheduler-{re.sub(r'[^A-Za-z0-9-]', '', scheduler_id)}"
        try:
            claim.touch(exist_ok=False)
        except OSError:
            return None
        return claim

    def next_trace(self) -> tuple[str, Path]:
        """Reserve the next trace of the run; return its target and the reservation."""
        for number in itertools.count(1):
            reservation = Path(self.claims) / f"trace-{number}"
            with contextlib.suppress(FileExistsError):
                reservation.touch(exist_ok=False)
                break
        return numbered(self.target, number), reservation


def numbered(target: str, number: int) -> str:
    """Return the name of the n-th trace of a run: ``t.jsonl.zst``, ``t-2.jsonl.zst``."""
    if number == 1:
        return target
    folder, name = os.path.split(target.rstrip("/"))
    stem, dot, ending = name.partition(".jsonl")
    slash = "/" if target.endswith("/") else ""
    return os.path.join(folder, f"{stem}-{number}{dot}{ending}{slash}")  # noqa: PTH118 - texts


async def dask_setup(client: Client) -> None:
    """Record the client's scheduler, unless another client of this run does."""
    text = os.environ.get(VARIABLE)
    if not text:
        return
    try:
        # `roast-record run` imports this module as well, and needs no Dask.
        from roast_recorder.api import record

        plan, scheduler = Plan(**json.loads(text)), cast("Any", client.scheduler)
        claim = plan.claim((await scheduler.identity())["id"])
        if claim is None:
            return
        release_claim = partial(claim.unlink, missing_ok=True)
        target, reservation = plan.next_trace()
        try:
            recording = record(client, target, **plan.settings)
            await recording.start_on_loop()
        except BaseException:
            release_claim()
            reservation.unlink(missing_ok=True)
            raise
        recording.when_ended(lambda _: release_claim())
    except Exception as error:  # the program must run
        reason = safe_message(str(error).partition("\n")[0])
        print(f"roast-record: this client is not recorded: {reason}", file=sys.stderr)
        logger.debug("roast: not recorded", exc_info=True)
