"""Totals of chunks by dataset and file."""

from nightly.chunks import FAILED, chunk_attempts
from nightly.recording import Recording, Row
from nightly.relative_duration import slow_files
from nightly.totals import (
    column,
    costliest_first,
    grouped,
    mean,
    median,
    most,
    ratio,
    relative_iqr,
    total,
)

#: Columns that are sums over all attempts.
SUMMED = (
    "bytes_read", "compute_seconds", "process_seconds", "open_seconds", "read_seconds",
    "cpu_seconds", "wait_seconds", "requests", "compressed_bytes", "uncompressed_bytes",
)  # fmt: skip


def datasets(recording: Recording) -> list[Row]:
    """Return one row per dataset, highest compute time first."""
    rows = []
    by_dataset = grouped(chunk_attempts(recording), lambda row: row["dataset"])
    for dataset, attempts in by_dataset.items():
        files = grouped(attempts, lambda row: (row["filename"], row["treename"])).values()
        read = [(bytes_of_results(of), most(column(of, "file_bytes"))) for of in files]
        both = [pair for pair in read if None not in pair]
        rows.append(
            {
                "dataset": dataset,
                "files": len(set(column(attempts, "filename"))),
                "output_bytes": total(column(attempts, "output_bytes")),
                "kept_seconds": kept_seconds(attempts),
                "slowest_file": slowest(attempts, "filename"),
                "branch_share": mean(
                    ratio(row["branches_read"], row["file_branches"])
                    for row in results(attempts)
                ),
                "file_read_ratio": ratio(
                    total(pair[0] for pair in both), total(pair[1] for pair in both)
                ),
                **totals(attempts, recording),
            }
        )
    return costliest_first(rows, "compute_seconds", "dataset")


def kept_seconds(attempts: list[Row]) -> float | None:
    """Return the compute time of attempts whose result was kept."""
    return total(row["compute_seconds"] for row in attempts if row["kept"])


def files(recording: Recording) -> list[Row]:
    """Return one row per dataset, file and tree, highest compute time first."""
    names = ("dataset", "filename", "treename")
    slow = slow_files(recording)
    unknown = {"relative_duration": None, "relative_duration_error": None, "is_slow": None}
    rows = []
    for file, attempts in grouped(
        chunk_attempts(recording), lambda row: tuple(row[name] for name in names)
    ).items():
        largest = {
            name: most(column(attempts, name))
            for name in ("file_bytes", "file_branches", "branches_read")
        }
        rows.append(
            {
                **dict(zip(names, file, strict=True)),
                "workers": len(set(column(attempts, "worker"))),
                "slowest_worker": slowest(attempts, "worker"),
                "source": next(iter(column(attempts, "source")), None),
                **largest,
                "file_read_ratio": ratio(bytes_of_results(attempts), largest["file_bytes"]),
                "branch_share": ratio(largest["branches_read"], largest["file_branches"]),
                **totals(attempts, recording),
                # The rate of a file does not depend on failed attempts.
                "events_per_second": ratio(
                    total(column(results(attempts), "events")),
                    seconds_without_checkpoint(results(attempts)),
                ),
                **slow.get(file, unknown),
            }
        )
    return costliest_first(rows, "compute_seconds", *names)


def totals(attempts: list[Row], recording: Recording) -> Row:
    """Return the columns common to files and datasets."""
    done = results(attempts)
    ended_well = [row["compute_seconds"] for row in attempts if row["outcome"] == "memory"]
    everything = total(column(chunk_attempts(recording), "compute_seconds"))
    sums = {name: total(column(attempts, name)) for name in SUMMED}
    return {
        **sums,
        "chunks": len(done),
        "chunk_attempts": len(attempts),
        "events": events_of(done),
        "events_per_second": ratio(
            total(column(done, "events")), seconds_without_checkpoint(attempts)
        ),
        "failed_attempts": sum(row["outcome"] in FAILED for row in attempts),
        "bytes_per_second": bytes_per_second(attempts),
        "compute_share": ratio(sums["compute_seconds"], everything),
        "median_compute_seconds": median(ended_well),
        "max_compute_seconds": most(ended_well),
        "relative_iqr": relative_iqr(column(attempts, "event_seconds")),
        "compression_ratio": compression_ratio(attempts),
        "checkpointed_chunks": sum(row["from_checkpoint"] is True for row in done),
        "bytes_per_event": ratio(
            total(column(done, "bytes_read")),
            total(row["events"] for row in done if row["bytes_read"] is not None),
        ),
    }


def results(attempts: list[Row]) -> list[Row]:
    """Return the first results."""
    return [row for row in attempts if row["is_first_result"]]


def events_of(done: list[Row]) -> int | None:
    """Return the sum of events: 0 without chunks, None if unknown for all."""
    return total(column(done, "events")) if done else 0


def seconds_without_checkpoint(attempts: list[Row]) -> float | None:
    """Return the compute time of all attempts except results from a checkpoint."""
    return total(row["compute_seconds"] for row in attempts if not row["from_checkpoint"])


def bytes_per_second(attempts: list[Row]) -> float | None:
    """Divide bytes by the compute time of the attempts that measured them."""
    measured = [row for row in attempts if row["bytes_read"] is not None]
    return ratio(
        total(column(measured, "bytes_read")), total(column(measured, "compute_seconds"))
    )


def bytes_of_results(attempts: list[Row]) -> int | None:
    """Return the bytes read by processed chunks."""
    return total(column(results(attempts), "bytes_read"))


def compression_ratio(attempts: list[Row]) -> float | None:
    """Divide uncompressed by compressed bytes, of branches with both known."""
    return ratio(
        total(column(attempts, "unpacked_bytes")), total(column(attempts, "packed_bytes"))
    )


def slowest(attempts: list[Row], name: str) -> str | None:
    """Return the file or worker (first by name) of the chunk with most seconds per event."""
    rated = [row for row in attempts if None not in (row["event_seconds"], row[name])]
    slow = max(column(rated, "event_seconds"), default=None)
    return min((row[name] for row in rated if row["event_seconds"] == slow), default=None)
