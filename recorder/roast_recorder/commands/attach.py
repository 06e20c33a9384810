"""``roast-record attach``: record a running cluster, which may be another user's."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from roast_recorder.commands import (
    FAILED,
    SUCCESS,
    CallError,
    add_recording_options,
    positive,
    settings_of,
    trace_of,
    unwritable,
)
from roast_recorder.writer.client import how_to_open

if TYPE_CHECKING:
    from distributed import Client, Security

    from roast_recorder.client_recording import Recording

#: Dask's own default, 30 s, is long for a mistyped address.
CONNECT_TIMEOUT_SECONDS = 10.0

#: Options, the parameters of Dask's Security that they set, and what the files contain.
TLS_FILES = (
    ("--tls-ca-file", "tls_ca_file", "certificates of the authority"),
    ("--tls-cert", "tls_client_cert", "certificate of this client"),
    ("--tls-key", "tls_client_key", "private key of this client"),
)


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "attach",
        help="record a running cluster",
        description="Record a running cluster until Ctrl-C or SIGTERM, for --duration, or "
        "until the cluster ends.",
    )
    parser.add_argument(
        "address",
        metavar="ADDRESS",
        help="address of the scheduler, such as tcp://host:8786, or a scheduler file (.json)",
    )
    add_recording_options(parser)
    parser.add_argument(
        "--duration",
        type=positive(float, "number of seconds", "0.5 or 60"),
        default=float("inf"),
        metavar="SECONDS",
        help="duration of the recording",
    )
    add_tls_options(parser)
    parser.set_defaults(run=_attach)


def _attach(options: argparse.Namespace) -> int:
    # The commands are imported for `--help` as well, which need not wait for Dask.
    from roast_recorder.api import record

    settings, path = settings_of(options), trace_of(options)
    stop = threading.Event()
    with _connect(options) as client:
        ends = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as nohup sets it
            ends.remove(signal.SIGHUP)
        for number in ends:
            signal.signal(number, lambda *_: stop.set())
        recording = record(client, path, **settings)
        try:
            client.sync(recording.start_on_loop)
        except (OSError, ValueError, RuntimeError) as error:
            raise unwritable(error) from None
        address = client.scheduler_info()["address"]
        print(f"roast-record: recording {address}; Ctrl-C ends it", file=sys.stderr)
        until = monotonic() + options.duration
        while monotonic() < until and not recording.ended and not stop.wait(0.2):
            if sys.stderr.isatty():
                print(f"\r{_progress(recording)} ", end="", file=sys.stderr, flush=True)
        recording.stop()
        whole = recording.ended_in_order()
    end = "" if whole else "; the recording did not end cleanly"
    print(f"\rroast-record: {path}: {_progress(recording)}{end}", file=sys.stderr)
    if not options.output and Path(path).exists():
        print(f"roast-record: {how_to_open(path)}", file=sys.stderr)
    return SUCCESS if whole else FAILED


def add_tls_options(parser: argparse.ArgumentParser) -> None:
    """Add the files of certificates."""
    for option, name, content in TLS_FILES:
        parser.add_argument(
            option,
            dest=name,
            metavar="FILE",
            help=f"{content} (PEM); default: from Dask's configuration",
        )


def place_of(text: str, options: argparse.Namespace) -> tuple[str, Security, dict[str, Any]]:
    """Return address, security and connection arguments, or raise a CallError.

    The text is an address or the name of a scheduler file.
    """
    from distributed import Security

    # The recorder reports in one line that the scheduler has gone.
    for name in ("distributed", "distributed.client", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    address = text
    if address.endswith(".json"):  # a scheduler file
        try:
            address = str(json.loads(Path(address).read_bytes())["address"])
        except OSError as error:
            reason = f"cannot read scheduler file {address!r}: {error.strerror}"
            raise CallError(reason) from None
        except (ValueError, KeyError, TypeError):
            reason = f"invalid scheduler file {address!r}: it has no address"
            raise CallError(reason) from None
    given = {}
    for option, name, _ in TLS_FILES:
        if (file := getattr(options, name)) is not None:
            if not os.access(file, os.R_OK):
                raise CallError(f"cannot read {option} {file!r}: use the path of a PEM file")
            given[name] = file
    security = Security(**given, require_encryption=True) if given else Security()

    options_of_tls = ", ".join(option for option, *_ in TLS_FILES)
    try:
        arguments = security.get_connection_args("client")
    except OSError as error:
        raise CallError(
            f"invalid certificates: {error}; use PEM files for {options_of_tls}"
        ) from None
    if arguments["ssl_context"] is None and (given or address.startswith(("tls:", "wss:"))):
        raise CallError(f"no certificates for {text!r}: use {options_of_tls}")
    return address, security, arguments


def unreachable(text: str, error: Exception) -> CallError:
    """Return the error of a scheduler that does not answer."""
    # A TimeoutError has no text.
    reason = str(error).partition("\n")[0] or f"timed out after {CONNECT_TIMEOUT_SECONDS:g} s"
    return CallError(f"no scheduler answers at {text!r}: {reason}")


def _connect(options: argparse.Namespace) -> Client:
    from distributed import Client
    from distributed.comm.core import connect

    address, security, arguments = place_of(options.address, options)

    async def check_connection() -> None:
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
        raise unreachable(options.address, error) from None


def _progress(recording: Recording) -> str:
    return (
        f"{recording.records_by_kind.total():,} records, {recording.nbytes / 2**20:.1f} MiB, "
        f"{recording.dropped_by_kind.total():,} dropped"
    )
