"""Listeners to messages that Dask passes to no plugin.

* When a failed task has retries left, plugins only see ``processing → released``. The
  error, the thread and the times of the attempt are in the worker's ``task-erred`` message.
* What each worker adds to its fine metrics is in its ``heartbeat_worker`` message.

Listening wraps the handler of a message. All recorders of a scheduler share one wrapper,
which is removed with the last listener, in whatever order recorders start and stop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Called with the message before it is handled, and with None afterwards. Must not raise.
Listener = Callable[[dict[str, Any] | None], None]


def listen(
    handlers: dict[str, Callable[..., Any]], operation: str, listener: Listener
) -> Callable[[], None]:
    """Call `listener` for every message of an operation; call what is returned to end that.

    `handlers` are the ``handlers`` or ``stream_handlers`` of a scheduler or worker.
    """
    handler = handlers[operation]
    # Recorders are pickled by value, so their classes differ; attributes identify a wrapper.
    listeners = _listeners_of(handler)
    if listeners is None:
        listeners = []
        handlers[operation] = _wrap(handler, listeners)
    listeners.append(listener)

    def remove() -> None:
        listeners.remove(listener)
        wrapper: Any = handlers[operation]
        if not listeners and _listeners_of(wrapper) is listeners:
            handlers[operation] = wrapper.roast_handler

    return remove


def _listeners_of(handler: Any) -> list[Listener] | None:
    """Return the listeners of a wrapper made here; None for any other handler."""
    listeners: list[Listener] | None = getattr(handler, "roast_listeners", None)
    # functools.wraps copies our attributes to another library's wrapper around ours.
    return listeners if getattr(handler, "roast_self", None) is handler else None


def _wrap(handler: Callable[..., Any], listeners: list[Listener]) -> Callable[..., Any]:
    def wrapper(*args: Any, **message: Any) -> Any:
        for listener in listeners:
            listener(message)
        try:
            return handler(*args, **message)
        finally:
            for listener in listeners:
                listener(None)

    wrapper.__name__ = getattr(handler, "__name__", "wrapper")
    wrapper.__dict__.update(
        roast_self=wrapper, roast_listeners=listeners, roast_handler=handler
    )
    return wrapper
