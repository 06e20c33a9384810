"""Bytes of each branch in a range of entries, compared with independent counts."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from roast_recorder.coffea.branches import (
    OverlappingBytes,
    branch_name,
    count_branches,
    storage_format,
)

ak = pytest.importorskip("awkward")
uproot = pytest.importorskip("uproot")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

# -- TTree -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Write a tree of numbers, arrays, collections and strings in baskets of 10, 4 and 6."""
    path = tmp_path_factory.mktemp("trees") / "tree.root"
    jets = ak.types.from_datashape("var * {pt: float32, eta: float32}", highlevel=False)
    array = np.dtype(("f4", (3,)))
    with uproot.recreate(path) as file:
        written = file.mktree(
            "Events", {"run": "u4", "cov": array, "Jet": jets, "name": "string"}
        )
        for n in (10, 4, 6):
            pt = ak.Array([[1.5] * (k % 4) for k in range(n)])
            cov = np.random.default_rng(n).random((n, 3), "f4")
            names = ["x" * k for k in range(n)]
            collection = ak.zip({"pt": pt, "eta": pt * 2})
            written.extend({"run": range(n), "cov": cov, "Jet": collection, "name": names})
    # Without a cache, every read requests bytes.
    with uproot.open(path, array_cache=None) as file:
        yield file["Events"]


@pytest.mark.parametrize(
    ("start", "stop", "baskets"),
    [
        (0, 20, (0, 1, 2)),
        (0, 10, (0,)),
        (10, 14, (1,)),
        (9, 10, (0,)),
        (9, 11, (0, 1)),
        (13, 15, (1, 2)),
        (10, 10, ()),
        (20, 20, ()),
    ],
)
def test_overlapping_baskets_are_counted_as_uproot_requests_them(tree, start, stop, baskets):
    source = tree.file.source
    for name in ("run", "cov", "nJet", "Jet_pt", "name"):
        branch = tree[name]
        numbers = range(branch.num_baskets)
        known = {(id(branch), n): branch.basket_uncompressed_bytes(n) for n in numbers}
        before = source.num_requested_bytes

        sizes = OverlappingBytes(start, stop, known).of(branch)

        assert source.num_requested_bytes == before
        assert sizes == (
            sum(branch.basket_compressed_bytes(number) for number in baskets),
            sum(branch.basket_uncompressed_bytes(number) for number in baskets),
        ), name
        before = source.num_requested_bytes
        if stop > start:
            branch.array(entry_start=start, entry_stop=stop, array_cache=None)
        assert sizes[0] == source.num_requested_bytes - before, name
        if len(baskets) == 3:
            assert sizes == (branch.compressed_bytes, branch.uncompressed_bytes)


def test_the_uncompressed_size_of_an_unread_basket_is_known_only_of_a_whole_branch(tree):
    branch = tree["run"]

    assert OverlappingBytes(0, 14, {(id(branch), 0): 100}).of(branch)[1] is None
    assert OverlappingBytes(0, 20, {}).of(branch)[1] == branch.uncompressed_bytes


class FakeBranch(SimpleNamespace):
    """A branch of a form that uproot can read but not write."""

    num_baskets = 0


def test_a_branch_without_baskets_has_no_bytes():
    assert OverlappingBytes(0, 0, {}).of(FakeBranch(interpretation=None)) == (0, 0)


def test_embedded_baskets_count_only_uncompressed_bytes():
    def embedded(last, offsets):
        return SimpleNamespace(member={"fLast": last}.get, byte_offsets=offsets)

    branch = FakeBranch(
        interpretation=None,
        num_baskets=3,
        entry_offsets=[0, 10, 20, 30],
        embedded_baskets=[embedded(70, None), embedded(50, np.zeros(4, "i4"))],
        basket_compressed_bytes=lambda number: (100, 0, 0)[number],
        uncompressed_bytes=1_000,
    )
    for (start, stop), expected in {
        (0, 10): (100, 200),
        (0, 20): (100, 270),
        (10, 20): (0, 70),
        (15, 30): (0, 70 + 50 + 16),
    }.items():
        assert OverlappingBytes(start, stop, {(id(branch), 0): 200}).of(branch) == expected
    assert OverlappingBytes(0, 30, {}).of(branch) == (100, None)


def test_a_split_branch_is_the_sum_of_its_parts_and_a_counting_branch_is_not(tree):
    parts = [tree["run"], tree["Jet_pt"]]
    split = FakeBranch(interpretation=SimpleNamespace(subbranches={}), branches=parts)
    count = tree["nJet"]
    copied = ("interpretation", "num_baskets", "entry_offsets", "basket_compressed_bytes")
    array = FakeBranch(  # a TClonesArray: the branch is only the number of objects
        branches=[tree["Jet_pt"]],
        embedded_baskets=[],
        uncompressed_bytes=0,
        **{name: getattr(count, name) for name in copied},
    )

    assert OverlappingBytes(0, 20, {}).of(split) == (
        sum(part.compressed_bytes for part in parts),
        sum(part.uncompressed_bytes for part in parts),
    )
    assert OverlappingBytes(0, 20, {}).of(array)[0] == count.compressed_bytes


# -- RNTuple ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ntuple(tmp_path_factory):
    """Write numbers, strings, records and nested collections in clusters of 1,000 and 700."""
    path = tmp_path_factory.mktemp("ntuples") / "ntuple.root"

    def events(n):
        jets = [[{"pt": 1.5 * k, "hits": [k] * k} for k in range(i % 4)] for i in range(n)]
        return {
            "x": np.linspace(0, 1, n),
            "flag": np.arange(n) % 2 == 0,
            "name": ["ab" * (i % 5) for i in range(n)],
            "vertex": ak.Array([{"z": 0.5 * i, "good": True} for i in range(n)]),
            "jets": ak.Array(jets),
        }

    with uproot.recreate(path) as file:
        written = file.mkrntuple("Events", events(1_000))
        written.extend(events(700))
    with uproot.open(path) as file:
        yield file["Events"]


def columns_below(ntuple, field_id):
    """Return the column numbers of a field, of its descendants and of fields it refers to."""
    ids, queue = set(), [field_id]
    while queue:
        number = queue.pop()
        record = ntuple.field_records[number]
        ids.add(number if record.source_field_id is None else record.source_field_id)
        queue += [
            below
            for below, record in enumerate(ntuple.field_records)
            if record.parent_field_id == number and below != number
        ]
    return [column.idx for column in ntuple.column_records if column.field_id in ids]


def size_on_disk(ntuple, columns, clusters):
    """Return the sum of the sizes in the page lists."""
    bits = uproot.const.rntuple_col_num_to_size_dict
    pages = [
        (page, bits[ntuple.column_records[column].type])
        for cluster in clusters
        for column in columns
        for page in ntuple.page_link_list[cluster][column].pages
    ]
    return (
        sum(page.locator.num_bytes for page, _ in pages),
        sum(-(-page.num_elements * width // 8) for page, width in pages),
    )


@pytest.mark.parametrize(
    ("start", "stop", "clusters"),
    [(0, 1_000, (0,)), (999, 1_001, (0, 1)), (1_000, 1_700, (1,)), (5, 5, ())],
)
def test_overlapping_clusters_are_counted(ntuple, start, stop, clusters):
    for name in ("x", "flag", "name", "vertex", "jets"):
        columns = columns_below(ntuple, ntuple[name].field_id)

        sizes = OverlappingBytes(start, stop, {}).of(ntuple[name])

        assert sizes == size_on_disk(ntuple, columns, clusters), name


def test_a_field_of_a_collection_includes_the_collections_offsets(ntuple):
    jets, pt = ntuple["jets"], ntuple["jets"]["pt"]
    offsets = [c.idx for c in ntuple.column_records if c.field_id == jets.field_id]
    own = columns_below(ntuple, pt.field_id)
    assert len(offsets) == len(own) == 1

    expected = size_on_disk(ntuple, offsets + own, (0, 1))
    assert OverlappingBytes(0, 1_700, {}).of(pt) == expected


# -- Parquet ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """Write a table in row groups of 10, with names that are prefixes of other names."""
    path = tmp_path_factory.mktemp("parquet") / "table.parquet"
    n = 35
    jets = [[float(k) for k in range(i % 4)] for i in range(n)]
    muons = [[{"pt": 1.0, "id": [1, 2]}] * (i % 3) for i in range(n)]
    columns = {"run": range(n), "jet": jets, "jet.pt": jets, "muons": muons}
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    pq.write_table(table, path, row_group_size=10)
    with pq.ParquetFile(path) as file:
        yield file


def column(file, name):
    """Return an object like coffea's wrapper of a Parquet column."""
    return SimpleNamespace(source=SimpleNamespace(file=file), column=name)


def test_all_row_groups_are_counted(parquet):
    for name, leaves in {"run": [0], "jet": [1], "jet.pt": [2], "muons": [3, 4]}.items():
        parts = [
            parquet.metadata.row_group(g).column(leaf) for g in range(4) for leaf in leaves
        ]

        sizes = OverlappingBytes(10, 20, {}).of(column(parquet, name))

        assert sizes == (
            sum(part.total_compressed_size for part in parts),
            sum(part.total_uncompressed_size for part in parts),
        ), name


# -- names and numbers -----------------------------------------------------------------------


def test_formats_names_and_numbers_of_branches(tree, ntuple, parquet):
    expected = {
        "TTree": (tree, tree["Jet_pt"], "Jet_pt", len(tree.keys())),
        "RNTuple": (ntuple, ntuple["vertex"], "vertex", len(ntuple.keys())),
        "Parquet": (parquet, column(parquet, "jet.pt"), "jet.pt", 4),
    }
    for name, (table, branch, title, number) in expected.items():
        assert storage_format(table) == storage_format(branch) == name
        assert branch_name(branch) == title
        assert count_branches(table) == number
    for other in (None, {"run": [1, 2]}):
        assert storage_format(other) is count_branches(other) is None
    assert OverlappingBytes(0, 1, {}).of(None) == (None, None)


# -- real NanoAOD files, if there are any on this machine -------------------------------------

DATA = Path(os.environ.get("ROAST_DATA", Path(__file__).parents[4] / "shared" / "data"))


def data_file(name):
    if not (DATA / name).exists():
        pytest.skip(f"no {name} (set ROAST_DATA to its folder)")
    return DATA / name


@pytest.mark.exhaustive
def test_embedded_baskets_of_real_files_count_only_uncompressed_bytes():
    with uproot.open(data_file("nanoAOD_2015_CMS_Open_Data_ttbar.root")) as file:
        events = file["Events"]
        embedded = [
            branch
            for branch in events.branches
            if branch.num_baskets == len(branch.embedded_baskets) == 1
        ]
        assert len(embedded) == 946

        for branch in embedded:
            [basket] = branch.embedded_baskets
            held = basket.member("fKeylen") + basket.data.nbytes
            if basket.byte_offsets is not None:
                held += 4 * (branch.num_entries + 1)
            assert OverlappingBytes(60, 90, {}).of(branch) == (0, held)


@pytest.mark.exhaustive
def test_a_branch_can_have_free_and_embedded_baskets():
    with uproot.open(data_file("nanoAOD_2015_CMS_Open_Data_ttbar.root")) as file:
        branch = file["Events"]["LHEPdfWeight"]
        assert branch.entry_offsets == [0, 76, 152, 200]
        [last] = branch.embedded_baskets
        in_last = last.member("fLast") + last.byte_offsets.nbytes
        sizes = {(id(branch), n): branch.basket_uncompressed_bytes(n) for n in (0, 1)}

        assert OverlappingBytes(0, 76, sizes).of(branch) == (18_166, 31_401)
        assert OverlappingBytes(75, 153, sizes).of(branch) == (36_169, 62_802 + in_last)
        assert OverlappingBytes(152, 200, sizes).of(branch) == (0, in_last)
        # As many bytes per entry as in the free baskets.
        assert in_last == pytest.approx(31_401 * 48 / 76, rel=0.01)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["nano_dy.root", "nano_dimuon.root", "nano_tt_v12.root"])
def test_a_file_of_one_basket_per_branch(name):
    with uproot.open(data_file(name)) as file:
        for branch in file["Events"].branches:
            sizes = OverlappingBytes(3, 11, {}).of(branch)

            assert sizes == (branch.compressed_bytes, branch.uncompressed_bytes)


@pytest.mark.exhaustive
def test_projected_fields_count_the_columns_that_they_refer_to():
    with uproot.open(data_file("nano_dy_rntuple.root")) as file:
        events = file["Events"]
        projected = [
            field
            for field in events.fields
            if not field.name.startswith("_collection")
            and any(
                record.source_field_id is not None
                for record in (field.record, *(below.record for below in field.fields))
            )
        ]
        assert len(projected) > 100

        for field in projected[::20]:
            columns = columns_below(events, field.field_id)
            expected = size_on_disk(events, columns, (0,))
            assert OverlappingBytes(0, 40, {}).of(field) == expected, field.name


@pytest.mark.exhaustive
def test_every_column_of_a_parquet_file_is_found_once():
    with pq.ParquetFile(data_file("nano_dy.parquet")) as file:
        groups = [file.metadata.row_group(n) for n in range(file.num_row_groups)]
        names = file.schema_arrow.names

        sizes = [OverlappingBytes(0, 40, {}).of(column(file, name)) for name in names]

        leaves = [group.column(leaf) for group in groups for leaf in range(group.num_columns)]
        assert len(names) == 1_499
        assert tuple(map(sum, zip(*sizes, strict=True))) == (
            sum(leaf.total_compressed_size for leaf in leaves),
            sum(leaf.total_uncompressed_size for leaf in leaves),
        )


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "branches"),
    [
        ("nanoAOD_2015_CMS_Open_Data_ttbar.root", 947),
        ("nano_dimuon.root", 1_601),
        ("nano_dy_rntuple.root", 1_903),
    ],
)
def test_numbers_of_branches(name, branches):
    with uproot.open(data_file(name)) as file:
        assert count_branches(file["Events"]) == branches
