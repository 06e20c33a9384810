"""Times of tasks in the states before a result."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

#: States before a result. A task that is processing is on a worker.
STATES: Final = ("waiting", "queued", "no-worker", "processing")

#: Columns of the changes, in the scheduler's order.
CHANGES: Final = pl.Schema(
    {
        "key": pl.UInt64(),  # any number of the key
        "state": pl.UInt8(),  # position in STATES; another number for any other state
        "t": pl.Float64(),
    }
)

#: Columns of the compute times of attempts. The longest one of each key counts.
DURATIONS: Final = pl.Schema({"key": pl.UInt64(), "seconds": pl.Float64()})


def task_states(changes: pl.DataFrame, durations: pl.DataFrame, stop_t: float) -> pl.DataFrame:
    """Return the times of tasks in each of ``STATES``, each until the next change of the key.

    Parameters
    ----------
    changes : polars.DataFrame
        With the columns of ``CHANGES``.
    durations : polars.DataFrame
        With the columns of ``DURATIONS``.
    stop_t : float
        End of the times that no change ends; the last change if that is later, as after a
        time range.

    Returns
    -------
    polars.DataFrame
        state (position in ``STATES``), start, stop and compute_seconds (0 if unknown).
    """
    # Sorting takes most of the time. A single thread needs less CPU time for it.
    by_key = changes.sort("key", maintain_order=True, multithreaded=False)
    key, state, t = (by_key[name].to_numpy() for name in CHANGES)
    last_t = t.max(initial=stop_t)
    stop = np.where(np.append(key[1:] == key[:-1], False), np.append(t[1:], 0.0), last_t)
    [some] = np.nonzero(state < len(STATES))
    durations = durations.fill_null(0).sort(*DURATIONS)
    known, seconds = (durations[name].to_numpy() for name in DURATIONS)
    place = np.searchsorted(known, key[some], "right") - 1
    is_known = np.append(known, 0)[place] == key[some]
    return pl.DataFrame(
        {
            "state": state[some],
            "start": t[some],
            "stop": stop[some],
            "compute_seconds": np.where(is_known, np.append(seconds, 0.0)[place], 0.0),
        }
    )
