"""View config: Dask's configuration in effect, and its differences from the defaults."""

QUERY = (
    "SELECT name, value, process, default_value, differs, varies, is_declared, processes, "
    "workers FROM config"
)
DEFAULTS = {"a.b": 0.7, "a.list": ["x"], "a.none": None}


def test_the_defaults_and_what_differs(rows, process_facts):
    scheduler = process_facts("scheduler", {"a.b": 0.8, "mine": None}, DEFAULTS)
    client = process_facts("client", {"c.set": None}, {"c.set": 1})
    # Workers that are alike are one row, and what later segments repeat counts once.
    workers = [process_facts("worker", {}, {"w": 1}, worker=f"w{n}") for n in (0, 1, 2, 2)]
    other = process_facts("worker", {"w": 2}, {"w": 1}, worker="w3")

    # Older traces contain a few options of the scheduler, without defaults.
    older = {"kind": "environment", "t": 0.0, "section": "dask configuration"}
    older |= {"name": "old", "value": True}

    assert rows(QUERY, *scheduler, *client, *sum(workers, other), older) == [
        ("a.b", "0.8", "scheduler", "0.7", True, False, True, 1, None),
        ("a.list", '["x"]', "scheduler", '["x"]', False, False, True, 1, None),
        ("a.none", None, "scheduler", None, False, False, True, 1, None),
        ("c.set", None, "client", "1", True, False, True, 1, None),
        ("mine", None, "scheduler", None, True, False, False, 1, None),
        ("old", "true", "scheduler", None, None, False, None, 1, None),
        ("w", "1", "worker", "1", False, True, True, 3, ["w0", "w1", "w2"]),
        ("w", "2", "worker", "1", True, True, True, 1, ["w3"]),
    ]


def test_the_last_file_or_variable_that_sets_an_option_is_its_source(rows, process_facts):
    sources = [
        {"kind": "file", "name": "/etc/dask/a.yaml", "options": ["a", "b", "c-c", "e", "mine"]},
        {"kind": "file", "name": "/home/u/.config/dask/b.yaml", "options": ["b", "same"]},
        {"kind": "variable", "name": "DASK_C_C", "options": ["c-c"]},
        {"kind": "code", "options": ["e", "reset"]},
    ]
    configuration = {"a": 1, "b": 1, "c_c": 1, "d": 1, "e": 1, "mine": "<withheld>"}
    defaults = dict.fromkeys(("a", "b", "c_c", "d", "e", "f", "same", "reset"), 0)

    assert rows(
        "SELECT name, source, source_name FROM config WHERE process = 'client' OR name = 'a'",
        *process_facts("client", configuration, defaults, config_sources=sources),
        *process_facts("worker", configuration, defaults, worker="without sources"),
    ) == [
        ("a", "file", "/etc/dask/a.yaml"),
        ("a", None, None),  # the worker's
        ("b", "file", "/home/u/.config/dask/b.yaml"),
        ("c_c", "variable", "DASK_C_C"),
        ("d", "code", None),
        ("e", "code", None),
        ("f", None, None),
        ("mine", "file", "/etc/dask/a.yaml"),
        ("reset", None, None),  # to its default
        ("same", "file", "/home/u/.config/dask/b.yaml"),
    ]


def test_run_specific_options(rows, process_facts):
    own = {
        "scheduler-address": "x",
        "distributed.scheduler.contact-address": None,
        "temporary-directory": "/anywhere",
        "a.address": "tcp://10.0.0.1:4000",
        "a.file": "/tmp/xyz",
    }
    shared = {
        "a.folder": "/tmpfs",
        "a.time": "5s",
        "distributed.worker.memory.spill": 0.7,
        "a.transport": "tcp",
    }

    found = rows(
        "SELECT name, is_run_specific FROM config", *process_facts("client", own | shared, {})
    )
    assert dict(found) == dict.fromkeys(own, True) | dict.fromkeys(shared, False)


def test_invalid_facts_are_ignored(rows, process_facts):
    facts = process_facts("client", ["a"], "b", {"c": 1}) + process_facts(
        "worker", {}, {"a": 1}, worker="w"
    )
    nothing = {"kind": "environment", "t": 0.0, "section": "process", "name": "x", "value": 3}

    assert rows("SELECT name, process FROM config", *facts, nothing) == [("a", "worker")]
