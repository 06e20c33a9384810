"""Rules chunks-too-small, chunks-too-large and repeated-baskets."""

import pytest

COST = "core_seconds, wall_seconds_min, wall_seconds_max, change"


@pytest.mark.parametrize(
    ("fixed_seconds", "found"),
    [
        (0.5, ["Use chunks of about 1,100 events (now 100)."]),
        (0.0, []),
    ],
)
def test_fixed_time_of_the_cost_model(apply, process, worker, fixed_seconds, found):
    # The first chunk of a worker is left out of the model.
    events = [100, *[100] * 10, *[400] * 5]
    chunks = [{"events": n, "seconds": fixed_seconds + n * 1e-3} for n in events]

    assert apply("chunks-too-small", worker("w1"), *process(*chunks), columns="change") == [
        (change,) for change in found
    ]


@pytest.mark.parametrize(("seconds", "found"), [(0.3, True), (0.5, False)])
def test_short_chunks_of_the_same_size(apply, process, worker, seconds, found):
    measured = {"open_seconds": 0.05, "process_seconds": seconds - 0.1}
    chunks = [{"seconds": seconds, **measured}] * 20

    saved = 20 * (1 - 1 / 20)
    assert (
        apply("chunks-too-small", worker("w1"), *process(*chunks), columns=COST)
        == [
            (
                pytest.approx(saved * 0.1),
                pytest.approx(0.7 * saved * 0.1),
                # All of the process time may be fixed.
                pytest.approx(1.3 * saved * (0.1 + 0.2)),
                "Use chunks of about 20,000 events (now 1,000).",
            )
        ]
        * found
    )


@pytest.mark.parametrize(("process_seconds", "confidence"), [(0.2, "medium"), (0.25, "low")])
def test_confidence_depends_on_the_known_fixed_time(
    apply, process, worker, process_seconds, confidence
):
    """Chunks of 0.3 s spend 0.1 s or 0.05 s outside of the processor."""
    chunks = [{"seconds": 0.3, "open_seconds": 0.05, "process_seconds": process_seconds}] * 20
    assert apply("chunks-too-small", worker("w1"), *process(*chunks), columns="confidence") == [
        (confidence,)
    ]


@pytest.mark.parametrize(("read_seconds", "found"), [(0.01, True), (0.0001, False)])
def test_opening_that_includes_preloading(apply, process, worker, read_seconds, found):
    """A branch is read from the file, or from memory after it was preloaded."""
    measured = {"open_seconds": 0.1, "process_seconds": 0.095, "read_seconds": read_seconds}
    branches = [{"branch": "x", "compressed_bytes": 9}]
    chunks = [{"seconds": 0.2, "branches": branches, **measured}] * 20
    assert (
        apply("chunks-too-small", worker("w1"), *process(*chunks), columns="entity")
        == [(None,)] * found
    )


@pytest.mark.parametrize(("dispatch_seconds", "found"), [(0.05, True), (0.0, False)])
def test_the_dispatch_of_short_chunks(apply, process, worker, dispatch_seconds, found):
    measured = {"open_seconds": 0.0, "process_seconds": 0.09}
    chunks = [{"seconds": 0.09, "dispatch_seconds": dispatch_seconds, **measured}] * 20

    records = apply("chunks-too-small", worker("w1"), *process(*chunks), columns="core_seconds")
    assert records == [(pytest.approx(19 * 0.05, rel=0.1),)] * found


@pytest.mark.parametrize(("seconds", "found"), [(0.11, True), (0.09, False)])
def test_events_that_take_longer_than_columnar_code(apply, process, worker, seconds, found):
    """A chunk has 1,000 events."""
    chunks = [{"seconds": seconds, "process_seconds": seconds}] * 20

    records = apply("chunks-too-small", worker("w1"), *process(*chunks), columns="entity")
    assert records == [(None,)] * found


@pytest.mark.parametrize(("chunks", "idle_seconds"), [(3, 10.0), (4, None)])
def test_threads_wait_for_the_last_large_chunk(apply, process, worker, chunks, idle_seconds):
    processed = process(
        *({"seconds": 10.0, "worker": f"w{number % 2 + 1}"} for number in range(chunks))
    )

    assert apply("chunks-too-large", worker("w1"), worker("w2"), *processed, columns=COST) == (
        [
            (
                10.0,
                0.6 * (10.0 - 30.0 / 8) / 2,
                5.5,
                "Use chunks of about 190 events (now 1,000).",
            )
        ]
        if idle_seconds
        else []
    )


@pytest.mark.parametrize(("open_seconds", "events"), [(0.5, 250), (1.5, None)])
def test_smaller_chunks_open_the_file_more_often(apply, process, worker, open_seconds, events):
    """A recommended chunk takes at least five times as long as opening."""
    names = ["w1", "w2", "w1"]
    chunks = [{"seconds": 10.0, "worker": n, "open_seconds": open_seconds} for n in names]

    found = apply(
        "chunks-too-large", worker("w1"), worker("w2"), *process(*chunks), columns="change"
    )

    change = f"Use chunks of about {events} events (now 1,000)."
    assert found == ([(change,)] if events else [])


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


def test_a_longer_chunk_at_the_end_is_a_long_tail(apply, process, worker):
    chunks = [{"seconds": 10.0, "worker": name} for name in ("w1", "w2", "w2")]
    chunks.append({"seconds": 30.0, "worker": "w1"})

    assert apply("chunks-too-large", worker("w1"), worker("w2"), *process(*chunks)) == []


@pytest.mark.parametrize(
    ("baskets", "read_seconds", "found"), [(4, 0.8, True), (2, 0.8, False), (4, 0.02, False)]
)
def test_baskets_of_several_chunks(apply, process, worker, baskets, read_seconds, found):
    # A counter has 4 bytes per event, so its basket spans `baskets` chunks.
    counter = {"branch": "nJet", "compressed_bytes": 10, "uncompressed_bytes": baskets * 4_000}
    read = {"branches": [counter], "read_seconds": read_seconds}
    chunks = [{"seconds": 1.0, "open_seconds": 0.1, "file_bytes": 10**6, **read}] * 4

    assert (
        apply("repeated-baskets", worker("w1"), *process(*chunks), columns=COST)
        == [
            (
                pytest.approx(0.75 * 3.2),
                pytest.approx(0.7 * 0.75 * 3.2),
                pytest.approx(1.3 * 0.75 * 3.6),
                (
                    "Use chunks of 4,000 events or more (now 1,000),"
                    " or files with smaller baskets."
                ),
            )
        ]
        * found
    )


def test_several_runs_over_a_file_repeat_no_baskets(apply, process, worker):
    size = {"branches": [{"branch": "x", "compressed_bytes": 10**6}], "file_bytes": 10**6}
    chunks = [{"seconds": 1.0, "read_seconds": 0.8, **size}] * 3
    runs = [
        record | {"entry_start": 0, "entry_stop": 1000} if record["kind"] == "chunk" else record
        for record in process(*chunks)
    ]

    assert apply("repeated-baskets", worker("w1"), *runs) == []
