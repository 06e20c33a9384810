"""The buffer between the hooks, which append, and the client, which pulls.

Everything happens on the scheduler's event loop, so nothing here locks. Rows are encoded
when somebody pulls, or at a tick when many have gathered; an encoded batch stays until
the puller has said that it has it, so that a broken connection loses nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from roast_recorder import rows

#: Encoding some thousand rows takes the scheduler's thread a few milliseconds at most.
ROWS_PER_BATCH = 5_000


class Buffer:
    """Rows waiting to be pulled, within a limit of bytes.

    Parameters
    ----------
    limit_bytes : int
        Encoded batches beyond this are dropped and counted.

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
        self.dropped: Counter[str] = Counter()

    def __len__(self) -> int:
        """Rows that are not encoded yet."""
        return len(self._rows)

    @property
    def empty(self) -> bool:
        """Whether everything has been pulled and acknowledged."""
        return not self._rows and not self._batches

    def encode(self) -> None:
        """Encode the rows gathered so far into batches."""
        taken = self._rows[:]
        self._rows.clear()
        for begin in range(0, len(taken), ROWS_PER_BATCH):
            self._add_batch(taken[begin : begin + ROWS_PER_BATCH])

    def pull(self, received: int) -> list[tuple[int, bytes]]:
        """Hand over all batches after number `received`, and forget those up to it.

        Parameters
        ----------
        received : int
            Number of the last batch that the puller has safely; 0 is none.

        Returns
        -------
        list of (int, bytes)
            Number and encoded rows of each batch, in order.
        """
        while self._batches and self._batches[0][0] <= received:
            self._waiting_bytes -= len(self._batches.popleft()[1])
        self.encode()
        return list(self._batches)

    def _add_batch(self, batch_rows: list[tuple[Any, ...]]) -> None:
        batch = rows.encode(batch_rows)
        if self._waiting_bytes + len(batch) > self._limit_bytes:
            self.dropped.update(map(rows.kind_of, batch_rows))
            return
        self._last_number += 1
        self._waiting_bytes += len(batch)
        self._batches.append((self._last_number, batch))
