"""The flame graph of the page: stacks in, a tree in small whole numbers out.

What is embedded is JSON, packed with gzip: functions, a tree of them with every parent
before its children, groups (a worker and a prefix), and how often each node was seen by
group and stretch of time. Its size is bounded whatever the run was: beyond the bounds the
rarest and deepest parts of the tree become nodes named "(rare)" below the function that
called them, and workers and prefixes with few samples share a group. Samples that lie in
one of several functions, it is not known in which, are in nodes named "(one of several)".
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.report.packed import differences, packed
from roast_analyze.safe_text import one_line, shortened, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from markupsafe import Markup

    from roast_analyze.report.gathered.profiles import Profiles

#: Most nodes of the tree, most numbers of samples, and most characters of names.
MOST_NODES: Final = 600_000
MOST_COUNTS: Final = 200_000
MOST_CHARACTERS: Final = 1_500_000
#: Most workers and prefixes that can be chosen.
MOST_WORKERS: Final = 250
MOST_PREFIXES: Final = 100
#: Most files of Yappi's that can be chosen.
MOST_LOGS: Final = 50
#: Most characters of the name of a function, and of its file.
NAME_CHARACTERS: Final = 100
FILE_CHARACTERS: Final = 120

#: What a function belongs to; the page has the same numbers.
OWN, LIBRARY, DASK, ONE_OF_SEVERAL, RARE, ROOT = range(6)
#: Number that stands for the scheduler in the place of a worker's; logs of Yappi's have those
#: below it.
_SCHEDULER: Final = -1
#: What tells groups of samples apart.
_GROUP: Final = ["log", "worker", "prefix", "interval_seconds"]
#: Functions that every tree has: the root's, and two that stand for what isn't known.
_ROOT_FRAME, _SEVERAL_FRAME, _RARE_FRAME = range(3)

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
    """An entry of a select: what the page calls it, and what the reader does."""

    value: int
    text: str


@dataclass(frozen=True)
class Flame:
    """A flame graph of the page.

    Parameters
    ----------
    embedded : Markup
        JSON as base64 of gzip.
    workers, prefixes : tuple of Choice
        What can be chosen beside all of them.
    logs : tuple of Choice
        Files of Yappi's that can be chosen in place of workers.
    has_scheduler : bool
        Whether the scheduler's own samples are there.
    samples, undecided, rare : int
        Samples of all workers and the scheduler, without what Yappi measured; those of them
        that lie in one of several functions; those whose stack is cut off at a node named
        "(rare)".
    query, command : str
        What gives its data, in SQL and in a terminal.
    """

    embedded: Markup
    workers: tuple[Choice, ...]
    prefixes: tuple[Choice, ...]
    logs: tuple[Choice, ...]
    has_scheduler: bool
    samples: int
    undecided: int
    rare: int
    query: str
    command: str


def library_kind(filename: str) -> int:
    """Tell from its file whose a function is: :data:`OWN`, :data:`LIBRARY` or :data:`DASK`.

    What is installed counts as a library, also if it is the user's.
    """
    if _DASK.search(filename):
        return DASK
    return LIBRARY if _LIBRARY.search(filename) else OWN


def build(
    profiles: Profiles, *, start_t: float, names: Mapping[str, str], command: str
) -> Flame:
    """Make the flame graph of some samples.

    Parameters
    ----------
    profiles : Profiles
        With at least one stack.
    start_t : float
        From when times are counted, seconds since the epoch.
    names : mapping
        Worker to what it is called.
    command : str
        What shows the samples in a terminal.
    """
    tree, leaves = _tree(profiles.stacks["frames"])
    groups = _Groups(profiles.stacks)
    counts = _counts(profiles.stacks["parts"], tree, leaves, groups)
    tree, counts = _bounded(tree, counts)
    embedded = {
        **_frames(tree),
        "parents": [node - parent for node, parent in enumerate(tree.parents)][1:],
        "nodeFrames": tree.node_frames[1:],
        "groups": groups.listed,
        "nodes": differences(counts["node"].to_list()),
        "of": counts["group"].to_list(),
        "bins": counts["bin"].to_list(),
        "samples": counts["samples"].to_list(),
        "binCount": profiles.bins,
        "binSeconds": profiles.bin_seconds,
        "start": profiles.start_t - start_t,
    }
    seen = _samples_by_frame(tree, counts.filter(pl.col("group").is_in(groups.of_dask)))
    return Flame(
        embedded=packed(embedded),
        workers=_choices(groups.workers, names, "workers"),
        prefixes=_choices(groups.prefixes, {}, "prefixes"),
        logs=_of_logs(groups.logs),
        has_scheduler=any(worker == _SCHEDULER for worker, _, _ in groups.listed),
        samples=int(counts.filter(pl.col("group").is_in(groups.of_dask))["samples"].sum()),
        undecided=seen[_SEVERAL_FRAME],
        rare=seen[_RARE_FRAME],
        query="SELECT * FROM profile_stacks",
        command=command,
    )


@dataclass(frozen=True)
class _Tree:
    """Functions, and nodes that refer to them: a parent comes before its children."""

    #: Name, file and line of each function; the first three are those of no code.
    frames: list[tuple[str, str, int]]
    parents: list[int]
    node_frames: list[int]


def _tree(stacks: pl.Series) -> tuple[_Tree, list[int]]:
    """Lay stacks over each other; gives the tree, and of each stack its innermost node."""
    frames, rows = _numbered(stacks)
    order = sorted(range(len(rows)), key=rows.__getitem__)
    leaves = [0] * len(rows)
    tree = _Tree(frames, [0], [_ROOT_FRAME])
    path: list[int] = [0]
    before: list[int] = []
    # In order, a stack shares with the one before it all that it shares with any.
    for row in order:
        stack = rows[row]
        shared = _shared(before, stack)
        del path[shared + 1 :]
        for frame in stack[shared:]:
            path.append(_new_node(tree, path[-1], frame))
        leaves[row] = path[-1]
        before = stack
    return tree, leaves


def _numbered(stacks: pl.Series) -> tuple[list[tuple[str, str, int]], list[list[int]]]:
    """Give every function a number; gives the functions, and each stack in numbers."""
    flat = (
        pl.DataFrame({"frames": stacks})
        .with_row_index("stack")
        .filter(pl.col("frames").list.len() > 0)
        .explode("frames")
        .unnest("frames")
        .with_columns(
            pl.col("name", "filename").fill_null("?"), pl.col("line_number").fill_null(0)
        )
    )
    about = ["name", "filename", "line_number"]
    known = flat.select(about).unique(maintain_order=True).with_row_index("frame", offset=3)
    numbered = (
        flat.join(known, on=about, how="left", maintain_order="left")
        .group_by("stack", maintain_order=True)
        .agg(pl.col("frame"))
    )
    rows: list[list[int]] = [[] for _ in range(len(stacks))]
    for stack, row in numbered.iter_rows():
        rows[stack] = row
    pseudo = [("all", "", 0), ("(one of several)", "", 0), ("(rare)", "", 0)]
    return [*pseudo, *known.select(about).iter_rows()], rows


def _shared(one: list[int], other: list[int]) -> int:
    """Count the functions that two stacks begin with."""
    alike = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        alike += 1
    return alike


def _new_node(tree: _Tree, parent: int, frame: int) -> int:
    tree.parents.append(parent)
    tree.node_frames.append(frame)
    return len(tree.parents) - 1


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
            .agg((pl.col("samples") + pl.col("undecided")).sum().alias("samples"))
            .sort("samples", "worker", "prefix", "log", descending=[True, False, False, False])
        )
        of_workers = seen.filter(pl.col("worker").is_not_null(), pl.col("log").is_null())
        self.workers = _ranked(of_workers, "worker")
        self.prefixes = _ranked(of_workers, "prefix")
        #: Files of Yappi's, in the order of their names.
        self.logs = seen["log"].drop_nulls().unique().sort().to_list()
        #: Worker (-1: the scheduler, -2 and less: a file of Yappi's), prefix (-1: none) and
        #: interval of each group.
        self.listed: list[tuple[int, int, float | None]] = []
        #: Group of a file, a worker, a prefix and an interval.
        self.number: dict[tuple[str | None, str | None, str | None, float | None], int] = {}
        numbers: dict[tuple[int, int, float | None], int] = {}
        for log, worker, prefix, interval, _ in seen.iter_rows():
            if log is not None:
                group = (_log_number(self.logs.index(log)), -1, interval)
            elif worker is None:
                group = (_SCHEDULER, -1, interval)
            else:
                group = (
                    _place(self.workers, worker, MOST_WORKERS),
                    _place(self.prefixes, prefix, MOST_PREFIXES),
                    interval,
                )
            self.number[log, worker, prefix, interval] = numbers.setdefault(group, len(numbers))
        self.listed = list(numbers)

    @property
    def of_dask(self) -> list[int]:
        """Groups that Dask's profilers sampled."""
        return [n for n, (worker, _, _) in enumerate(self.listed) if worker >= _SCHEDULER]


def _log_number(place: int) -> int:
    return _SCHEDULER - 1 - min(place, MOST_LOGS)


def _of_logs(logs: list[str]) -> tuple[Choice, ...]:
    """List the files of Yappi's, and those beyond the most as one."""
    listed = [
        Choice(_log_number(place), f"Yappi: {shortened(visible(log), 60)}")
        for place, log in enumerate(logs[:MOST_LOGS])
    ]
    if len(logs) > MOST_LOGS:
        listed.append(
            Choice(_log_number(MOST_LOGS), f"Yappi: {len(logs) - MOST_LOGS:,} others")
        )
    return tuple(listed)


def _ranked(seen: pl.DataFrame, name: str) -> dict[str | None, int]:
    """Rank names by their samples."""
    totals: Counter[str | None] = Counter()
    for value, samples in seen.select(name, "samples").iter_rows():
        totals[value] += samples
    return {value: rank for rank, (value, _) in enumerate(totals.most_common())}


def _place(ranked: dict[str | None, int], value: str | None, most: int) -> int:
    return min(ranked[value], most)


def _choices(
    ranked: dict[str | None, int], names: Mapping[str, str], noun: str
) -> tuple[Choice, ...]:
    """List what can be chosen, the most sampled first, and the rest as one."""
    most = MOST_WORKERS if noun == "workers" else MOST_PREFIXES
    listed = [
        Choice(rank, _called(value, names)) for value, rank in list(ranked.items())[:most]
    ]
    if len(ranked) > most:
        listed.append(Choice(most, f"({len(ranked) - most:,} other {noun})"))
    return tuple(listed)


def _called(value: str | None, names: Mapping[str, str]) -> str:
    if value is None:
        return "(none)"
    return names.get(value) or shortened(visible(value), 60)


def _counts(parts: pl.Series, tree: _Tree, leaves: list[int], groups: _Groups) -> pl.DataFrame:
    """Give samples by node, group and stretch of time, the undecided in nodes of their own."""
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
    undecided = flat.filter(pl.col("undecided") > 0)
    several = {
        node: _new_node(tree, node, _SEVERAL_FRAME)
        for node in undecided["node"].unique().sort().to_list()
    }
    return _summed(
        pl.concat(
            [
                flat.filter(pl.col("samples") > 0).select("node", "group", "bin", "samples"),
                undecided.select(
                    pl.col("node").replace_strict(several, return_dtype=pl.Int64),
                    "group",
                    "bin",
                    pl.col("undecided").alias("samples"),
                ),
            ]
        )
    )


def _summed(counts: pl.DataFrame) -> pl.DataFrame:
    return (
        counts.group_by("node", "group", "bin")
        .agg(pl.col("samples").sum())
        .sort("node", "group", "bin")
    )


def _bounded(tree: _Tree, counts: pl.DataFrame) -> tuple[_Tree, pl.DataFrame]:
    """Cut the rarest parts off a tree until it is small enough for a page."""
    if _fits(tree, counts):
        return tree, counts
    totals, depths = _totals(tree, counts), _depths(tree)
    for least, depth in _cuts(max(totals), max(depths)):
        stays = [n > least or d <= depth for n, d in zip(totals, depths, strict=True)]
        if sum(stays) <= MOST_NODES:
            smaller = _pruned(tree, counts, stays)
            if _fits(*smaller):
                return smaller
    return _pruned(tree, counts, [True] + [False] * (len(tree.parents) - 1))


def _cuts(samples: int, depth: int) -> Iterator[tuple[int, int]]:
    """List what may be cut, the least first: nodes of so few samples, and so deep."""
    least = 1
    while least < 2 * samples:
        yield from ((least, depth * part // 8) for part in (6, 5, 4, 3, 2, 1, 0))
        least *= 2


def _depths(tree: _Tree) -> list[int]:
    depths = [0] * len(tree.parents)
    for node in range(1, len(depths)):
        depths[node] = depths[tree.parents[node]] + 1
    return depths


def _fits(tree: _Tree, counts: pl.DataFrame) -> bool:
    characters = sum(
        min(len(tree.frames[frame][0]), NAME_CHARACTERS) + 12 for frame in set(tree.node_frames)
    ) + sum(
        min(len(name), FILE_CHARACTERS)
        for name in {tree.frames[frame][1] for frame in set(tree.node_frames)}
    )
    return (
        len(tree.parents) <= MOST_NODES
        and counts.height <= MOST_COUNTS
        and characters <= MOST_CHARACTERS
    )


def _totals(tree: _Tree, counts: pl.DataFrame) -> list[int]:
    """Count the samples in each node and below it."""
    totals = [0] * len(tree.parents)
    for node, samples in counts.group_by("node").agg(pl.col("samples").sum()).iter_rows():
        totals[node] = samples
    for node in range(len(totals) - 1, 0, -1):
        totals[tree.parents[node]] += totals[node]
    return totals


def _pruned(tree: _Tree, counts: pl.DataFrame, stays: list[bool]) -> tuple[_Tree, pl.DataFrame]:
    """Put the nodes that don't stay together, below what called them."""
    kept = _Tree(tree.frames, [0], [_ROOT_FRAME])
    places = [0] * len(tree.parents)
    rare: dict[int, int] = {}
    for node, parent in enumerate(tree.parents):
        if node == 0:
            continue
        at = places[parent]
        if kept.node_frames[at] == _RARE_FRAME:
            places[node] = at
        elif stays[node]:
            places[node] = _new_node(kept, at, tree.node_frames[node])
        else:
            if at not in rare:
                rare[at] = _new_node(kept, at, _RARE_FRAME)
            places[node] = rare[at]
    moved = counts.with_columns(pl.lit(pl.Series(places)).gather(pl.col("node")).alias("node"))
    return kept, _summed(moved)


def _samples_by_frame(tree: _Tree, counts: pl.DataFrame) -> Counter[int]:
    seen: Counter[int] = Counter()
    for node, samples in counts.select("node", "samples").iter_rows():
        seen[tree.node_frames[node]] += samples
    return seen


def _frames(tree: _Tree) -> dict[str, Any]:
    """Write the functions that the tree has, and renumber its nodes to them."""
    used = sorted({_ROOT_FRAME, _SEVERAL_FRAME, _RARE_FRAME, *tree.node_frames})
    number = {frame: place for place, frame in enumerate(used)}
    tree.node_frames[:] = [number[frame] for frame in tree.node_frames]
    files: dict[str, int] = {}
    names, lines, kinds, of_files = [], [], [], []
    for frame in used:
        name, filename, line = tree.frames[frame]
        names.append(one_line(name, NAME_CHARACTERS))
        lines.append(line)
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
