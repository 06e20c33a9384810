"""The one mechanism by which the recorder attaches to Dask's objects.

A :class:`Tap` installs the hooks of one recording on the objects of one process, guards their
calls, counts what is lost, and removes them again. Most of what it attaches to is not Dask's
public interface:

* When a failed task has retries left, plugins only receive ``processing → released``. The
  error, the thread and the times of the attempt are in the worker's ``task-erred`` message.
* The increments of a worker's fine metrics are in its ``heartbeat_worker`` message.
* The keys that a client wants change with its messages and calls of scheduler methods.
* A worker appends task transitions and transfers to logs, which are bounded deques.

A name that this version of Dask lacks ends one source of records, never the recording or the
user's program.

Listening wraps the handler of a message, a method of one object or a log. All recorders share
one wrapper, which is removed with the last listener, in whatever order recorders start and
stop. What is read in intervals is called by a tap as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from inspect import iscoroutinefunction
from types import FunctionType
from typing import Any, Final

logger = logging.getLogger("roast_recorder")

#: Called with a message before or after it is handled.
Listener = Callable[[dict[str, Any]], None]

#: Called with an exception that a listener has raised.
OnError = Callable[[Exception], None]

#: Of lost records: one kind, or those of a probe.
Kinds = str | tuple[str, ...]

#: Called with the kind of the lost records, the reason, and their number or 0 if unknown.
Lose = Callable[[str, str, int], None]

#: Reasons are grouped, and texts of exceptions can contain anything: most of one recording.
MAX_REASONS: Final = 50

#: Longest text of an error in a reason.
MAX_REASON_LENGTH: Final = 200

CANNOT_INSTALL: Final = "cannot be recorded with this version of Dask"
UNREADABLE: Final = "null with this version of Dask"
FAILED: Final = "an error in the recorder"
OTHER: Final = "further errors in the recorder"


class Tap:
    """The hooks of one recording on the objects of one process.

    `lose` is called with every loss. It must not raise.
    """

    def __init__(self, lose: Lose) -> None:
        self._lose = lose
        self._hooks = contextlib.ExitStack()
        self._reasons: set[tuple[str, str]] = set()
        self._unreadable: set[tuple[str, type, str]] = set()

    # -- installation and removal --------------------------------------------------------

    @contextlib.contextmanager
    def source(self, *kinds: str) -> Iterator[None]:
        """Install the hooks of one source of records in a ``with`` block: all, or none.

        If the block raises, its hooks are removed, and the loss of each kind is counted.
        """
        outer, self._hooks = self._hooks, contextlib.ExitStack()
        try:
            yield
        except Exception as error:  # noqa: BLE001 - it ends one source only
            self._hooks.close()
            reason = f"{CANNOT_INSTALL}: {describe(error)}"
            for kind in kinds:
                self.lose(kind, reason, 0, error)
        except BaseException:
            self._hooks.close()
            raise
        else:
            outer.push(self._hooks.pop_all())
        finally:
            self._hooks = outer

    def message(
        self,
        kind: str,
        handlers: dict[str, Callable[..., Any]],
        operation: str,
        before: Listener | None = None,
        after: Listener | None = None,
        positional: tuple[str, ...] = (),
    ) -> None:
        """Call functions for every message of an operation.

        `before` is called before the message is handled, `after` when that has ended, also by
        an error. `handlers` are the ``handlers`` or ``stream_handlers`` of a scheduler or
        worker. `positional` names the arguments that the message also has if they are passed by
        position.
        """
        handler, listener = handlers[operation], (before, after, partial(self.failed, kind))
        # Recorders are pickled by value, so their classes differ: attributes identify a
        # wrapper.
        listeners = _listeners_of(handler)
        if listeners is None:
            listeners = []
            handlers[operation] = _wrap(handler, listeners, positional)
        listeners.append(listener)

        def remove() -> None:
            listeners.remove(listener)
            wrapper: Any = handlers.get(operation)
            if not listeners and _listeners_of(wrapper) is listeners:
                handlers[operation] = wrapper.roast_handler

        self.until_closed(remove)

    def method(
        self,
        kind: str,
        owner: Any,
        name: str,
        before: Listener | None = None,
        after: Listener | None = None,
        positional: tuple[str, ...] = (),
    ) -> None:
        """Call functions for every call of a method of one object, as :meth:`message`.

        The owner can also be a periodic callback of Dask's, with the name ``callback``.
        """
        attributes = vars(owner)
        attributes.setdefault(name, getattr(owner, name))

        def restore() -> None:
            function = getattr(attributes.get(name), "__func__", None)
            if function is not None and function is getattr(type(owner), name, None):
                del attributes[name]  # the class has it

        self.until_closed(restore)  # after the wrapper has been removed
        self.message(kind, attributes, name, before, after, positional)

    def log(
        self, kind: str, owner: Any, attribute: str, listener: Callable[[Any], None]
    ) -> None:
        """Call a function with every entry that is appended to a log from now on.

        `attribute` is the name of the owner's attribute that holds the deque, which the last
        recording restores. The listener should not keep containers: each that stays alive
        costs the garbage collector more than everything else here.
        """
        log, subscription = getattr(owner, attribute), (listener, partial(self.failed, kind))
        # The class may be another recording's copy: recorders are pickled by value.
        if not hasattr(log, "listeners"):
            log = ObservedLog(log, log.maxlen)
            setattr(owner, attribute, log)
        log.listeners.append(subscription)

        def unsubscribe() -> None:
            log.listeners.remove(subscription)
            if not log.listeners and getattr(owner, attribute) is log:
                setattr(owner, attribute, deque(log, log.maxlen))

        self.until_closed(unsubscribe)

    def item(self, items: list[Any], item: Any) -> None:
        """Append an item to one of Dask's lists, such as its callbacks."""
        items.append(item)
        self.until_closed(lambda: items.remove(item))

    def entry(self, entries: dict[str, Any], name: str, value: Any) -> None:
        """Add an entry to one of Dask's dicts, such as its handlers."""
        entries[name] = value
        self.until_closed(lambda: entries.pop(name, None))

    def every(
        self,
        kind: str,
        seconds: float,
        call: Callable[[], Coroutine[Any, Any, None] | None],
        first: float = 0.0,
    ) -> None:
        """Call a function in intervals on this event loop, the first time after `first` s.

        That is never within this call. If the function returns a coroutine, that is awaited.
        """

        async def repeat() -> None:
            await asyncio.sleep(first)
            while True:
                with self.guard(kind):
                    if (running := call()) is not None:
                        await running
                await asyncio.sleep(seconds)

        self.until_closed(asyncio.get_running_loop().create_task(repeat()).cancel)

    def until_closed(self, undo: Callable[[], Any]) -> None:
        """Call a function when the hooks are removed."""

        def attempt() -> None:
            # One hook that cannot be removed must not keep the others.
            try:
                undo()
            except Exception:
                logger.debug("roast: a hook cannot be removed", exc_info=True)

        self._hooks.callback(attempt)

    def close(self) -> None:
        """Remove all hooks."""
        self._hooks.close()

    # -- losses --------------------------------------------------------------------------

    def lose(
        self, kind: str, reason: str, records: int, error: Exception | None = None
    ) -> None:
        """Count lost records, 0 if their number is unknown; log each reason once."""
        if (kind, reason) not in self._reasons:
            if len(self._reasons) >= MAX_REASONS:
                reason = OTHER
            if (kind, reason) not in self._reasons:
                self._reasons.add((kind, reason))
                logger.warning("roast: records of kind %r are incomplete: %s", kind, reason)
                logger.debug("roast: the error", exc_info=error)
        self._lose(kind, reason, records)

    def failed(self, kinds: Kinds, error: Exception, records: int = 1) -> None:
        """Count records that an error in a hook has lost, of several kinds without a number."""
        kinds = (kinds,) if isinstance(kinds, str) else kinds
        for kind in kinds:
            reason = f"{FAILED}: {describe(error)}"
            self.lose(kind, reason, records if len(kinds) == 1 else 0, error)

    def guarded(self, kinds: Kinds, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose errors count as a lost record; it then returns None."""

        def call(*arguments: Any, **others: Any) -> Any:
            try:
                return function(*arguments, **others)
            except Exception as error:  # noqa: BLE001 - it must not reach Dask
                self.failed(kinds, error)

        return call

    @contextlib.contextmanager
    def guard(self, kinds: Kinds, records: int = 1) -> Iterator[None]:
        """Count an error in a ``with`` block as lost records, and continue after it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - it must not reach Dask
            self.failed(kinds, error, records)

    def read(self, kind: str, owner: Any, path: str, default: Any = None) -> Any:
        """Return an attribute, by its path such as ``group.name``; the default without it.

        An attribute that is missing or raises is reported as a loss, once.
        """
        for name in path.split("."):
            if owner is None:
                return default
            try:
                owner = getattr(owner, name)
            except Exception as error:  # noqa: BLE001 - it may be a property
                known = kind, type(owner), name
                if known not in self._unreadable:
                    self._unreadable.add(known)
                    place = f"{_class_name(owner)}.{name}"
                    is_missing = isinstance(error, AttributeError)
                    why = "is missing" if is_missing else f"raises {describe(error)}"
                    self.lose(kind, f"{UNREADABLE}: {place} {why}", 0, error)
                return default
        return owner


def describe(error: Exception) -> str:
    """Return which name of Dask's is missing, or else the exception."""
    if isinstance(error, AttributeError) and error.name:
        return f"{_class_name(error.obj)}.{error.name} is missing"
    if isinstance(error, KeyError) and error.args:
        return f"{str(error.args[0])[:100]!r} is missing"
    return f"{type(error).__name__}: {error}"[:MAX_REASON_LENGTH].partition("\n")[0]


def _class_name(owner: Any) -> str:
    return str(getattr(owner, "__name__", type(owner).__name__))


# -- messages and methods ------------------------------------------------------------------


def _listeners_of(handler: Any) -> list[Any] | None:
    """Return the listeners of a wrapper made here; None for any other handler."""
    # functools.wraps copies our attributes to another library's wrapper around ours.
    is_ours = getattr(handler, "roast_self", None) is handler
    return handler.roast_listeners if is_ours else None


def _wrap(handler: Any, listeners: list[Any], positional: tuple[str, ...]) -> Any:
    def call_each(which: int, args: Any, message: dict[str, Any]) -> None:
        if positional and args:
            message = {**dict(zip(positional, args, strict=False)), **message}
        for listener in tuple(listeners):  # one may end its subscription
            try:
                if listener[which] is not None:
                    listener[which](message)
            except Exception as error:  # noqa: BLE001 - Dask handles its message all the same
                listener[2](error)

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


# -- logs ----------------------------------------------------------------------------------


class ObservedLog(deque[Any]):
    """A deque that calls its listeners with every appended entry."""

    # Workers append while tasks run: a slot is faster than an instance dict.
    __slots__ = ("listeners",)

    def __init__(self, entries: Iterable[Any] = (), maxlen: int | None = None) -> None:
        super().__init__(entries, maxlen)
        self.listeners: list[tuple[Callable[[Any], None], OnError]] = []

    def append(self, entry: Any, _append: Any = deque.append) -> None:
        """Append an entry at the right end."""
        _append(self, entry)
        for listener, on_error in self.listeners:
            try:
                listener(entry)
            except Exception as error:  # noqa: BLE001 - the worker continues
                on_error(error)
