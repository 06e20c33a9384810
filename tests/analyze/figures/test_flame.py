import polars as pl
import pytest

from roast_analyze.figures import palette
from roast_analyze.figures.flame import NODE_LIMIT, flame

NAMES = ["id", "parent", "depth", "name", "self_seconds", "total_seconds", "total_samples"]


def frame(*rows: tuple) -> pl.DataFrame:
    """Return nodes from ``(id, parent, depth, name, own samples, all samples)``."""
    records = [
        (i, parent, depth, name, own / 100, total / 100, total)
        for i, parent, depth, name, own, total in rows
    ]
    nodes = pl.DataFrame(records, schema=NAMES, orient="row", infer_schema_length=None)
    of_root = pl.col("depth") == 0
    return nodes.with_columns(
        ambiguous_samples=0,
        filename=pl.when(~of_root).then(pl.lit("a.py")),
        line_number=pl.when(~of_root).then(3),
    )


TREE = frame((0, None, 0, None, 0, 400), (1, 0, 1, "a<b>", 300, 300), (2, 0, 1, "c", 100, 100))


def test_nodes_have_the_width_of_their_samples():
    (icicle,) = flame(TREE).data

    assert icicle.labels == ("all", "a&lt;b&gt;", "c")
    assert icicle.parents == ("", "0", "0")
    assert icicle.values == (400, 300, 100)
    place, own, share, ambiguous, total, _ = icicle.customdata[1]
    assert (place, own, share, ambiguous, total) == ("a.py:3", 3.0, 0.75, 0, 3.0)
    assert icicle.marker.colors[0] == palette.OTHER
    assert icicle.marker.colors[1] == icicle.marker.colors[2]


def test_labels_are_readable_on_a_dark_page():
    """Leaves are opaque, and the root's label has another color than the root."""
    (icicle,) = flame(TREE).data

    assert icicle.leaf.opacity == 1
    assert icicle.outsidetextfont.color != icicle.marker.colors[0]


def test_colors_of_a_comparison_are_differences_of_shares():
    before = frame((0, None, 0, None, 0, 10), (1, 0, 1, "c", 5, 5), (2, 0, 1, "d", 5, 5))

    (icicle,) = flame(TREE, before).data

    assert icicle.marker.colors == pytest.approx((0.0, 0.75, -0.25))
    assert (icicle.marker.cmin, icicle.marker.cmax) == (-0.75, 0.75)


def test_the_widest_nodes_are_drawn_with_their_parents():
    n = 3000
    chain = frame(
        (0, None, 0, None, 0, n), *((i, i - 1, i, f"f{i}", 1, n - i + 1) for i in range(1, n))
    )

    (icicle,) = flame(chain).data

    assert len(icicle.ids) == NODE_LIMIT
    assert {parent for parent in icicle.parents if parent} <= set(icicle.ids)


@pytest.mark.parametrize("nodes", [frame((0, None, 0, None, 0, 0)), TREE.clear()])
def test_a_profile_without_samples(nodes):
    figure = flame(nodes)

    assert figure.data == ()
    assert figure.layout.annotations[0].text == "no samples"
