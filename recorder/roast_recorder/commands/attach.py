"""``roast-record attach``: record a running cluster, which may be another user's."""

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

from roast_recorder.commands import FAILED, SUCCESS, CallError
from roast_recorder.commands.options import add_recording_options, settings_of

if TYPE_CHECKING:
    from distributed import Client

    from roast_recorder.client_recording import Recording

CONNECT_TIMEOUT_SECONDS = 10.0


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "attach",
        help="record a running cluster",
        description="Record a running cluster until Ctrl-C, SIGTERM, --duration, or its end.",
    )
    parser.add_argument(
        "address",
        metavar="ADDRESS",
        help="address of the scheduler, such as tcp://host:8786, or a scheduler file (.json)",
    )
    add_recording_options(parser)
    parser.add_argument(
        "--duration", type=_seconds, metavar="SECONDS", help="how long to record"
    )
    for name, description in (
        ("ca-file", "certificates of the authority"),
        ("cert", "certificate of this client"),
        ("key", "private key of this client"),
    ):
        parser.add_argument(
            f"--tls-{name}",
            metavar="FILE",
            help=f"{description} (PEM); default: from Dask's configuration",
        )
    parser.set_defaults(run=_attach)


def _attach(options: argparse.Namespace) -> int:
    # The commands are imported for `--help` as well, which need not wait for Dask.
    from roast_recorder.api import record

    settings = settings_of(options)
    with _stop_event() as stop, _connect(options) as client:
        recording = record(client, options.output, **settings)
        try:
            recording.start()
        except (OSError, ValueError, RuntimeError) as error:
            raise CallError(str(error)) from None
        address = client.scheduler_info()["address"]
        print(f"roast-record: recording {address}; Ctrl-C ends it", file=sys.stderr)
        _wait(recording, stop, options.duration)
        recording.stop()
        whole = recording.ended_in_order()
    end = "" if whole else "; the recording did not end in order"
    print(f"\rroast-record: {options.output}: {_progress(recording)}{end}", file=sys.stderr)
    return SUCCESS if whole else FAILED


def _connect(options: argparse.Namespace) -> Client:
    from distributed import Client, Security
    from distributed.comm.core import connect

    # The recorder reports in one line that the scheduler has gone.
    for name in ("distributed", "distributed.client", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    address = _address(options.address)
    files = {
        "tls_ca_file": options.tls_ca_file,
        "tls_client_cert": options.tls_cert,
        "tls_client_key": options.tls_key,
    }
    given = {name: file for name, file in files.items() if file is not None}
    security = Security(**given, require_encryption=True) if given else Security()

    async def check_connection() -> None:
        arguments = security.get_connection_args("client")
        comm = await connect(address, timeout=CONNECT_TIMEOUT_SECONDS, **arguments)
        await comm.close()

    try:
        # A client that cannot connect takes long to fail and leaves asyncio tasks behind.
        asyncio.run(check_connection())
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


def _address(argument: str) -> str:
    """Return the address of the scheduler, from a scheduler file if it is one."""
    if not argument.endswith(".json"):
        return argument
    try:
        return str(json.loads(Path(argument).read_bytes())["address"])
    except OSError as error:
        raise CallError(f"cannot read scheduler file {argument!r}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise CallError(f"invalid scheduler file {argument!r}: it has no address") from None


def _wait(recording: Recording, stop: threading.Event, duration_seconds: float | None) -> None:
    """Wait until the recording is to stop or has ended; print its progress to a terminal."""
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


@contextlib.contextmanager
def _stop_event() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C, SIGTERM and a closed terminal set."""
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
    raise argparse.ArgumentTypeError(f"invalid number of seconds {text!r}: use 0.5 or 60")
