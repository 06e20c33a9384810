"""Arguments that name a Dask cluster, and connecting to it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from roast_analyze.commands.whole_numbers import whole_number
from roast_analyze.errors import TraceError

if TYPE_CHECKING:
    from roast_analyze.dask_cluster import Client

#: Options, the parameters of Dask's Security that they set, and what the files contain.
TLS_FILES: Final = (
    ("--tls-ca-file", "tls_ca_file", "certificates of the authority"),
    ("--tls-cert", "tls_client_cert", "certificate of this client"),
    ("--tls-key", "tls_client_key", "private key of this client"),
)


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--workers",
        metavar="N",
        type=partial(whole_number, what="number of workers", hint="4"),
        help="spread the work over N processes of this machine",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="spread the work over a Dask cluster: address of its scheduler, or a scheduler "
        "file (.json); the workers need roast and access to all files",
    )
    for option, name, content in TLS_FILES:
        parser.add_argument(
            option,
            dest=name,
            metavar="FILE",
            help=f"{content} (PEM); default: from Dask's configuration",
        )


@contextmanager
def connected(options: argparse.Namespace) -> Iterator[Client | None]:
    """Yield a client of the cluster, or None without one."""
    if options.scheduler and options.workers:
        raise TraceError("--scheduler and --workers exclude each other: use one of them")
    files = {name: getattr(options, name) for _, name, _ in TLS_FILES}
    tls = {name: file for name, file in files.items() if file is not None}
    if tls and not options.scheduler:
        raise TraceError("the options --tls-… are those of a cluster: add --scheduler ADDRESS")
    # Imported here, because importing Dask takes long.
    from roast_analyze.dask_cluster import connect

    with connect(options.scheduler, options.workers, tls) as client:
        yield client
