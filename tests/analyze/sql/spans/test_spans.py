"""View spans."""


def test_repeated_span_is_one_row(rows):
    span = {"kind": "span", "span_id": "s", "span_name": ["outer", "inner"], "parent_id": "p"}

    assert rows("SELECT * FROM spans", {**span, "t": 1.0}, {**span, "t": 2.0}) == [
        ("s", "inner", ["outer", "inner"], "p", 1.0, "T")
    ]
