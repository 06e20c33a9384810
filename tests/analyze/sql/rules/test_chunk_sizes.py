"""Rules chunks-too-small, chunks-too-large and repeated-baskets."""

from itertools import starmap

import pytest

COST = "core_seconds, wall_seconds_min, wall_seconds_max, change"


def test_fixed_time_of_the_cost_model(apply_each, process, worker):
    def trace(fixed_seconds):
        # The first chunk of a worker is left out of the model.
        events = [100, *[100] * 10, *[400] * 5]
        chunks = [{"events": n, "seconds": fixed_seconds + n * 1e-3} for n in events]
        return [worker("w1"), *process(*chunks)]

    assert apply_each("chunks-too-small", trace(0.5), trace(0.0), columns="change") == [
        [("Use chunks of about 1,100 events (now 100 to 400).",)],
        [],
    ]


@pytest.mark.parametrize(
    ("larger_events", "sentence", "now"),
    [
        (400, "16 chunks of 100 to 400 events take 0.6 s each.", "100 to 400"),
        # These are large enough, and do not count.
        (4000, "11 of 16 chunks of about 100 events take 0.6 s each.", "100"),
    ],
)
def test_chunks_of_two_sizes(apply, process, worker, larger_events, sentence, now):
    """Eleven chunks have 100 events, and five have more."""
    events = [*[100] * 11, *[larger_events] * 5]
    chunks = [{"events": n, "seconds": 0.5 + n * 1e-3} for n in events]
    [(text, change)] = apply(
        "chunks-too-small", worker("w1"), *process(*chunks), columns="sentence, change"
    )
    assert text.startswith(sentence)
    assert change.endswith(f"(now {now}).")


def test_large_chunks_of_two_runs(apply, process, worker):
    """Two threads process three chunks of 10 s, and later three of 20 s."""
    workers = ("w1", "w2", "w1")
    first = process(*({"seconds": 10.0, "worker": name} for name in workers))
    second = process(
        *(
            {"seconds": 20.0, "worker": name, "file": "2.root", "events": 2000}
            for name in workers
        )
    )
    for record in second:
        for name in ("t", "start_t", "stop_t"):
            if record.get(name):
                record[name] += 100.0
        for phase in record.get("startstops", ()):
            phase["start"] += 100.0
            phase["stop"] += 100.0
        record["key"] = f"later-{record['key']}"
        if "run_id" in record:
            record["run_id"] += 10
    [(sentence,)] = apply(
        "chunks-too-large",
        *(worker("w1"), worker("w2"), *first, *second),
        columns="sentence",
        stop_t=150.0,
    )
    assert sentence.startswith("6 chunks in 2 runs, of about 10 to 20 s, for 2 threads: ")


def test_short_chunks_of_the_same_size(apply_each, process, worker):
    """Chunks spend some time outside of the processor, 0.05 s of it with opening."""

    def trace(seconds, process_seconds):
        measured = {"open_seconds": 0.05, "process_seconds": process_seconds}
        return [worker("w1"), *process(*[{"seconds": seconds, **measured}] * 20)]

    short, long_enough, [(confidence, *_)] = apply_each(
        "chunks-too-small",
        *(trace(0.3, 0.2), trace(0.5, 0.4), trace(0.3, 0.25)),
        columns=f"confidence, {COST}",
    )
    saved = 20 * (1 - 1 / 20)
    assert short == [
        (
            "medium",
            pytest.approx(saved * 0.1),
            pytest.approx(0.7 * saved * 0.1),
            # All of the process time may be fixed.
            pytest.approx(1.3 * saved * (0.1 + 0.2)),
            "Use chunks of about 20,000 events (now 1,000).",
        )
    ]
    assert long_enough == []
    # The known fixed time is short.
    assert confidence == "low"


def test_opening_that_includes_preloading(apply_each, process, worker):
    """A branch is read from the file, or from memory after it was preloaded."""

    def trace(read_seconds):
        measured = {"open_seconds": 0.1, "process_seconds": 0.095, "read_seconds": read_seconds}
        branches = [{"branch": "x", "compressed_bytes": 9}]
        chunks = [{"seconds": 0.2, "branches": branches, **measured}] * 20
        return [worker("w1"), *process(*chunks)]

    rows = apply_each("chunks-too-small", trace(0.01), trace(0.0001), columns="entity")
    assert rows == [[(None,)], []]


def test_dispatch_and_slow_events_of_short_chunks(apply_each, process, worker):
    def trace(**measured):
        return [worker("w1"), *process(*[measured] * 20)]

    short = {"seconds": 0.09, "process_seconds": 0.09}
    dispatched, at_once, slow, fast = apply_each(
        "chunks-too-small",
        trace(**short, open_seconds=0.0, dispatch_seconds=0.05),
        trace(**short, open_seconds=0.0, dispatch_seconds=0.0),
        # The 1,000 events of a chunk take longer than columnar code, or not.
        trace(seconds=0.11, process_seconds=0.11),
        trace(**short),
        columns="entity, core_seconds",
    )
    assert dispatched == [(None, pytest.approx(19 * 0.05, rel=0.1))]
    assert [entity for entity, _ in slow] == [None]
    assert at_once == fast == []


def test_threads_wait_for_the_last_large_chunk(apply_each, process, worker):
    def trace(*chunks):
        processed = process(*({"worker": name, "seconds": seconds} for name, seconds in chunks))
        return [worker("w1"), worker("w2"), *processed]

    change = "Use chunks of about 190 events (now 1,000)."
    three = [("w1", 10.0), ("w2", 10.0), ("w1", 10.0)]
    cases = {
        "three": (three, [(10.0, 0.6 * (10.0 - 30.0 / 8) / 2, 5.5, change)]),
        "four": ([*three, ("w2", 10.0)], []),
        "a longer chunk at the end is a long tail": (
            [("w1", 10.0), ("w2", 10.0), ("w2", 10.0), ("w1", 30.0)],
            [],
        ),
    }
    rows = apply_each(
        "chunks-too-large", *(trace(*chunks) for chunks, _ in cases.values()), columns=COST
    )
    assert rows == [expected for _, expected in cases.values()]


def test_smaller_chunks_open_the_file_more_often(apply_each, process, worker):
    """A recommended chunk takes at least five times as long as opening."""

    def trace(open_seconds):
        chunks = [
            {"seconds": 10.0, "worker": name, "open_seconds": open_seconds}
            for name in ("w1", "w2", "w1")
        ]
        return [worker("w1"), worker("w2"), *process(*chunks)]

    assert apply_each("chunks-too-large", trace(0.5), trace(1.5), columns="change") == [
        [("Use chunks of about 250 events (now 1,000).",)],
        [],
    ]


@pytest.mark.exhaustive
def test_chunks_of_a_second_run_start_in_any_order(apply, worker, task, run, chunk):
    """The one that was dispatched first starts last."""
    records = [worker(f"w{number}") for number in range(4)]
    times = [(1.0, 1.0)] * 4 + [(6.0, 6.0)] * 4
    times += [(50.0 + 0.1 * number, 52.0 - 0.2 * number) for number in range(4)]
    for number, (processing_t, start_t) in enumerate(times):
        key, stop_t = f"chunk-{number}", start_t + 5.0
        records += [
            task(key),
            chunk(key, dataset="DY", filename=f"{number}.root", entry_start=0, entry_stop=100),
            *run(
                key, processing_t, stop_t, worker=f"w{number % 4}", run_id=number,
                phases=[("compute", start_t, stop_t)],
            ),
        ]  # fmt: skip

    assert apply("chunks-too-large", *records, stop_t=60.0) == []


def test_baskets_of_several_chunks(apply_each, process, worker):
    def trace(baskets, read_seconds):
        # A counter has 4 bytes per event, so its basket spans `baskets` chunks.
        counter = {"branch": "nJet", "uncompressed_bytes": baskets * 4_000}
        read = {"seconds": 1.0, "open_seconds": 0.1, "read_seconds": read_seconds}
        chunks = [
            {**read, "branches": [{**counter, "compressed_bytes": 10 + number // baskets}]}
            for number in range(4)
        ]
        return [worker("w1"), *process(*chunks)]

    change = "Use chunks of 4,000 events or more (now 1,000), or files with smaller baskets."
    core_seconds, most = 0.75 * 3.2, 1.3 * 0.75 * 3.6
    expected = {
        (4, 0.8): [pytest.approx((core_seconds, 0.7 * core_seconds, most, change))],
        (2, 0.8): [],
        (4, 0.02): [],
    }
    rows = apply_each("repeated-baskets", *starmap(trace, expected), columns=COST)
    assert rows == [*expected.values()]


@pytest.mark.parametrize(
    ("source", "branch", "sizes", "sentence", "advice"),
    [
        # All chunks of a file read the only cluster.
        (
            "RNTuple", "pt", [(900, 8000)] * 4,
            "Clusters are read at least 4.0 times", "files with smaller clusters",
        ),
        ("Parquet", "pt", [(900, 8000)] * 4, "Row groups are read at least 4.0 times", "000)."),
        # A counter of 8 bytes: there are not 8,000 events in the file.
        (
            "TTree", "nJet", [(900, 32_000)] * 4,
            "Baskets are read about 4.0 times", "files with smaller baskets",
        ),
        # Two clusters, and a cluster for each chunk.
        ("RNTuple", "pt", [(900, 8000), (900, 8000), (901, 8000), (901, 8000)], None, None),
        ("RNTuple", "pt", [(n, 2000) for n in (900, 901, 902, 903)], None, None),
    ],
)  # fmt: skip
def test_pieces_of_each_format(apply, process, worker, source, branch, sizes, sentence, advice):
    """Four chunks read 0.8 s each; equal sizes are the same piece."""
    read = {"seconds": 1.0, "open_seconds": 0.1, "read_seconds": 0.8}
    chunks = [
        {
            **read,
            "branches": [
                {"branch": branch, "compressed_bytes": small, "uncompressed_bytes": large}
            ],
        }
        for small, large in sizes
    ]
    records = [
        {**record, "measured": {**record["measured"], "source": source}}
        if record["kind"] == "chunk"
        else record
        for record in process(*chunks)
    ]
    found = apply("repeated-baskets", worker("w1"), *records, columns="sentence, change")
    if sentence is None:
        assert found == []
    else:
        [(text, change)] = found
        assert text.startswith(sentence)
        assert advice in change


def test_a_file_that_is_read_in_two_runs(apply, process, worker):
    """Each run reads each of two clusters once."""
    branches = [
        [{"branch": "pt", "compressed_bytes": n, "uncompressed_bytes": 8000}]
        for n in (900, 901)
    ]
    read = {"seconds": 1.0, "open_seconds": 0.1, "read_seconds": 0.8}
    chunks = [{**read, "branches": branches[n % 2]} for n in range(4)]
    records = []
    for record in process(*chunks):
        if record["kind"] == "chunk":
            record["entry_start"] %= 2000
            record["entry_stop"] = record["entry_start"] + 1000
        records.append(record)
    assert apply("repeated-baskets", worker("w1"), *records) == []


def test_several_runs_over_a_file_repeat_no_baskets(apply, process, worker):
    size = {"branches": [{"branch": "x", "compressed_bytes": 10**6}], "file_bytes": 10**6}
    chunks = [{"seconds": 1.0, "read_seconds": 0.8, **size}] * 3
    runs = [
        record | {"entry_start": 0, "entry_stop": 1000} if record["kind"] == "chunk" else record
        for record in process(*chunks)
    ]

    assert apply("repeated-baskets", worker("w1"), *runs) == []
