"""The buffer between the hooks, which append, and the puller, which fetches.

Everything happens on the scheduler's event loop, so nothing here locks. What was appended
is encoded some thousand rows at a time, when somebody pulls or when so many have come, so
that the loop is never held for long; an encoded batch stays until the puller has said that
it is written, so that an answer which gets lost on its way costs nothing.

The buffer is bounded. When much waits, batches are compressed; when the limit is reached
all the same, the least valuable go first, and every row that goes is counted.
"""

from __future__ import annotations

from collections import deque
from time import monotonic, time
from typing import Any, Final, NamedTuple

from roast_recorder.scheduler import wire_format as rows
from roast_recorder.scheduler.wire_format import RECORD, Row

#: Values of transitions, of which each has 5, 7 or 12, and rows that are encoded at
#: once: a few milliseconds of the scheduler's thread.
TRANSITION_VALUES_PER_BATCH: Final = 50_000
ROWS_PER_BATCH: Final = 5_000

BATCHES_PER_PULL: Final = 8

#: Batches are compressed once so much of the limit is taken: a sixteenth.
COMPRESS_BEYOND: Final = 1 / 16

#: What is dropped first, second, last when the limit is reached.
SAMPLES, EVENTS, FACTS = range(3)

TOO_MUCH: Final = "more came than could be written"
ODD: Final = "impossible to encode"


class Batch(NamedTuple):
    """An encoded batch that waits."""

    number: int
    lane: int
    compressed: bool
    content: bytes


class Buffer:
    """Rows waiting to be pulled.

    Parameters
    ----------
    limit_bytes : int
        Most bytes that may wait.

    Attributes
    ----------
    transitions : list
        Flat, as :mod:`roast_recorder.scheduler.wire_format` says. The hook extends it, always by a whole
        transition, and calls :meth:`seal` when it has grown beyond
        :data:`TRANSITION_VALUES_PER_BATCH`.
    odd_keys : bool
        As :func:`roast_recorder.scheduler.wire_format.encode` takes it.
    last_pull : float
        When somebody last pulled, by the monotonic clock.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.transitions: list[Any] = []
        self.odd_keys = False
        self.last_pull = monotonic()
        self._lanes: tuple[list[Row], ...] = ([], [], [])
        self._limit_bytes = limit_bytes
        self._batches: deque[Batch] = deque()
        self._waiting_bytes = 0
        self._last_number = 0
        self._handed_over = 0
        self._lost: dict[tuple[str, str], list[float]] = {}

    @property
    def empty(self) -> bool:
        """Whether everything has been pulled and acknowledged."""
        waiting = self._batches or self.transitions or any(self._lanes) or self._lost
        return not waiting

    @property
    def crowded(self) -> bool:
        """Whether so much waits that the next pull should not."""
        return sum(batch.number > self._handed_over for batch in self._batches) > 1

    def append(self, row: Row, lane: int = FACTS) -> None:
        """Take a row that is no transition."""
        waiting = self._lanes[lane]
        waiting.append(row)
        if len(waiting) >= ROWS_PER_BATCH:
            self.seal()

    def seal(self) -> None:
        """Encode what has been appended."""
        transitions = self.transitions[:]
        self.transitions.clear()
        for lane in (FACTS, EVENTS, SAMPLES):
            waiting = self._lanes[lane][:]
            self._lanes[lane].clear()
            if waiting or transitions:
                self._seal(lane, transitions, waiting)
            transitions = []

    def pull(self, received: int, *, everything: bool = False) -> list[Batch]:
        """Hand over the batches after number `received`, and forget those up to it.

        Parameters
        ----------
        received : int
            Number of the last batch that is written; 0 is none.
        everything : bool
            Whether this is the last pull, which must leave nothing.

        Returns
        -------
        list of Batch
            In order; the first few unless `everything`.
        """
        self.last_pull = monotonic()
        while self._batches and self._batches[0].number <= received:
            self._waiting_bytes -= len(self._batches.popleft().content)
        if everything or len(self._batches) < BATCHES_PER_PULL:
            self.seal()
            self._write_losses()
        answer = list(self._batches)
        if not everything:
            answer = answer[:BATCHES_PER_PULL]
        if answer:
            self._handed_over = answer[-1].number
        return answer

    def _seal(self, lane: int, transitions: list[Any], waiting: list[Row]) -> None:
        content, left_out = rows.encode(transitions, waiting, odd_keys=self.odd_keys)
        for kind, counted in left_out.items():
            self._count_loss(ODD, kind, counted)
        much_waits = self._waiting_bytes > self._limit_bytes * COMPRESS_BEYOND
        compressed = much_waits or self._waiting_bytes + len(content) > self._limit_bytes
        if compressed:
            content = rows.compress(content)
        if self._make_room(len(content), lane):
            self._add(lane, content, compressed=compressed)
        else:
            self._lose(transitions, waiting)

    def _add(self, lane: int, content: bytes, *, compressed: bool) -> None:
        self._last_number += 1
        self._waiting_bytes += len(content)
        self._batches.append(Batch(self._last_number, lane, compressed, content))

    def _make_room(self, nbytes: int, lane: int) -> bool:
        """Drop what is worth less than a lane until `nbytes` fit; say whether they do."""
        excess = self._waiting_bytes + nbytes - self._limit_bytes
        if excess <= 0:
            return True
        # What was handed over may be written already; it could not be counted as lost.
        worth_less = sorted(
            (b for b in self._batches if b.lane < lane and b.number > self._handed_over),
            key=lambda batch: batch.lane,
        )
        if sum(len(batch.content) for batch in worth_less) < excess:
            return False
        for batch in worth_less:
            if excess > 0:
                excess -= len(batch.content)
                self._drop(batch)
        return True

    def _drop(self, batch: Batch) -> None:
        self._batches.remove(batch)
        self._waiting_bytes -= len(batch.content)
        self._lose(*rows.decode(opened(batch)))

    def _lose(self, transitions: list[Any], waiting: list[Row]) -> None:
        for kind, counted in rows.census(transitions, waiting).items():
            self._count_loss(TOO_MUCH, kind, counted)

    def _count_loss(self, reason: str, kind: str, counted: list[float]) -> None:
        records, start_t, stop_t = counted
        lost = self._lost.setdefault((reason, kind), [0, start_t, stop_t])
        lost[0] += records
        lost[1] = min(lost[1], start_t)
        lost[2] = max(lost[2], stop_t)

    def _write_losses(self) -> None:
        """Say in the trace what was lost; these few bytes need no room made for them."""
        if not self._lost:
            return
        told = [
            _loss_row(reason, kind, *counted) for (reason, kind), counted in self._lost.items()
        ]
        self._lost.clear()
        self._add(FACTS, rows.encode([], told)[0], compressed=False)


def _loss_row(reason: str, kind: str, records: float, start_t: float, stop_t: float) -> Row:
    fields = {
        "reason": reason,
        "record_kind": kind,
        "records": int(records),
        "start_t": start_t,
        "stop_t": stop_t,
    }
    return (RECORD, time(), "loss", fields)


def opened(batch: Batch) -> bytes:
    """Give the content of a batch as :func:`roast_recorder.scheduler.wire_format.decode` takes it."""
    return rows.decompress(batch.content) if batch.compressed else batch.content
