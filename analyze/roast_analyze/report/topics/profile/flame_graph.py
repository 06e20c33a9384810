"""The data of the flame graph, encoded in small integers for the scripts of the page.

Packed JSON contains functions, a tree of them with every parent before its children, groups
(pairs of worker and prefix), and the number of samples by node, group and bucket. Its size is
bounded, whatever the run: beyond the bounds the rarest and deepest parts of the tree become
nodes named "(rare)" below their callers, and workers and prefixes with few samples share a
group. Ambiguous samples are in nodes named "(one of several)".
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.algorithms.flame_tree import FlameTree, build_tree
from roast_analyze.report.packed import deltas, pack
from roast_analyze.report.section import Choice
from roast_analyze.safe_text import named, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

    from roast_analyze.report.topics.profile import Profiles

#: Maximum number of nodes of the tree, of counts of samples, and of characters of names.
MOST_NODES: Final = 600_000
MOST_COUNTS: Final = 200_000
MOST_CHARACTERS: Final = 1_500_000
#: Maximum number of workers and prefixes to choose from.
MOST_WORKERS: Final = 250
MOST_PREFIXES: Final = 100
#: Maximum number of Yappi files to choose from.
MOST_LOGS: Final = 50
#: Maximum number of characters of the name of a function, and of its file.
NAME_CHARACTERS: Final = 100
FILE_CHARACTERS: Final = 120

#: Kinds of functions. The scripts of the page use the same numbers.
OWN, LIBRARY, DASK, ONE_OF_SEVERAL, RARE, ROOT = range(6)
#: Number of the scheduler among the workers; Yappi files have the numbers below it.
_SCHEDULER: Final = -1
#: Columns that identify a group of samples.
_GROUP: Final = ["log", "worker", "prefix", "interval_seconds"]
#: Columns of a count of samples.
_CELL: Final = ("node", "group", "bucket")
#: Functions of every tree that are not code.
_ROOT_FRAME, _SEVERAL_FRAME, _RARE_FRAME = range(3)
_SPECIAL: Final = (("all", "", 0), ("(one of several)", "", 0), ("(rare)", "", 0))

_DASK: Final = re.compile(
    r"(^|[/\\])(site-packages|dist-packages)[/\\](dask|distributed)[/\\]"
    r"|(^|[/\\])distributed[/\\]([a-z_]+\.py|(comm|protocol|shuffle|diagnostics)[/\\])"
    r"|(^|[/\\])dask[/\\]([a-z_]+\.py|(array|bag|dataframe|diagnostics)[/\\])"
)
#: Files of libraries, as an expression of Python and of DuckDB.
LIBRARY_PATTERN: Final = (
    r"(^|[/\\])(site-packages|dist-packages)[/\\]|(^|[/\\])lib(64)?[/\\]python\d"
    r"|[/\\]Lib[/\\]|^<(frozen|__array_function__|attrs generated)"
)
_LIBRARY: Final = re.compile(LIBRARY_PATTERN)


@dataclass(frozen=True, kw_only=True)
class Flame:
    """The flame graph of the page."""

    #: Packed JSON.
    embedded: Markup
    #: Entries of the selects.
    workers: tuple[Choice, ...]
    prefixes: tuple[Choice, ...]
    #: Yappi files, which can be chosen instead of a worker.
    logs: tuple[Choice, ...]
    #: Whether the scheduler was sampled.
    has_scheduler: bool
    #: Samples of all workers and the scheduler, without Yappi's; those of them that are
    #: ambiguous; those whose stack is cut off at a node named "(rare)".
    samples: int
    ambiguous: int
    rare: int
    #: The SQL and the command that return its data.
    query: str
    command: str


def library_kind(filename: str) -> int:
    """Classify a function by its file: :data:`OWN`, :data:`LIBRARY` or :data:`DASK`.

    Installed packages count as libraries, the user's own too.
    """
    if _DASK.search(filename):
        return DASK
    return LIBRARY if _LIBRARY.search(filename) else OWN


def build(
    profiles: Profiles, *, start_t: float, names: Mapping[str, str], command: str
) -> Flame:
    """Encode the flame graph of samples of at least one stack.

    ``start_t`` is the origin of times; ``names`` contains the name shown for each worker.
    """
    tree, leaves = build_tree(profiles.stacks["frames"], _SPECIAL)
    groups = _Groups.of(profiles.counts)
    counts = profiles.counts.with_columns(
        node=pl.lit(pl.Series(leaves, dtype=pl.Int64)).gather(pl.col("place"))
    ).join(groups.numbers, on=_GROUP, how="left", nulls_equal=True)
    # Ambiguous samples have nodes of their own.
    ambiguous = counts.filter(pl.col("ambiguous") > 0)
    several = {
        node: tree.add(node, _SEVERAL_FRAME)
        for node in ambiguous["node"].unique().sort().to_list()
    }
    moved = ambiguous.with_columns(
        pl.col("node").replace_strict(several, return_dtype=pl.Int64), samples="ambiguous"
    )
    known = counts.filter(pl.col("samples") > 0)
    counted = pl.concat(some.select(*_CELL, "samples") for some in (known, moved))
    tree, counts = _bounded(tree, _summed(counted))
    embedded = {
        **_functions(tree),
        "parents": [node - parent for node, parent in enumerate(tree.parents)][1:],
        "nodeFrames": tree.node_frames[1:],
        "groups": groups.listed,
        "nodes": deltas(counts["node"].to_list()),
        "of": counts["group"].to_list(),
        "bins": counts["bucket"].to_list(),
        "samples": counts["samples"].to_list(),
        "binCount": profiles.buckets,
        "binSeconds": profiles.bucket_seconds,
        "start": profiles.start_t - start_t,
    }
    of_dask = [n for n, (worker, _, _) in enumerate(groups.listed) if worker >= _SCHEDULER]
    seen: Counter[int] = Counter()
    for node, samples in (
        counts.filter(pl.col("group").is_in(of_dask)).select("node", "samples").iter_rows()
    ):
        seen[tree.node_frames[node]] += samples
    workers = [names.get(worker or "") or named(worker, "(none)") for worker in groups.workers]
    logs = [f"Yappi: {named(log)}" for log in groups.logs]
    return Flame(
        embedded=pack(embedded),
        workers=_choices(workers, MOST_WORKERS, "({:,} other workers)"),
        prefixes=_choices(
            [named(prefix, "(none)") for prefix in groups.prefixes],
            MOST_PREFIXES,
            "({:,} other prefixes)",
        ),
        logs=tuple(
            replace(choice, value=_log_number(choice.value))
            for choice in _choices(logs, MOST_LOGS, "Yappi: {:,} others")
        ),
        has_scheduler=any(worker == _SCHEDULER for worker, _, _ in groups.listed),
        samples=seen.total(),
        ambiguous=seen[_SEVERAL_FRAME],
        rare=seen[_RARE_FRAME],
        query="SELECT * REPLACE (_folded_stack(stack, frames) AS stack, "
        "_folded_frames(frames) AS frames) FROM profile_stacks",
        command=command,
    )


@dataclass(frozen=True)
class _Groups:
    """Workers and prefixes by their samples, and the pairs of them that were sampled."""

    workers: list[str | None]
    prefixes: list[str | None]
    #: Yappi files, sorted.
    logs: list[str]
    #: Worker (-1: the scheduler, -2 and below: a Yappi file), prefix (-1: none) and interval
    #: of each group.
    listed: list[tuple[int, int, float | None]]
    #: The columns of a group and its number.
    numbers: pl.DataFrame

    @classmethod
    def of(cls, counts: pl.DataFrame) -> _Groups:
        """Rank workers and prefixes by their samples, and number the sampled groups."""
        seen = (
            counts.group_by(_GROUP)
            .agg((pl.col("samples") + pl.col("ambiguous")).sum().alias("samples"))
            .sort("samples", "worker", "prefix", "log", descending=[True, False, False, False])
        )
        of_workers = seen.filter(pl.col("worker").is_not_null(), pl.col("log").is_null())
        workers, prefixes = (
            of_workers.group_by(name, maintain_order=True)
            .agg(pl.col("samples").sum())
            .sort("samples", descending=True, maintain_order=True)[name]
            .to_list()
            for name in ("worker", "prefix")
        )
        logs = seen["log"].drop_nulls().unique().sort().to_list()
        rank_of_worker, rank_of_prefix, rank_of_log = (
            {name: rank for rank, name in enumerate(names)}
            for names in (workers, prefixes, logs)
        )
        listed: dict[tuple[int, int, float | None], int] = {}
        numbers = []
        for log, worker, prefix, interval in seen.select(_GROUP).iter_rows():
            if log is not None:
                pair = (_log_number(rank_of_log[log]), -1)
            elif worker is None:
                pair = (_SCHEDULER, -1)
            else:
                pair = (
                    min(rank_of_worker[worker], MOST_WORKERS),
                    min(rank_of_prefix[prefix], MOST_PREFIXES),
                )
            numbers.append(listed.setdefault((*pair, interval), len(listed)))
        groups = seen.select(*_GROUP, group=pl.Series(numbers, dtype=pl.Int64))
        return cls(workers, prefixes, logs, list(listed), groups)


def _log_number(place: int) -> int:
    return _SCHEDULER - 1 - min(place, MOST_LOGS)


def _choices(texts: list[str], most: int, others: str) -> tuple[Choice, ...]:
    """List the entries of a select; those beyond the limit are one."""
    rest = len(texts) - most
    shown = [*texts[:most], others.format(rest)] if rest > 0 else texts
    return tuple(Choice(number, text) for number, text in enumerate(shown))


def _summed(counts: pl.DataFrame) -> pl.DataFrame:
    return counts.group_by(_CELL).agg(pl.col("samples").sum()).sort(_CELL)


def _bounded(tree: FlameTree, counts: pl.DataFrame) -> tuple[FlameTree, pl.DataFrame]:
    """Prune the rarest parts of a tree until it is small enough for a page."""
    if _fits(tree, counts):
        return tree, counts
    totals, depths = [0] * len(tree.parents), tree.depths()
    for node, samples in counts.group_by("node").agg(pl.col("samples").sum()).iter_rows():
        totals[node] = samples
    tree.add_to_parents(totals)
    deepest = max(depths)
    least = 1
    # From the weakest pruning to the strongest, which leaves nothing but the root.
    while least < 2 * totals[0]:
        for depth in (deepest * part // 8 for part in (6, 5, 4, 3, 2, 1, 0)):
            keep = [n > least or d <= depth for n, d in zip(totals, depths, strict=True)]
            if sum(keep) <= MOST_NODES:
                smaller = _pruned(tree, counts, keep)
                if _fits(*smaller):
                    return smaller
        least *= 2
    return _pruned(tree, counts, [False] * len(tree.parents))


def _fits(tree: FlameTree, counts: pl.DataFrame) -> bool:
    frames = [tree.frames[frame] for frame in set(tree.node_frames)]
    # Each function has about 12 characters of numbers beside its name.
    characters = sum(min(len(name or "?"), NAME_CHARACTERS) + 12 for name, _, _ in frames)
    characters += sum(
        min(len(file), FILE_CHARACTERS) for file in {f or "?" for _, f, _ in frames}
    )
    return (
        len(tree.parents) <= MOST_NODES
        and counts.height <= MOST_COUNTS
        and characters <= MOST_CHARACTERS
    )


def _pruned(
    tree: FlameTree, counts: pl.DataFrame, keep: list[bool]
) -> tuple[FlameTree, pl.DataFrame]:
    """Merge the nodes that are not kept below their callers."""
    kept = FlameTree(tree.frames, [0], [_ROOT_FRAME])
    places = [0] * len(tree.parents)
    rare: dict[int, int] = {}
    for node, parent in list(enumerate(tree.parents))[1:]:
        at = places[parent]
        if kept.node_frames[at] == _RARE_FRAME:
            places[node] = at
        elif keep[node]:
            places[node] = kept.add(at, tree.node_frames[node])
        else:
            if at not in rare:
                rare[at] = kept.add(at, _RARE_FRAME)
            places[node] = rare[at]
    moved = counts.with_columns(pl.lit(pl.Series(places)).gather(pl.col("node")).alias("node"))
    return kept, _summed(moved)


def _functions(tree: FlameTree) -> dict[str, Any]:
    """Encode the functions of the tree, and renumber its nodes to them."""
    used = sorted({_ROOT_FRAME, _SEVERAL_FRAME, _RARE_FRAME, *tree.node_frames})
    number = {frame: place for place, frame in enumerate(used)}
    tree.node_frames[:] = [number[frame] for frame in tree.node_frames]
    special = {_ROOT_FRAME: ROOT, _SEVERAL_FRAME: ONE_OF_SEVERAL, _RARE_FRAME: RARE}
    files: dict[str, int] = {}
    names, lines, kinds, of_files = [], [], [], []
    for frame in used:
        name, filename, line = tree.frames[frame]
        # A function without a file, such as "(roast recorder)", is not the user's.
        kind = LIBRARY if filename is None else library_kind(filename)
        filename = "?" if filename is None else filename
        names.append(one_line("?" if name is None else name, NAME_CHARACTERS))
        lines.append(line or 0)
        kinds.append(special.get(frame, kind))
        shown = one_line(filename, FILE_CHARACTERS)
        of_files.append(files.setdefault(shown, len(files)))
    return {
        "names": names,
        "files": list(files),
        "frameFiles": of_files,
        "lines": lines,
        "kinds": kinds,
    }
