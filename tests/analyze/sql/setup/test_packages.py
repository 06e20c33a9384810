"""Versions of the software in each process."""

QUERY = "SELECT package, version, process, processes, workers, differs FROM packages"


def test_versions_by_kind_of_process(rows, told):
    ours, theirs = [["numpy", "2"], ["dask", "1"]], [["numpy", "3"], ["dask", "1"]]
    facts = [
        *told("client", packages=ours, python="3.11.7"),
        *told("worker", packages=ours, python="3.11.7", worker="w0"),
        *told("worker", packages=theirs, python="3.11.7", worker="w1"),
    ]

    assert rows(QUERY, *facts) == [
        ("dask", "1", "client", 1, None, False),
        ("dask", "1", "worker", 2, ["w0", "w1"], False),
        ("numpy", "2", "client", 1, None, True),
        ("numpy", "2", "worker", 1, ["w0"], True),
        ("numpy", "3", "worker", 1, ["w1"], True),
        ("python", "3.11.7", "client", 1, None, False),
        ("python", "3.11.7", "worker", 2, ["w0", "w1"], False),
    ]


def test_recorders_before_told_a_few(rows, worker):
    fact = {"kind": "environment", "t": 0.0, "section": "client versions", "name": "numpy"}
    there = worker("w0", versions={"numpy": "3", "python": "3.11.7.final.0", "lz4": None})

    assert rows(QUERY, {**fact, "value": "2"}, there) == [
        ("numpy", "2", "client", 1, None, True),
        ("numpy", "3", "worker", 1, ["w0"], True),
        ("python", "3.11.7", "worker", 1, ["w0"], False),
    ]


def test_what_dask_knows_of_a_worker_is_not_taken_from_one_that_told(rows, told, worker):
    there = worker("w0", versions={"msgpack": "1"}) | {"server_id": "id-w0"}

    found = rows(QUERY, there, *told("worker", packages=[["numpy", "2"]], worker="w0"))

    assert [row[0] for row in found] == ["numpy"]
