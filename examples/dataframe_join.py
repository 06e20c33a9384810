"""Join two tables in many small partitions, and aggregate the result.

roast-record run -o join.jsonl.zst -- python dataframe_join.py
"""

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.distributed import Client

#: Far too many partitions for so little data, as many small files would cause.
STATIONS, ROWS, PARTITIONS = 2_000, 2_000, 100


def readings(number: int) -> pd.DataFrame:
    """Return readings of stations, as if read from a file."""
    random = np.random.default_rng(number)
    return pd.DataFrame(
        {"station": random.integers(0, STATIONS, ROWS), "value": random.normal(10, 3, ROWS)}
    )


def calibrations(number: int) -> pd.DataFrame:
    """Return a calibration for a part of the stations."""
    random = np.random.default_rng(1_000 + number)
    stations = np.arange(number, STATIONS, PARTITIONS)
    return pd.DataFrame({"station": stations, "factor": random.normal(1, 0.1, len(stations))})


if __name__ == "__main__":
    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"):
        left = dd.from_map(readings, range(PARTITIONS))
        right = dd.from_map(calibrations, range(PARTITIONS))
        joined = left.merge(right, on="station", shuffle_method="p2p")
        calibrated = joined.assign(calibrated=joined.value * joined.factor)
        means = calibrated.groupby("station").calibrated.mean().compute()
    print(f"{len(means):,} stations, mean {means.mean():.2f}")
