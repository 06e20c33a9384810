"""Totals, differences and names of several traces."""

import uuid
from pathlib import Path

import pytest

from roast_analyze import Trace
from roast_analyze.open.discover import group_by_trace
from roast_analyze.report.comparison import data
from roast_analyze.report.comparison.data import DIFFERENCE, RATIO, query, seconds_in, value_in
from roast_analyze.report.comparison.labels import (
    abbreviated,
    distinct_labels,
    recorded_labels,
)


@pytest.fixture(scope="module")
def done(task, run):
    """Return a task that computed for a number of seconds."""
    return lambda key, seconds: [task(key), *run(key, 1.0, 1.0 + seconds)]


@pytest.fixture(scope="module")
def compared(tmp_path_factory, lines, worker, done, task, run, chunk):
    """Compare a run with one that has two threads, and with one without coffea."""

    def made(dataset, key, seconds):
        entries = {"filename": "f.root", "entry_start": 0, "entry_stop": 100}
        return [chunk(key, dataset=dataset, **entries), *done(key, seconds)]

    def nameless(seconds):
        return [task("x", prefix=None), *run("x", 1.0, 1.0 + seconds)]

    traces = {
        "a": [worker("w1"), *made("Z", "less-1", 3.0), *made("W", "same-1", 2.0),
              *done("gone-1", 0.5), *nameless(0.5)],
        "b": [worker("w1", nthreads=2), *made("Z", "less-1", 1.0), *done("same-1", 2.0),
              *nameless(2.0)],
        "c": [*done("same-1", 2.0), *done("less-1", 2.5), *done("new-1", 1.0)],
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("compared")
    for name, records in traces.items():
        (folder / f"{name}.jsonl").write_bytes(lines(*records, trace_id=name, stop_t=10.0))
    paths = [folder / f"{name}.jsonl" for name in traces]
    return query(group_by_trace(paths), lambda names: Trace(*names))


def rows(listing, *columns):
    return listing.rows.select(columns).rows()


def test_totals_and_their_ratios_to_the_first_trace(compared):
    columns = ("trace", "wall_seconds", "peak_nthreads", "core_seconds", "kept_seconds")
    assert rows(compared.totals, *columns, "wasted_seconds", "idle_seconds", "tasks") == [
        ("a", 10.0, 1, 10.0, 6.0, 0.0, 4.0, 4),
        ("b", 10.0, 2, 20.0, 5.0, 0.0, 15.0, 3),
        ("c", 10.0, 0, None, 5.5, 0.0, None, 3),
    ]
    ratios = [name + RATIO for name in ("wall_seconds", "kept_seconds", "wasted_seconds")]
    assert rows(compared.totals, *ratios) == [
        (None, None, None),
        (1.0, pytest.approx(5 / 6), None),
        (1.0, pytest.approx(5.5 / 6), None),
    ]


def test_prefixes_are_ranked_by_difference(compared):
    prefixes = compared.groups["prefixes"]

    assert rows(prefixes, "prefix", *map(seconds_in, "abc"), DIFFERENCE) == [
        ("less", 3.0, 1.0, 2.5, -2.0),
        (None, 0.5, 2.0, None, 1.5),
        ("new", None, None, 1.0, 1.0),
        ("gone", 0.5, None, None, -0.5),
        ("same", 2.0, 2.0, 2.0, 0.0),
    ]
    assert rows(prefixes, seconds_in("b") + RATIO)[0] == (pytest.approx(1 / 3),)
    assert rows(prefixes, seconds_in("c") + RATIO)[2] == (None,)


def test_chunks_are_compared_by_dataset_and_by_file(compared):
    assert rows(compared.totals, "chunks", "events") == [(2, 200), (1, 100), (None, None)]
    columns = ("filename", "dataset", seconds_in("a"), seconds_in("b"))
    assert rows(compared.groups["files"], *columns) == [
        ("f.root", "Z", 3.0, 1.0),
        ("f.root", "W", 2.0, None),
    ]
    datasets = compared.groups["datasets"]
    assert rows(datasets, "dataset", DIFFERENCE) == [("Z", -3.0), ("W", -2.0)]


@pytest.mark.exhaustive
def test_facts_and_settings_that_differ(write_trace, fact):
    def recorded(name, settings, *facts):
        path = write_trace(*facts, name=f"{name}.jsonl", trace_id=name)
        header, rest = path.read_text().split("\n", 1)
        path.write_text(f'{header[:-1]},"settings":{settings}}}\n{rest}')
        return path

    def facts(dask, pid, values, **packages):
        return [
            fact("scheduler versions", "dask", dask),
            fact("dask configuration", "worker-saturation", 1.1),
            fact("scheduler", "pid", pid),
            fact("scheduler", "plugins", [f"WorkStealing-{uuid.UUID(int=pid)}", "shuffle"]),
            *(fact("client versions", name, "1") for name in packages),
            *(fact("cluster", "several", value) for value in values),
        ]

    only_a = fact("worker versions", "numpy", "1")
    paths = [
        recorded(
            "a",
            '{"x": 0, "y": 5, "label": "new"}',
            *facts("2026.1", 1, "xy", numpy="1", coffea="1"),
            only_a,
        ),
        recorded("b", '{"x": 2, "y": 5}', *facts("2026.8", 2, "yx", numpy="1")),
    ]
    compared = query(group_by_trace(paths), lambda names: Trace(*names))

    assert compared.labels == ("new", "b")
    # Omitted: process IDs and plugin identifiers, which always differ; versions on workers,
    # which b did not record; and values of one name that differ only in order.
    assert rows(compared.facts, "section", "name", value_in("new"), value_in("b")) == [
        ("client versions", "coffea", "1", None),
        ("recorder settings", "label", "new", None),
        ("recorder settings", "x", "0", "2"),
        ("scheduler versions", "dask", "2026.1", "2026.8"),
    ]
    assert (compared.facts_in_common, compared.facts_in_some) == (5, 1)


@pytest.mark.exhaustive
def test_a_package_that_differs_in_all_processes_is_one_fact(compare, fact):
    def versions(awkward, scheduler_numpy):
        return [
            *(
                fact(f"{process} versions", "awkward", awkward)
                for process in ("worker", "client")
            ),
            fact("scheduler versions", "awkward", awkward),
            fact("client versions", "numpy", "1"),
            fact("scheduler versions", "numpy", scheduler_numpy),
        ]

    compared = compare(a=versions("2.6", "1"), b=versions("2.7", "2"))

    assert rows(compared.facts, "section", "name") == [
        ("client, scheduler and worker versions", "awkward"),
        ("scheduler versions", "numpy"),
    ]


@pytest.mark.exhaustive
def test_options_of_a_library_that_one_client_did_not_import(compare, process_facts):
    def client(**options):
        return process_facts("client", options, dict.fromkeys(options, "default"))

    compared = compare(
        futures=client(temporary="a", tokenize=True),
        dask=client(temporary="b", tokenize=True, offload="10MiB"),
    )

    assert rows(compared.facts, "section", "name") == [("client configuration", "temporary")]
    assert compared.facts_in_some == 1


@pytest.mark.parametrize(
    ("paths", "labels", "names"),
    [
        (["x/a.jsonl", "y/b.jsonl.zst"], ["a", "b"], ["a.jsonl", "b.jsonl.zst"]),
        (["x/a.jsonl", "y/a.jsonl"], ["x/a", "y/a"], ["x/a.jsonl", "y/a.jsonl"]),
        (
            ["p/x/a.jsonl", "q/x/a.jsonl", "b.jsonl"],
            ["p/x/a", "q/x/a", "deep/down/b"],
            ["p/x/a.jsonl", "q/x/a.jsonl", "deep/down/b.jsonl"],
        ),
        (["a.jsonl", "a.jsonl.gz"], ["a.jsonl", "a.jsonl.gz"], ["a.jsonl", "a.jsonl.gz"]),
        (["runs/one", "runs/two"], ["one", "two"], ["one", "two"]),
    ],
)
def test_names_are_as_short_as_possible(paths, labels, names):
    # If folders are needed, all labels have the same number of them.
    assert distinct_labels([(Path("/deep/down") / path,) for path in paths]) == (
        labels,
        [(name,) for name in names],
    )


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ([None, None], ["a", "b"]),
        (["v1", "v2"], ["v1", "v2"]),
        (["v1", None], ["v1", "b"]),
        (["v1", "v1"], ["v1 (a)", "v1 (b)"]),
    ],
)
def test_labels_given_when_recording_replace_names_of_files(given, labels):
    assert recorded_labels(given, ["a", "b", "left out"]) == labels


@pytest.mark.parametrize(
    ("labels", "short"),
    [
        (["before", "after"], ["before", "after"]),
        (
            ["dijets_2026-11-01_v1_on_the_cluster", "dijets_2026-11-02_v2_on_the_cluster"],
            ["…01_v1…", "…02_v2…"],
        ),
        (["x_of_a_long_name_of_a_run", "y_of_a_long_name_of_a_run"], ["x…", "y…"]),
        (["run", "run_of_a_very_long_name_indeed"], ["run", "run_of_a_very_long_name_indeed"]),
        (["a_run_of_a_long_name", "a_run_of_a_long_name_again"], ["…name", "…name_again"]),
        (["the same name of both of them"] * 2, ["…them"] * 2),
    ],
)
def test_abbreviated_names(labels, short):
    assert abbreviated(labels) == short


@pytest.mark.exhaustive
def test_traces_are_opened_one_after_the_other(write_trace, done, monkeypatch):
    events = []

    class Opened(Trace):
        def close(self) -> None:
            events.append(f"close {self.path.name}")
            super().close()

    def opener(names):
        events.append(f"open {names[0].name}")
        return Opened(*names)

    monkeypatch.setattr(data, "TRACE_LIMIT", 2)
    paths = [write_trace(*done("x-1", 1.0), name=f"{n}.jsonl", trace_id=n) for n in "abc"]
    compared = query(group_by_trace(paths), opener)

    assert events == ["open a.jsonl", "close a.jsonl", "open b.jsonl", "close b.jsonl"]
    assert (compared.labels, compared.left_out) == (("a", "b"), ("c",))
    # The queries of the tables compare all traces that are opened together.
    with Trace(*paths[:2]) as both:
        assert len(both.sql(compared.totals.query).fetchall()) == 2
        prefixes = both.sql(compared.groups["prefixes"].query)
        assert prefixes.pl().rows() == [("x", 1.0, 1.0)]
        assert both.sql(compared.groups["files"].query).pl().height == 0
        assert both.sql(compared.facts.query).pl().height == 0


@pytest.mark.exhaustive
def test_long_listings_are_limited(compare, done, fact, monkeypatch):
    monkeypatch.setattr(data, "GROUP_ROWS", 2)
    monkeypatch.setattr(data, "FACT_ROWS", 2)

    def made(seconds, value):
        for n in range(5):
            yield from done(f"p{n}-1", n * seconds)
            yield fact("s", str(n), value)

    compared = compare(a=list(made(0.1, "x")), b=list(made(0.2, "y")))

    prefixes, facts = compared.groups["prefixes"], compared.facts
    assert [row[0] for row in rows(prefixes, "prefix")] == ["p4", "p3"]
    assert (prefixes.total, facts.total, facts.rows.height) == (5, 5, 2)
