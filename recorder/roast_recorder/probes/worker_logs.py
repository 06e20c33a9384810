"""Copy every entry of the logs that Dask keeps on a worker.

A worker appends each change of a task's state to ``state.log``, and each transfer to two
more logs. They are bounded deques, so reading them now and then would miss entries.

Spills and scattered data are in no log. For spills, callbacks of the spill buffer are used;
for scattered data, the message handler is wrapped.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterator
from functools import partial
from time import time
from typing import Any, Final, cast

from roast_recorder.probes import WorkerProbe
from roast_recorder.scheduler.wire_format import (
    MARSHAL_VERSION,
    Record,
    Row,
    loss,
    need_text,
    present,
    text,
)

#: Values of each entry of a worker's logs.
LOG_LAYOUTS: Final = {
    "worker_transition": ("key", "start", "finish", "state", "stimulus_id", "t"),
    "transfer": ("incoming", "start_t", "t", "peer", "nbytes", "keys", "sent_bytes"),
    "spill": ("key", "start", "finish", "nbytes", "disk_bytes", "t"),
}

#: Maximum number of pending records of one kind: some 20 MB of transitions. More are dropped
#: and counted.
MAX_PENDING: Final = 100_000

#: Number of pending records beyond which they are sent before the next heartbeat.
MANY_PENDING: Final = 10_000

#: Length of the entries of ``state.log`` that are transitions: key, start, finish, resulting
#: state, recommendations, stimulus_id, time. Entries of other lengths are other events.
TRANSITION_LENGTH: Final = 7

Listener = Callable[[Any], None]


class OnWorker(WorkerProbe):
    """Report the entries of a worker's logs after each heartbeat.

    A heartbeat updates the estimated offset between the worker's clock and the scheduler's. The
    times of ``state.log`` are converted with the estimate that Dask used when it timed the same
    tasks.
    """

    def _install(self) -> None:
        core = self.core
        worker, tap = core.worker, core.tap
        self._clock_offset = core.delay("worker_transition")
        self._taken_t = time()
        self._pending = {kind: Pending(kind) for kind in LOG_LAYOUTS}
        if core.settings["worker_transitions"]:
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
        if core.settings["transfers"]:
            with tap.source("transfer"):
                on_transfer, handlers = self._on_transfer, cast("Any", worker.handlers)
                for name, incoming in (
                    ("transfer_incoming_log", True),
                    ("transfer_outgoing_log", False),
                ):
                    tap.log("transfer", worker, name, partial(on_transfer, incoming))
                tap.message("transfer", handlers, "update_data", after=self._on_scattered)

        with tap.source():  # without it, they are sent when many are pending
            heartbeats = worker.periodic_callbacks["heartbeat"]
            tap.method("transfer", heartbeats, "callback", after=lambda _: self._send())

    def take(self) -> list[Row]:
        """Send the pending entries before the next heartbeat if they are many."""
        if any(len(pending) > MANY_PENDING for pending in self._pending.values()):
            self._send()
        return []

    def _send(self) -> None:
        try:
            stream: Any = self.core.worker.batched_stream
            is_connected = stream and stream.comm and not stream.comm.closed()
        except Exception:  # noqa: BLE001 - it is not known
            is_connected = True
        # Without a connection Dask would drop the message; the log entries stay pending.
        if is_connected:
            self.core.send(self.take_last())

    def take_last(self) -> list[Row]:
        """Return the pending records, and clear them."""
        offset = self._clock_offset
        rows: list[Row] = []
        losses = []
        for kind, pending in self._pending.items():
            records, dropped, values = pending.take()
            if dropped:
                losses.append(("a worker's buffer was full", kind, dropped))
            if not records:
                continue
            read = partial(self.core.read, kind)
            address, server_id = read("contact_address") or read("address"), read("id")
            try:
                rows.append((kind, records, pack_log(address, server_id, offset, values)))
            except ValueError:
                losses.append(("impossible to encode", kind, records))
        times = self._taken_t + offset, time() + offset
        rows += [("loss", 1, loss(*lost, *times)) for lost in losses]
        self._clock_offset = self.core.delay("worker_transition")
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
        tasks, keys = self.core.worker.state.tasks, message.get("data") or ()
        sizes = _sizes({key: getattr(tasks.get(key), "nbytes", None) for key in keys})
        now = time() + self.core.delay("transfer")
        # The client reports nothing, so neither the start nor the source is known.
        total = sum(sizes.values())
        self._pending["transfer"].append(True, None, now, None, total, sizes, None)

    def _on_spill(self, spilled: bool, key: Any, _value: Any) -> None:
        data: Any = self.core.worker.data
        # A callback that raised would prevent the result from moving.
        with self.core.tap.guard("spill"):
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

    `kind` is one of :data:`LOG_LAYOUTS`, which names the consecutive values of one record.
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
            if need_text(keys):
                values[:: self._width] = map(str, keys)
        return records, dropped, values


def _sizes(keys: dict[Any, Any]) -> dict[str, int]:
    """Return sizes by the text of the key; 0 where Dask has none."""
    return {str(key): int(nbytes or 0) for key, nbytes in keys.items()}


def _optional_int(value: Any) -> int | None:
    return None if value is None else int(value)


def pack_log(worker: str, server_id: str, delay_seconds: float, values: list[Any]) -> bytes:
    """Encode entries of a worker's log; raise ValueError if a value cannot be encoded.

    `values` is flat: for each entry those that :data:`LOG_LAYOUTS` names. The delay is added
    to times of the worker's clock for those of the scheduler's.
    """
    return marshal.dumps((worker, server_id, delay_seconds, values), MARSHAL_VERSION)


def _log(kind: str, _: float, packed: bytes) -> Iterator[Record]:
    """Decode what :func:`pack_log` returned."""
    worker, server_id, delay, values = marshal.loads(packed)  # noqa: S302 - from its plugin
    names = LOG_LAYOUTS[kind]
    before_key, before_state = None, None
    for entry in zip(*[iter(values)] * len(names), strict=True):
        fields = dict(zip(names, entry, strict=True), worker=worker, server_id=server_id)
        if kind == "transfer":
            # Dask has converted the times to the scheduler's clock.
            fields["stop_t"] = fields["t"]
            incoming, peer = fields.pop("incoming"), fields.pop("peer")
            source, destination = (peer, worker) if incoming else (worker, peer)
            fields.update(source=source, destination=destination)
            fields["keys"] = {text(key): nbytes for key, nbytes in fields["keys"].items()}
        else:
            fields["t"] += delay
            fields["key"] = text(fields["key"])
        if kind == "worker_transition":
            start, state = fields["start"], fields["state"]
            # A transition by way of ``released`` is logged again after its steps, as a
            # whole: from a state that the task has left already.
            comes_back = before_state == "forgotten" and start == "released"
            is_summary = fields["key"] == before_key and start != before_state
            before_key, before_state = fields["key"], state
            if is_summary and not comes_back:
                continue
            fields["state"] = None if state == fields["finish"] else state
            fields["stimulus_id"] = text(fields["stimulus_id"])
        for name in ("sent_bytes", "disk_bytes"):
            if (nbytes := fields.pop(name, None)) is not None:
                fields["measured"] = {name: nbytes}
        yield present({"kind": kind, **fields, "t": round(fields["t"], 6)})


DECODERS = dict.fromkeys(LOG_LAYOUTS, _log)
