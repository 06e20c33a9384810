"""The buffer between the hooks, which append, and the client, which pulls.

Everything happens on the scheduler's event loop, so nothing here locks. Rows are encoded
when somebody pulls, so many at a time that the loop is never held for long; an encoded
batch stays until the puller has said that it has it, so that an answer which gets lost on
its way costs nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from time import monotonic
from typing import Any

from roast_recorder import rows

#: Encoding some thousand rows takes the scheduler's thread a few milliseconds.
ROWS_PER_BATCH = 5_000
BATCHES_PER_PULL = 4

#: What a row takes on average until it is encoded.
ROW_BYTES = 500

#: Who has not pulled for so long does not keep up.
STALLED_SECONDS = 5.0


class Buffer:
    """Rows waiting to be pulled.

    Parameters
    ----------
    limit_bytes : int
        While nobody pulls, what goes beyond is dropped and counted. Somebody who pulls
        gets everything, however much comes at once.

    Attributes
    ----------
    append : callable
        Takes one row. This is all that a hook does.
    dropped : Counter
        Rows dropped since the last pull, by kind of record.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self.append = self._rows.append
        self._limit_bytes = limit_bytes
        self._batches: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self._last_number = 0
        self._last_pull = monotonic()
        self.dropped: Counter[str] = Counter()

    @property
    def empty(self) -> bool:
        """Whether everything has been pulled and acknowledged."""
        return not self._rows and not self._batches

    @property
    def crowded(self) -> bool:
        """Whether so much waits that the next pull should not."""
        return len(self._rows) > ROWS_PER_BATCH

    def pull(self, received: int) -> list[tuple[int, bytes]]:
        """Hand over the batches after number `received`, and forget those up to it.

        Parameters
        ----------
        received : int
            Number of the last batch that the puller has safely; 0 is none.

        Returns
        -------
        list of (int, bytes)
            Number and encoded rows of each batch, in order.
        """
        self._last_pull = monotonic()
        while self._batches and self._batches[0][0] <= received:
            self._waiting_bytes -= len(self._batches.popleft()[1])
        while self._rows and len(self._batches) < BATCHES_PER_PULL:
            self._encode_batch()
        return list(self._batches)

    def trim(self) -> None:
        """Keep within the limit if nobody pulls; call it from time to time."""
        if monotonic() - self._last_pull < STALLED_SECONDS:
            return
        while self._rows and self._waiting_bytes < self._limit_bytes:
            if self._waiting_bytes + len(self._rows) * ROW_BYTES < self._limit_bytes:
                return
            self._encode_batch()
        self.dropped.update(map(rows.kind_of, self._rows))
        self._rows.clear()

    def _encode_batch(self) -> None:
        batch, left_out = rows.encode(self._rows[:ROWS_PER_BATCH])
        del self._rows[:ROWS_PER_BATCH]
        self.dropped.update(left_out)
        self._last_number += 1
        self._waiting_bytes += len(batch)
        self._batches.append((self._last_number, batch))
