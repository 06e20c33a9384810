"""How many bytes of which branch belong to a range of entries.

Files are written in pieces: baskets of a branch (TTree), clusters (RNTuple), row groups
(Parquet). Reading an entry means reading the whole piece that holds it, so the bytes of a
range are those of all pieces that overlap it. Everything here is told by metadata that a
reader has in memory anyway; nothing is read for it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

#: Uncompressed sizes of baskets that were read, by identity of the branch and number.
BasketSizes = Mapping[tuple[int, int], int]

#: Compressed and uncompressed bytes; None is unknown.
Sizes = tuple[int | None, int | None]


def source_of(table: Any) -> str | None:
    """Name what a table, or a branch of it, is stored as.

    Parameters
    ----------
    table : object
        Of uproot's, or coffea's shim around a file of pyarrow's.

    Returns
    -------
    {"TTree", "RNTuple", "Parquet"} or None
    """
    # The class is asked: asking the object could make it read.
    kind = type(table)
    if hasattr(kind, "ntuple"):
        return "RNTuple"
    if hasattr(kind, "num_baskets") or hasattr(kind, "branches"):
        return "TTree"
    return "Parquet" if _parquet_file(table) is not None else None


def name_of(branch: Any) -> str:
    """Name a branch, or a Parquet column."""
    return str(getattr(branch, "name", None) or branch.column)


def count_branches(table: Any) -> int | None:
    """Count the branches of a table, nested ones included; the columns of a Parquet file."""
    source = source_of(table)
    if source == "TTree":
        return _count_below(table)
    if source == "RNTuple":
        return sum(not field.is_anonymous for field in table.all_fields)
    if source == "Parquet":
        return len({path[0] for path in _parquet_file(table).reader.column_paths})
    return None


def _count_below(table: Any) -> int:
    # `keys()` would name them all; this is ten times as fast for a thousand branches, since
    # nearly all of them have none below them.
    below = table.branches
    return len(below) + sum(_count_below(branch) for branch in below if len(branch.branches))


class Pieces:
    """Knows the pieces of a file that overlap a range of entries.

    Parameters
    ----------
    start, stop : int
        First entry, and the one after the last. An empty range overlaps nothing.
    baskets : mapping
        A TTree does not tell how large a basket is when it is decompressed; reading it
        does.
    """

    def __init__(self, start: int, stop: int, baskets: BasketSizes) -> None:
        self._start = start
        self._stop = stop
        self._baskets = baskets
        self._clusters: range | None = None
        self._row_groups: list[Any] | None = None

    def bytes_of(self, branch: Any) -> Sizes:
        """Give the size of the pieces of a branch.

        Parameters
        ----------
        branch : object
            A TBranch, an RField, or coffea's shim of a Parquet column.

        Returns
        -------
        compressed, uncompressed : int or None
        """
        source = source_of(branch)
        if source == "TTree":
            return self._of_tbranch(branch)
        if source == "RNTuple":
            return self._of_rfield(branch)
        if source == "Parquet":
            return self._of_parquet_column(branch)
        return None, None

    def _overlapping(self, starts: Sequence[int], end: int) -> range:
        """Give the numbers of the pieces that overlap; each ends where the next begins."""
        if self._stop <= self._start or self._start >= end:
            return range(0)
        return range(
            max(bisect_right(starts, self._start) - 1, 0), bisect_left(starts, self._stop)
        )

    # -- TTree ---------------------------------------------------------------------------

    def _of_tbranch(self, branch: Any) -> Sizes:
        if hasattr(branch.interpretation, "subbranches"):
            # To read a branch that was split is to read its parts.
            parts = [self._of_tbranch(part) for part in branch.branches]
            return _sum(size for size, _ in parts), _sum(size for _, size in parts)
        if not branch.num_baskets:
            return 0, 0
        *starts, end = branch.entry_offsets
        touched = self._overlapping(starts, end)
        # These came with the tree's own metadata, and cost no bytes of their own.
        embedded = branch.embedded_baskets
        free = branch.num_baskets - len(embedded)
        compressed = sum(int(branch.basket_compressed_bytes(number)) for number in touched)
        uncompressed = _sum(
            self._baskets.get((id(branch), number))
            if number < free
            else _size_of_embedded(embedded[number - free])
            for number in touched
        )
        if uncompressed is None and len(touched) == free == branch.num_baskets:
            uncompressed = int(branch.uncompressed_bytes)
        return compressed, uncompressed

    # -- RNTuple -------------------------------------------------------------------------

    def _of_rfield(self, field: Any) -> Sizes:
        ntuple = field.ntuple
        if self._clusters is None:
            self._clusters = self._overlapping_clusters(ntuple.cluster_summaries)
        records = ntuple.column_records
        columns = _column_numbers(field) if self._clusters else []
        compressed = uncompressed = 0
        for cluster in self._clusters:
            pages_by_column = ntuple.page_link_list[cluster]
            for column in _stored(columns, records, pages_by_column):
                for page in pages_by_column[column].pages:
                    bits = page.num_elements * records[column].nbits
                    compressed += int(page.locator.num_bytes)
                    uncompressed += int(bits + 7) // 8
        return compressed, uncompressed

    def _overlapping_clusters(self, clusters: Sequence[Any]) -> range:
        starts = [cluster.num_first_entry for cluster in clusters]
        end = starts[-1] + clusters[-1].num_entries if clusters else 0
        return self._overlapping(starts, end)

    # -- Parquet -------------------------------------------------------------------------

    def _of_parquet_column(self, column: Any) -> Sizes:
        file = _parquet_file(column)
        if self._row_groups is None:
            self._row_groups = self._overlapping_row_groups(file.metadata)
        # What pyarrow reads when it is asked for this name: all parts of a nested column.
        leaves = file._nested_paths_by_prefix.get(column.column, ())
        parts = [group.column(leaf) for group in self._row_groups for leaf in leaves]
        return (
            sum(part.total_compressed_size for part in parts),
            sum(part.total_uncompressed_size for part in parts),
        )

    def _overlapping_row_groups(self, metadata: Any) -> list[Any]:
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        *starts, end = accumulate((group.num_rows for group in groups), initial=0)
        return [groups[number] for number in self._overlapping(starts, end)]


def _size_of_embedded(basket: Any) -> int:
    # `uncompressed_bytes` would be the size of a buffer that is mostly empty.
    offsets = basket.byte_offsets
    return int(basket.member("fLast")) + (0 if offsets is None else int(offsets.nbytes))


def _sum(values: Iterable[int | None]) -> int | None:
    """Add up; None if any is unknown."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _stored(
    columns: Iterable[int], records: Sequence[Any], pages_by_column: Sequence[Any]
) -> Iterator[int]:
    """Give the columns that hold the data of these in one cluster of an RNTuple."""
    for number in columns:
        if number >= len(pages_by_column):
            continue  # it was added later than this cluster
        if not pages_by_column[number].suppressed:
            yield number
            continue
        # Here, it is stored in another of its representations.
        field_id = records[number].field_id
        others = (record.idx for record in records if record.field_id == field_id)
        yield from [other for other in others if not pages_by_column[other].suppressed][:1]


def _column_numbers(field: Any) -> list[int]:
    """Give the numbers of the columns that uproot reads for a field.

    A field can stand for another one, and a collection's offsets for many, so the form
    that uproot builds to read it is asked; its buffers are called ``column-<number>``.
    """
    found: set[int] = set()
    waiting = [field.to_akform()[0]]
    while waiting:
        form = waiting.pop()
        key = getattr(form, "form_key", None)
        if key is not None and key.startswith("column-"):
            found.add(int(key.split("-")[1]))
        inner = getattr(form, "contents", None) or [getattr(form, "content", None)]
        waiting += [content for content in inner if content is not None]
    return sorted(found)


def _parquet_file(table: Any) -> Any:
    """Find pyarrow's file in coffea's shims around a file, and around a column of it."""
    for _ in range(3):
        if hasattr(type(table), "schema_arrow"):
            return table
        table = getattr(table, "source", None) or getattr(table, "file", None)
    return None
