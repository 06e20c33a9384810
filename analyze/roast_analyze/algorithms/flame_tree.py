"""Trees of stacks: the data structure of flame graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

Number = TypeVar("Number", int, float)
#: Name, file and line of a function.
Frame = tuple[str | None, str | None, int | None]


@dataclass(frozen=True)
class FlameTree:
    """Nodes that refer to functions; node 0 is the root, and a parent precedes its children."""

    #: Name, file and line of each function; the first is that of the root.
    frames: list[Frame]
    #: Parent of each node; the root is its own.
    parents: list[int]
    #: Function of each node.
    node_frames: list[int]

    def add(self, parent: int, frame: int) -> int:
        """Add a node and return its number."""
        self.parents.append(parent)
        self.node_frames.append(frame)
        return len(self.parents) - 1

    def depths(self) -> list[int]:
        """Return the depth of each node; the root has depth 0."""
        depths = [0] * len(self.parents)
        for node in range(1, len(depths)):
            depths[node] = depths[self.parents[node]] + 1
        return depths

    def add_to_parents(self, values: list[Number]) -> None:
        """Add the value of each node to all nodes above it, in place."""
        for node in range(len(values) - 1, 0, -1):
            values[self.parents[node]] += values[node]


def build_tree(
    stacks: pl.Series, special: Sequence[Frame] = (("all", "", 0),)
) -> tuple[FlameTree, list[int]]:
    """Merge stacks into a tree.

    Parameters
    ----------
    stacks : polars.Series
        Lists of structs of name, filename and line_number, the outermost function first.
    special : sequence of tuple
        Functions to number before those of the stacks; the first is the root.

    Returns
    -------
    FlameTree
    list of int
        Innermost node of each stack.
    """
    # Functions are numbered, because comparing numbers is much faster than comparing frames.
    columns = ["name", "filename", "line_number"]
    flat = (
        pl.DataFrame({"frames": stacks})
        .with_row_index("stack")
        .filter(pl.col("frames").list.len() > 0)
        .explode("frames")
        .unnest("frames")
    )
    known = flat.select(columns).unique(maintain_order=True)
    numbered = (
        flat.join(
            known.with_row_index("frame", offset=len(special)),
            on=columns, how="left", nulls_equal=True, maintain_order="left",
        )
        .group_by("stack", maintain_order=True)
        .agg(pl.col("frame"))
    )  # fmt: skip
    rows: list[list[int]] = [[] for _ in range(len(stacks))]
    for stack, row in numbered.iter_rows():
        rows[stack] = row
    tree = FlameTree([*special, *known.iter_rows()], [0], [0])
    leaves = [0] * len(rows)
    path, before = [0], list[int]()
    # In sorted order, the longest common beginning is that with the previous stack.
    for row in sorted(range(len(rows)), key=rows.__getitem__):
        stack = rows[row]
        common = 0
        for a, b in zip(before, stack, strict=False):
            if a != b:
                break
            common += 1
        del path[common + 1 :]
        for frame in stack[common:]:
            path.append(tree.add(path[-1], frame))
        leaves[row] = path[-1]
        before = stack
    return tree, leaves
