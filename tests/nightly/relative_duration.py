"""Separation of slow files and slow workers.

The time of a chunk divided by the expected time (from dataset and size) is a file factor times
a worker factor. Both are medians, found alternately in two rounds, files first (Tukey's median
polish). In the first round, all chunks of a file and a worker count once, by their median.
Factors that cannot be separated are 1: a file read by one of several workers, the only file of
a dataset, a worker with one file. Beforehand, each chunk is divided by the usual ratio of the
files that were read at the same time.
"""

import math
from collections import Counter
from dataclasses import dataclass

from nightly.chunks import chunk_attempts
from nightly.costs import expected_seconds
from nightly.recording import Recording, Row, once
from nightly.totals import column, deviation, grouped, median

#: Dataset, name and tree of a file; number of a process.
File, Process = tuple, int


def slow_files(recording: Recording) -> dict[File, Row]:
    """Return the factors of files that can be separated from their workers."""
    ratios, files, _ = _polished(recording)
    by_dataset = grouped(files, lambda file: file[0])
    factors = {
        file: factor / _lower_median(files[other] for other in by_dataset[file[0]])
        for file, factor in files.items()
    }
    required = {}
    for file, chunks in grouped(ratios, lambda chunk: chunk.file).items():
        is_alone = sum(chunk.is_alone for chunk in chunks) > 0.5 * len(chunks)
        is_first = sum(chunk.is_first for chunk in chunks) > 0.5 * len(chunks)
        required[file] = 5 if is_first else 2.5 if is_alone else 1.5
    numbers = Counter(chunk.file for chunk in ratios)
    return _judged(factors, numbers, required, recording)


def slow_processes(recording: Recording) -> dict[Process, Row]:
    """Return the factors of workers that can be separated from their files."""
    ratios, _, processes = _polished(recording)
    if len(processes) < 2:
        return {}
    usual = _lower_median(processes.values())
    factors = {process: factor / usual for process, factor in processes.items()}
    chunks = Counter(chunk.process for chunk in ratios)
    return _judged(factors, chunks, dict.fromkeys(factors, 1.5), recording)


def _judged(factors: dict, chunks: Counter, required: dict, recording: Recording) -> dict:
    """Mark factors from five chunks that are as large as required, and above error and spread.

    The standard error of a median of normal values is 1.2533 times that of their mean. With
    fewer than three factors, at least 2.5 is required.
    """
    faster = [-math.log(factor) for factor in factors.values() if factor <= 1]
    spread = 1.4826 * (median(faster) or 0)
    judged = {}
    for name, factor in factors.items():
        error = 1.2533 * _noise(recording) / math.sqrt(chunks[name])
        of_few = len(factors) < 3
        is_slow = (
            chunks[name] >= 5
            and factor >= max(required[name], 2.5 if of_few else 1.5)
            and math.log(factor) > 4 * error
            and (of_few or math.log(factor) > 4 * spread)
        )
        judged[name] = {
            "relative_duration": factor,
            "relative_duration_error": factor * error,
            "is_slow": is_slow,
        }
    return judged


def _lower_median(values) -> float:
    numbers = sorted(values)
    return numbers[(len(numbers) - 1) // 2]


@dataclass
class Ratio:
    """Relative time of a chunk, with its file, worker and time slot."""

    file: File
    process: Process
    slot: int
    value: float
    is_alone: bool = False
    is_first: bool = False


@once
def _ratios(recording: Recording) -> list[Ratio]:
    """Return the relative time of each chunk, divided by the usual one in its time slot."""
    rated = [
        row
        for row in chunk_attempts(recording)
        if row["event_seconds"] and row["process"] is not None
    ]
    expected = expected_seconds(recording, rated)
    width = 2 * (median(column(rated, "compute_seconds")) or 0)
    by_file = grouped(rated, lambda row: (row["dataset"], row["filename"], row["treename"]))
    begins = sorted(min(column(rows, "begin_t")) for rows in by_file.values())
    second_t = begins[1] if len(begins) > 1 else math.inf
    found = []
    for dataset, rows in grouped(rated, lambda row: row["dataset"]).items():
        ratios = [row["compute_seconds"] / expected(row) for row in rows]
        usual = median(ratios)
        for row, ratio in zip(rows, ratios, strict=True):
            file = (dataset, row["filename"], row["treename"])
            slot = math.floor(row["begin_t"] / width)
            is_first = row["begin_t"] < second_t
            found.append(Ratio(file, row["process"], slot, ratio / usual, is_first=is_first))
    for chunks in grouped(found, lambda chunk: chunk.slot).values():
        by_file = grouped(chunks, lambda chunk: chunk.file)
        medians = [median(chunk.value for chunk in some) for some in by_file.values()]
        is_comparable = len(by_file) > 1 and len(chunks) > 5
        for chunk in chunks:
            chunk.value /= _lower_median(medians) if is_comparable else 1
            chunk.is_alone = not is_comparable
    return found


@once
def _polished(recording: Recording) -> tuple[list, dict[File, float], dict[Process, float]]:
    """Alternate between medians of workers and of files."""
    ratios = _ratios(recording)
    files, processes = _comparable(ratios)
    cells = {
        cell: median(chunk.value for chunk in chunks)
        for cell, chunks in grouped(ratios, lambda chunk: (chunk.file, chunk.process)).items()
    }
    of_files = {
        file: _lower_median(value for (name, _), value in cells.items() if name == file)
        for file in files
    }
    of_processes = {
        process: _lower_median(
            value / of_files.get(file, 1)
            for (file, number), value in cells.items()
            if number == process
        )
        for process in processes
    }
    of_files = {
        file: median(
            chunk.value / of_processes.get(chunk.process, 1)
            for chunk in ratios
            if chunk.file == file
        )
        for file in files
    }
    of_processes = {
        process: median(
            chunk.value / of_files.get(chunk.file, 1)
            for chunk in ratios
            if chunk.process == process
        )
        for process in processes
    }
    return ratios, of_files, of_processes


def _comparable(ratios: list) -> tuple[set[File], set[Process]]:
    """Return the files and workers that can be separated."""
    pairs = {(chunk.file, chunk.process) for chunk in ratios}
    files = {file for file, _ in pairs}
    processes = {process for _, process in pairs}
    several_workers = {f for f in files if len({p for file, p in pairs if file == f}) > 1}
    several_files = {p for p in processes if len({f for f, at in pairs if at == p}) > 1}
    in_company = {f for f in files if len({g for g in files if g[0] == f[0]}) > 1}
    if len(processes) > 1:
        in_company &= several_workers
    return in_company, several_files


@once
def _noise(recording: Recording) -> float:
    """Return the standard deviation of the logarithms after both factors are removed."""
    ratios, files, processes = _polished(recording)
    return deviation(
        math.log(chunk.value / files.get(chunk.file, 1) / processes.get(chunk.process, 1))
        for chunk in ratios
    )
