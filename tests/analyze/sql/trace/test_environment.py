"""View environment."""


def test_facts_are_text_or_json(rows):
    """A fact that segments repeat is one row."""
    values = {
        "plain": "plain",
        "number": 1.5,
        "flag": True,
        "object": {"a": [1, "b"]},
        "null": None,
        "quoted": 'say "hi"',
    }
    fact = {"kind": "environment", "t": 2.0, "section": "host"}
    facts = [{**fact, "name": name, "value": value} for name, value in values.items()]

    assert rows("SELECT * FROM environment", *facts, *facts, {**facts[0], "t": 3.0}) == [
        ("host", "plain", "plain", 2.0, "T"),
        ("host", "number", "1.5", 2.0, "T"),
        ("host", "flag", "true", 2.0, "T"),
        ("host", "object", '{"a":[1,"b"]}', 2.0, "T"),
        ("host", "null", None, 2.0, "T"),
        ("host", "quoted", 'say "hi"', 2.0, "T"),
        ("host", "plain", "plain", 3.0, "T"),
    ]
