"""Scan parameters with client.submit, and refine the best with as_completed.

roast-record run -o scan.jsonl.zst -- python parameter_scan.py
"""

import time

from dask.distributed import Client, as_completed


def evaluate(x: float, width: float) -> tuple[float, float, float]:
    """Return the parameters and the loss of a model, after a fit that takes 50 ms."""
    until = time.perf_counter() + 0.05
    while time.perf_counter() < until:
        sum(range(1_000))
    if x > 9.5:
        raise ValueError(f"the fit does not converge at x = {x}")
    return (x - 3.2) ** 2 + 0.1 * (width - 1.5) ** 2, x, width


def best_of(client: Client, points: list[tuple[float, float]]) -> tuple[float, float, float]:
    best = (float("inf"), 0.0, 0.0)
    for future in as_completed([client.submit(evaluate, *point) for point in points]):
        if future.status == "finished":
            best = min(best, future.result())
    return best


if __name__ == "__main__":
    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
        grid = [(x / 2, width) for x in range(21) for width in (1.0, 2.0, 3.0)]
        _, x, width = best_of(client, grid)
        # The workers are idle between the rounds.
        time.sleep(2.0)
        loss, x, width = best_of(
            client,
            [(x + dx / 50, width + dw / 4) for dx in range(-12, 13) for dw in (-2, 0, 2)],
        )
    print(f"best: loss {loss:.4f} at x = {x:.2f}, width = {width:.2f}")
