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


def test_one_worker(apply, naps):
    """Worker c1 computes for 60 s what the others do in 20 s."""
    records = naps(a1=1.0, b1=1.0, c1=3.0)
    assert apply("slow-worker", *records) == [("c1", pytest.approx(40.0))]
    assert apply("slow-host", *records) == []


def test_one_worker_in_the_second_half(apply, naps, worker, task, run):
    """Worker c1 computes 10 tasks like the others, then 10 tasks 3 times as slowly."""
    records = [*naps(a1=1.0, b1=1.0), worker("c1", name="c1")]
    begin = 0.0
    for number in range(20):
        end = begin + (1.0 if number < 10 else 3.0)
        records += [
            task(f"nap-late-{number}"),
            *run(f"nap-late-{number}", begin, end, worker="c1"),
        ]
        begin = end
    assert apply("slow-worker", *records) == [("c1", pytest.approx(20.0))]


@pytest.mark.parametrize(
    ("slow", "found"),
    [
        ({"w3"}, {"slow-worker": "w3", "slow-host": None}),
        ({"w2", "w3"}, {"slow-worker": None, "slow-host": "host-b"}),
    ],
)
def test_chunks_from_the_middle_of_the_run_on(apply, worker, chunk, run, slow, found):
    """Chunks take 1 s; after 20 of 40 s, those of the slow workers take 3 s."""
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

    for rule, entity in found.items():
        entities = [(entity,)] if entity else []
        assert apply(rule, *records, columns="entity", stop_t=45.0) == entities


def test_one_prefix_of_a_host(apply, naps, task, run):
    """Workers of host c read 3 times as slowly, and compute like the others."""
    records = naps(a1=1.0, b1=1.0, b2=1.0, c1=1.0, c2=1.0)
    for name, seconds in {"a1": 0.5, "b1": 0.5, "b2": 0.5, "c1": 1.5, "c2": 1.5}.items():
        for number in range(30):
            key, begin = f"read-{name}-{number}", number * 2.0
            records += [task(key), *run(key, begin, begin + seconds, worker=name, thread=2)]
    assert apply("slow-host", *records) == [("host-c", pytest.approx(60.0))]


def test_short_tasks_that_are_not_slower(apply, naps, task, run):
    """Each worker also merges, as fast as the others."""
    records = naps(a1=1.0, b1=1.0, c1=3.0)
    for name in ("a1", "b1", "c1"):
        for number in range(8):
            key, begin = f"merge-{name}-{number}", 3.0 * number
            records += [task(key), *run(key, begin, begin + 0.1, worker=name, thread=2)]
    assert apply("slow-worker", *records, columns="entity") == [("c1",)]


def test_a_little_slower(apply, naps):
    assert apply("slow-worker", *naps(a1=1.0, b1=1.0, c1=1.4)) == []


def test_a_host_of_which_one_worker_is_nearly_slow(apply, worker, task, run):
    """Tasks of c2 vary so much that it may be slow by chance, but not together with c1."""
    records = []
    factors = {"a1": [1.0], "a2": [1.0], "b1": [1.0], "c1": [2.0], "c2": [0.8, 1.6, 1.6, 3.0]}
    for name, seconds in factors.items():
        records.append(worker(name, name=name, host=f"host-{name[0]}"))
        for number in range(20):
            key, begin = f"nap-{name}-{number}", 3.0 * number
            stop = begin + seconds[number % len(seconds)]
            records += [task(key), *run(key, begin, stop, worker=name)]
    assert apply("slow-host", *records, columns="entity") == [("host-c",)]
    assert apply("slow-worker", *records) == []


def test_a_host(apply, naps):
    records = naps(a1=1.0, a2=1.0, c1=2.0, c2=2.0)
    assert apply("slow-host", *records) == [("host-c", pytest.approx(60.0))]
    assert apply("slow-worker", *records) == []


@pytest.mark.parametrize(
    ("slow", "found"),
    [({"c1": 3, "c2": 3}, [("host-c", 80.0)]), ({"a1": 3, "c1": 3}, []), ({"c1": 9}, [])],
    ids=["one host", "two hosts", "rarely"],
)
def test_a_host_that_is_slow_now_and_then(apply, worker, task, run, slow, found):
    """On some workers, every third or ninth of 30 tasks takes 5 s instead of 1 s."""
    records = []
    for name in ("a1", "a2", "b1", "b2", "c1", "c2"):
        records.append(worker(name, name=name, host=f"host-{name[0]}"))
        begin = 0.0
        for number in range(30):
            key = f"nap-{name}-{number}"
            stop = begin + (5.0 if number % slow.get(name, 99) == 1 else 1.0)
            records += [task(key), *run(key, begin, stop, worker=name)]
            begin = stop

    assert apply("slow-host", *records, stop_t=80.0) == [
        # At the end, only these workers compute, so that there is nothing to compare with.
        (host, pytest.approx(seconds, rel=0.15))
        for host, seconds in found
    ]


def test_other_work(apply, naps, worker, task, run):
    """Long tasks of another prefix do not make a worker slow."""
    records = [*naps(a1=1.0, b1=1.0), worker("c1")]
    for number in range(12):
        key, begin = f"fit-{number}", 5.0 * number
        records += [task(key), *run(key, begin, begin + 5.0, worker="c1")]
    assert apply("slow-worker", *records) == []
