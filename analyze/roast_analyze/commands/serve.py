"""Show runs, live and finished, and their reports in the browser.

The list has the runs of a folder, with the folders in it, or of a store. It can be searched and
sorted. A report is written when it is opened, and kept until its trace changes; a run that is
being recorded shows its progress. The list and the progress renew themselves.

The server listens on this machine only, and answers nobody without the token in the printed
address. From another machine, forward a port: `ssh -N -L 8899:127.0.0.1:8899 HOST`. In Jupyter,
jupyter-server-proxy starts it from the launcher.

For example:

    roast-analyze serve runs/ --open
    roast-analyze serve store/ --port 8899
"""

from __future__ import annotations

import argparse
import os
import secrets
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from roast_analyze.commands.messages import print_note
from roast_analyze.commands.trace_args import add_reading, is_store
from roast_analyze.commands.whole_numbers import whole_number
from roast_analyze.errors import TraceError, TraceNotFound
from roast_schemas.urls import is_like_url

if TYPE_CHECKING:
    import socket

    from roast_analyze.server.catalog import Catalog, Reader
    from roast_analyze.server.listing import Listed

#: This machine, for nobody else.
_HOST: Final = "127.0.0.1"

_MOST_PORT: Final = 65_535

#: Priority of the process that reads traces before they are opened: lower than that of others.
_NICENESS: Final = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="FOLDER", help="folder of traces, or a store of runs")
    parser.add_argument(
        "--port",
        type=partial(
            whole_number, what="port", hint="1024 to 65535, or 0 for a free one", least=0
        ),
        default=0,
        help="port to listen on (default: a free one)",
    )
    parser.add_argument("--open", action="store_true", help="open the list in the browser")
    add_reading(parser)


def run(options: argparse.Namespace) -> None:
    """Serve until Ctrl-C."""
    import asyncio

    from roast_analyze.open.cache import cache_folder
    from roast_analyze.open.memory_limit import limit_bytes
    from roast_analyze.server.access import Access
    from roast_analyze.server.application import Served, serve
    from roast_analyze.server.jupyter import TOKEN_VARIABLE
    from roast_analyze.server.worker import Job, Task, Worker

    limit_bytes(options.memory_limit)  # an error if it is invalid
    with ExitStack() as stack:
        folder = cache_folder()
        if not options.cache:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="roast-")))
        sockets = _listen(options.port)
        reader, writer = Worker(_NICENESS), Worker(is_eager=True)
        stack.callback(reader.close)
        stack.callback(writer.close)

        def read(run: Listed) -> None:
            reader.add(Job(Task(run.source, run.kept), partial(catalog.learned, run)))

        catalog = _catalog(options, folder, read)
        token = os.environ.pop(TOKEN_VARIABLE, "") or secrets.token_urlsafe(32)
        port = sockets[0].getsockname()[1]
        address = f"http://{_HOST}:{port}/?token={token}"

        def begun() -> None:
            print(f"{catalog.name}: {address}", flush=True)
            print("Ctrl-C ends the server", flush=True)
            if options.open:
                stack.enter_context(_opened(address))

        catalog.start()
        stack.callback(catalog.close)
        asyncio.run(serve(Served(catalog, Access(token), writer), sockets, begun))


def _catalog(options: argparse.Namespace, cache_folder: Path, read: Reader) -> Catalog:
    """Return the runs of the folder or store."""
    from roast_analyze.server.catalog import FolderCatalog, StoreCatalog

    given = (cache_folder, read, options.memory_limit)
    if is_store(options.name):
        return StoreCatalog(options.name, *given, cache=options.cache)
    path = Path(options.name)
    if is_like_url(options.name) and not path.exists():
        raise TraceNotFound(
            f"no store is at {options.name!r}: name a local folder of traces, or the URL of a "
            "store"
        )
    if not path.exists():
        raise TraceNotFound(
            f"{options.name!r} does not exist: name a folder of traces or a store"
        )
    if not path.is_dir():
        raise TraceError(
            f"{options.name!r} is not a folder: name the folder of the trace, or see one trace "
            "with roast-analyze TRACE --open"
        )
    return FolderCatalog(path.resolve(), *given, cache=options.cache)


def _listen(port: int) -> list[socket.socket]:
    """Return sockets that listen on a port of this machine."""
    from tornado.netutil import bind_sockets

    if port > _MOST_PORT:
        raise TraceError(f"invalid port {port}: use 1024 to {_MOST_PORT}, or 0 for a free one")
    try:
        return bind_sockets(port, _HOST)
    except OSError as error:
        raise TraceError(
            f"cannot listen on port {port}: {error.strerror}; use another --port, or leave it "
            "out for a free one"
        ) from None


@contextmanager
def _opened(address: str) -> Iterator[None]:
    """Open an address in the browser.

    The browser gets a file that leads to it: other users of this machine can see the arguments
    of programs, and these would contain the token.
    """
    with TemporaryDirectory(prefix="roast-") as folder:
        page = Path(folder) / "runs.html"
        page.touch(mode=0o600)
        page.write_text(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(address)}">'
        )
        opened = False
        with suppress(webbrowser.Error, OSError):  # the variable BROWSER names no program
            opened = webbrowser.open(page.as_uri())
        if not opened:
            print_note("no browser found: open the address yourself")
        yield
