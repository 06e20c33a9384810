import pytest

from roast_analyze import Trace
from roast_analyze.open.discover import group_by_trace
from roast_analyze.report.comparison import sentences
from roast_analyze.report.comparison.data import TRACE_LIMIT, query

NBSP = "\N{NO-BREAK SPACE}"


@pytest.fixture
def compare(write_trace):
    """Compare traces, given as ``name=(seconds of recording, records)``."""

    def compare(**traces):
        paths = [
            write_trace(*records, name=f"{name}.jsonl", trace_id=name, stop_t=stop_t)
            for name, (stop_t, records) in traces.items()
        ]
        return query(group_by_trace(paths), lambda names: Trace(*names))

    return compare


@pytest.fixture
def busy(worker, task, run):
    """Records of a worker that computed for so many seconds."""

    def busy(seconds: float, prefix: str = "x") -> list[dict]:
        return [
            worker("w1"),
            task(f"{prefix}-1"),
            *run(f"{prefix}-1", 1.0, 1.0 + seconds),
        ]

    return busy


def plain(text: str) -> str:
    return text.replace(NBSP, " ")


@pytest.mark.parametrize(
    ("stops", "says"),
    [
        ({"a": 10.0, "b": 15.0}, "b took 15 s, 1.5 times as long as a (10 s)."),
        ({"a": 10.0, "b": 10.01}, "b took 10 s, as long as a (10 s)."),
        ({"a": 0.0, "b": 2.0}, "b took 2 s, not as long as a (0 s)."),
        (
            {"a": 10.0, "b": 5.0, "c": 20.0},
            "Of 3 traces, c took the longest, 20 s: 4 times as long as b (5 s).",
        ),
    ],
)
def test_verdict(compare, stops, says):
    compared = compare(**{name: (stop_t, []) for name, stop_t in stops.items()})

    assert plain(sentences.verdict(compared)) == says


def test_core_time(compare, busy, task, move):
    started = [{"action": "compute", "start": 5.0, "stop": 8.0}]
    failed = [
        task("y-1"),
        move(5.0, "y-1", "waiting>processing", worker="w1"),
        move(8.0, "y-1", "processing>erred", "task-erred-1", worker="w1", startstops=started),
    ]
    compared = compare(a=(10.0, busy(2.0)), b=(10.0, [*busy(3.0), *failed]))

    assert plain(sentences.core_time(compared)) == (
        "CPU utilization was 20 % in a and 60 % in b. Attempts with discarded results computed "
        "for 3 s in b."
    )


def test_many_traces_are_described_by_their_extremes(compare, busy):
    many = {name: (10.0, busy(n)) for n, name in enumerate("abcdef", start=1)}
    alike = {name: (10.0, busy(1.0)) for name in "abcdef"}

    assert plain(sentences.core_time(compare(**many))).endswith("10 % in a to 60 % in f.")
    assert plain(sentences.core_time(compare(**alike))).endswith("10 % in each of 6 traces.")


def test_traces_without_workers(compare):
    compared = compare(a=(1.0, []), b=(1.0, []))

    assert sentences.core_time(compared).startswith("No worker was recorded in any trace")
    assert sentences.memory(compared) == ""


def test_completeness(compare):
    loss = {"kind": "loss", "t": 1.0, "reason": "late", "records": 3}

    assert (
        sentences.completeness(compare(a=(1.0, []), b=(1.0, []))) == "All traces are complete."
    )
    assert sentences.completeness(compare(a=(1.0, []), b=(1.0, [loss]))) == (
        "b is incomplete: lost records are missing in all numbers."
    )


def test_left_out(write_trace):
    path = write_trace()
    named = [(path.with_name(f"{n}.jsonl"),) for n in range(TRACE_LIMIT + 6)]
    compared = query(named, lambda _names: Trace(path))

    assert plain(sentences.left_out(compared)) == (
        "6 more traces are left out, because the limit is 24: 24, 25, 26 and 3 more."
    )
    assert sentences.left_out(query(named[:2], lambda _names: Trace(path))) == ""


def test_over_time(compare, busy):
    compared = compare(a=(10.0, busy(2.0)), b=(10.0, busy(4.0)))

    told = plain(sentences.over_time(compared, with_limit=False))

    assert told.endswith("from the first task to the last: 1 of 1 in a and 1 of 1 in b.")
    assert "memory limit" not in told
    assert "memory limit" in sentences.over_time(compared, with_limit=True)


def test_memory(compare, worker, sample):
    def held(memory):
        return [worker("w1"), sample(1.0, "w1", memory=memory, nthreads=1)]

    compared = compare(a=(2.0, held(1024**3)), b=(2.0, held(3 * 1024**3)))

    assert plain(sentences.memory(compared)) == (
        "b had the highest peak memory, 3 GiB: 3 times as much as a (1 GiB)."
    )


def test_difference(compare, busy):
    compared = compare(
        a=(10.0, busy(2.0)), b=(10.0, busy(3.0)), c=(10.0, busy(1.0, prefix="other"))
    )

    def difference(one):
        return plain(sentences.difference(one, one.prefixes, "prefix", "prefixes"))

    assert difference(compared) == (
        "Of the prefixes, x differs most in compute time: none in c, 2 s in a."
    )
    assert difference(compare(a=(9.0, busy(2.0)), b=(9.0, busy(2.0)))) == (
        "The compute time by prefix is the same in all traces."
    )
    assert difference(compare(a=(9.0, []), b=(9.0, []))) == ""


def test_facts(compare):
    def facts(**values):
        return (
            1.0,
            [
                {"kind": "environment", "t": 0.0, "section": "s", "name": n, "value": v}
                for n, v in values.items()
            ],
        )

    def told(**traces):
        return plain(sentences.facts(compare(**traces)))

    assert told(a=facts(x="1", y="2"), b=facts(x="1", y="3")) == (
        "1 recorded fact about software, machines and settings differs, in s; 1 is the same. "
        "Identifiers and addresses, which always differ, are left out."
    )
    assert told(a=facts(x="1"), b=facts(x="1")) == (
        "1 recorded fact about software, machines and settings is the same in all traces."
    )
    assert told(a=(1.0, []), b=(1.0, [])) == (
        "No facts about software, machines and settings were recorded."
    )
