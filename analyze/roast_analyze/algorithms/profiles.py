"""Aggregation and comparison of profiler stacks.

``stacks`` is a frame with rows of the view ``profile_stacks``: stack, frames, samples,
ambiguous_samples, seconds, and for :func:`counted` also counted_samples, lines and
interval_seconds. In the samples of a stack, its last function is the innermost one;
ambiguous samples are in one of several functions that it calls. Both count as total time,
but only the first count as self time.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final, Literal

import polars as pl

from roast_analyze.algorithms.flame_tree import build_tree

#: Columns of :func:`flame_nodes`.
_NODES: Final = {
    "id": pl.Int64,
    "parent": pl.Int64,
    "depth": pl.Int64,
    "name": pl.String,
    "filename": pl.String,
    "line_number": pl.Int64,
    "self_samples": pl.Int64,
    "ambiguous_samples": pl.Int64,
    "total_samples": pl.Int64,
    "self_seconds": pl.Float64,
    "total_seconds": pl.Float64,
}

#: Columns of :func:`counted`, but for the share.
_COUNTED: Final = pl.Schema(
    {
        "stack": pl.List(pl.String),
        "depth": pl.Int64(),
        "samples": pl.Int64(),
        "seconds": pl.Float64(),
    }
)

#: Root of Dask's profiles, which has no function.
_ROOT_LABEL: Final = "@:0"


def merge_stacks(stacks: pl.DataFrame) -> pl.DataFrame:
    """Add up the rows of each stack over all workers and times, the most time first.

    Returns
    -------
    polars.DataFrame
        stack, frames, samples, ambiguous_samples, seconds.
    """
    return (
        stacks.group_by("stack")
        .agg(
            pl.col("frames").first(),
            pl.col("samples", "ambiguous_samples").sum(),
            pl.col("seconds").sum(),
        )
        .sort("seconds", pl.col("stack").list.join(";"), descending=[True, False])
    )


def flame_nodes(stacks: pl.DataFrame) -> pl.DataFrame:
    """Return the tree of stacks for a flame graph.

    Returns
    -------
    polars.DataFrame
        One row per node, the root (id 0, depth 0, no name) first: id, parent, depth, name,
        filename, line_number, self_samples, ambiguous_samples, total_samples, self_seconds,
        total_seconds. A node is followed by the subtrees of its children, those with the
        most samples first.
    """
    merged = merge_stacks(stacks).with_columns(pl.col("seconds").fill_null(0.0))
    tree, leaves = build_tree(merged["frames"], special=[(None, None, None)])
    count = len(tree.parents)
    samples, ambiguous, totals = [0] * count, [0] * count, [0] * count
    self_seconds, seconds = [0.0] * count, [0.0] * count
    labels = [""] * count
    columns = ("stack", "samples", "ambiguous_samples", "seconds")
    for leaf, row in zip(leaves, merged.select(columns).iter_rows(), strict=True):
        stack, own, undecided, time = row
        samples[leaf] += own
        ambiguous[leaf] += undecided
        totals[leaf] += own + undecided
        seconds[leaf] += time
        self_seconds[leaf] += time * own / (own + undecided) if undecided else time
        node = leaf
        # Labels order children of as many samples.
        for label in reversed(stack):
            labels[node] = label
            node = tree.parents[node]
    tree.add_to_parents(totals)
    tree.add_to_parents(seconds)
    children: list[list[int]] = [[] for _ in range(count)]
    for node in range(1, count):
        children[tree.parents[node]].append(node)
    rows: list[tuple[object, ...]] = []
    pending: list[tuple[int, int | None, int]] = [(0, None, 0)]
    while pending:
        node, parent, depth = pending.pop()
        number = len(rows)
        rows.append(
            (
                number, parent, depth, *tree.frames[tree.node_frames[node]], samples[node],
                ambiguous[node], totals[node], self_seconds[node], seconds[node],
            )
        )  # fmt: skip
        # The next one to visit is the last one of the list.
        ranked = sorted(children[node], key=lambda child: (-totals[child], labels[child]))
        pending += [(child, number, depth + 1) for child in reversed(ranked)]
    return pl.DataFrame(rows, schema=_NODES, orient="row")


def difference(
    stacks: pl.DataFrame,
    baseline: pl.DataFrame,
    *,
    by: Literal["stack", "function"] = "stack",
) -> pl.DataFrame:
    """Compare two profiles of any length by shares of their sampled time.

    Parameters
    ----------
    stacks, baseline : polars.DataFrame
        The new and the old profile.
    by : {'stack', 'function'}
        What to compare. The share of a stack is that of its samples and ambiguous samples.
        The share of a function is that of all samples that contain it, counted once however
        often it calls itself; its self share is that of the samples in which it is innermost.

    Returns
    -------
    polars.DataFrame
        The stack and its frames, or function; share, baseline_share, difference (share
        minus baseline_share), and for functions self_share, baseline_self_share and
        self_difference. The largest increase comes first. Shares are between 0 and 1.
    """
    now, before = _shares(stacks, by), _shares(baseline, by)
    columns = []
    for name in now.columns:
        new, old = pl.col(name), pl.col(f"{name}_before")
        if name.endswith("share"):
            new, old = new.fill_null(0.0), old.fill_null(0.0)
            difference = (new - old).alias(name.replace("share", "difference"))
            columns += [new, old.alias(f"baseline_{name}"), difference]
        else:
            columns.append(new if name == by else pl.coalesce(new, old))
    tie = pl.col("stack").list.join("\x1f") if by == "stack" else pl.col(by)
    return (
        now.join(before, on=by, how="full", coalesce=True, suffix="_before")
        .select(columns)
        .sort("difference", tie, descending=[True, False])
    )


def _shares(stacks: pl.DataFrame, by: Literal["stack", "function"]) -> pl.DataFrame:
    """Return the shares of each stack or function."""
    merged = merge_stacks(stacks)
    samples, stack, seconds = pl.col("samples"), pl.col("stack"), pl.col("seconds")
    if by == "stack":
        return merged.select("stack", "frames", share=seconds / seconds.sum())
    whole = merged["seconds"].sum() or 1.0
    # All time is self time without ambiguous samples, also if Yappi's are rounded to none.
    certain = (samples / (samples + pl.col("ambiguous_samples"))).fill_nan(1.0)
    own = pl.col("self_seconds").filter(pl.col("function") == pl.col("innermost"))
    return (
        merged.filter(stack.list.len() > 0)
        .select(
            "seconds",
            self_seconds=seconds * certain,
            innermost=stack.list.last(),
            function=stack.list.unique(),
        )
        .explode("function")
        .group_by("function")
        .agg(share=seconds.sum() / whole, self_share=own.sum() / whole)
    )


def counted(stacks: pl.DataFrame) -> pl.DataFrame:
    """Count samples as Dask does: those of a function minus those of the functions it calls.

    This omits the innermost function of a sample and counts the time at its caller. A
    function is named ``name@file:line`` with the line first seen in it; Dask's root, which
    has no name, begins each stack.

    Returns
    -------
    polars.DataFrame
        stack (list), depth, samples, seconds, share; the most samples first.
    """
    # Number and first seen line of each node, by parent and label.
    nodes: dict[tuple[int, str], tuple[int, int]] = {}
    ordered = stacks.sort("start_t", maintain_order=True) if "start_t" in stacks else stacks
    for row in ordered.iter_rows(named=True):
        path = 0
        seen = row["lines"] or [None] * len(row["stack"])
        for label, frame, line in zip(row["stack"], row["frames"], seen, strict=True):
            first = (len(nodes) + 1, line or frame["line_number"] or 0)
            path, _ = nodes.setdefault((path, label), first)
    samples: dict[tuple[str, ...], int] = defaultdict(int)
    seconds: dict[tuple[str, ...], float] = defaultdict(float)
    for row in stacks.filter(pl.col("counted_samples") > 0).iter_rows(named=True):
        labels, path = [_ROOT_LABEL], 0
        for label, frame in zip(row["stack"], row["frames"], strict=True):
            path, line = nodes[path, label]
            name, file = (frame[part] or "" for part in ("name", "filename"))
            labels.append(f"{name.strip()}@{file.strip()}:{line}")
        samples[tuple(labels)] += row["counted_samples"]
        seconds[tuple(labels)] += row["counted_samples"] * (row["interval_seconds"] or 0.0)
    rows = [(list(stack), len(stack), n, seconds[stack]) for stack, n in samples.items()]
    return (
        pl.DataFrame(rows, schema=_COUNTED, orient="row")
        .with_columns(share=pl.col("samples") / pl.col("samples").sum())
        .sort("samples", pl.col("stack").list.join(";"), descending=[True, False])
    )
