"""Sentences and rows about the reasons for the difference between runs."""

from dataclasses import replace

import polars as pl
import pytest

from analyze.report.reading import plain
from roast_analyze.algorithms.decomposition import (
    COMPUTING,
    COSTS,
    PATH,
    WAITING,
    WORK,
    RunAmounts,
)
from roast_analyze.report.comparison.reasons import (
    Reasons,
    frame,
    noise,
    overview,
    path_frame,
    sentences,
    side_by_side,
)


def run(wall_seconds, waiting=None, error=0.01, parts=None, **prefixes):
    """Return a run of tasks, as ``prefix=(tasks, seconds of one)``, with parts of `fit`."""
    work = [(name, None, n, None, error) for name, (n, _) in prefixes.items()]
    costs = {(name, COMPUTING, None): n * each for name, (n, each) in prefixes.items()}
    costs |= {("fit", *part): seconds for part, seconds in (parts or {}).items()}
    return RunAmounts(
        wall_seconds,
        pl.DataFrame(work, WORK, orient="row"),
        pl.DataFrame(
            [(name, None, *part, None, s, None) for (name, *part), s in costs.items()],
            COSTS,
            orient="row",
        ),
        pl.DataFrame(list((waiting or {}).items()), WAITING, orient="row"),
    )


def chunks(events, size, wall_seconds, **details):
    """Return a run of chunks of two datasets on one thread; `details` are those of QCD."""
    work = [("proc", name, events // size, events, 0.01) for name in ("DY", "QCD")]
    rest = (wall_seconds - sum(details.values())) / 2
    seconds = {("DY", "CPU"): rest, ("QCD", "CPU"): rest}
    seconds |= {("QCD", name): s for name, s in details.items()}
    costs = [
        ("proc", dataset, COMPUTING, detail, None, s, None)
        for (dataset, detail), s in seconds.items()
    ]
    return RunAmounts(
        wall_seconds,
        pl.DataFrame(work, WORK, orient="row"),
        pl.DataFrame(costs, COSTS, orient="row"),
        pl.DataFrame(schema=WAITING),
    )


def plain_all(texts):
    return [*map(plain, texts)]


FIT = run(50.0, fit=(100, 2.0))


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        (
            FIT, run(65.0, fit=(100, 2.6)),
            "fit took 30 % longer per result (2.6 s instead of 2 s): +15 s of wall time.",
        ),
        (
            FIT, run(25.0, fit=(100, 1.0)),
            "fit took 50 % less per result (1 s instead of 2 s): −25 s of wall time.",
        ),
        (
            FIT, run(100.0, fit=(100, 2.0)),
            "2 threads on average instead of 4: +50 s of wall time.",
        ),
        (
            FIT, run(100.0, fit=(200, 2.0)),
            "fit had 200 results instead of 100: +50 s of wall time.",
        ),
        (
            FIT, run(60.0, fit=(100, 2.0), plot=(10, 4.0)),
            "plot ran only in b, with 10 results: +10 s of wall time.",
        ),
        (
            run(60.0, fit=(100, 2.0), plot=(10, 4.0)), FIT,
            "plot ran only in a, with 10 results: −10 s of wall time.",
        ),
        (
            FIT, run(60.0, fit=(100, 2.0), parts={("transfer", None): 40.0}),
            ("fit: fetching inputs took more per result (400 ms instead of 0 s): "
             "+10 s of wall time."),
        ),
        (
            FIT, run(55.0, {"between graphs": 20.0}, fit=(100, 2.0)),
            ("On average, a thread waited 5 s longer for the client between graphs "
             "(5 s instead of 0 s): +5 s of wall time."),
        ),
        (
            chunks(1000, 200, 40.0), chunks(1000, 100, 60.0),
            ("proc had chunks of 100 events on average instead of 200: +20 s of wall time. "
             "This assumes that nothing else changed the time of an event. Each run by itself, "
             "with chunks of one size, shows only the fixed time outside of the processor, "
             "which is a part of this."),
        ),
        (
            chunks(1000, 100, 40.0, reading=8.0), chunks(1000, 100, 52.0, reading=20.0),
            ("proc took 30 % longer per event (26 ms instead of 20 ms): +12 s of wall time "
             "(reading +12 s, dataset QCD +12 s)."),
        ),
    ],
)  # fmt: skip
def test_sentences(base, new, expected):
    [found] = sentences(Reasons.of([("a", base)], ("b", new)))

    assert plain(found) == expected


def test_chunks_with_another_executor():
    """The second run has no tasks, so that its chunks have no prefix."""
    tasks = chunks(1000, 100, 20.0)
    path = pl.DataFrame([("compute", "proc", 15.0), ("client", None, 5.0)], PATH, orient="row")
    other = replace(chunks(1000, 100, 30.0), path=path.with_columns(seconds=pl.lit(10.0)))
    without = {
        name: getattr(other, name).with_columns(prefix=pl.lit(None, pl.String))
        for name in ("work", "costs", "path")
    }
    dask, futures = ("dask", replace(tasks, path=path)), ("futures", replace(other, **without))

    reasons = Reasons.of([futures], dask)

    assert plain_all(sentences(reasons)) == [
        "proc took 33.3 % less per event (10 ms instead of 15 ms): −10 s of wall time."
    ]
    assert path_frame(reasons)["step"].to_list() == [
        "unknown", "client", "compute: proc", "difference",
    ]  # fmt: skip
    assert plain_all(sentences(Reasons.of([dask], futures))) == [
        "Chunks took 50 % longer per event (15 ms instead of 10 ms): +10 s of wall time."
    ]
    # Other events are other work.
    fewer = ("dask", chunks(900, 100, 20.0))
    assert plain(sentences(Reasons.of([futures], fewer))[0]).startswith(
        "Chunks ran only in fut"
    )


def test_no_reasons():
    reasons = Reasons.of([("a", FIT)], ("b", run(51.0, fit=(100, 2.04))))

    assert plain_all([overview(reasons), *sentences(reasons)]) == [
        "b took 51 s, +1 s compared with a (50 s); +4 s of core time.",
        "No difference is significant.",
    ]


def test_a_term_whose_significance_is_unknown():
    base, new = (run(100.0 + more, load=(100, 1.0), merge=(1, more)) for more in (10.0, 20.0))

    assert plain_all(sentences(Reasons.of([("a", base)], ("b", new)))) == [
        "No difference is significant.",
        (
            "merge took 2 times as long per result (20 s instead of 10 s): +10 s of wall time. "
            "With so few tasks, one base does not show whether this is noise: compare with "
            "several bases."
        ),
    ]


def test_several_bases_and_few_sentences():
    bases = [(name, run(50.0 + n, fit=(100, 2.0 + 0.04 * n))) for n, name in enumerate("abc")]
    new = run(120.0, {"tail": 40.0}, fit=(200, 2.0))
    reasons = Reasons.of(bases, ("d", new))

    assert plain_all([overview(reasons), *sentences(reasons, limit=1)]) == [
        (
            "d took 2 min, +1 min 9 s compared with the mean of 3 bases (51 s; 50 s to 52 s); "
            "+3 min 56 s of core time."
        ),
        "fit had 200 results instead of 100: +52.8 s of wall time.",
        "2 more terms are significant.",
    ]
    assert noise(reasons) == "Noise is estimated from the differences between the bases."


def test_rows_add_up():
    """Terms of less than 0.5 % of the wall time share one row."""
    base = run(50.0, {"tail": 0.1, "scheduler": 0.1}, fit=(100, 2.0))
    new = run(65.0, {"tail": 0.2, "scheduler": 0.2}, fit=(100, 2.6))

    found = frame(Reasons.of([("a", base)], ("b", new)))
    assert plain_all(found["name"]) == [
        "fit: compute time per result",
        "3 smaller terms",
        "difference",
    ]
    assert found["significant"].to_list() == ["yes", "no", ""]
    *terms, total = found["wall_seconds"]
    assert sum(terms) == pytest.approx(total) == pytest.approx(15.0)


def test_terms_of_several_runs():
    slow, half = run(60.0, fit=(100, 2.4)), run(101.0, {"tail": 2.0}, fit=(100, 2.0))

    each = [Reasons.of([("a", FIT)], new) for new in (("slow", slow), ("half", half))]
    found = side_by_side(each)
    assert found.columns == ["name", "slow wall_seconds", "half wall_seconds"]
    assert [
        (name, *map(pytest.approx, terms)) for name, *terms in found.fill_null(0).rows()
    ] == [
        ("number of threads", 0.0, 50.0),
        ("fit: compute time per result", 10.0, 0.0),
        ("waiting: tail", 0.0, 1.0),
        ("difference", 10.0, 51.0),
    ]


def test_rows_of_the_critical_path():
    def path(run, *steps):
        return replace(run, path=pl.DataFrame(steps, PATH, orient="row"))

    base = path(FIT, ("compute", "fit", 49.9), ("client", None, 0.1))
    new = path(run(65.0, fit=(100, 2.6)), ("compute", "fit", 65.0))

    found = path_frame(Reasons.of([("a", base)], ("b", new)))
    assert [(plain(name), *map(pytest.approx, row)) for name, *row in found.rows()] == [
        ("compute: fit", 49.9, 65.0, 15.1),
        ("2 smaller steps", 0.1, 0.0, -0.1),
        ("difference", 50.0, 65.0, 15.0),
    ]
