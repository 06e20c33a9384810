"""View packages: versions of the software in each process."""

QUERY = "SELECT package, version, process, processes, workers, differs FROM packages"


def test_versions_by_kind_of_process(rows, process_facts, worker):
    ours, theirs = [["numpy", "2"], ["dask", "1"]], [["numpy", "3"], ["dask", "1"]]

    assert rows(
        QUERY,
        *process_facts("client", packages=ours, python="3.11.7"),
        *process_facts("worker", packages=ours, python="3.11.7", worker="w0"),
        *process_facts("worker", packages=theirs, python="3.11.7", worker="w1"),
        # Dask reports only some packages of a worker; the recorder records all.
        worker("w0", versions={"msgpack": "1"}) | {"server_id": "id-w0"},
    ) == [
        ("dask", "1", "client", 1, None, False),
        ("dask", "1", "worker", 2, ["w0", "w1"], False),
        ("numpy", "2", "client", 1, None, True),
        ("numpy", "2", "worker", 1, ["w0"], True),
        ("numpy", "3", "worker", 1, ["w1"], True),
        ("python", "3.11.7", "client", 1, None, False),
        ("python", "3.11.7", "worker", 2, ["w0", "w1"], False),
    ]


def test_packages_in_older_traces(rows, worker):
    fact = {"kind": "environment", "t": 0.0, "section": "client versions", "name": "numpy"}
    there = worker("w0", versions={"numpy": "3", "python": "3.11.7.final.0", "lz4": None})

    assert rows(QUERY, {**fact, "value": "2"}, there) == [
        ("numpy", "2", "client", 1, None, True),
        ("numpy", "3", "worker", 1, ["w0"], True),
        ("python", "3.11.7", "worker", 1, ["w0"], False),
    ]
