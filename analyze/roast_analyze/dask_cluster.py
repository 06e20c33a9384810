"""Calls spread over a Dask cluster; nothing else of the analysis needs Dask.

The functions that are called must depend only on their arguments and be repeatable: Dask calls
them again if a worker is lost.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from roast_analyze.errors import NoCluster

if TYPE_CHECKING:
    from distributed import Client as Client  # noqa: PLC0414 - for others
    from distributed import Future

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Calls that are submitted per thread of the cluster: enough to keep it busy, and few enough
#: that their results need little memory.
_CALLS_PER_THREAD: Final = 4

#: Dask's own default, 30 s, is long for a mistyped address.
CONNECT_TIMEOUT_SECONDS: Final = 10.0


@contextlib.contextmanager
def connect(
    scheduler: str | None = None,
    workers: int | None = None,
    tls: dict[str, str] | None = None,
) -> Iterator[Client | None]:
    """Yield a client of a cluster, or None if neither is given.

    `scheduler` is the address of a scheduler, or a scheduler file (``.json``), and `tls` has
    the files of certificates, as parameters of Dask's ``Security``. `workers` is the number of
    processes of a new cluster on this machine. Raise NoCluster if the scheduler cannot be
    reached.
    """
    if scheduler is None and workers is None:
        yield None
        return
    from distributed import Client, LocalCluster, Security

    # Dask logs each lost worker; failures that matter are reported with the results.
    for name in ("distributed", "distributed.client", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if scheduler is None:
        with (
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                # The databases have a limit of their own, and spill to disk.
                memory_limit=0,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    # Without TLS files, Dask's configuration applies.
    security = Security(**tls, require_encryption=True) if tls else Security()
    is_file = scheduler.endswith(".json")
    if is_file and not Path(scheduler).is_file():
        # Dask would wait for it without a limit.
        raise NoCluster(f"the scheduler file {scheduler!r} does not exist")
    place = {"scheduler_file" if is_file else "address": scheduler}
    try:
        client = Client(**place, security=security, timeout=CONNECT_TIMEOUT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise NoCluster(
            f"cannot connect to the scheduler {scheduler!r} ({type(error).__name__}): check "
            "the address, and the options --tls-… if the cluster uses TLS"
        ) from None
    with client:
        yield client


def call_each(
    function: Callable[[Item], Result], items: Sequence[Item], client: Client | None
) -> Iterator[tuple[Item, Result | Exception]]:
    """Call a function with each item; yield item and result or error as the calls finish.

    Without a client the calls are made in this process, and their errors are raised.
    """
    if client is None:
        for item in items:
            yield item, function(item)
        return
    from distributed import as_completed

    waiting = iter(items)
    # A few calls at a time: the scheduler would keep all results of a long list.
    running: dict[Future[Any], Item] = {}

    def submit() -> list[Future[Any]]:
        """Submit as many calls as the cluster needs at the moment."""
        threads = sum(client.nthreads().values())
        # At least one call waits while the cluster has no worker yet.
        wanted = max(1, _CALLS_PER_THREAD * threads) - len(running)
        new = {
            client.submit(function, item, pure=False): item
            for _, item in zip(range(wanted), waiting, strict=False)
        }
        running.update(new)
        return list(new)

    completed = as_completed(submit())
    for future in completed:
        item = running.pop(future)
        completed.update(submit())
        try:
            result = future.result()
        except Exception as error:  # noqa: BLE001 - of the call, or of Dask if workers are lost
            result = error
        yield item, result
