"""Sentences about tasks: their prefixes, groups, roles in coffea, and stragglers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roast_analyze.report import quantities as q
from roast_analyze.safe_text import named

if TYPE_CHECKING:
    from roast_analyze.report.listing import Listing


def prefixes(prefixes: Listing, compute_seconds: float) -> str:
    """Describe the prefix with the most compute time."""
    text = "The prefix of a task is the beginning of its key, usually a function name."
    top = prefixes.rows.row(0, named=True)
    if compute_seconds and top["compute_seconds"] is not None:
        text += (
            f" {named(top['prefix'], 'Tasks without a prefix')} took "
            f"{q.share(top['compute_seconds'] / compute_seconds)} of the compute time: "
            f"{q.counted(top['task_runs'], 'attempt')} with a median of "
            f"{q.seconds(top['median_compute_seconds'])}."
        )
    return text


def roles(roles: Listing) -> str:
    """Compare the compute time of chunks, merging and other tasks; empty without coffea."""
    shares = dict(roles.rows.select("role", "compute_share").iter_rows())
    chunks, merging = shares.get("chunk"), shares.get("merge")
    if chunks is None:
        return ""
    # Rounded shares can add up to slightly more than 1.
    other = max(1 - chunks - (merging or 0), 0.0)
    merged = f", merging for {q.share(merging)}" if merging else ""
    return (
        f"Chunks account for {q.share(chunks)} of the compute time{merged}, other tasks for "
        f"{q.share(other)}."
    )


def task_groups(groups: Listing) -> str:
    """Count the task groups, and describe the most expensive one; empty without any."""
    if not groups.total:
        return ""
    top = groups.rows.row(0, named=True)
    return (
        f"The tasks form {q.count(groups.total)} groups, the layers of the graphs. The most "
        f"expensive, {named(top['task_group'], 'no group')}, computed for "
        f"{q.seconds(top['compute_seconds'])} in {q.counted(top['task_runs'], 'attempt')}."
    )


def stragglers(stragglers: Listing, prefixes: Listing) -> str:
    """Count the stragglers and describe the worst; empty if no prefix has enough attempts."""
    if not stragglers.total:
        # The view compares only these.
        if not (prefixes.rows["memory"] >= 10).any():
            return ""
        return (
            "Of the prefixes with at least 10 successful attempts, none has an attempt that "
            "took at least twice the usual time."
        )
    worst = stragglers.rows.row(0, named=True)
    ratio = worst["relative_duration"]
    times = f", {q.number(ratio)} times as long" if ratio else ""
    where, on_main = "", worst["on_main_worker"]
    # Fewer than five on one worker can be by chance.
    if on_main >= max(5, 0.8 * stragglers.total):
        many = "all" if on_main == stragglers.total else q.count(on_main)
        where = f", {many} of them on worker {named(worst['main_worker'])}"
    return (
        f"{q.counted(stragglers.total, 'attempt')} took at least twice the usual time of the "
        f"prefix{where}, {q.seconds(worst['all_excess_seconds'])} more in total. The worst, "
        f"{named(worst['task'])}, took {q.seconds(worst['compute_seconds'])} instead of "
        f"{q.seconds(worst['median_seconds'])}{times}."
    )
