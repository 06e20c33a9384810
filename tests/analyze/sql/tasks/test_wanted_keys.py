"""View wanted_keys."""

import pytest


@pytest.fixture
def wants():
    """Return a record of what a client desires or releases, as (t, action, keys)."""

    def wants(client: str, *changes: tuple) -> dict:
        listed = [dict(zip(("t", "action", "keys"), change, strict=True)) for change in changes]
        return {"kind": "wanted_keys", "t": changes[-1][0], "client": client, "changes": listed}

    return wants


def test_a_key_is_wanted_until_each_client_releases_it(rows, task, wants):
    assert rows(
        "SELECT * FROM wanted_keys",
        task("inc-1", t=1.0),
        wants("C1", (1.0, "desires", ["inc-1", "data"])),
        wants("C2", (2.0, "desires", ["inc-1"]), (3.0, "releases", ["inc-1"])),
        wants("C1", (4.0, "releases", ["inc-1"]), (5.0, "desires", ["inc-1"])),
    ) == [
        ("data", None, "C1", 1.0, None, None, "T"),
        ("inc-1", "inc", "C1", 1.0, 4.0, 3.0, "T"),
        ("inc-1", "inc", "C2", 2.0, 3.0, 1.0, "T"),
        ("inc-1", "inc", "C1", 5.0, None, None, "T"),
    ]


def test_without_a_release_a_key_is_wanted_until_dask_drops_it(rows, move, wants):
    assert rows(
        "SELECT key, client, start_t, stop_t FROM wanted_keys",
        wants("C", (1.0, "desires", ["a", "b"])),
        wants("fire-and-forget", (2.0, "desires", ["b"])),
        move(3.0, "a", "memory>forgotten"),
        move(4.0, "b", "processing>memory"),
        # Submitted again.
        wants("C", (5.0, "desires", ["a"])),
    ) == [
        ("a", "C", 1.0, 3.0),
        ("b", "C", 1.0, None),
        ("b", "fire-and-forget", 2.0, 4.0),
        ("a", "C", 5.0, None),
    ]
