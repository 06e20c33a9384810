"""Stacks of the profiler, put together: trees for flame graphs, and what became slower.

``stacks`` is a frame as the view ``profile_stacks`` gives it, or any rows of it: stack,
frames, samples, ambiguous_samples, seconds, and for :func:`counted` also counted_samples,
lines and interval_seconds. Samples of a stack are those in which its last function was the
innermost one; undecided samples lie in one of several functions that this one calls. Both
count in the totals, and only the first as a function's own time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

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

#: Dask's root in seed's counting, which has no function.
_ROOT_LABEL: Final = "@:0"


def merge_stacks(stacks: pl.DataFrame) -> pl.DataFrame:
    """Add up what is told of the same stack, by whichever worker and whenever.

    Parameters
    ----------
    stacks : polars.DataFrame

    Returns
    -------
    polars.DataFrame
        stack, frames, samples, ambiguous_samples, seconds; the most time first.
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
    """Make a tree of stacks, for a flame graph.

    Parameters
    ----------
    stacks : polars.DataFrame

    Returns
    -------
    polars.DataFrame
        A row for each function that was called from another one, the root (id 0, depth 0,
        no name) first: id, parent, depth, name, filename, line_number, self_samples,
        ambiguous_samples, total_samples, self_seconds, total_seconds. A node comes before
        what it calls, and that before the next node beside it; of those the one with the
        most samples first.
    """
    root = _Node()
    for row in merge_stacks(stacks).iter_rows(named=True):
        samples, undecided = row["samples"], row["ambiguous_samples"]
        seconds = row["seconds"] or 0.0
        node = root
        node.add_total(samples + undecided, seconds)
        for label, frame in zip(row["stack"], row["frames"], strict=True):
            node = node.child(label, frame)
            node.add_total(samples + undecided, seconds)
        node.self_samples += samples
        node.ambiguous_samples += undecided
        node.self_seconds += seconds * samples / max(samples + undecided, 1)
    return pl.DataFrame(list(_numbered(root)), schema=_NODES, orient="row")


def difference(
    stacks: pl.DataFrame,
    baseline: pl.DataFrame,
    *,
    by: Literal["stack", "function"] = "stack",
) -> pl.DataFrame:
    """Compare two profiles by their shares of the time sampled, however long each is.

    Parameters
    ----------
    stacks, baseline : polars.DataFrame
        Now and before.
    by : {'stack', 'function'}
        What is compared. A stack's share is that of its samples and undecided samples. A
        function's is that of all samples in whose stack it is, once however often it calls
        itself; its own share is that of the samples in which it was innermost.

    Returns
    -------
    polars.DataFrame
        The stack and its frames, or function; share, baseline_share, difference (share
        minus baseline_share), and for functions self_share, baseline_self_share and
        self_difference. What became slower comes first. Shares lie between 0 and 1.
    """
    values = ["share"] if by == "stack" else ["share", "self_share"]
    if by == "stack":
        now, before = (
            merge_stacks(some).select(
                "stack", "frames", share=pl.col("seconds") / pl.col("seconds").sum()
            )
            for some in (stacks, baseline)
        )
    else:
        now, before = _functions(stacks), _functions(baseline)
    # A column of text stands for the stack: lists are no keys of a join.
    key = pl.col("stack").list.join("\x1f") if by == "stack" else pl.col("function")
    joined = now.with_columns(key=key).join(
        before.with_columns(key=key), on="key", how="full", coalesce=True, suffix="_before"
    )
    told = [pl.coalesce(column, f"{column}_before") for column in now.columns[: -len(values)]]
    pairs = [(value, f"{value}_before", f"baseline_{value}") for value in values]
    shares = [
        column
        for value, other, named in pairs
        for column in (
            pl.col(value).fill_null(0.0),
            pl.col(other).fill_null(0.0).alias(named),
            (pl.col(value).fill_null(0.0) - pl.col(other).fill_null(0.0)).alias(
                value.replace("share", "difference")
            ),
        )
    ]
    return (
        joined.select(*told, *shares, "key")
        .sort("difference", "key", descending=[True, False])
        .drop("key")
    )


def counted(stacks: pl.DataFrame) -> pl.DataFrame:
    """Count as Dask does: exclusive samples are a function's minus those of what it calls.

    The innermost function of a sample is then left out, and the time stands at the one that
    called it. A function is named ``name@file:line`` with the line first seen in it, and
    Dask's root, which has no name, is the first of each stack.

    Parameters
    ----------
    stacks : polars.DataFrame
        With counted_samples, lines and interval_seconds.

    Returns
    -------
    polars.DataFrame
        stack (list), depth, samples, seconds, share; the most samples first.
    """
    lines = _first_lines(stacks)
    samples: dict[tuple[str, ...], int] = defaultdict(int)
    seconds: dict[tuple[str, ...], float] = defaultdict(float)
    for row in stacks.filter(pl.col("counted_samples") > 0).iter_rows(named=True):
        labels, path = [_ROOT_LABEL], 0
        for label, frame in zip(row["stack"], row["frames"], strict=True):
            path, line = lines[path, label]
            name, file = (frame[part] or "" for part in ("name", "filename"))
            labels.append(f"{name.strip()}@{file.strip()}:{line}")
        samples[tuple(labels)] += row["counted_samples"]
        seconds[tuple(labels)] += row["counted_samples"] * (row["interval_seconds"] or 0.0)
    told = [(list(stack), len(stack), n, seconds[stack]) for stack, n in samples.items()]
    return (
        pl.DataFrame(told, schema=_COUNTED, orient="row")
        .with_columns(share=pl.col("samples") / pl.col("samples").sum())
        .sort("samples", pl.col("stack").list.join(";"), descending=[True, False])
    )


@dataclass(slots=True)
class _Node:
    """A function in a tree, called from the one above it."""

    frame: dict[str, Any] = field(default_factory=dict)
    children: dict[str, _Node] = field(default_factory=dict)
    self_samples: int = 0
    ambiguous_samples: int = 0
    total_samples: int = 0
    self_seconds: float = 0.0
    total_seconds: float = 0.0

    def child(self, label: str, frame: dict[str, Any]) -> _Node:
        if label not in self.children:
            self.children[label] = _Node(frame)
        return self.children[label]

    def add_total(self, samples: int, seconds: float) -> None:
        self.total_samples += samples
        self.total_seconds += seconds


def _numbered(root: _Node) -> Iterator[tuple[object, ...]]:
    waiting: list[tuple[_Node, int | None, int]] = [(root, None, 0)]
    number = 0
    while waiting:
        node, parent, depth = waiting.pop()
        yield (
            number,
            parent,
            depth,
            *(node.frame.get(part) for part in ("name", "filename", "line_number")),
            node.self_samples,
            node.ambiguous_samples,
            node.total_samples,
            node.self_seconds,
            node.total_seconds,
        )
        rising = sorted(
            node.children.items(), key=lambda item: (-item[1].total_samples, item[0])
        )[::-1]
        waiting += [(child, number, depth + 1) for _, child in rising]
        number += 1


def _functions(stacks: pl.DataFrame) -> pl.DataFrame:
    """Give each function's share, and its own, of the time that was sampled."""
    merged = merge_stacks(stacks).with_row_index("row")
    whole = merged["seconds"].sum() or 1.0
    own = (
        merged.filter(pl.col("samples") > 0, pl.col("stack").list.len() > 0)
        .with_columns(
            pl.col("seconds")
            * pl.col("samples")
            / (pl.col("samples") + pl.col("ambiguous_samples"))
        )
        .group_by(function=pl.col("stack").list.last())
        .agg(self_share=pl.col("seconds").sum() / whole)
    )
    return (
        merged.filter(pl.col("stack").list.len() > 0)
        .select("seconds", function=pl.col("stack").list.unique())
        .explode("function")
        .group_by("function")
        .agg(share=pl.col("seconds").sum() / whole)
        .join(own, on="function", how="left")
        .with_columns(pl.col("self_share").fill_null(0.0))
    )


def _first_lines(stacks: pl.DataFrame) -> dict[tuple[int, str], tuple[int, int]]:
    """Give every node, by parent and label, a number and the line first seen in it."""
    nodes: dict[tuple[int, str], tuple[int, int]] = {}
    ordered = stacks.sort("start_t", maintain_order=True) if "start_t" in stacks else stacks
    for row in ordered.iter_rows(named=True):
        path = 0
        told = row["lines"] or [None] * len(row["stack"])
        for label, frame, line in zip(row["stack"], row["frames"], told, strict=True):
            if (path, label) not in nodes:
                nodes[path, label] = (len(nodes) + 1, line or frame["line_number"] or 0)
            path = nodes[path, label][0]
    return nodes
