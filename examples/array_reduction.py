"""Standardize an array and reduce it, in chunks that are far too small.

roast-record run -o array.jsonl.zst -- python array_reduction.py
"""

import dask.array as da
from dask.distributed import Client

if __name__ == "__main__":
    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"):
        # 20 kB a chunk: about a thousandth of what Dask recommends.
        data = da.random.default_rng(0).normal(5.0, 2.0, size=(1_000, 1_500), chunks=(50, 50))
        standard = (data - data.mean(axis=0)) / data.std(axis=0)
        largest = abs(standard).max().compute()
    print(f"largest deviation: {largest:.2f}")
