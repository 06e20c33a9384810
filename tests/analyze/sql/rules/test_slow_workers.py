"""Rules slow-worker and slow-host: the same work takes longer there."""

import pytest


@pytest.fixture
def naps(worker, task, run):
    """Return workers on hosts, with tasks of the duration given for each worker."""

    def naps(**durations):
        records = [
            worker(name, host=f"host-{name[0]}", name=name, nthreads=1) for name in durations
        ]
        for name, seconds in durations.items():
            for number in range(int(60 / seconds)):
                key = f"nap-{name}-{number}"
                begin = number * seconds
                records += [
                    task(key), *run(key, begin, begin + seconds, worker=name, thread=1)
                ]  # fmt: skip
        return records

    return naps


def test_a_slow_worker(apply_each, naps, worker, task, run):
    def one_after_another(key, durations):
        records, begin = [worker("c1", name="c1")], 0.0
        for number, seconds in enumerate(durations):
            end = begin + seconds
            records += [task(f"{key}-{number}"), *run(f"{key}-{number}", begin, end, "c1")]
            begin = end
        return records

    others = naps(a1=1.0, b1=1.0)
    merges = []
    for name in ("a1", "b1", "c1"):
        for number in range(8):
            key, begin = f"merge-{name}-{number}", 3.0 * number
            merges += [task(key), *run(key, begin, begin + 0.1, worker=name, thread=2)]
    cases = {
        # It computes for 60 s what the others do in 20 s.
        "c1": (naps(a1=1.0, b1=1.0, c1=3.0), [("c1", pytest.approx(40.0))]),
        "c1, which merges as fast as the others": (
            [*naps(a1=1.0, b1=1.0, c1=3.0), *merges],
            [("c1", pytest.approx(40.0, rel=0.02))],
        ),
        "c1, in the second half": (
            [*others, *one_after_another("nap-late", [1.0] * 10 + [3.0] * 10)],
            [("c1", pytest.approx(20.0))],
        ),
        "a little slower": (naps(a1=1.0, b1=1.0, c1=1.4), []),
        # Long tasks of another prefix do not make a worker slow.
        "other work": ([*others, *one_after_another("fit", [5.0] * 12)], []),
        "both workers of a host": (naps(a1=1.0, a2=1.0, c1=2.0, c2=2.0), []),
    }
    rows = apply_each("slow-worker", *(records for records, _ in cases.values()))
    assert rows == [expected for _, expected in cases.values()]


def test_a_slow_host(apply_each, naps, task, run):
    reads = []
    for name, seconds in {"a1": 0.5, "b1": 0.5, "b2": 0.5, "c1": 1.5, "c2": 1.5}.items():
        for number in range(30):
            key, begin = f"read-{name}-{number}", number * 2.0
            reads += [task(key), *run(key, begin, begin + seconds, worker=name, thread=2)]
    cases = {
        "both of its workers": (
            naps(a1=1.0, a2=1.0, c1=2.0, c2=2.0),
            [("host-c", pytest.approx(60.0))],
        ),
        # Workers of host c read 3 times as slowly, and compute like the others.
        "one prefix": (
            [*naps(a1=1.0, b1=1.0, b2=1.0, c1=1.0, c2=1.0), *reads],
            [("host-c", pytest.approx(60.0))],
        ),
        "its only worker": (naps(a1=1.0, b1=1.0, c1=3.0), []),
    }
    rows = apply_each("slow-host", *(records for records, _ in cases.values()))
    assert rows == [expected for _, expected in cases.values()]


@pytest.mark.exhaustive
def test_chunks_from_the_middle_of_the_run_on(apply_rules, worker, chunk, run):
    """Chunks take 1 s; after 20 of 40 s, those of the slow workers take 3 s."""

    def trace(*slow):
        hosts = {"w0": "host-a", "w1": "host-a", "w2": "host-b", "w3": "host-b"}
        records = [worker(name, name=name, host=host) for name, host in hosts.items()]
        free_t = dict.fromkeys(hosts, 0.0)
        number = 0
        while min(free_t.values()) < 40.0:
            name = min(free_t, key=free_t.get)
            begin = free_t[name]
            free_t[name] += 3.0 if name in slow and begin >= 20.0 else 1.0
            entries = {"entry_start": number * 1000, "entry_stop": (number + 1) * 1000}
            key = f"chunk-{number}"
            records += [
                chunk(key, dataset="DY", filename=f"{number // 4}.root", **entries),
                *run(key, begin, free_t[name], worker=name),
            ]
            number += 1
        return records

    rules, options = ("slow-worker", "slow-host"), {"columns": "entity", "stop_t": 45.0}
    assert apply_rules(rules, trace("w3"), trace("w2", "w3"), **options) == [
        [[("w3",)], []],
        [[], [("host-b",)]],
    ]


def test_a_host_of_which_one_worker_is_nearly_slow(apply_rules, worker, task, run):
    """Tasks of c2 vary so much that it may be slow by chance, but not together with c1."""
    records = []
    factors = {"a1": [1.0], "a2": [1.0], "b1": [1.0], "c1": [2.0], "c2": [0.8, 1.6, 1.6, 3.0]}
    for name, seconds in factors.items():
        records.append(worker(name, name=name, host=f"host-{name[0]}"))
        for number in range(20):
            key, begin = f"nap-{name}-{number}", 3.0 * number
            stop = begin + seconds[number % len(seconds)]
            records += [task(key), *run(key, begin, stop, worker=name)]
    assert apply_rules(("slow-host", "slow-worker"), records, columns="entity") == [
        [[("host-c",)]],
        [[]],
    ]


@pytest.mark.exhaustive
def test_a_host_that_is_slow_now_and_then(apply_each, worker, task, run):
    """On some workers, every third or ninth of 30 tasks takes 5 s instead of 1 s."""

    def trace(**slow):
        records = []
        for name in ("a1", "a2", "b1", "b2", "c1", "c2"):
            records.append(worker(name, name=name, host=f"host-{name[0]}"))
            begin = 0.0
            for number in range(30):
                key = f"nap-{name}-{number}"
                stop = begin + (5.0 if number % slow.get(name, 99) == 1 else 1.0)
                records += [task(key), *run(key, begin, stop, worker=name)]
                begin = stop
        return records

    cases = {
        # At the end, only these workers compute, so that there is nothing to compare with.
        "one host": (trace(c1=3, c2=3), [("host-c", pytest.approx(80.0, rel=0.15))]),
        "two hosts": (trace(a1=3, c1=3), []),
        "rarely": (trace(c1=9), []),
    }
    rows = apply_each("slow-host", *(records for records, _ in cases.values()), stop_t=80.0)
    assert rows == [expected for _, expected in cases.values()]
