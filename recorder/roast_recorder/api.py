"""``record()``, with which users record a cluster or this process."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, overload

from roast_recorder.settings import Settings

if TYPE_CHECKING:
    from distributed import Client

    from roast_recorder.client_recording import Recording
    from roast_recorder.coffea.local import LocalRecording


@overload
def record(
    client: Client, path: str | os.PathLike[str] | None = None, **settings: Any
) -> Recording: ...


@overload
def record(
    client: None = None, path: str | os.PathLike[str] | None = None, **settings: Any
) -> LocalRecording: ...


def record(
    client: Client | None = None,
    path: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Recording | LocalRecording:
    """Record a cluster until the ``with`` block ends.

    Parameters
    ----------
    client : distributed.Client, optional
        A connected client, synchronous or asynchronous. Without one, the chunks
        that coffea's IterativeExecutor and FuturesExecutor process in this process and in
        its pools are recorded.
    path : path-like, optional
        The trace, on this machine. One file if it ends in ``.jsonl``, ``.jsonl.zst`` or
        ``.jsonl.gz``; an older trace of that name is replaced. Otherwise a folder of
        numbered segments, which must not contain another trace. The default is a new file
        in the working directory, ``roast-DATE-TIME-ID.jsonl.zst``; the command that opens
        it is printed on stderr when the recording ends.
    **settings
        Fields of :class:`roast_recorder.settings.Settings`.

    Returns
    -------
    Recording or LocalRecording
        A context manager (``async with`` for an asynchronous client). Without ``with``,
        call its ``start()`` and ``stop()``.

    Raises
    ------
    ValueError
        If the value of a setting is invalid, the client is closed, or the path is empty or
        a URL.
    TypeError
        If a setting does not exist, or `client` is not a client.
    """
    checked = Settings.from_keywords(settings)
    # Each kind of recording is imported when it is used: Dask alone takes 0.7 s.
    if client is None:
        from roast_recorder.coffea.local import LocalRecording

        return LocalRecording(path, checked)
    from distributed import Client

    from roast_recorder.client_recording import Recording

    if not isinstance(client, Client):
        raise TypeError(
            f"record() takes a distributed.Client, not a {type(client).__name__}; "
            "use cluster.get_client() for a cluster"
        )
    status = None
    with contextlib.suppress(Exception):  # of an unknown version
        status = client.status
    if status == "closed":
        raise ValueError("the client is closed: connect another one")
    return Recording(client, path, checked)
