"""Sentences about chunks: their durations, their activities, and causes of slowness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.report import quantities as q
from roast_analyze.safe_text import named, shortened, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roast_analyze.report.listing import Listing
    from roast_analyze.report.run import Run
    from roast_analyze.report.topics.chunks import Chunks

#: Maximum number of datasets whose cost per chunk a sentence describes.
COST_SENTENCES: Final = 4


def durations(found: Chunks, run: Run) -> str:
    """Compare the slowest chunk with the median, and count what failed."""
    done = found.points.filter(pl.col("outcome") == "memory")
    median = q.as_float(done["compute_seconds"].median())
    text = (
        "Each point is a chunk attempt; in the left panel, points above the dotted line are "
        "slower than the median rate."
    )
    # A single chunk is both the median and the slowest.
    if median and done.height > 1:
        slowest = done.sort("compute_seconds", descending=True, nulls_last=True)
        name, seconds = slowest.select("filename", "compute_seconds").row(0)
        text += (
            f" The median compute time was {q.seconds(median)}; the slowest chunk took "
            f"{q.seconds(seconds)}, {seconds / median:.1f} times as long"
            f"{f' (in {_short(name)})' if _short(name) else ''}."
        )
    if run.failed_chunks:
        text += f" {q.counted(run.failed_chunks, 'chunk attempt')} failed."
        if run.skipped:
            chunks = q.counted(run.skipped, "of them was", "of them were")
            text += f" {chunks} skipped: the exception was suppressed (skipbadfiles)."
    if run.checkpointed_chunks:
        text += (
            f" The results of {q.counted(run.checkpointed_chunks, 'chunk')} came from a "
            "checkpoint, so their number of events is unknown."
        )
    return text


def time_spent(run: Run) -> str:
    """Divide the compute time of chunks by activity."""
    if run.process_seconds is None and run.read_seconds is None:
        return "Reading and the time of chunks by activity were not measured."
    total = run.chunk_seconds or 0.0
    parts = [
        (run.open_seconds, "opening files"),
        (run.process_seconds, "in the processor"),
        (run.read_seconds, "reading columns, inside or before the processor"),
    ]
    shares = [
        f"{q.seconds(seconds)} ({q.share(seconds / total)}) {activity}"
        for seconds, activity in parts
        if seconds is not None and total
    ]
    text = f"Chunk attempts computed for {q.seconds(total)}"
    text += f": {q.series(shares)}." if shares else "."
    measured = (run.cpu_seconds or 0.0) + (run.wait_seconds or 0.0)
    if run.cpu_seconds is not None and measured:
        text += (
            f" Their threads were on the CPU {q.share(run.cpu_seconds / measured)} of the time."
        )
    return text


def merging(run: Run) -> str:
    """Compare the merging of results with the processing of chunks; empty without merging."""
    if not run.merge_seconds or not run.chunk_seconds:
        return ""
    share = run.merge_seconds / run.chunk_seconds
    compared = (
        f"{share:.1f} times the compute time of the chunks"
        if share > 1
        else f"{q.share(share)} of the compute time of the chunks"
    )
    return f"Merging results took {q.seconds(run.merge_seconds)}, {compared}."


def slow(found: Chunks, worker_names: Mapping[str, str]) -> str:
    """Name the slow files and workers, each corrected for the effects of the other.

    `worker_names` are by address.
    """
    if not found.comparable_files and not found.comparable_workers:
        return (
            "Slow files and slow workers cannot be told apart: that requires several files of "
            "a dataset, each processed on several workers."
        )
    sentences = []
    for listing, column, comparable, noun, others in (
        (found.slow_files, "filename", found.comparable_files, "file", "the speed of workers"),
        (found.slow_workers, "worker", found.comparable_workers, "worker", "the cost of files"),
    ):
        names = [
            f"{worker_names.get(row[column]) or _short(row[column])} "
            f"({row['relative_duration']:.1f} ± {row['relative_duration_error']:.1f} times the "
            "usual duration)"
            for row in listing.rows.iter_rows(named=True)
        ]
        if names:
            plural = noun if len(names) == 1 else f"{noun}s"
            more = q.and_more(listing.total, len(names))
            sentences.append(f"Slow {plural}, corrected for {others}: {q.series(names)}{more}.")
        elif comparable:
            number = f"None of the {q.count(comparable)} comparable {noun}s is"
            if comparable == 1:
                number = f"The only comparable {noun} is not"
            sentences.append(f"{number} slow, corrected for {others}.")
    return " ".join(sentences)


def branches(top: Listing) -> str:
    """Name the most expensive branches over all datasets; empty if none was measured."""
    if top.rows.is_empty():
        return ""
    by_time = top.rows["read_share"].null_count() == 0
    share = "read_share" if by_time else "byte_share"
    names = [
        f"{named(name)} ({q.share(value)})"
        for name, value in top.rows.select("branch", share).iter_rows()
    ]
    measure = "reading time" if by_time else "bytes read"
    return f"The most expensive branches by {measure}: {q.series(names)}."


def costs(costs: Listing) -> list[str]:
    """Describe for each dataset the cost of a chunk and the recommended size, or why not.

    Datasets without a model share a sentence with its reason.
    """
    known = costs.rows.filter("is_known")
    sentences = []
    for row in known.head(COST_SENTENCES).iter_rows(named=True):
        fixed = f"{q.seconds(row['fixed_seconds'])} (± {q.seconds(row['fixed_error_seconds'])})"
        # Per thousand events, because the time per event is too short to be familiar.
        variable = q.seconds(1e3 * row["seconds_per_event"])
        error = q.share(row["relative_error"])
        size = f"the median chunk has {q.count(row['median_events'])} events"
        if row["recommended_events"] not in (None, row["median_events"]):
            size += (
                f", the recommended size is {q.count(row['recommended_events'])} (the run time "
                f"changes by less than 2 % between {q.count(row['min_events'])} and "
                f"{q.count(row['max_events'])})"
            )
        sentences.append(
            f"{named(row['dataset'] or None, '(no dataset)')}: a chunk costs {fixed} plus "
            f"{variable} per 1,000 events (median model error {error}); {size}; {row['note']}."
        )
    if known.height > len(sentences):
        more = q.counted(known.height - len(sentences), "more dataset")
        sentences.append(f"The table contains {more}.")
    unknown = costs.rows.filter(~pl.col("is_known"))
    for (note,), some in unknown.group_by("note", maintain_order=True):
        names = [
            named(name or None, "(no dataset)") for name in some["dataset"].head(COST_SENTENCES)
        ]
        more = q.and_more(some.height, len(names))
        sentences.append(f"Cost of a chunk of {q.series(names)}{more}: {note}.")
    return sentences


def _short(name: object) -> str:
    """Return the last part of the path of a file, or a name, fit for a sentence."""
    return shortened(visible(str(name or "")).rsplit("/", 1)[-1], 60)
