"""Listening to what workers say of failed tasks.

When a failed task has retries left, the scheduler tells plugins only that it went
``processing → released``: the error, the thread and the times of the failed attempt are
gone. They are in the worker's message, so the handler of that message is wrapped.

One wrapper serves all recorders of a scheduler and goes when the last of them goes, in
whatever order they come and go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Scheduler

#: Called with the message before the scheduler acts on it, and with None after.
Listener = Callable[[dict[str, Any] | None], None]

_OP = "task-erred"


def listen(scheduler: Scheduler, listener: Listener) -> Callable[[], None]:
    """Tell `listener` of every failed task; give back what ends that.

    Parameters
    ----------
    scheduler : Scheduler
    listener : callable
        It must not raise.

    Returns
    -------
    callable
        Takes no argument and leaves nothing behind.
    """
    handler = scheduler.stream_handlers[_OP]
    # Recorders travel by value, so another one's classes are not ours: go by the attribute.
    listeners = _listeners_of(handler)
    if listeners is None:
        listeners = []
        scheduler.stream_handlers[_OP] = _wrap(handler, listeners)
    listeners.append(listener)

    def leave() -> None:
        listeners.remove(listener)
        wrapper: Any = scheduler.stream_handlers[_OP]
        if not listeners and _listeners_of(wrapper) is listeners:
            scheduler.stream_handlers[_OP] = wrapper.roast_handler

    return leave


def _listeners_of(handler: Any) -> list[Listener] | None:
    """Give the listeners of a wrapper of ours, None of another handler.

    Somebody's wrapper around ours may have copied our attributes (`functools.wraps`).
    """
    listeners: list[Listener] | None = getattr(handler, "roast_listeners", None)
    return listeners if getattr(handler, "roast_self", None) is handler else None


def _wrap(handler: Callable[..., None], listeners: list[Listener]) -> Callable[..., None]:
    def task_erred(*args: Any, **message: Any) -> None:
        for listener in listeners:
            listener(message)
        try:
            handler(*args, **message)
        finally:
            for listener in listeners:
                listener(None)

    task_erred.roast_self = task_erred  # type: ignore[attr-defined]
    task_erred.roast_listeners = listeners  # type: ignore[attr-defined]
    task_erred.roast_handler = handler  # type: ignore[attr-defined]
    return task_erred
