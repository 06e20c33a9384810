"""Determine how many bytes of each branch belong to a range of entries.

Files are written in pieces: baskets of a branch (TTree), clusters (RNTuple) or row groups
(Parquet). Reading an entry means reading the whole piece that contains it, so the bytes of a
range are those of all pieces that overlap it. Of Parquet files coffea always reads all row
groups. The sizes are in metadata that the reader has in memory anyway; nothing is read from
the file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: Compressed and uncompressed bytes; None where unknown.
Sizes = tuple[int | None, int | None]


def storage_format(table: Any) -> str | None:
    """Return TTree, RNTuple, Parquet or None: how a table, or a branch of it, is stored."""
    # Check the class, because attributes of the object could trigger a read.
    kind = type(table)
    if hasattr(kind, "ntuple"):
        return "RNTuple"
    if hasattr(kind, "num_baskets") or hasattr(kind, "branches"):
        return "TTree"
    return "Parquet" if _parquet_file(table) is not None else None


def branch_name(branch: Any) -> str:
    """Return the name of a branch, field or Parquet column."""
    return str(getattr(branch, "name", None) or branch.column)


def count_branches(table: Any) -> int | None:
    """Count the branches or fields of a table, nested ones included, or Parquet columns."""
    match storage_format(table):
        case "TTree":
            count, queue = 0, [table]
            # Much faster than `keys()`, because nearly all branches have no children.
            while queue:
                below = queue.pop().branches
                count += len(below)
                queue += [branch for branch in below if len(branch.branches)]
            return count
        case "RNTuple":
            return sum(not field.is_anonymous for field in table.all_fields)
        case "Parquet":
            return len({path[0] for path in _parquet_file(table).reader.column_paths})
    return None


class OverlappingBytes:
    """Sizes of the pieces of a file that overlap the entries from start to stop."""

    def __init__(
        self, start: int, stop: int, basket_sizes: Mapping[tuple[int, int], int]
    ) -> None:
        self._start = start
        self._stop = stop
        # Uncompressed sizes of the baskets that were read, by id of the branch and number:
        # the metadata of a TTree lacks them.
        self._basket_sizes = basket_sizes
        # Clusters are the same for all branches of a file: find them once.
        self._pieces: range | None = None

    def of(self, branch: Any) -> Sizes:
        """Return the bytes of a TBranch, an RField, or coffea's wrapper of a column."""
        match storage_format(branch):
            case "TTree":
                return self._of_tbranch(branch)
            case "RNTuple":
                return self._of_rfield(branch)
            case "Parquet":
                return self._of_parquet_column(branch)
        return None, None

    def _overlapping(self, starts: Sequence[int], end: int) -> range:
        """Return the numbers of the overlapping pieces; each ends where the next starts."""
        if self._stop <= self._start or self._start >= end:
            return range(0)
        first = max(bisect_right(starts, self._start) - 1, 0)
        return range(first, bisect_left(starts, self._stop))

    def _of_tbranch(self, branch: Any) -> Sizes:
        if hasattr(branch.interpretation, "subbranches"):
            # Reading a split branch means reading its parts.
            parts = [self._of_tbranch(part) for part in branch.branches]
            return _sum(size for size, _ in parts), _sum(size for _, size in parts)
        if not branch.num_baskets:
            return 0, 0
        *starts, end = branch.entry_offsets
        overlapping = self._overlapping(starts, end)
        # Embedded baskets, the last ones, were read with the tree's own metadata.
        embedded = branch.embedded_baskets
        free = branch.num_baskets - len(embedded)
        sizes = [self._basket_sizes.get((id(branch), n)) for n in overlapping if n < free]
        for basket in (embedded[n - free] for n in overlapping if n >= free):
            # `uncompressed_bytes` is the size of a buffer that is mostly empty.
            offsets = basket.byte_offsets
            offsets_bytes = 0 if offsets is None else int(offsets.nbytes)
            sizes.append(int(basket.member("fLast")) + offsets_bytes)
        uncompressed = _sum(sizes)
        if uncompressed is None and len(overlapping) == free == branch.num_baskets:
            uncompressed = int(branch.uncompressed_bytes)
        return sum(int(branch.basket_compressed_bytes(n)) for n in overlapping), uncompressed

    def _of_rfield(self, field: Any) -> Sizes:
        ntuple = field.ntuple
        if self._pieces is None:
            clusters = ntuple.cluster_summaries
            starts = [cluster.num_first_entry for cluster in clusters]
            end = starts[-1] + clusters[-1].num_entries if clusters else 0
            self._pieces = self._overlapping(starts, end)
        records = ntuple.column_records
        # A field can refer to another one, and the offsets of a collection serve many fields.
        # Only the form with which uproot reads it lists all columns: ``column-<number>``.
        columns: set[int] = set()
        queue = [field.to_akform()[0]] if self._pieces else []
        while queue:
            form = queue.pop()
            key = getattr(form, "form_key", None)
            if key is not None and key.startswith("column-"):
                columns.add(int(key.split("-")[1]))
            inner = getattr(form, "contents", None) or [getattr(form, "content", None)]
            queue += [content for content in inner if content is not None]
        compressed = uncompressed = 0
        for cluster in self._pieces:
            stored = ntuple.page_link_list[cluster]
            for column in columns:
                # A column that was added after this cluster has no pages in it.
                if column >= len(stored):
                    continue
                used = records[column]
                if stored[column].suppressed:
                    # This cluster stores the field in another of its representations.
                    same = (record for record in records if record.field_id == used.field_id)
                    used = next((r for r in same if not stored[r.idx].suppressed), used)
                for page in stored[used.idx].pages:
                    compressed += int(page.locator.num_bytes)
                    uncompressed += int(page.num_elements * used.nbits + 7) // 8
        return compressed, uncompressed

    def _of_parquet_column(self, column: Any) -> Sizes:
        file = _parquet_file(column)
        row_group = file.metadata.row_group
        # For one name, pyarrow reads all leaves of a nested column.
        leaves = file._nested_paths_by_prefix.get(column.column, ())
        # coffea reads the column of the whole file, and takes the entries of the chunk from it.
        groups = range(file.num_row_groups)
        parts = [row_group(number).column(leaf) for number in groups for leaf in leaves]
        return (
            sum(part.total_compressed_size for part in parts),
            sum(part.total_uncompressed_size for part in parts),
        )


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum, or None if any value is unknown."""
    sizes = list(values)
    return None if None in sizes else sum(size or 0 for size in sizes)


def _parquet_file(table: Any) -> Any:
    """Return the pyarrow file inside of coffea's wrappers of a file or a column, or None."""
    for _ in range(3):
        if hasattr(type(table), "schema_arrow"):
            return table
        table = getattr(table, "source", None) or getattr(table, "file", None)
    return None
