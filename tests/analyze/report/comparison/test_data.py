"""Totals, differences and names of several traces."""

from pathlib import Path

import pytest

from roast_analyze import Trace
from roast_analyze.open.discover import group_by_trace
from roast_analyze.report.comparison import data
from roast_analyze.report.comparison.data import (
    DIFFERENCE,
    RATIO,
    query,
    seconds_in,
    value_in,
)
from roast_analyze.report.comparison.labels import abbreviated, distinct_labels


@pytest.fixture
def done(task, run):
    """A task that computed for so many seconds."""

    def done(key: str, seconds: float) -> list[dict]:
        return [task(key), *run(key, 1.0, 1.0 + seconds)]

    return done


def rows(listing, *columns):
    return listing.rows.select(columns).rows()


def test_totals_and_their_ratios_to_the_first_trace(compare, worker, done):
    compared = compare(
        a=[worker("w1"), *done("x-1", 2.0)],
        b=[worker("w1", nthreads=2), *done("x-1", 3.0), *done("x-2", 3.0)],
    )

    columns = ("trace", "wall_seconds", "peak_nthreads", "core_seconds", "kept_seconds")
    assert rows(compared.totals, *columns, "wasted_seconds", "idle_seconds", "tasks") == [
        ("a", 10.0, 1, 10.0, 2.0, 0.0, 8.0, 1),
        ("b", 10.0, 2, 20.0, 6.0, 0.0, 14.0, 2),
    ]
    ratios = [name + RATIO for name in ("wall_seconds", "kept_seconds", "wasted_seconds")]
    assert rows(compared.totals, *ratios) == [(None, None, None), (1.0, 3.0, None)]


def test_prefixes_are_ranked_by_difference(compare, done, task, run):
    def nameless(seconds):
        return [task("x", prefix=None), *run("x", 1.0, 1.0 + seconds)]

    compared = compare(
        a=[*done("same-1", 2.0), *done("less-1", 3.0), *done("gone-1", 0.5), *nameless(0.5)],
        b=[*done("same-1", 2.0), *done("less-1", 1.0), *nameless(2.0)],
        c=[*done("same-1", 2.0), *done("less-1", 2.5), *done("new-1", 1.0)],
    )

    columns = ["prefix", *map(seconds_in, "abc"), DIFFERENCE]
    assert rows(compared.prefixes, *columns) == [
        ("less", 3.0, 1.0, 2.5, -2.0),
        (None, 0.5, 2.0, None, 1.5),
        ("new", None, None, 1.0, 1.0),
        ("gone", 0.5, None, None, -0.5),
        ("same", 2.0, 2.0, 2.0, 0.0),
    ]
    assert rows(compared.prefixes, seconds_in("b") + RATIO)[0] == (pytest.approx(1 / 3),)
    assert rows(compared.prefixes, seconds_in("c") + RATIO)[2] == (None,)


def test_chunks_are_compared_by_dataset_and_by_file(compare, done, chunk):
    def made(dataset, key, seconds):
        entries = {"filename": "f.root", "entry_start": 0, "entry_stop": 100}
        return [chunk(key, dataset=dataset, **entries), *done(key, seconds)]

    compared = compare(
        a=[*made("Z", "P-1", 1.0), *made("W", "P-2", 1.0)],
        b=[*made("Z", "P-1", 3.0)],
        plain=[],
    )

    assert rows(compared.totals, "chunks", "events") == [(2, 200), (1, 100), (None, None)]
    columns = ("filename", "dataset", seconds_in("a"), seconds_in("b"))
    assert rows(compared.files, *columns) == [
        ("f.root", "Z", 1.0, 3.0),
        ("f.root", "W", 1.0, None),
    ]
    assert rows(compared.datasets, "dataset", DIFFERENCE) == [("Z", 2.0), ("W", -1.0)]


def test_queries_of_the_listings(write_trace, done):
    records = [*done("x-1", 1.0)]
    paths = [write_trace(*records, name=f"{n}.jsonl", trace_id=n) for n in "ab"]
    compared = query(group_by_trace(paths), lambda names: Trace(*names))

    with Trace(*paths) as both:
        assert len(both.sql(compared.totals.query).fetchall()) == 2
        assert both.sql(compared.prefixes.query).pl().rows() == [("x", 1.0, 1.0)]
        assert both.sql(compared.files.query).pl().height == 0
        assert both.sql(compared.facts.query).pl().height == 0


def fact(section: str, name: str, value: object) -> dict:
    return {"kind": "environment", "t": 0.0, "section": section, "name": name, "value": value}


def test_facts_that_differ(compare):
    def facts(dask, pid, **packages):
        return [
            fact("scheduler versions", "dask", dask),
            fact("dask configuration", "worker-saturation", 1.1),
            fact("scheduler", "pid", pid),
            *(fact("client versions", name, "1") for name in packages),
        ]

    compared = compare(
        a=[*facts("2026.1", 1, numpy="1", coffea="1"), fact("worker versions", "numpy", "1")],
        b=facts("2026.8", 2, numpy="1"),
    )

    # Process ids always differ, and b recorded nothing about the versions on workers.
    assert rows(compared.facts, "section", "name", value_in("a"), value_in("b")) == [
        ("client versions", "coffea", "1", None),
        ("scheduler versions", "dask", "2026.1", "2026.8"),
    ]
    assert compared.facts_in_common == 3


def test_settings_of_the_recorder_are_facts(write_trace):
    def recorded(name, **settings):
        path = write_trace(name=name, trace_id=name)
        header, rest = path.read_text().split("\n", 1)
        path.write_text(f'{header[:-1]},"settings":{settings}}}\n{rest}'.replace("'", '"'))
        return path

    paths = [
        recorded("a.jsonl", redact_patterns=0, buffer_limit_bytes=5),
        recorded("b.jsonl", redact_patterns=2, buffer_limit_bytes=5),
    ]
    compared = query(group_by_trace(paths), lambda names: Trace(*names))

    assert rows(compared.facts, "section", "name", value_in("a"), value_in("b")) == [
        (data.RECORDER, "redact_patterns", "0", "2")
    ]


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
def test_names_are_as_short_as_can_be(paths, labels, names):
    root = Path("/deep/down")

    # Where folders are needed, all have as many.
    assert distinct_labels([(root / path,) for path in paths]) == (
        labels,
        [(name,) for name in names],
    )


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
        (
            ["a_run_of_a_long_name", "a_run_of_a_long_name_again"],
            ["…name", "…name_again"],
        ),
        (["the same name of both of them"] * 2, ["…them"] * 2),
    ],
)
def test_abbreviated_names(labels, short):
    assert abbreviated(labels) == short


def test_traces_are_opened_one_after_the_other(write_trace):
    events = []

    class Opened(Trace):
        def close(self) -> None:
            events.append(f"close {self.path.name}")
            super().close()

    def opener(names):
        events.append(f"open {names[0].name}")
        return Opened(*names)

    paths = [write_trace(name=f"{n}.jsonl", trace_id=n) for n in "ab"]
    query(group_by_trace(paths), opener)

    assert events == ["open a.jsonl", "close a.jsonl", "open b.jsonl", "close b.jsonl"]


def test_traces_beyond_the_limit_are_not_opened(write_trace, monkeypatch):
    monkeypatch.setattr(data, "TRACE_LIMIT", 1)
    path, opened = write_trace(), []
    traces = [(path.with_name(f"{name}.jsonl"),) for name in "abc"]

    def opener(names):
        opened.append(names)
        return Trace(path)

    compared = query(traces, opener)

    assert opened == traces[:1]
    assert compared.labels == ("a",)
    assert compared.left_out == ("b", "c")


def test_long_listings_are_limited(compare, task, run, monkeypatch):
    monkeypatch.setattr(data, "GROUP_ROWS", 2)
    monkeypatch.setattr(data, "FACT_ROWS", 2)

    def made(seconds, value):
        for n in range(5):
            yield task(f"p{n}-1")
            yield from run(f"p{n}-1", 1.0, 1.0 + n * seconds)
            yield fact("s", str(n), value)

    compared = compare(a=list(made(0.1, "x")), b=list(made(0.2, "y")))

    assert [row[0] for row in rows(compared.prefixes, "prefix")] == ["p4", "p3"]
    assert (compared.prefixes.total, compared.facts.total, compared.facts.rows.height) == (
        5, 5, 2,
    )  # fmt: skip
