"""Bytes of each branch in real NanoAOD files, if there are any on this machine."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from roast_recorder.coffea.branches import OverlappingBytes, count_branches

uproot = pytest.importorskip("uproot")
pq = pytest.importorskip("pyarrow.parquet")

DATA = Path(os.environ.get("ROAST_DATA", Path(__file__).parents[3] / "shared" / "data"))


def data_file(name):
    if not (DATA / name).exists():
        pytest.skip(f"no {name} (set ROAST_DATA to its folder)")
    return DATA / name


def test_embedded_baskets_are_free_and_hold_what_they_hold():
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


@pytest.mark.parametrize("name", ["nano_dy.root", "nano_dimuon.root", "nano_tt_v12.root"])
def test_a_file_of_one_basket_per_branch(name):
    with uproot.open(data_file(name)) as file:
        for branch in file["Events"].branches:
            sizes = OverlappingBytes(3, 11, {}).of(branch)

            assert sizes == (branch.compressed_bytes, branch.uncompressed_bytes)


def columns_below(ntuple, field_id):
    """Numbers of the columns of a field and of all fields below it or that it refers to."""
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
    return [column for column in ntuple.column_records if column.field_id in ids]


def test_projected_fields_count_the_columns_that_they_refer_to():
    with uproot.open(data_file("nano_dy_rntuple.root")) as file:
        events = file["Events"]
        bits = uproot.const.rntuple_col_num_to_size_dict
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
            compressed = uncompressed = 0
            for column in columns_below(events, field.field_id):
                for page in events.page_link_list[0][column.idx].pages:
                    compressed += page.locator.num_bytes
                    uncompressed += -(-page.num_elements * bits[column.type] // 8)
            sizes = OverlappingBytes(0, 40, {}).of(field)
            assert sizes == (compressed, uncompressed), field.name


def test_every_column_of_a_parquet_file_is_found_once():
    with pq.ParquetFile(data_file("nano_dy.parquet")) as file:
        group = file.metadata.row_group(0)
        names = file.schema_arrow.names

        columns = [
            SimpleNamespace(source=SimpleNamespace(file=file), column=name) for name in names
        ]
        sizes = [OverlappingBytes(0, 40, {}).of(column) for column in columns]

        leaves = [group.column(leaf) for leaf in range(group.num_columns)]
        assert len(names) == 1_499
        assert tuple(map(sum, zip(*sizes, strict=True))) == (
            sum(leaf.total_compressed_size for leaf in leaves),
            sum(leaf.total_uncompressed_size for leaf in leaves),
        )


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
