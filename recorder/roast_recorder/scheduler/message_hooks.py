"""Listeners to messages and calls that Dask does not pass to plugins.

* When a failed task has retries left, plugins only receive ``processing → released``. The
  error, the thread and the times of the attempt are in the worker's ``task-erred`` message.
* The increments of a worker's fine metrics are in its ``heartbeat_worker`` message.
* The keys that a client wants change with its messages and calls of scheduler methods.

Listening wraps the handler of a message or a method of one object. All recorders share one
wrapper, which is removed with the last listener, in whatever order recorders start and stop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from inspect import iscoroutinefunction
from types import FunctionType
from typing import Any

logger = logging.getLogger("roast_recorder")

#: Called with a message before or after it is handled.
Listener = Callable[[dict[str, Any]], None]


def listen(
    handlers: dict[str, Callable[..., Any]],
    operation: str,
    before: Listener | None = None,
    after: Listener | None = None,
    positional: tuple[str, ...] = (),
) -> Callable[[], None]:
    """Call functions for every message of an operation; return a function that ends this.

    `handlers` are the ``handlers`` or ``stream_handlers`` of a scheduler or worker.
    `positional` names the arguments that the message also has if they are passed by position.
    """
    handler, listener = handlers[operation], (before, after)
    # Recorders are pickled by value, so their classes differ; attributes identify a wrapper.
    listeners = _listeners_of(handler)
    if listeners is None:
        listeners = []
        handlers[operation] = _wrap(handler, listeners, positional)
    listeners.append(listener)

    def remove() -> None:
        listeners.remove(listener)
        wrapper: Any = handlers[operation]
        if not listeners and _listeners_of(wrapper) is listeners:
            handlers[operation] = wrapper.roast_handler

    return remove


def listen_to_method(
    owner: Any, name: str, *arguments: Any, **named: Any
) -> Callable[[], None]:
    """Listen to the calls of a method of one object, as :func:`listen`."""
    attributes = vars(owner)
    attributes.setdefault(name, getattr(owner, name))
    return listen(attributes, name, *arguments, **named)


def _listeners_of(handler: Any) -> list[tuple[Listener | None, Listener | None]] | None:
    """Return the listeners of a wrapper made here; None for any other handler."""
    # functools.wraps copies our attributes to another library's wrapper around ours.
    is_ours = getattr(handler, "roast_self", None) is handler
    return handler.roast_listeners if is_ours else None


def _wrap(handler: Any, listeners: list[Any], positional: tuple[str, ...]) -> Any:
    failed: set[tuple[Listener | None, Listener | None]] = set()

    def call_each(which: int, args: Any, message: dict[str, Any]) -> None:
        if positional and args:
            message = {**dict(zip(positional, args, strict=False)), **message}
        for listener in tuple(listeners):  # one may end its subscription
            try:
                if listener[which] is not None:
                    listener[which](message)
            except Exception:  # Dask handles its message all the same
                # The next of thousands of messages will probably fail, too.
                level = logging.DEBUG if listener in failed else logging.ERROR
                failed.add(listener)
                logger.log(level, "roast: a message is not recorded", exc_info=True)

    def call(*args: Any, **message: Any) -> Any:
        call_each(0, args, message)
        try:
            return handler(*args, **message)
        finally:
            call_each(1, args, message)

    async def await_call(*args: Any, **message: Any) -> Any:
        call_each(0, args, message)
        try:
            return await handler(*args, **message)
        finally:
            call_each(1, args, message)

    # Dask awaits only coroutine functions.
    found: Any = await_call if iscoroutinefunction(handler) else call
    # Dask searches the stack for the user's code and skips its own modules by their name.
    module = {"__name__": "distributed.client"}
    wrapper = FunctionType(found.__code__, module, closure=found.__closure__)
    wrapper.__name__ = getattr(handler, "__name__", "wrapper")
    vars(wrapper).update(roast_self=wrapper, roast_listeners=listeners, roast_handler=handler)
    return wrapper
