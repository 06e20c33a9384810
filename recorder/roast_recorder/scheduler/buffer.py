"""The buffer between the hooks, which append, and the client or writer, which pulls.

Everything runs on the scheduler's event loop, so there are no locks. An encoded batch stays
until the puller has acknowledged it, so a lost answer loses no records.

Rows are encoded in portions that take a few milliseconds, because encoding blocks the
scheduler. Rows that are not encoded yet count with an estimate of their size.

The buffer is bounded. Beyond a share of its limit, batches are compressed. When the limit is
reached, the least valuable batches are dropped first, and every dropped record is counted.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from time import monotonic, time
from typing import Any, Final, NamedTuple

from roast_recorder.scheduler import wire_format
from roast_recorder.settings import OPT_IN_KINDS

#: Number of values of transitions (5, 7 or 13 each), and of other records, that are encoded
#: at once: a few milliseconds of the scheduler's thread.
TRANSITION_VALUES_PER_BATCH: Final = 50_000
RECORDS_PER_BATCH: Final = 5_000

#: Estimated size of rows beyond which they are encoded.
ROWS_BYTES_PER_BATCH: Final = 2**20

#: Share of the memory for what is not encoded yet.
UNSEALED_SHARE: Final = 1 / 8

#: Share of the limit beyond which deferred rows are not deferred any longer.
DEFERRED_SHARE: Final = 1 / 2

#: Estimated size of a value in a batch: of most keys.
VALUE_BYTES: Final = 40

#: Keeps an answer, which is one message of Dask's, to a few megabytes.
BATCHES_PER_PULL: Final = 8

#: Approximate size of a record of the kinds whose records are all alike.
SIZED_KINDS: Final = {"fine_metric": 100, "worker_sample": 200}

#: Number of items up to which all are examined; beyond it, the first stands for all.
MAX_EXAMINED: Final = 20

#: Share of the limit beyond which batches are compressed.
COMPRESS_BEYOND: Final = 1 / 16

#: Lanes, in the order in which they are dropped when the limit is reached.
SAMPLES, EVENTS, FACTS = range(3)

#: Lane of each kind; all others are FACTS.
LANES: Final = {
    "worker_sample": SAMPLES,
    "scheduler_sample": SAMPLES,
    "host_sample": SAMPLES,
    "profile": SAMPLES,
    "event": EVENTS,
    "stall": EVENTS,
    **dict.fromkeys(OPT_IN_KINDS, EVENTS),
}

TOO_MUCH: Final = "the scheduler's buffer was full"
UNENCODABLE: Final = "impossible to encode"


def estimated_bytes(content: Any, depth: int = 3) -> int:
    """Return the approximate size of a row's content when it is encoded."""
    kind = type(content)
    if kind in (str, bytes):
        return len(content)
    if kind not in (tuple, list, set, frozenset, dict):
        return VALUE_BYTES // 4
    nbytes = VALUE_BYTES * len(content)
    if depth and len(content) <= MAX_EXAMINED:
        for item in content.values() if kind is dict else content:
            nbytes += estimated_bytes(item, depth - 1)
    elif depth and content:
        first = next(iter(content.values() if kind is dict else content))
        nbytes += len(content) * estimated_bytes(first, depth - 1)
    return nbytes


class _Batch(NamedTuple):
    number: int
    lane: int
    content: bytes


class Buffer:
    """Batches of at most `limit_bytes` that wait to be pulled, and rows that become batches.

    The rows take at most :data:`UNSEALED_SHARE` of it in addition.
    """

    def __init__(self, limit_bytes: int) -> None:
        #: Flat, see :mod:`~roast_recorder.scheduler.wire_format`. The hook extends it, always
        #: by a whole transition, and calls :meth:`seal` when it has grown beyond
        #: :data:`TRANSITION_VALUES_PER_BATCH`.
        self.transitions: list[Any] = []
        #: Keys that no earlier batch contains. Only those that are not texts are examined.
        self.new_keys: list[Any] = []
        #: True while there are keys that have not been in :attr:`new_keys`.
        self.keys_as_text = False
        self._has_odd_keys = False
        self.last_pull = monotonic()
        self._lanes: list[list[wire_format.Row]] = [[], [], []]
        self._unsealed = 0
        self._unsealed_bytes = 0
        self._unsealed_limit_bytes = min(ROWS_BYTES_PER_BATCH, limit_bytes * UNSEALED_SHARE)
        self._limit_bytes = limit_bytes
        # Rows that have not been made yet, and their estimated size.
        self._deferred: deque[tuple[Iterator[wire_format.Row | None], int]] = deque()
        self._deferred_bytes = 0
        self._batches: deque[_Batch] = deque()
        self._waiting_bytes = 0
        self._last_number = 0
        self._last_pulled = 0
        # (reason, kind): records, first and last time
        self._losses: dict[tuple[str, str], list[float]] = {}

    @property
    def empty(self) -> bool:
        """True if everything has been pulled and acknowledged."""
        unsealed = self._deferred or self.transitions or any(self._lanes)
        return not (unsealed or self._batches or self._losses)

    @property
    def nbytes(self) -> int:
        """Size of what is not yet written; that of rows and transitions is an estimate."""
        transitions = VALUE_BYTES * len(self.transitions)
        unsealed = self._unsealed_bytes + transitions
        return self._waiting_bytes + self._deferred_bytes + unsealed

    @property
    def crowded(self) -> bool:
        """True if so many batches are pending that the next pull should not be delayed."""
        unpulled = sum(batch.number > self._last_pulled for batch in self._batches)
        return bool(self._deferred) or unpulled > 1

    def append(self, row: wire_format.Row) -> None:
        """Append a row."""
        self._lanes[LANES.get(row[0], FACTS)].append(row)
        self._unsealed += row[2]
        # The size of the most frequent rows is known; this saves a third of a heartbeat.
        nbytes = SIZED_KINDS.get(row[0])
        self._unsealed_bytes += nbytes * row[2] if nbytes else estimated_bytes(row[3])
        is_large = self._unsealed_bytes >= self._unsealed_limit_bytes
        if is_large or self._unsealed >= RECORDS_PER_BATCH:
            self.seal()

    def defer(self, rows: Iterator[wire_format.Row | None], nbytes: int) -> None:
        """Append rows of an estimated size in portions, with the next pulls.

        None among them ends a portion.
        """
        self._deferred.append((rows, nbytes))
        self._deferred_bytes += nbytes
        while self._deferred_bytes > self._limit_bytes * DEFERRED_SHARE:
            self._append_deferred()

    def _append_deferred(self) -> None:
        """Append a portion of the deferred rows."""
        rows, nbytes = self._deferred.popleft()
        done = 0
        for row in rows:
            if row is not None:
                self.append(row)
                done += estimated_bytes(row[3])
            if row is None or done >= self._unsealed_limit_bytes:
                left = max(nbytes - done, 0)
                self._deferred.appendleft((rows, left))
                self._deferred_bytes -= nbytes - left
                return
        self._deferred_bytes -= nbytes

    def seal(self) -> None:
        """Encode what has been appended."""
        self._unsealed = self._unsealed_bytes = 0
        # Here rather than by the hooks: a whole batch at once, in C.
        self._has_odd_keys = self._has_odd_keys or wire_format.need_text(self.new_keys)
        self.new_keys.clear()  # in place, as the transitions
        keys_as_text = self.keys_as_text or self._has_odd_keys
        transitions = self.transitions[:]
        self.transitions.clear()  # in place, because the hook has a reference to this list
        for lane in (FACTS, EVENTS, SAMPLES):
            rows, self._lanes[lane] = self._lanes[lane], []
            if rows or transitions:
                lose = functools.partial(self.lose, UNENCODABLE)
                content = wire_format.encode(transitions, rows, lose, keys_as_text=keys_as_text)
                much_waits = self._waiting_bytes > self._limit_bytes * COMPRESS_BEYOND
                if much_waits or self._waiting_bytes + len(content) > self._limit_bytes:
                    content = wire_format.compress(content)
                if self._make_room(len(content), lane):
                    self._add(lane, content)
                else:
                    self._drop(content)
            # They are encoded with the facts, because most views are computed from them.
            transitions = []

    def pull(self, received: int, *, everything: bool = False) -> list[tuple[int, bytes]]:
        """Return the batches after number `received`, and forget those up to it.

        Batches are pairs of number and content, in order: the first few, unless this pull is
        the last one and must return `everything`.
        """
        self.last_pull = monotonic()
        while self._batches and self._batches[0].number <= received:
            self._waiting_bytes -= len(self._batches.popleft().content)
        # If the puller falls behind, batches of full size are sealed by `append` and the hook.
        if everything or len(self._batches) < BATCHES_PER_PULL:
            if self._deferred:
                self._append_deferred()
            while everything and self._deferred:
                self._append_deferred()
            self.seal()
            if self._losses:
                now = time()
                rows = [
                    ("loss", now, 1, wire_format.loss(reason, kind, int(records), *times))
                    for (reason, kind), (records, *times) in self._losses.items()
                ]
                self._losses.clear()
                # The few bytes of losses may exceed the limit.
                self._add(FACTS, wire_format.encode([], rows, lambda *_: None))
        batches = list(self._batches)
        if not everything:
            batches = batches[:BATCHES_PER_PULL]
        if batches:
            self._last_pulled = batches[-1].number
        return [(batch.number, batch.content) for batch in batches]

    def _add(self, lane: int, content: bytes) -> None:
        self._last_number += 1
        self._waiting_bytes += len(content)
        self._batches.append(_Batch(self._last_number, lane, content))

    def _make_room(self, nbytes: int, lane: int) -> bool:
        """Drop batches of lower lanes until `nbytes` fit; return whether they do."""
        excess = self._waiting_bytes + self._deferred_bytes + nbytes - self._limit_bytes
        # A batch that was pulled may be written already: it must not be counted as lost.
        lesser = sorted(
            (b for b in self._batches if b.lane < lane and b.number > self._last_pulled),
            key=lambda batch: batch.lane,
        )
        if sum(len(batch.content) for batch in lesser) < excess:
            return False
        for batch in lesser:
            if excess > 0:
                excess -= len(batch.content)
                self._waiting_bytes -= len(batch.content)
                self._batches.remove(batch)
                self._drop(batch.content)
        return True

    def _drop(self, content: bytes) -> None:
        for kind, t, records, _ in wire_format.all_rows(*wire_format.decode(content)):
            self.lose(TOO_MUCH, kind, t, records)

    def lose(self, reason: str, kind: str, t: float, records: int) -> None:
        """Count lost records, 0 if their number is unknown."""
        lost, first, last = self._losses.get((reason, kind), (0, t, t))
        self._losses[reason, kind] = [lost + records, min(first, t), max(last, t)]
