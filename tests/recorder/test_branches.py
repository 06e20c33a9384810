"""Bytes by branch: what overlaps a range of entries, counted by other means."""

import os
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from roast_recorder.coffea.branches import Pieces, count_branches, name_of, source_of

ak = pytest.importorskip("awkward")
uproot = pytest.importorskip("uproot")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

DATA = Path(os.environ.get("ROAST_DATA", Path(__file__).parents[3] / "shared" / "data"))


def data_file(name):
    """A real NanoAOD file, if there are any on this machine."""
    if not (DATA / name).exists():
        pytest.skip(f"no {name} (set ROAST_DATA to its folder)")
    return DATA / name


# -- TTree -----------------------------------------------------------------------------------

#: Entries of the baskets of the trees that the tests write.
BASKETS = (10, 4, 6)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Numbers, arrays of a fixed size, jagged collections and strings in three baskets."""
    path = tmp_path_factory.mktemp("trees") / "tree.root"
    jets = ak.types.from_datashape("var * {pt: float32, eta: float32}", highlevel=False)
    columns = {
        "run": np.dtype("u4"),
        "cov": np.dtype(("f4", (3,))),
        "Jet": jets,
        "flag": np.dtype("?"),
        "name": "string",
    }
    with uproot.recreate(path) as file:
        written = file.mktree("Events", columns)
        for n in BASKETS:
            pt = ak.Array([[1.5] * (k % 4) for k in range(n)])
            written.extend(
                {
                    "run": np.arange(n, dtype="u4"),
                    "cov": np.random.default_rng(n).random((n, 3), "f4"),
                    "Jet": ak.zip({"pt": pt, "eta": pt * 2}),
                    "flag": np.arange(n) % 3 == 0,
                    "name": ["x" * k for k in range(n)],
                }
            )
    # No arrays are kept, so that reading one twice is reading it twice.
    with uproot.open(path, array_cache=None) as file:
        yield file["Events"]


BRANCHES = ("run", "cov", "nJet", "Jet_pt", "Jet_eta", "flag", "name")


def overlapping_baskets(branch, start, stop):
    """The baskets that hold entries of a range, by their own first and last entry."""
    return [
        number
        for number in range(branch.num_baskets)
        if max(branch.basket_entry_start_stop(number)[0], start)
        < min(branch.basket_entry_start_stop(number)[1], stop)
    ]


def noted(branch, start, stop):
    """What a measurement would have noted: uncompressed sizes of the baskets it read."""
    return {
        (id(branch), number): branch.basket_uncompressed_bytes(number)
        for number in overlapping_baskets(branch, start, stop)
    }


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize(
    ("start", "stop", "baskets"),
    [
        (0, 20, (0, 1, 2)),
        (0, 10, (0,)),
        (10, 14, (1,)),
        (14, 20, (2,)),
        (9, 10, (0,)),
        (9, 11, (0, 1)),
        (9, 14, (0, 1)),
        (13, 15, (1, 2)),
        (0, 0, ()),
        (10, 10, ()),
        (20, 20, ()),
    ],
)
def test_the_baskets_that_overlap_are_counted_and_no_others(tree, name, start, stop, baskets):
    branch = tree[name]

    sizes = Pieces(start, stop, noted(branch, start, stop)).bytes_of(branch)

    assert sizes == (
        sum(branch.basket_compressed_bytes(number) for number in baskets),
        sum(branch.basket_uncompressed_bytes(number) for number in baskets),
    )


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize(("start", "stop"), [(0, 20), (0, 10), (9, 11), (12, 13), (14, 20)])
def test_they_are_what_uproot_requests_from_the_file(tree, name, start, stop):
    branch, source = tree[name], tree.file.source
    before = source.num_requested_bytes
    branch.array(entry_start=start, entry_stop=stop, array_cache=None)
    requested = source.num_requested_bytes - before

    compressed, _ = Pieces(start, stop, {}).bytes_of(branch)

    assert compressed == requested


def test_asking_reads_nothing(tree):
    before = tree.file.source.num_requested_bytes

    for name in BRANCHES:
        Pieces(3, 17, {}).bytes_of(tree[name])
    count_branches(tree)

    assert tree.file.source.num_requested_bytes == before


@pytest.mark.parametrize("name", BRANCHES)
def test_chunks_as_large_as_baskets_add_up_to_the_branch(tree, name):
    branch = tree[name]
    edges = branch.entry_offsets
    assert edges == [0, 10, 14, 20]

    parts = [
        Pieces(start, stop, noted(branch, start, stop)).bytes_of(branch)
        for start, stop in pairwise(edges)
    ]

    assert tuple(map(sum, zip(*parts, strict=True))) == (
        branch.compressed_bytes,
        branch.uncompressed_bytes,
    )


def test_a_basket_that_holds_several_chunks_counts_in_each(tree):
    branch = tree["run"]
    first = branch.basket_compressed_bytes(0)

    sizes = [Pieces(start, start + 2, {}).bytes_of(branch)[0] for start in range(0, 10, 2)]

    assert sizes == [first] * 5


def test_the_uncompressed_size_of_a_basket_that_nobody_read_is_unknown(tree):
    branch = tree["run"]

    assert Pieces(0, 14, {(id(branch), 0): 100}).bytes_of(branch)[1] is None


def test_that_of_the_whole_branch_is_known_all_the_same(tree):
    branch = tree["run"]

    assert Pieces(0, 20, {}).bytes_of(branch)[1] == branch.uncompressed_bytes


def test_a_tree_without_entries_has_no_bytes(tmp_path):
    with uproot.recreate(tmp_path / "empty.root") as file:
        file.mktree("Events", {"x": "f8", "jets": "var * float32"})

    with uproot.open(tmp_path / "empty.root") as file:
        sizes = [Pieces(0, 0, {}).bytes_of(branch) for branch in file["Events"].branches]

    assert sizes == [(0, 0)] * 3


class SplitBranch(SimpleNamespace):
    """A branch as ROOT splits an object; uproot can't write one."""

    num_baskets = 0


class Basketless:
    def __init__(self):
        self.subbranches = {"a": None, "b": None}


def test_reading_a_branch_that_was_split_is_reading_its_parts(tree):
    split = SplitBranch(
        interpretation=Basketless(), branches=[tree["run"], tree["Jet_pt"]], num_baskets=0
    )

    together = Pieces(0, 20, {}).bytes_of(split)

    assert together == tuple(
        tree["run"].member(name) + tree["Jet_pt"].member(name)
        for name in ("fZipBytes", "fTotBytes")
    )


def test_reading_a_branch_that_only_counts_is_not_reading_what_it_counts(tree):
    # A TClonesArray: the branch itself is how many objects there are, those below are they.
    count = tree["nJet"]
    array = SplitBranch(
        interpretation=count.interpretation,
        branches=[tree["Jet_pt"]],
        num_baskets=count.num_baskets,
        entry_offsets=count.entry_offsets,
        embedded_baskets=[],
        basket_compressed_bytes=count.basket_compressed_bytes,
        uncompressed_bytes=count.uncompressed_bytes,
    )

    assert Pieces(0, 20, {}).bytes_of(array)[0] == count.compressed_bytes


def test_baskets_embedded_in_the_tree_cost_no_bytes_and_hold_what_they_hold():
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
            assert Pieces(60, 90, {}).bytes_of(branch) == (0, held)


def test_baskets_of_both_sorts_in_one_branch():
    with uproot.open(data_file("nanoAOD_2015_CMS_Open_Data_ttbar.root")) as file:
        branch = file["Events"]["LHEPdfWeight"]
        assert branch.entry_offsets == [0, 76, 152, 200]
        assert len(branch.embedded_baskets) == 1
        baskets = noted(branch, 0, 152)
        last = branch.embedded_baskets[0]
        in_last = last.member("fLast") + last.byte_offsets.nbytes

        assert Pieces(0, 76, baskets).bytes_of(branch) == (18_166, 31_401)
        assert Pieces(75, 153, baskets).bytes_of(branch) == (36_169, 62_802 + in_last)
        assert Pieces(152, 200, baskets).bytes_of(branch) == (0, in_last)
        # As much for an entry as in the baskets that are free.
        assert in_last == pytest.approx(31_401 * 48 / 76, rel=0.01)


@pytest.mark.parametrize("name", ["nano_dy.root", "nano_dimuon.root", "nano_tt_v12.root"])
def test_every_branch_of_a_nanoaod_file_is_in_one_basket(name):
    with uproot.open(data_file(name)) as file:
        for branch in file["Events"].branches:
            sizes = Pieces(3, 11, {}).bytes_of(branch)

            assert sizes == (branch.compressed_bytes, branch.uncompressed_bytes)


# -- RNTuple ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ntuple(tmp_path_factory):
    """Numbers, strings, records, and collections in collections, in two clusters."""
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
    """The numbers of the columns of a field and of all fields below it."""
    ids, waiting = set(), [field_id]
    while waiting:
        number = waiting.pop()
        record = ntuple.field_records[number]
        ids.add(number if record.source_field_id is None else record.source_field_id)
        waiting += [
            below
            for below, record in enumerate(ntuple.field_records)
            if record.parent_field_id == number and below != number
        ]
    return [column.idx for column in ntuple.column_records if column.field_id in ids]


def size_on_disk(ntuple, columns, clusters):
    """What the page lists say of these columns, page by page."""
    bits = uproot.const.rntuple_col_num_to_size_dict
    compressed = uncompressed = 0
    for cluster in clusters:
        for column in columns:
            for page in ntuple.page_link_list[cluster][column].pages:
                compressed += page.locator.num_bytes
                width = bits[ntuple.column_records[column].type]
                uncompressed += -(-page.num_elements * width // 8)
    return compressed, uncompressed


@pytest.mark.parametrize("name", ["x", "flag", "name", "vertex", "jets"])
@pytest.mark.parametrize(
    ("start", "stop", "clusters"),
    [
        (0, 1_700, (0, 1)),
        (0, 1_000, (0,)),
        (999, 1_000, (0,)),
        (999, 1_001, (0, 1)),
        (1_000, 1_700, (1,)),
        (5, 5, ()),
    ],
)
def test_the_clusters_that_overlap_are_counted(ntuple, name, start, stop, clusters):
    field = ntuple[name]
    columns = columns_below(ntuple, field.field_id)
    assert [cluster.num_entries for cluster in ntuple.cluster_summaries] == [1_000, 700]

    sizes = Pieces(start, stop, {}).bytes_of(field)

    assert sizes == size_on_disk(ntuple, columns, clusters)


def test_a_field_of_a_collection_is_read_with_how_long_the_collections_are(ntuple):
    jets, pt = ntuple["jets"], ntuple["jets"]["pt"]
    lengths = [c.idx for c in ntuple.column_records if c.field_id == jets.field_id]
    own = columns_below(ntuple, pt.field_id)
    assert len(lengths) == len(own) == 1

    assert Pieces(0, 1_700, {}).bytes_of(pt) == size_on_disk(ntuple, lengths + own, (0, 1))


def test_fields_that_stand_for_others_count_what_they_stand_for():
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
            sizes = Pieces(0, 40, {}).bytes_of(field)
            assert sizes == size_on_disk(events, columns, (0,)), field.name


# -- Parquet ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """A table in row groups of 10, with names that are parts of other names."""
    path = tmp_path_factory.mktemp("parquet") / "table.parquet"
    n = 35
    jets = [[float(k) for k in range(i % 4)] for i in range(n)]
    table = pa.table(
        {
            "run": pa.array(range(n), pa.int32()),
            "jet": pa.array(jets),
            "jet.pt": pa.array(jets),
            "muons": pa.array([[{"pt": 1.0, "id": [1, 2]}] * (i % 3) for i in range(n)]),
            "muons.list": pa.array(range(n)),
        }
    )
    pq.write_table(table, path, row_group_size=10)
    with pq.ParquetFile(path) as file:
        yield file


class Column:
    """As coffea's shim of a Parquet column is."""

    def __init__(self, file, name):
        self.source = SimpleNamespace(file=file)
        self.column = name


@pytest.mark.parametrize(
    ("name", "leaves"),
    [("run", [0]), ("jet", [1]), ("jet.pt", [2]), ("muons", [3, 4])],
)
@pytest.mark.parametrize(
    ("start", "stop", "groups"),
    [
        (0, 35, (0, 1, 2, 3)),
        (0, 10, (0,)),
        (10, 20, (1,)),
        (9, 11, (0, 1)),
        (30, 35, (3,)),
        (20, 20, ()),
    ],
)
def test_the_row_groups_that_overlap_are_counted(parquet, name, leaves, start, stop, groups):
    parts = [parquet.metadata.row_group(g).column(leaf) for g in groups for leaf in leaves]

    sizes = Pieces(start, stop, {}).bytes_of(Column(parquet, name))

    assert sizes == (
        sum(part.total_compressed_size for part in parts),
        sum(part.total_uncompressed_size for part in parts),
    )


def test_every_column_of_a_nanoaod_table_is_found_once():
    with pq.ParquetFile(data_file("nano_dy.parquet")) as file:
        group = file.metadata.row_group(0)
        names = file.schema_arrow.names

        sizes = [Pieces(0, 40, {}).bytes_of(Column(file, name)) for name in names]

        leaves = [group.column(leaf) for leaf in range(group.num_columns)]
        assert len(names) == 1_499
        assert tuple(map(sum, zip(*sizes, strict=True))) == (
            sum(leaf.total_compressed_size for leaf in leaves),
            sum(leaf.total_uncompressed_size for leaf in leaves),
        )


# -- names and numbers -----------------------------------------------------------------------


def test_what_things_are_stored_as(tree, ntuple, parquet):
    assert [source_of(tree), source_of(tree["run"])] == ["TTree"] * 2
    assert [source_of(ntuple), source_of(ntuple["x"])] == ["RNTuple"] * 2
    assert [source_of(parquet), source_of(Column(parquet, "run"))] == ["Parquet"] * 2
    assert source_of(None) is None
    assert source_of({"run": [1, 2]}) is None


def test_what_branches_are_called(tree, ntuple, parquet):
    assert name_of(tree["Jet_pt"]) == "Jet_pt"
    assert name_of(ntuple["vertex"]) == "vertex"
    assert name_of(Column(parquet, "jet.pt")) == "jet.pt"


def test_how_many_branches_there_are(tree, ntuple, parquet):
    assert count_branches(tree) == len(tree.keys()) == 7
    assert count_branches(ntuple) == len(ntuple.keys()) == 9
    assert count_branches(parquet) == 5
    assert count_branches(None) is None


@pytest.mark.parametrize(
    ("name", "branches"),
    [
        ("nanoAOD_2015_CMS_Open_Data_ttbar.root", 947),
        ("nano_dimuon.root", 1_601),
        ("nano_dy_rntuple.root", 1_903),
    ],
)
def test_how_many_there_are_in_nanoaod_files(name, branches):
    with uproot.open(data_file(name)) as file:
        assert count_branches(file["Events"]) == branches
