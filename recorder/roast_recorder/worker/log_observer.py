"""What Dask's own logs on a worker say, each entry once.

A worker writes every change of a task's state into ``state.log``, and every transfer that
came in or went out into two logs beside it. While anybody records, these rings tell what is
appended to them (:mod:`roast_recorder.worker.rings`). What is needed of it waits, and is packed once
a heartbeat.

The times in ``state.log`` are those of the worker's clock, and each heartbeat estimates anew
how far that is from the scheduler's. Who takes after each of them knows which estimate holds
for what was taken: the one that Dask used when it timed the same tasks.

What goes to disk and comes back, and what a client scatters, is in no log. The buffer of
results calls back for the one, the handler of the message is listened to for the other.
"""

from __future__ import annotations

import contextlib
import marshal
from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING, Any, Final

from roast_recorder.scheduler import message_hooks as tap
from roast_recorder.scheduler.wire_format import MARSHAL_VERSION, is_odd
from roast_recorder.worker import rings

if TYPE_CHECKING:
    from distributed import Worker

#: Records of one kind that wait at the most: some 20 MB of transitions. What goes beyond is
#: counted.
MAX_WAITING: Final = 100_000

#: When more than this wait, they are not left until the next heartbeat.
MANY_WAITING: Final = 10_000

#: Entries of ``state.log`` of this length are transitions: key, start, finish, the state that
#: it came to, what follows from it, stimulus_id, time.
TRANSITION_LENGTH: Final = 7

#: What is kept of them: all but what follows.
TRANSITION_VALUES: Final = 6


class WorkerLogs:
    """Hears the logs of one worker for one recorder.

    Parameters
    ----------
    worker : Worker
    transitions : bool
        Whether transitions are heard, and what is spilled.
    transfers : bool
        Whether transfers are heard, and what is scattered.
    """

    def __init__(self, worker: Worker, *, transitions: bool, transfers: bool) -> None:
        self._worker = worker
        self._delay = worker.scheduler_delay
        self._taken_t = time()
        self._arriving: list[Any] = []
        self._transitions = Waiting("worker_transition", TRANSITION_VALUES)
        self._spilled = Waiting("spill")
        self._transfers = Waiting("transfer")
        self._leaving: list[Callable[[], None]] = []
        if transitions:
            hears_transitions = self._transitions.hears_transitions()
            self._leaving.append(rings.listen(worker.state, "log", hears_transitions))
            self._leaving += _when_spilled(worker.data, self._spilled.append)
        if transfers:
            for name, incoming in (
                ("transfer_incoming_log", True),
                ("transfer_outgoing_log", False),
            ):
                hear = _hears_transfers(self._transfers, incoming=incoming)
                self._leaving.append(rings.listen(worker, name, hear))
            handlers: Any = worker.handlers
            self._leaving.append(tap.listen(handlers, "update_data", self._hear_scatter))

    @property
    def crowded(self) -> bool:
        """Whether so much waits that it should be taken soon."""
        several = (self._transitions, self._spilled, self._transfers)
        return any(waiting.records > MANY_WAITING for waiting in several)

    def take(self) -> dict[str, Any] | None:
        """Take what has come since the last time.

        Returns
        -------
        dict or None
            ``logs``: of each kind (kind, number of records, packed), as
            :mod:`roast_recorder.scheduler.expand` makes records of it; ``losses``: fields of records
            of what is missing; ``worker`` and ``server_id``. None if there is nothing.
        """
        worker = self._worker
        logs: list[tuple[str, int, bytes]] = []
        losses: list[dict[str, Any]] = []
        for waiting in (self._transitions, self._spilled, self._transfers):
            records, lost, values = waiting.take()
            if lost:
                losses.append(self._loss(waiting.kind, lost, "more came than a worker keeps"))
            if records:
                if waiting is self._transitions:
                    _replace_odd_keys(values)
                try:
                    packed = marshal.dumps((self._delay, values), MARSHAL_VERSION)
                except ValueError:
                    losses.append(self._loss(waiting.kind, records, "impossible to encode"))
                else:
                    logs.append((waiting.kind, records, packed))
        self._delay = worker.scheduler_delay
        self._taken_t = time()
        if not logs and not losses:
            return None
        whose = {"worker": worker.contact_address or worker.address, "server_id": worker.id}
        return {"logs": logs, "losses": losses, **whose}

    def leave(self) -> None:
        """Hear no more, and leave all as it was."""
        for leave in self._leaving:
            leave()
        self._leaving.clear()

    def _loss(self, kind: str, records: int, reason: str) -> dict[str, Any]:
        return {
            "reason": reason,
            "record_kind": kind,
            "records": records,
            "start_t": self._taken_t + self._delay,
            "stop_t": time() + self._delay,
        }

    def _hear_scatter(self, message: dict[str, Any] | None) -> None:
        """Note what has arrived: no other end tells, and nobody knows when it was sent."""
        if message is not None:
            self._arriving = list(message.get("data") or ())
            return
        tasks = self._worker.state.tasks
        sizes = _sizes({key: getattr(tasks.get(key), "nbytes", None) for key in self._arriving})
        now = time() + self._worker.scheduler_delay
        self._arriving = []
        self._transfers.append((True, None, now, None, sum(sizes.values()), sizes, None))


class Waiting:
    """Records of one kind that were heard of and not taken yet; bounded.

    Parameters
    ----------
    kind : str
    length : int, optional
        Values that one has in the flat list of them. Each of other kinds is one value.
    """

    def __init__(self, kind: str, length: int = 1) -> None:
        self.kind = kind
        self._length = length
        self._values: list[Any] = []
        self._lost = 0

    @property
    def records(self) -> int:
        """How many wait."""
        return len(self._values) // self._length

    def append(self, value: Any) -> None:
        """Have one more wait, or count it."""
        if len(self._values) < MAX_WAITING:
            self._values.append(value)
        else:
            self._lost += 1

    def hears_transitions(self) -> Callable[[tuple[Any, ...]], None]:
        """Make what listens to ``state.log``.

        A closure, and a flat list of values: looking up attributes would cost as much
        again, and tuples that live on would cost the garbage collector more.
        """
        values = self._values
        extend = values.extend
        limit = MAX_WAITING * self._length

        def hear(entry: tuple[Any, ...]) -> None:
            if len(entry) == TRANSITION_LENGTH:
                key, start, finish, state, _, stimulus_id, t = entry
                if len(values) < limit:
                    extend((key, start, finish, state, stimulus_id, t))
                else:
                    self._lost += 1

        return hear

    def take(self) -> tuple[int, int, list[Any]]:
        """Take what waits: number of records, how many were lost, values."""
        values, lost = self._values[:], self._lost
        self._values.clear()
        self._lost = 0
        return len(values) // self._length, lost, values


def after_heartbeats(worker: Worker, listener: Callable[[], None]) -> Callable[[], None]:
    """Call `listener` after each heartbeat of a worker; give back what ends that.

    One wrapper serves all recorders, and goes when the last of them goes.
    """
    beat: Any = worker.periodic_callbacks["heartbeat"]
    listeners: list[Callable[[], None]] | None
    listeners = getattr(beat.callback, "roast_listeners", None)
    if listeners is None:
        listeners = []
        beat.callback = _heard(beat.callback, listeners)
    listeners.append(listener)

    def leave() -> None:
        listeners.remove(listener)
        if not listeners and getattr(beat.callback, "roast_listeners", None) is listeners:
            beat.callback = beat.callback.roast_original

    return leave


def _heard(original: Callable[[], Any], listeners: list[Callable[[], None]]) -> Any:
    async def heartbeat() -> None:
        try:
            await original()
        finally:
            for listener in list(listeners):
                listener()

    heartbeat.roast_original = original  # type: ignore[attr-defined]
    heartbeat.roast_listeners = listeners  # type: ignore[attr-defined]
    return heartbeat


def _hears_transfers(waiting: Waiting, *, incoming: bool) -> Callable[[dict[str, Any]], None]:
    """Make what listens to a log of transfers, whose times are on the scheduler's clock."""

    def hear(entry: dict[str, Any]) -> None:
        with contextlib.suppress(Exception):
            waiting.append(
                (
                    incoming,
                    entry["start"],
                    entry["stop"],
                    entry["who"],
                    int(entry["total"]),
                    _sizes(entry["keys"]),
                    _whole_number(entry.get("compressed")),
                )
            )

    return hear


def _when_spilled(data: Any, hear: Callable[[Any], None]) -> list[Callable[[], None]]:
    """Have results noticed that go to disk and come back; give what ends that.

    A buffer that is not Dask's own (of a worker that does not spill, or spills elsewhere)
    has no such callbacks. One that raises would keep the result from moving.
    """

    def spilled(key: Any, _value: Any) -> None:
        with contextlib.suppress(Exception):
            size = data._slow_uncached.weight_by_key.get(key) or (None, None)
            sizes = map(_whole_number, size)
            hear((_plain_key(key), "memory", "disk", *sizes, time()))

    def restored(key: Any, _value: Any) -> None:
        with contextlib.suppress(Exception):
            nbytes = _whole_number(data.fast.weights.get(key))
            hear((_plain_key(key), "disk", "memory", nbytes, None, time()))

    leaving = []
    for name, call in (
        ("fast_to_slow_callbacks", spilled),
        ("slow_to_fast_callbacks", restored),
    ):
        calls = getattr(data, name, None)
        if isinstance(calls, list):
            calls.append(call)
            leaving.append(_remover(calls, call))
    return leaving


def _remover(calls: list[Any], call: Any) -> Callable[[], None]:
    def leave() -> None:
        if call in calls:
            calls.remove(call)

    return leave


def _replace_odd_keys(values: list[Any]) -> None:
    """Put texts in the places of keys that would not survive their way as they are."""
    keys = values[::TRANSITION_VALUES]
    odd = {key: str(key) for key in set(keys) if type(key) is not str and is_odd(key)}
    if odd:
        values[::TRANSITION_VALUES] = [odd.get(key, key) for key in keys]


def _plain_key(key: Any) -> Any:
    return key if type(key) is str or not is_odd(key) else str(key)


def _sizes(keys: dict[Any, Any]) -> dict[str, int]:
    """Give the sizes by text; one that Dask does not know is 0."""
    return {
        key if type(key) is str else str(key): int(nbytes or 0) for key, nbytes in keys.items()
    }


def _whole_number(value: Any) -> int | None:
    return None if value is None else int(value)
