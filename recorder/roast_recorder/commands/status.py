"""``roast-record status``: which recordings write, and how the others ended."""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any

from roast_recorder.commands import FAILED, SUCCESS, CallError, positive
from roast_recorder.commands.attach import (
    CONNECT_TIMEOUT_SECONDS,
    add_tls_options,
    place_of,
    unreachable,
)
from roast_recorder.scheduler import health
from roast_recorder.writer.condition import Condition, conditions, valid_time
from roast_schemas.urls import is_like_url


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "status",
        help="list recordings: whether they write, and how they ended",
        description="List recordings: when they began, until when they were written, their "
        "size, dropped records, and whether they write or how they ended. A folder of the "
        "preload also has the schedulers that could not be recorded. The exit code is 1 if a "
        "recording cannot write, has stopped without a trailer, or could not start.",
    )
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("place", nargs="?", metavar="DIR|TRACE", help="traces")
    place.add_argument(
        "--scheduler", metavar="ADDRESS", help="a scheduler, or its scheduler file (.json)"
    )
    parser.add_argument(
        "--hours",
        type=positive(float, "number of hours", "24"),
        metavar="N",
        help="only traces that were written, and schedulers that started, in the last N hours",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    add_tls_options(parser)
    parser.set_defaults(run=_status)


def _status(options: argparse.Namespace) -> int:
    if options.scheduler:
        found = _of_scheduler(options)
    else:
        if is_like_url(options.place) and not Path(options.place).exists():
            raise CallError(
                f"cannot read {options.place!r}: status reads local folders; name one, or ask "
                "the scheduler with --scheduler ADDRESS"
            )
        try:
            found = list(conditions(Path(options.place)))
        except OSError as error:
            raise CallError(f"cannot read {options.place!r}: {error.strerror}") from None
    if options.hours:
        since = time() - 3600 * options.hours
        found = [one for one in found if (one.written_t or one.start_t or since) >= since]
    if options.json:
        print(json.dumps([asdict(one) for one in found], indent=2))
    else:
        _print(found)
    nothing = bool(options.scheduler) and not found
    return SUCCESS if all(one.is_well for one in found) and not nothing else FAILED


def _print(found: list[Condition]) -> None:
    if not found:
        print("no recordings")
        return
    rows = [("trace", "begun", "written", "MiB", "dropped", "state")]
    for one in found:
        size = f"{one.nbytes / 2**20:.2f}" if one.nbytes else ""
        dropped = "?" if one.dropped is None else f"{one.dropped:,}"
        state = f"{one.state}: {one.detail}" if one.detail else one.state
        name = Path(one.path).name
        rows.append((name, _clock(one.start_t), _clock(one.written_t), size, dropped, state))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        # Names of files may contain anything.
        print("".join(c if c.isprintable() else "?" for c in "  ".join(cells).rstrip()))


def _clock(t: float | None) -> str:
    return "" if t is None else f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M:%SZ}"


def _of_scheduler(options: argparse.Namespace) -> list[Condition]:
    """Ask a scheduler for the health of its recordings."""
    from distributed.core import rpc

    address, _, arguments = place_of(options.scheduler, options)

    async def ask() -> Any:
        async with rpc(address, connection_args=arguments) as scheduler:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                # The answer to an unknown operation is None.
                return await getattr(scheduler, health.OPERATION)() or []

    try:
        return [_condition(one) for one in asyncio.run(ask())]
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise unreachable(options.scheduler, error) from None


def _name_without_path(one: dict[str, Any]) -> str:
    """Return a name for a recording whose trace is elsewhere, or that has no place for one."""
    trace_id, client = one.get("trace_id"), one.get("client")
    return f"trace {trace_id} of {client}" if trace_id else "no trace"


def _condition(one: dict[str, Any]) -> Condition:
    age = one.get("last_write_age_seconds")
    problem = one.get("problem")
    # Between two flushes, records wait.
    limit = health.SILENT_SECONDS + 2 * one.get("flush_interval_seconds", 0)
    if not problem and one["state"] == health.RECORDING and (age or 0) > limit:
        problem = f"nothing was written for {age:.0f} s"
    has_started = one["state"] != health.NOT_STARTED
    return Condition(
        path=one.get("trace") or _name_without_path(one),
        state=health.FAILING if problem and has_started else one["state"],
        detail=problem or "",
        start_t=valid_time(one.get("start_t")),
        written_t=None if age is None else valid_time(time() - age),
        nbytes=one.get("nbytes", 0),
        dropped=sum(one["records_dropped"].values()) if "records_dropped" in one else None,
    )
