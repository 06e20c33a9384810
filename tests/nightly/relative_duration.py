"""Separation of slow files and slow workers.

The time of a chunk divided by the expected time (from dataset and size) is a file factor times
a worker factor. Both are medians, found alternately in two rounds, workers first (Tukey's
median polish of ratios). Factors that cannot be separated are 1: a file read by one worker, the
only file of a dataset, a worker with one file.
"""

import math

from nightly.chunks import chunk_attempts
from nightly.costs import expected_seconds
from nightly.recording import Recording, Row, once
from nightly.totals import deviation, grouped, median

#: Dataset, name and tree of a file; number of a process.
File, Process = tuple, int


def slow_files(recording: Recording) -> dict[File, Row]:
    """Return the factors of files that can be separated from their workers."""
    ratios, files, _ = _polished(recording)
    judged = {}
    for of_dataset in grouped(
        [
            {"file": file, "relative_duration": relative_duration}
            for file, relative_duration in files.items()
        ],
        lambda row: row["file"][0],
    ).values():
        usual = _lower_median(row["relative_duration"] for row in of_dataset)
        for row in of_dataset:
            chunks = sum(file == row["file"] for file, _, _ in ratios)
            judged[row["file"]] = _judged(row["relative_duration"] / usual, chunks, recording)
    return judged


def slow_processes(recording: Recording) -> dict[Process, Row]:
    """Return the factors of workers that can be separated from their files."""
    ratios, _, processes = _polished(recording)
    if len(processes) < 2:
        return {}
    usual = _lower_median(processes.values())
    return {
        process: _judged(
            relative_duration / usual, sum(at == process for _, at, _ in ratios), recording
        )
        for process, relative_duration in processes.items()
    }


def _judged(relative_duration: float, chunks: int, recording: Recording) -> Row:
    """Mark factors of at least 1.5 from three chunks that are significant.

    The standard error of a median of normal values is 1.2533 times that of their mean.
    """
    error = 1.2533 * _noise(recording) / math.sqrt(chunks)
    is_slow = (
        relative_duration >= 1.5 and chunks > 2 and math.log(relative_duration) > 4 * error
    )
    return {"relative_duration": relative_duration, "is_slow": is_slow}


def _lower_median(values) -> float:
    numbers = sorted(values)
    return numbers[(len(numbers) - 1) // 2]


@once
def _ratios(recording: Recording) -> list[tuple[File, Process, float]]:
    """Return file, worker and relative time of each chunk."""
    rated = [
        row
        for row in chunk_attempts(recording)
        if row["event_seconds"] and row["process"] is not None
    ]
    expected = expected_seconds(recording, rated)
    found = []
    for dataset, rows in grouped(rated, lambda row: row["dataset"]).items():
        ratios = [row["compute_seconds"] / expected(row) for row in rows]
        usual = median(ratios)
        for row, ratio in zip(rows, ratios, strict=True):
            file = (dataset, row["filename"], row["treename"])
            found.append((file, row["process"], ratio / usual))
    return found


@once
def _polished(recording: Recording) -> tuple[list, dict[File, float], dict[Process, float]]:
    """Alternate between medians of workers and of files."""
    ratios = _ratios(recording)
    files, processes = _comparable(ratios)
    of_files: dict = {}
    of_processes: dict = {}
    for _ in range(2):
        of_processes = {
            process: median(
                ratio / of_files.get(file, 1) for file, at, ratio in ratios if at == process
            )
            for process in processes
        }
        of_files = {
            file: median(
                ratio / of_processes.get(at, 1) for of, at, ratio in ratios if of == file
            )
            for file in files
        }
    return ratios, of_files, of_processes


def _comparable(ratios: list) -> tuple[set[File], set[Process]]:
    """Return the files and workers that can be separated."""
    pairs = {(file, process) for file, process, _ in ratios}
    files = {file for file, _ in pairs}
    processes = {process for _, process in pairs}
    several_workers = {f for f in files if len({p for file, p in pairs if file == f}) > 1}
    several_files = {p for p in processes if len({f for f, at in pairs if at == p}) > 1}
    in_company = {f for f in files if len({g for g in files if g[0] == f[0]}) > 1}
    return several_workers & in_company, several_files


@once
def _noise(recording: Recording) -> float:
    """Return the standard deviation of the logarithms after both factors are removed."""
    ratios, files, processes = _polished(recording)
    return deviation(
        math.log(ratio / files.get(file, 1) / processes.get(process, 1))
        for file, process, ratio in ratios
    )
