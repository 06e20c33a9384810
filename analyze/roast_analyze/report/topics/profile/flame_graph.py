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
from roast_analyze.safe_text import one_line, shortened, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from markupsafe import Markup

    from roast_analyze.report.topics.profile.data import Profiles

#: Most nodes of the tree, most counts of samples, and most characters of names.
MOST_NODES: Final = 600_000
MOST_COUNTS: Final = 200_000
MOST_CHARACTERS: Final = 1_500_000
#: Most workers and prefixes to choose from.
MOST_WORKERS: Final = 250
MOST_PREFIXES: Final = 100
#: Most Yappi files to choose from.
MOST_LOGS: Final = 50
#: Most characters of the name of a function, and of its file.
NAME_CHARACTERS: Final = 100
FILE_CHARACTERS: Final = 120

#: Kinds of functions. The scripts of the page use the same numbers.
OWN, LIBRARY, DASK, ONE_OF_SEVERAL, RARE, ROOT = range(6)
#: Number of the scheduler among the workers; Yappi files have the numbers below it.
_SCHEDULER: Final = -1
#: Columns that identify a group of samples.
_GROUP: Final = ["log", "worker", "prefix", "interval_seconds"]
#: Functions of every tree that are not code.
_ROOT_FRAME, _SEVERAL_FRAME, _RARE_FRAME = range(3)
_SPECIAL: Final = (("all", "", 0), ("(one of several)", "", 0), ("(rare)", "", 0))

_DASK: Final = re.compile(
    r"(^|[/\\])(site-packages|dist-packages)[/\\](dask|distributed)[/\\]"
    r"|(^|[/\\])distributed[/\\]([a-z_]+\.py|(comm|protocol|shuffle|diagnostics)[/\\])"
    r"|(^|[/\\])dask[/\\]([a-z_]+\.py|(array|bag|dataframe|diagnostics)[/\\])"
)
_LIBRARY: Final = re.compile(
    r"(^|[/\\])(site-packages|dist-packages)[/\\]|(^|[/\\])lib(64)?[/\\]python\d"
    r"|[/\\]Lib[/\\]|^<(frozen|__array_function__|attrs generated)"
    r"|(^|[/\\])roast_recorder[/\\]"
)


@dataclass(frozen=True)
class Choice:
    """An entry of a select: its number in the data, and its text."""

    value: int
    text: str


@dataclass(frozen=True)
class Flame:
    """The flame graph of the page.

    Parameters
    ----------
    embedded : Markup
        Packed JSON.
    workers, prefixes : tuple of Choice
        Entries of the selects.
    logs : tuple of Choice
        Yappi files, which can be chosen instead of a worker.
    has_scheduler : bool
        Whether the scheduler was sampled.
    samples, ambiguous, rare : int
        Samples of all workers and the scheduler, without Yappi's; those of them that are
        ambiguous; those whose stack is cut off at a node named "(rare)".
    query, command : str
        The SQL and the command that return its data.
    """

    embedded: Markup
    workers: tuple[Choice, ...]
    prefixes: tuple[Choice, ...]
    logs: tuple[Choice, ...]
    has_scheduler: bool
    samples: int
    ambiguous: int
    rare: int
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
    """Encode the flame graph of some samples.

    Parameters
    ----------
    profiles : Profiles
        With at least one stack.
    start_t : float
        Zero of times, seconds since the epoch.
    names : mapping
        Worker to the name shown for it.
    command : str
        Command that shows the samples in a terminal.
    """
    tree, leaves = build_tree(profiles.stacks["frames"], _SPECIAL)
    groups = _Groups(profiles.stacks)
    counts = _counts(profiles.stacks["parts"], tree, leaves, groups)
    tree, counts = _bounded(tree, counts)
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
    of_dask = counts.filter(pl.col("group").is_in(groups.of_dask))
    seen: Counter[int] = Counter()
    for node, samples in of_dask.select("node", "samples").iter_rows():
        seen[tree.node_frames[node]] += samples
    return Flame(
        embedded=pack(embedded),
        workers=_choices(
            [names.get(worker or "") or _name(worker) for worker in groups.workers],
            MOST_WORKERS,
            "({:,} other workers)",
        ),
        prefixes=_choices(
            list(map(_name, groups.prefixes)), MOST_PREFIXES, "({:,} other prefixes)"
        ),
        logs=tuple(
            replace(choice, value=_log_number(choice.value))
            for choice in _choices(
                [f"Yappi: {_name(log)}" for log in groups.logs],
                MOST_LOGS,
                "Yappi: {:,} others",
            )
        ),
        has_scheduler=any(worker == _SCHEDULER for worker, _, _ in groups.listed),
        samples=int(of_dask["samples"].sum()),
        ambiguous=seen[_SEVERAL_FRAME],
        rare=seen[_RARE_FRAME],
        query="SELECT * FROM profile_stacks",
        command=command,
    )


class _Groups:
    """Workers, prefixes, and the pairs of them that were sampled.

    Parameters
    ----------
    stacks : polars.DataFrame
        See :class:`Profiles`.
    """

    def __init__(self, stacks: pl.DataFrame) -> None:
        seen = (
            stacks.select("parts")
            .explode("parts")
            .unnest("parts")
            .group_by(_GROUP)
            .agg((pl.col("samples") + pl.col("ambiguous")).sum().alias("samples"))
            .sort("samples", "worker", "prefix", "log", descending=[True, False, False, False])
        )
        of_workers = seen.filter(pl.col("worker").is_not_null(), pl.col("log").is_null())
        self.workers = _ranked(of_workers, "worker")
        self.prefixes = _ranked(of_workers, "prefix")
        #: Yappi files, sorted.
        self.logs = seen["log"].drop_nulls().unique().sort().to_list()
        #: Group of a Yappi file, worker, prefix and interval.
        self.number: dict[tuple[str | None, str | None, str | None, float | None], int] = {}
        numbers: dict[tuple[int, int, float | None], int] = {}
        for log, worker, prefix, interval, _ in seen.iter_rows():
            if log is not None:
                group = (_log_number(self.logs.index(log)), -1, interval)
            elif worker is None:
                group = (_SCHEDULER, -1, interval)
            else:
                group = (
                    min(self.workers[worker], MOST_WORKERS),
                    min(self.prefixes[prefix], MOST_PREFIXES),
                    interval,
                )
            self.number[log, worker, prefix, interval] = numbers.setdefault(group, len(numbers))
        #: Worker (-1: the scheduler, -2 and below: a Yappi file), prefix (-1: none) and
        #: interval of each group.
        self.listed = list(numbers)

    @property
    def of_dask(self) -> list[int]:
        """Groups of samples of Dask's profilers."""
        return [n for n, (worker, _, _) in enumerate(self.listed) if worker >= _SCHEDULER]


def _log_number(place: int) -> int:
    return _SCHEDULER - 1 - min(place, MOST_LOGS)


def _ranked(seen: pl.DataFrame, name: str) -> dict[str | None, int]:
    """Rank names by their samples."""
    totals: Counter[str | None] = Counter()
    for value, samples in seen.select(name, "samples").iter_rows():
        totals[value] += samples
    return {value: rank for rank, (value, _) in enumerate(totals.most_common())}


def _choices(texts: list[str], most: int, others: str) -> tuple[Choice, ...]:
    """List the entries of a select; those beyond the limit are one."""
    rest = len(texts) - most
    shown = [*texts[:most], others.format(rest)] if rest > 0 else texts
    return tuple(Choice(number, text) for number, text in enumerate(shown))


def _name(value: str | None) -> str:
    return "(none)" if value is None else shortened(visible(value), 60)


def _counts(
    parts: pl.Series, tree: FlameTree, leaves: list[int], groups: _Groups
) -> pl.DataFrame:
    """Count samples by node, group and bucket; ambiguous ones get nodes of their own."""
    flat = (
        pl.DataFrame({"node": leaves, "parts": parts}, schema_overrides={"node": pl.Int64})
        .explode("parts")
        .unnest("parts")
    )
    numbers = pl.DataFrame(
        [(*key, number) for key, number in groups.number.items()],
        schema={**{name: flat.schema[name] for name in _GROUP}, "group": pl.Int64},
        orient="row",
    )
    flat = flat.join(numbers, on=_GROUP, how="left", nulls_equal=True)
    ambiguous = flat.filter(pl.col("ambiguous") > 0)
    several = {
        node: tree.add(node, _SEVERAL_FRAME)
        for node in ambiguous["node"].unique().sort().to_list()
    }
    return _summed(
        pl.concat(
            [
                flat.filter(pl.col("samples") > 0).select("node", "group", "bucket", "samples"),
                ambiguous.select(
                    pl.col("node").replace_strict(several, return_dtype=pl.Int64),
                    "group",
                    "bucket",
                    pl.col("ambiguous").alias("samples"),
                ),
            ]
        )
    )


def _summed(counts: pl.DataFrame) -> pl.DataFrame:
    return (
        counts.group_by("node", "group", "bucket")
        .agg(pl.col("samples").sum())
        .sort("node", "group", "bucket")
    )


def _bounded(tree: FlameTree, counts: pl.DataFrame) -> tuple[FlameTree, pl.DataFrame]:
    """Prune the rarest parts of a tree until it is small enough for a page."""
    if _fits(tree, counts):
        return tree, counts
    totals, depths = _totals(tree, counts), tree.depths()
    for least, depth in _cuts(max(totals), max(depths)):
        keep = [n > least or d <= depth for n, d in zip(totals, depths, strict=True)]
        if sum(keep) <= MOST_NODES:
            smaller = _pruned(tree, counts, keep)
            if _fits(*smaller):
                return smaller
    return _pruned(tree, counts, [True] + [False] * (len(tree.parents) - 1))


def _cuts(samples: int, depth: int) -> Iterator[tuple[int, int]]:
    """Yield thresholds of pruning, the weakest first: most samples and least depth."""
    least = 1
    while least < 2 * samples:
        yield from ((least, depth * part // 8) for part in (6, 5, 4, 3, 2, 1, 0))
        least *= 2


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


def _totals(tree: FlameTree, counts: pl.DataFrame) -> list[int]:
    """Count the samples in each subtree."""
    totals = [0] * len(tree.parents)
    for node, samples in counts.group_by("node").agg(pl.col("samples").sum()).iter_rows():
        totals[node] = samples
    tree.add_to_parents(totals)
    return totals


def _pruned(
    tree: FlameTree, counts: pl.DataFrame, keep: list[bool]
) -> tuple[FlameTree, pl.DataFrame]:
    """Merge the nodes that are not kept below their callers."""
    kept = FlameTree(tree.frames, [0], [_ROOT_FRAME])
    places = [0] * len(tree.parents)
    rare: dict[int, int] = {}
    for node, parent in enumerate(tree.parents):
        if node == 0:
            continue
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
    files: dict[str, int] = {}
    names, lines, kinds, of_files = [], [], [], []
    for frame in used:
        name, filename, line = tree.frames[frame]
        filename = "?" if filename is None else filename
        names.append(one_line("?" if name is None else name, NAME_CHARACTERS))
        lines.append(line or 0)
        kinds.append(
            (ROOT, ONE_OF_SEVERAL, RARE)[frame] if frame < 3 else library_kind(filename)
        )
        shown = one_line(filename, FILE_CHARACTERS)
        of_files.append(files.setdefault(shown, len(files)))
    return {
        "names": names,
        "files": list(files),
        "frameFiles": of_files,
        "lines": lines,
        "kinds": kinds,
    }
