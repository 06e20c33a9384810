"""Copy every entry of the logs that Dask keeps on a worker.

A worker appends each change of a task's state to ``state.log``, and each transfer to two
more logs. They are bounded deques, so reading them now and then would miss entries.

Spills and scattered data are in no log. For spills, callbacks of the spill buffer are used;
for scattered data, the message handler is wrapped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, Final, cast

from roast_recorder.scheduler.wire_format import LOG_LAYOUTS, Row, loss, needs_text, pack_log

if TYPE_CHECKING:
    from distributed import Worker

    from roast_recorder.scheduler.tap import Tap

#: Maximum number of pending records of one kind: some 20 MB of transitions. More are dropped
#: and counted.
MAX_PENDING: Final = 100_000

#: Number of pending records beyond which they are sent before the next heartbeat.
MANY_PENDING: Final = 10_000

#: Length of the entries of ``state.log`` that are transitions: key, start, finish, resulting
#: state, recommendations, stimulus_id, time. Entries of other lengths are other events.
TRANSITION_LENGTH: Final = 7

Listener = Callable[[Any], None]


class LogObserver:
    """Collect the log entries of one worker for one recording.

    Parameters
    ----------
    worker : Worker
    tap : Tap
        Of the recording on this worker.
    transitions : bool
        Collect task transitions and spills.
    transfers : bool
        Collect transfers between workers and data scattered by clients.
    """

    def __init__(self, worker: Worker, tap: Tap, *, transitions: bool, transfers: bool) -> None:
        self._worker = worker
        self._tap = tap
        self._clock_offset = self._delay()
        self._taken_t = time()
        self._pending = {kind: Pending(kind) for kind in LOG_LAYOUTS}
        if transitions:
            with tap.source("worker_transition"):
                listener = self._pending["worker_transition"].transition_listener()
                tap.log("worker_transition", worker.state, "log", listener)
            with tap.source("spill"):
                for name, spilled in (
                    ("fast_to_slow_callbacks", True),
                    ("slow_to_fast_callbacks", False),
                ):
                    # Dask's spill buffer has these; another kind of buffer has none.
                    callbacks = getattr(worker.data, name, None)
                    if isinstance(callbacks, list):
                        tap.item(callbacks, partial(self._on_spill, spilled))
        if transfers:
            with tap.source("transfer"):
                on_transfer, handlers = self._on_transfer, cast("Any", worker.handlers)
                for name, incoming in (
                    ("transfer_incoming_log", True),
                    ("transfer_outgoing_log", False),
                ):
                    tap.log("transfer", worker, name, partial(on_transfer, incoming))
                tap.message("transfer", handlers, "update_data", after=self._on_scattered)

    def _delay(self) -> float:
        """Return what must be added to this worker's clock for the scheduler's."""
        return float(self._tap.read("worker_transition", self._worker, "scheduler_delay", 0.0))

    @property
    def crowded(self) -> bool:
        """True if the pending records should be sent before the next heartbeat."""
        return any(len(pending) > MANY_PENDING for pending in self._pending.values())

    def take(self) -> list[Row]:
        """Return the pending records as rows of a message for the scheduler; clear them.

        Call this after every heartbeat. A heartbeat updates the estimated offset between
        the worker's clock and the scheduler's; the times of ``state.log`` are converted with
        the estimate that Dask used when it timed the same tasks.
        """
        worker, offset = self._worker, self._clock_offset
        rows: list[Row] = []
        losses = []
        for kind, pending in self._pending.items():
            records, dropped, values = pending.take()
            if dropped:
                losses.append(("a worker's buffer was full", kind, dropped))
            if not records:
                continue
            read = partial(self._tap.read, kind, worker)
            address, server_id = read("contact_address") or read("address"), read("id")
            try:
                rows.append((kind, records, pack_log(address, server_id, offset, values)))
            except ValueError:
                losses.append(("impossible to encode", kind, records))
        times = self._taken_t + offset, time() + offset
        rows += [("loss", 1, loss(*lost, *times)) for lost in losses]
        self._clock_offset = self._delay()
        self._taken_t = time()
        return rows

    def _on_transfer(self, incoming: bool, entry: dict[str, Any]) -> None:
        # The times of these logs are the scheduler's.
        sent_bytes = _optional_int(entry.get("compressed"))
        times = entry["start"], entry["stop"]
        total, sizes = int(entry["total"]), _sizes(entry["keys"])
        who, append = entry["who"], self._pending["transfer"].append
        append(incoming, *times, who, total, sizes, sent_bytes)

    def _on_scattered(self, message: dict[str, Any]) -> None:
        tasks, keys = self._worker.state.tasks, message.get("data") or ()
        sizes = _sizes({key: getattr(tasks.get(key), "nbytes", None) for key in keys})
        now = time() + self._delay()
        # The client reports nothing, so neither the start nor the source is known.
        total = sum(sizes.values())
        self._pending["transfer"].append(True, None, now, None, total, sizes, None)

    def _on_spill(self, spilled: bool, key: Any, _value: Any) -> None:
        data: Any = self._worker.data
        # A callback that raised would prevent the result from moving.
        with self._tap.guard("spill"):
            if spilled:
                states = "memory", "disk"
                # In memory and on disk; Dask has no public attribute for the sizes of one key.
                sizes = data._slow_uncached.weight_by_key.get(key) or (None, None)
            else:
                states = "disk", "memory"
                sizes = data.fast.weights.get(key), None
            self._pending["spill"].append(key, *states, *map(_optional_int, sizes), time())


class Pending:
    """Bounded list of records of one kind that have not been sent yet.

    `kind` is one of :data:`~roast_recorder.scheduler.wire_format.LOG_LAYOUTS`, which names
    the consecutive values of one record.
    """

    def __init__(self, kind: str) -> None:
        self._layout = LOG_LAYOUTS[kind]
        self._width = len(self._layout)
        self._values: list[Any] = []
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._values) // self._width

    def append(self, *values: Any) -> None:
        """Append the values of a record, or count it as dropped."""
        if len(self) < MAX_PENDING:
            self._values.extend(values)
        else:
            self._dropped += 1

    def transition_listener(self) -> Listener:
        """Return a listener for ``state.log``."""
        # A closure over a flat list, because it runs at every transition: attribute lookups
        # would double its cost, and a tuple a record would cost the garbage collector even
        # more.
        values = self._values
        extend = values.extend
        limit = MAX_PENDING * self._width

        def on_entry(entry: tuple[Any, ...]) -> None:
            if len(entry) == TRANSITION_LENGTH:
                key, start, finish, state, _, stimulus_id, t = entry
                if len(values) < limit:
                    extend((key, start, finish, state, stimulus_id, t))
                else:
                    self._dropped += 1

        return on_entry

    def take(self) -> tuple[int, int, list[Any]]:
        """Return the number of records, the number dropped, and the values; clear them."""
        records, dropped, values = len(self), self._dropped, self._values[:]
        self._values.clear()
        self._dropped = 0
        if self._layout[0] == "key":
            # Keys that marshal cannot encode are replaced by their text.
            keys = values[:: self._width]
            odd = {key: str(key) for key in {*keys} if type(key) is not str and needs_text(key)}
            if odd:
                values[:: self._width] = [odd.get(key, key) for key in keys]
        return records, dropped, values


def _sizes(keys: dict[Any, Any]) -> dict[str, int]:
    """Return sizes by the text of the key; 0 where Dask has none."""
    return {str(key): int(nbytes or 0) for key, nbytes in keys.items()}


def _optional_int(value: Any) -> int | None:
    return None if value is None else int(value)
