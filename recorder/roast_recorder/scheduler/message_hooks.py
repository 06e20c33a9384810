"""Listening to messages that Dask passes to no plugin.

* When a failed task has retries left, the scheduler tells plugins only that it went
  ``processing → released``: the error, the thread and the times of the failed attempt are
  in the worker's ``task-erred`` message.
* What each worker adds to its fine metrics is in its ``heartbeat_worker`` message.

So the handler of such a message is wrapped. One wrapper serves all recorders of a
scheduler and goes when the last of them goes, in whatever order they come and go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Called with the message before the scheduler acts on it, and with None after.
Listener = Callable[[dict[str, Any] | None], None]

Handlers = dict[str, Callable[..., Any]]


def listen(handlers: Handlers, operation: str, listener: Listener) -> Callable[[], None]:
    """Tell `listener` of every message of a kind; give back what ends that.

    Parameters
    ----------
    handlers : dict
        A scheduler's ``handlers`` or ``stream_handlers``.
    operation : str
        Name of the message.
    listener : callable
        It must not raise.

    Returns
    -------
    callable
        Takes no argument and leaves nothing behind.
    """
    handler = handlers[operation]
    # Recorders travel by value, so another one's classes are not ours: go by the attribute.
    listeners = _listeners_of(handler)
    if listeners is None:
        listeners = []
        handlers[operation] = _wrap(handler, listeners)
    listeners.append(listener)

    def leave() -> None:
        listeners.remove(listener)
        wrapper: Any = handlers[operation]
        if not listeners and _listeners_of(wrapper) is listeners:
            handlers[operation] = wrapper.roast_handler

    return leave


def _listeners_of(handler: Any) -> list[Listener] | None:
    """Give the listeners of a wrapper of ours, None of another handler.

    Somebody's wrapper around ours may have copied our attributes (`functools.wraps`).
    """
    listeners: list[Listener] | None = getattr(handler, "roast_listeners", None)
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
    wrapper.roast_self = wrapper  # type: ignore[attr-defined]
    wrapper.roast_listeners = listeners  # type: ignore[attr-defined]
    wrapper.roast_handler = handler  # type: ignore[attr-defined]
    return wrapper
