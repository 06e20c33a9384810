"""Smooth and register generated images, and count the cells in them.

roast-record run -o images.jsonl.zst -- python image_pipeline.py
"""

import dask
import numpy as np
from dask.distributed import Client
from scipy import ndimage

IMAGES, SIZE = 24, 600


@dask.delayed
def read(number: int) -> np.ndarray:
    """Return an image of bright cells on a noisy background."""
    random = np.random.default_rng(number)
    image = random.normal(0.0, 0.3, (SIZE, SIZE))
    for row, column in random.integers(10, SIZE - 10, (80, 2)):
        image[row - 4 : row + 4, column - 4 : column + 4] += 2.0
    return image


@dask.delayed
def smooth(image: np.ndarray) -> np.ndarray:
    return ndimage.gaussian_filter(image, 3.0)


@dask.delayed
def count_cells(image: np.ndarray) -> int:
    return ndimage.label(image > 0.5)[1]


@dask.delayed
def register(images: list[np.ndarray]) -> np.ndarray:
    """Align all images, in one task on one thread, which all others wait for."""
    total = np.zeros((SIZE, SIZE))
    for image in images:
        total += ndimage.shift(image, (0.5, -0.5), order=3)
    return total / len(images)


@dask.delayed
def deviation(image: np.ndarray, mean: np.ndarray) -> float:
    return float(abs(image - mean).mean())


if __name__ == "__main__":
    with Client(n_workers=4, threads_per_worker=1, dashboard_address="127.0.0.1:0"):
        smoothed = [smooth(read(number)) for number in range(IMAGES)]
        mean = register(smoothed)
        cells, deviations = dask.compute(
            [count_cells(image) for image in smoothed],
            [deviation(image, mean) for image in smoothed],
        )
    print(f"{sum(cells)} cells in {IMAGES} images, mean deviation {np.mean(deviations):.3f}")
