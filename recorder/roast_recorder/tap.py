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
    listeners: list[Listener] | None = getattr(handler, "roast_listeners", None)
    if listeners is None:
        listeners = []
        scheduler.stream_handlers[_OP] = _wrap(handler, listeners)
    listeners.append(listener)

    def leave() -> None:
        listeners.remove(listener)
        wrapper = scheduler.stream_handlers[_OP]
        if not listeners and getattr(wrapper, "roast_listeners", None) is listeners:
            scheduler.stream_handlers[_OP] = handler_below(wrapper)

    return leave


def handler_below(wrapper: Any) -> Callable[..., None]:
    """Give the handler that a wrapper wraps."""
    below: Callable[..., None] = wrapper.roast_handler
    return below


def _wrap(handler: Callable[..., None], listeners: list[Listener]) -> Callable[..., None]:
    def task_erred(*args: Any, **message: Any) -> None:
        for listener in listeners:
            listener(message)
        try:
            handler(*args, **message)
        finally:
            for listener in listeners:
                listener(None)

    task_erred.roast_listeners = listeners  # type: ignore[attr-defined]
    task_erred.roast_handler = handler  # type: ignore[attr-defined]
    return task_erred
