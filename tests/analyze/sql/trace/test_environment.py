"""View environment."""

import pytest


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (1.5, "1.5"),
        (True, "true"),
        ({"a": [1, "b"]}, '{"a":[1,"b"]}'),
        (None, None),
        ('say "hi"', 'say "hi"'),
    ],
)
def test_facts_are_text_or_json(rows, value, text):
    fact = {"kind": "environment", "t": 2.0, "section": "host", "name": "x", "value": value}

    assert rows("SELECT * FROM environment", fact) == [("host", "x", text, 2.0, "T")]


def test_facts_repeated_by_a_segment_are_one_row(rows):
    fact = {"kind": "environment", "t": 2.0, "section": "host", "name": "x", "value": 1}

    assert rows("SELECT name, t FROM environment", fact, fact, {**fact, "t": 3.0}) == [
        ("x", 2.0),
        ("x", 3.0),
    ]
