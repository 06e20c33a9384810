"""Decomposition of the difference between two runs."""

import random
from dataclasses import replace

import polars as pl
import pytest

from roast_analyze.algorithms.decomposition import (
    COMPUTING,
    COSTS,
    PATH,
    WAITING,
    WORK,
    RunAmounts,
    decompose,
    mean_terms,
    path_changes,
    summarize,
)


def run(wall_seconds, work, costs, waiting=()):
    """Return a run of work ``{(prefix, dataset): (tasks, events, error)}`` and its costs."""
    rows = [
        (prefix, dataset, part, *(*details, None, None)[:2], *(*numbers, None)[:2])
        for (prefix, dataset, part, *details), numbers in costs.items()
    ]
    return RunAmounts(
        wall_seconds,
        pl.DataFrame([(*group, *row) for group, row in work.items()], WORK, orient="row"),
        pl.DataFrame(rows, COSTS, orient="row"),
        pl.DataFrame(list(dict(waiting).items()), WAITING, orient="row"),
    )


def tasks(wall_seconds, waiting=(), error=0.01, **prefixes):
    """Return a run of tasks, as ``prefix=(tasks, seconds of one)``."""
    return run(
        wall_seconds,
        {(prefix, None): (n, None, error) for prefix, (n, _) in prefixes.items()},
        {(prefix, None, COMPUTING): (n * each,) for prefix, (n, each) in prefixes.items()},
        waiting,
    )


def chunks(events, size, seconds, wall_seconds=100.0, fixed=None, dispatch=0.0):
    """Return a run of chunks of a dataset on one thread, which waits the rest of the time."""
    count = events // size
    costs = {("process", "QCD", COMPUTING): (seconds, fixed)}
    if dispatch:
        costs["process", "QCD", "dispatch"] = (dispatch, dispatch / count)
    waiting = {"tail": wall_seconds - seconds - dispatch}
    return run(wall_seconds, {("process", "QCD"): (count, events, 0.01)}, costs, waiting)


def changed(frame):
    """Return the terms that differ from 0 by more than rounding."""
    return frame.filter(pl.max_horizontal(pl.col("core_seconds", "wall_seconds").abs()) > 1e-9)


def terms(frame, *columns):
    """Return nonzero terms, as ``(term, prefix, part): (core seconds, wall seconds)``."""
    names = ("term", "prefix", "part", *columns)
    rows = changed(frame).rows(named=True)
    return {
        tuple(row[name] for name in names): (
            pytest.approx(row["core_seconds"]),
            pytest.approx(row["wall_seconds"]),
        )
        for row in rows
    }


#: Two runs, and the terms of the difference between them.
CHANGES = {
    "a slower prefix: 200 s on 4 threads become 230 s, 7.5 s more": (
        tasks(50.0, fit=(100, 1.0), load=(100, 1.0)),
        tasks(57.5, fit=(100, 1.3), load=(100, 1.0)),
        {("cost", "fit", COMPUTING): (30.0, 7.5)},
    ),
    "half the threads: the client's 10 s in both runs need half the thread time": (
        tasks(60.0, {"between graphs": 40.0}, fit=(200, 1.0)),
        tasks(110.0, {"between graphs": 20.0}, fit=(200, 1.0)),
        {("threads", None, None): (-20.0, 50.0)},
    ),
    "twice the tasks": (
        tasks(50.0, fit=(100, 2.0)),
        tasks(100.0, fit=(200, 2.0)),
        {("amount", "fit", None): (200.0, 50.0)},
    ),
    "both: 100 more tasks of 1.5 s, and 1 s more for 150 tasks, which are the means": (
        tasks(100.0, fit=(100, 1.0)),
        tasks(400.0, fit=(200, 2.0)),
        {("amount", "fit", None): (150.0, 150.0), ("cost", "fit", COMPUTING): (150.0, 150.0)},
    ),
    "waiting is a time of all threads": (
        tasks(50.0, {"tail": 0.0}, fit=(100, 2.0)),
        tasks(53.0, {"tail": 12.0}, fit=(100, 2.0)),
        {("waiting", None, "tail"): (12.0, 3.0)},
    ),
    "a prefix of only one run differs in amount": (
        tasks(10.0, fit=(10, 1.0)),
        tasks(15.0, fit=(10, 1.0), plot=(5, 1.0)),
        {("amount", "plot", None): (5.0, 5.0)},
    ),
    "a part other than computing costs the same for any size: 0.1 s for 5 more chunks": (
        chunks(1000, 200, 50.0, wall_seconds=50.5, fixed=0.0, dispatch=0.5),
        chunks(1000, 100, 50.0, wall_seconds=51.0, fixed=0.0, dispatch=1.0),
        {("chunk size", "process", None): (0.5, 0.5)},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_terms(change):
    base, new, expected = CHANGES[change]

    assert terms(decompose(base, new)) == expected


def test_a_part_of_only_one_run_differs_in_cost():
    base = tasks(10.0, fit=(10, 1.0))
    part = pl.DataFrame(
        [("fit", None, "lost attempt", None, None, 3.0, None)], COSTS, orient="row"
    )
    new = replace(base, wall_seconds=13.0, costs=pl.concat([base.costs, part]))

    found = decompose(base, new)
    assert terms(found) == {("cost", "fit", "lost attempt"): (3.0, 3.0)}
    assert changed(found).select("unit", "base", "new").row(0) == pytest.approx(
        ("seconds per result", 0.0, 0.3)
    )


def test_without_results_attempts_are_counted():
    failed = pl.col("part").replace(COMPUTING, "failed attempt")
    base, new = (
        replace(run, costs=run.costs.with_columns(failed))
        for run in (tasks(10.0, fit=(10, 1.0)), tasks(20.0, fit=(20, 1.0)))
    )

    assert changed(decompose(base, new)).select("term", "unit", "base", "new").rows() == [
        ("amount", "attempts", 10.0, 20.0)
    ]


def test_smaller_chunks_of_a_known_fixed_time():
    """5 chunks of 1 s + 10 s become 10 of 1 s + 5 s in a slower program: 5 s + 10 s more."""
    base = chunks(1000, 200, 55.0, fixed=1.0)
    new = chunks(1000, 100, 70.0, fixed=1.0)

    assert terms(decompose(base, new), "is_assumed") == {
        ("chunk size", "process", None, False): (5.0, 5.0),
        ("cost", "process", COMPUTING, None): (10.0, 10.0),
        ("waiting", None, "tail", None): (-15.0, -15.0),
    }


def test_costs_at_the_mean_chunk_size_are_not_negative():
    """10 chunks are dispatched in no time, then one in 1 s: an event costs more than 0."""
    base = chunks(1000, 100, 50.0, wall_seconds=50.0, fixed=0.0, dispatch=0.0)
    new = chunks(1000, 1000, 50.0, wall_seconds=51.0, fixed=0.0, dispatch=1.0)

    found = decompose(base, new).filter(term="cost", part="dispatch")
    assert found.select("base", "new").row(0) == pytest.approx((0.0, 0.0055))
    assert found["core_seconds"].item() == pytest.approx(1000 * 0.0055)


@pytest.mark.parametrize(
    ("size", "seconds", "of_size"),
    [
        (100, 65.0, 10.0),  # 5 more chunks: 2 s each
        (100, 50.0, 0.0),  # smaller chunks do not make events cheaper
        (190, 65.0, 0.0),  # sizes hardly differ
    ],
)
def test_smaller_chunks_of_an_unknown_fixed_time(size, seconds, of_size):
    base, new = chunks(1000, 200, 55.0), chunks(1000, size, seconds)

    found = decompose(base, new).filter(term="chunk size")
    assert found["wall_seconds"].sum() == pytest.approx(of_size)
    assert found["is_assumed"].to_list() == [bool(of_size)]


def detailed(**seconds):
    """Return a run of chunks on one thread, with the read time of each branch or of all."""
    details = {("opening", None): 5.0}
    details |= {("reading", None if name == "all" else name): s for name, s in seconds.items()}
    costs = {("process", "QCD", COMPUTING, *key): (s, None) for key, s in details.items()}
    wall_seconds = 5.0 + sum(seconds.values())
    return run(wall_seconds, {("process", "QCD"): (5, 1000, None)}, costs)


def test_details():
    """Details that one run did not measure are added up in the other one."""
    base = detailed(pt=10.0, eta=10.0)
    for new, expected in (
        (
            detailed(pt=18.0, mass=1.0, eta=10.0),
            [("reading", "pt", 8.0), ("reading", "mass", 1.0)],
        ),
        (detailed(all=25.0), [("reading", None, 5.0)]),
        (chunks(1000, 200, 20.0, wall_seconds=20.0), [(None, None, -5.0)]),
    ):
        costs = changed(decompose(base, new).filter(term="cost"))
        found = costs.select("detail", "branch", "wall_seconds").rows()
        assert found == [(*names, pytest.approx(seconds)) for *names, seconds in expected]


def random_run(seed):
    """Return a run of random amounts: prefixes and parts can be missing, times negative."""
    draw = random.Random(seed)
    work, costs = {}, {}
    for group in (("a", None), ("b", "QCD"), ("b", "DY"), ("c", "DY")):
        if draw.random() < 0.7:
            n = draw.randint(1, 100)
            events = draw.choice([None, 0, n * draw.randint(1, 10_000)])
            work[group] = (n, events, draw.choice([None, draw.random()]))
            for part in (COMPUTING, "dispatch", "failed attempt"):
                for detail in draw.choice([(None,), ("reading", "other")]):
                    if draw.random() < 0.8:
                        seconds = draw.lognormvariate(0, 3) * draw.choice([1, 1, 1, -0.01, 0])
                        fixed = draw.choice([None, seconds / n])
                        costs[(*group, part, detail)] = (seconds, fixed)
    waiting = {use: draw.lognormvariate(0, 3) for use in "xyz" if draw.random() < 0.7}
    return run(draw.lognormvariate(0, 3), work, costs, {"unknown": 100.0, **waiting})


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.exhaustive
def test_terms_add_up_and_are_symmetric(seed):
    base, new = random_run(seed), random_run(seed + 1000)

    there, back = decompose(base, new), decompose(new, base)
    scale = max(base.wall_seconds, new.wall_seconds)
    wall = new.wall_seconds - base.wall_seconds
    core = new.core_seconds - base.core_seconds
    assert there["wall_seconds"].sum() == pytest.approx(wall, abs=1e-9 * scale)
    assert there["core_seconds"].sum() == pytest.approx(core, abs=1e-9 * base.core_seconds)
    identity = ["term", "prefix", "dataset", "part", "detail", "branch"]
    both = there.join(back, on=identity, how="full", nulls_equal=True)
    assert (both["wall_seconds"] + both["wall_seconds_right"]).abs().max() < 1e-9 * scale
    assert both["wall_seconds"].null_count() == both["wall_seconds_right"].null_count() == 0
    summary = summarize([base, random_run(seed + 2000)], new)
    mean = (base.wall_seconds + random_run(seed + 2000).wall_seconds) / 2
    assert summary["wall_seconds"].sum() == pytest.approx(new.wall_seconds - mean, rel=1e-6)


def significant(bases, new):
    """Return the significance of each term."""
    return {
        (row["term"], row["prefix"], row["part"]): row["significant"]
        for row in summarize(bases, new).rows(named=True)
    }


#: Bases, a run with slower tasks, the prefix, and whether the difference is significant.
SLOWER = {
    "beyond two standard errors": (
        [tasks(100.0, fit=(100, 1.0), error=0.02)],
        tasks(120.0, fit=(100, 1.2), error=0.02), "fit", True,
    ),
    "within them": (
        [tasks(100.0, fit=(100, 1.0), error=0.08)],
        tasks(120.0, fit=(100, 1.2), error=0.08), "fit", False,
    ),
    "less than 5 % of the wall time": (
        [tasks(100.0, fit=(100, 1.0))], tasks(104.0, fit=(100, 1.04)), "fit", False,
    ),
    "more than 2 % with several equal bases": (
        [tasks(100.0, fit=(100, 1.0))] * 3, tasks(103.0, fit=(100, 1.03)), "fit", True,
    ),
    "of a single task in each": (
        [tasks(102.0, load=(100, 1.0), merge=(1, 2.0))],
        tasks(120.0, load=(100, 1.0), merge=(1, 20.0), error=None), "merge", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("slower", SLOWER)
def test_significant_costs(slower):
    bases, new, prefix, expected = SLOWER[slower]

    assert significant(bases, new) == {("cost", prefix, COMPUTING): expected}


@pytest.mark.parametrize(
    ("wall", "waiting", "expected"),
    [
        (5.0, 0.9, False),  # below 1 s
        (5.0, 1.1, True),
        (100.0, 4.9, False),  # below 5 % of the wall time
        (100.0, 9.9, False),  # below one task
        (100.0, 10.1, True),
    ],
)
def test_waiting_with_one_base(wall, waiting, expected):
    each = 10.0 if wall > 10 else 0.1
    base = tasks(wall, fit=(int(wall / each), each))
    new = tasks(wall + waiting, {"tail": waiting}, fit=(int(wall / each), each))

    assert significant([base], new) == {("waiting", None, "tail"): expected}


def test_the_spread_of_several_bases_is_noise():
    """100, 110 and 90 s: the next one is within 100 s ± 50 s."""
    bases = [tasks(wall, fit=(100, wall / 100)) for wall in (100.0, 110.0, 90.0)]

    for wall, expected in ((140.0, False), (160.0, True)):
        found = summarize(bases, tasks(wall, fit=(100, wall / 100))).row(0, named=True)
        assert found["wall_seconds"] == pytest.approx(wall - 100.0)
        assert found["noise_seconds"] == pytest.approx(4.303 * 10 * (4 / 3) ** 0.5)
        assert found["significant"] is expected


def test_datasets_of_a_prefix_are_added_up():
    """Reading of two datasets got slower by 2 s and 3 s."""
    work = {("process", name): (10, 1000, 0.001) for name in ("DY", "QCD")}
    base = run(40.0, work, {("process", name, COMPUTING): (20.0,) for name in ("DY", "QCD")})
    new = run(
        45.0,
        work,
        {("process", "DY", COMPUTING): (22.0,), ("process", "QCD", COMPUTING): (23.0,)},
    )

    found = summarize([base], new)
    assert found.select("prefix", "unit", "base", "new", "amount", "wall_seconds").rows() == [
        ("process", "seconds per event", *map(pytest.approx, (0.02, 0.0225, 2000.0, 5.0)))
    ]
    assert changed(mean_terms([base], new))["dataset"].to_list() == ["QCD", "DY"]


def test_waiting_and_work_of_one_of_several_bases():
    """Two of three bases neither wait nor compute `rare`, nor does the new run."""
    usual = tasks(10.0, fit=(10, 1.0))
    other = tasks(31.0, {"between graphs": 12.0}, fit=(10, 1.0), rare=(9, 1.0))

    found = mean_terms([usual, usual, other], usual).filter(pl.col("wall_seconds") < 0)

    assert found.select("term", "base", "new", "wall_seconds").rows() == [
        ("waiting", 4.0, 0.0, -4.0),
        ("amount", 3.0, 0.0, -3.0),
    ]


def test_critical_paths():
    """The part of the wall time that a path does not cover is unknown."""

    def path(wall_seconds, *steps):
        return RunAmounts(
            wall_seconds, *(pl.DataFrame(schema=schema) for schema in (WORK, COSTS, WAITING)),
            pl.DataFrame(steps, PATH, orient="row"),
        )  # fmt: skip

    bases = [
        path(10.0, ("compute", "fit", 6.0), ("client", None, 4.0)),
        path(12.0, ("compute", "fit", 8.0), ("client", None, 4.0)),
    ]
    new = path(20.0, ("compute", "fit", 17.0), ("transfer", "fit", 1.0))

    found = path_changes(bases, new)
    assert found.rows() == [
        ("compute", "fit", 7.0, 17.0, 10.0),
        ("client", None, 4.0, 0.0, -4.0),
        ("unknown", None, 0.0, 2.0, 2.0),
        ("transfer", "fit", 0.0, 1.0, 1.0),
    ]
    assert found["wall_seconds"].sum() == 20.0 - 11.0
