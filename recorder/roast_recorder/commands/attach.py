"""``roast-record attach``: a cluster that is there already, and need not be one's own."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from roast_recorder.commands import FAILED, WELL, CallError
from roast_recorder.commands.options import add_recording_options, settings_of

if TYPE_CHECKING:
    from distributed import Client, Security

    from roast_recorder.api import Recording

CONNECT_TIMEOUT_SECONDS = 10.0


def add_to(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "attach",
        help="record a cluster that is running",
        description="Record a running cluster until Ctrl-C, SIGTERM, --duration, or its end.",
    )
    parser.add_argument(
        "address",
        metavar="ADDRESS",
        help="of the scheduler, such as tcp://host:8786, or a scheduler file (.json)",
    )
    add_recording_options(parser)
    parser.add_argument(
        "--duration", type=_seconds, metavar="SECONDS", help="how long to record"
    )
    for name, what in (
        ("ca-file", "certificates of the authority"),
        ("cert", "certificate of this client"),
        ("key", "private key of this client"),
    ):
        parser.add_argument(
            f"--tls-{name}",
            metavar="FILE",
            help=f"{what} (PEM); else Dask's configuration is used",
        )
    parser.set_defaults(run=_attach)


def _attach(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    with _told_to_stop() as stop, _connect(options) as client:
        recording = _begin(client, options.output, settings)
        where = client.scheduler_info()["address"]
        print(f"roast-record: recording {where}; Ctrl-C ends it", file=sys.stderr)
        _wait(recording, stop, options.duration)
        recording.stop()
        whole = recording.ended_in_order()
    _tell(recording, options.output, whole)
    return WELL if whole else FAILED


def _connect(options: argparse.Namespace) -> Client:
    from distributed import Client

    # That its scheduler has gone is said by the recorder, in one line.
    for name in ("distributed", "distributed.client", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    address, security = _address(options.address), _security(options)
    try:
        # A client that does not get through takes long to say so, and leaves tasks behind.
        asyncio.run(_knock(address, security))
        return Client(
            address,
            security=security,
            timeout=CONNECT_TIMEOUT_SECONDS,
            set_as_default=False,
            name="roast-record",
        )
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        text = str(error).partition("\n")[0]
        raise CallError(f"no scheduler answers at {options.address!r}: {text}") from None


async def _knock(address: str, security: Security) -> None:
    from distributed.comm.core import connect

    comm = await connect(
        address, timeout=CONNECT_TIMEOUT_SECONDS, **security.get_connection_args("client")
    )
    await comm.close()


def _address(given: str) -> str:
    """Give an address, read from a scheduler file if it is one."""
    if not given.endswith(".json"):
        return given
    try:
        return str(json.loads(Path(given).read_bytes())["address"])
    except OSError as error:
        raise CallError(f"the scheduler file {given!r}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise CallError(f"{given!r} is no scheduler file: it names no address") from None


def _security(options: argparse.Namespace) -> Security:
    from distributed import Security

    files = {
        "tls_ca_file": options.tls_ca_file,
        "tls_client_cert": options.tls_cert,
        "tls_client_key": options.tls_key,
    }
    given = {name: file for name, file in files.items() if file is not None}
    return Security(**given, require_encryption=True) if given else Security()


def _begin(client: Client, target: str, settings: dict[str, Any]) -> Recording:
    from roast_recorder.api import record

    recording = record(client, target, **settings)
    try:
        recording.start()
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise CallError(str(error)) from None
    return recording


def _wait(recording: Recording, stop: threading.Event, duration_seconds: float | None) -> None:
    until = None if duration_seconds is None else monotonic() + duration_seconds
    while not recording.ended and not stop.wait(0.2):
        if until is not None and monotonic() >= until:
            return
        if sys.stderr.isatty():
            print(f"\r{_progress(recording)} ", end="", file=sys.stderr, flush=True)


def _progress(recording: Recording) -> str:
    return (
        f"{recording.records_by_kind.total():,} records, {recording.nbytes / 2**20:.1f} MiB, "
        f"{recording.dropped_by_kind.total():,} dropped"
    )


def _tell(recording: Recording, target: str, whole: bool) -> None:
    end = "" if whole else "; it did not end in order"
    print(f"\rroast-record: {target}: {_progress(recording)}{end}", file=sys.stderr)


@contextlib.contextmanager
def _told_to_stop() -> Iterator[threading.Event]:
    """Turn Ctrl-C, SIGTERM and a closed terminal into an event."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if (seconds := float(text)) > 0:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
