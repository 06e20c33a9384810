"""Dask spans."""


def test_a_span_is_one_row_however_often_it_was_recorded(rows):
    span = {"kind": "span", "span_id": "s", "span_name": ["outer", "inner"], "parent_id": "p"}

    assert rows("SELECT * FROM spans", {**span, "t": 1.0}, {**span, "t": 2.0}) == [
        ("s", "inner", ["outer", "inner"], "p", 1.0, "T")
    ]
