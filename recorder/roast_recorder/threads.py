"""Blocking calls beside an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


async def call_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a blocking function in its own thread."""
    # Not asyncio.to_thread(): the default executor that it creates must be shut down by Dask's
    # loop at the exit of the program, which fails with Python 3.12: no thread can be started.
    executor = ThreadPoolExecutor(1, "roast-facts")
    try:
        return await asyncio.wrap_future(executor.submit(function, *arguments))
    finally:
        executor.shutdown(wait=False)
