"""Rules slow-file, slow-storage, file-opening, expensive-dataset and skipped-files."""

import pytest


def chunks_of_files(seconds: dict[str, float], **fields) -> list[dict]:
    """Return 8 chunks of each file, which four workers process at the same time."""
    return [
        {"file": file, "seconds": duration, "worker": f"w{(number + place) % 4}", **fields}
        for number in range(8)
        for place, (file, duration) in enumerate(seconds.items())
    ]


@pytest.fixture
def workers(worker):
    """Return four workers."""
    return [worker(f"w{number}") for number in range(4)]


@pytest.mark.parametrize(
    ("seconds", "found"),
    [(2.0, [("c.root", pytest.approx(8.0), pytest.approx(1.0))]), (1.4, [])],
)
def test_slow_file(apply, process, workers, seconds, found):
    files = {"a.root": 1.0, "b.root": 1.0, "c.root": seconds, "d.root": 1.0}

    assert (
        apply(
            "slow-file",
            *workers,
            *process(*chunks_of_files(files)),
            columns="entity, core_seconds, wall_seconds_min",
        )
        == found
    )


@pytest.mark.parametrize(("seconds", "found"), [(4.0, ["c.root"]), (2.5, [])])
def test_slow_file_of_few_chunks(apply, process, workers, seconds, found):
    files = {"a.root": 1.0, "b.root": 1.0, "c.root": seconds, "d.root": 1.0, "e.root": 1.0}
    chunks = [*chunks_of_files(files)[:10], {"seconds": 1.0, "worker": "w3"}]

    assert apply("slow-file", *workers, *process(*chunks), columns="entity") == [
        (file,) for file in found
    ]


def test_a_slow_file_that_is_submitted_first(apply, process, workers):
    """Most of its chunks are the first ones of their workers, which are not compared."""
    files = dict.fromkeys(("a.root", "b.root", "d.root", "e.root"), 1.0)
    first = [{"file": "c.root", "seconds": 4.0, "worker": f"w{n % 4}"} for n in range(6)]

    assert apply(
        "slow-file", *workers, *process(*first, *chunks_of_files(files)), columns="entity"
    ) == [("c.root",)]


@pytest.mark.parametrize(("read_seconds", "found"), [(1.2, ["c.root"]), (0.2, [])])
def test_slow_input_of_few_chunks(apply, process, workers, read_seconds, found):
    """The number of bytes read is unknown."""
    files = {"a.root": 1.0, "b.root": 1.0, "c.root": 2.0, "d.root": 1.0, "e.root": 1.0}
    chunks = [
        {**chunk, "read_seconds": read_seconds if chunk["file"] == "c.root" else 0.2}
        for chunk in chunks_of_files(files)[:20]
    ]

    rows = apply("slow-file", *workers, *process(*chunks), columns="entity, sentence")
    assert [file for file, _ in rows] == found
    assert all(text.endswith("Opening and reading the file take longer.") for _, text in rows)


@pytest.mark.parametrize(
    ("cpu_seconds", "cause"),
    [
        (0.5, "Neither reading nor CPU time explains this: for 8.0 s, the threads waited in"),
        (1.5, "Reading does not explain this: the events of the file cost more."),
        (None, "Reading does not explain this: the events of the file cost more."),
    ],
    ids=["waits", "computes", "unknown"],
)
def test_cpu_time_of_a_slow_file(apply, process, workers, cpu_seconds, cause):
    """Other chunks compute for 0.5 of 1 s, and chunks of c.root take 2 s."""
    files = {"a.root": 1.0, "b.root": 1.0, "c.root": 2.0, "d.root": 1.0}
    chunks = [
        {**chunk, "cpu_seconds": cpu_seconds if chunk["file"] == "c.root" else 0.5}
        for chunk in chunks_of_files(files, read_seconds=0.1)
    ]
    records = [*workers, *process(*chunks)]

    [(sentence, change)] = apply("slow-file", *records, columns="sentence, change")
    assert cause in sentence
    assert ("what the processor waits for in c.root" in change) == (cpu_seconds == 0.5)


def test_reading_explains_a_slow_file(apply, process, workers):
    files = {"a.root": 1.0, "b.root": 1.0, "c.root": 2.0, "d.root": 1.0}
    chunks = [
        {
            **chunk,
            "open_seconds": 0.0,
            "read_seconds": chunk["seconds"] - 0.9,
            "bytes_read": 10**6,
        }
        for chunk in chunks_of_files(files)
    ]

    [(confidence, sentence)] = apply(
        "slow-file",
        *workers,
        *process(*chunks),
        columns="confidence, sentence",
    )
    assert confidence == "high"
    assert sentence.endswith("The file is read at 888 KiB/s per thread, others at 9.54 MiB/s.")


@pytest.mark.parametrize(("seconds", "found"), [(0.4, True), (0.2, False)])
def test_slow_server(apply, process, worker, seconds, found):
    chunks = [
        {
            "file": f"root://{server}//{number % 2}.root",
            "seconds": 1.0,
            "open_seconds": 0.0,
            "read_seconds": read_seconds,
            "bytes_read": 10**6,
        }
        for server, read_seconds in {"near:1094": 0.1, "far:1094": seconds}.items()
        for number in range(5)
    ]

    assert apply("slow-storage", worker("w1"), *process(*chunks)) == (
        [("far:1094", pytest.approx(5 * 0.3))] if found else []
    )


@pytest.mark.parametrize(("seconds", "found"), [(0.4, True), (0.2, False)])
def test_server_that_is_slower_than_local_files(apply, process, worker, seconds, found):
    times = {"root://far:1094//1.root": seconds, "/data/1.root": 0.1}
    chunks = [
        {"file": file, "seconds": 1.0, "read_seconds": read_seconds, "bytes_read": 10**6}
        for file, read_seconds in times.items()
        for _ in range(5)
    ]
    sentence = (
        "Files of far:1094 are read at 2.38 MiB/s per thread, local files at 9.54 MiB/s; "
        "opening and reading take 40 % of the time of their chunks."
    )
    rows = apply(
        "slow-storage", worker("w1"), *process(*chunks), columns="confidence, sentence"
    )
    assert rows == ([("high", sentence)] if found else [])


@pytest.mark.parametrize(("seconds", "found"), [(0.8, True), (0.2, False)])
def test_slow_link_of_a_host(apply, process, worker, seconds, found):
    """Workers of two hosts read the same files; the first chunk of each worker is left out."""
    chunks = [
        {
            "file": f"root://near:1094//{number}.root",
            "seconds": 1.0,
            "worker": name,
            "open_seconds": 0.0,
            "read_seconds": read_seconds,
            "bytes_read": 10**6,
        }
        for name, read_seconds in {"w1": 0.1, "w2": seconds}.items()
        for number in range(5)
    ]
    records = [worker("w1", host="a"), worker("w2", host="b"), *process(*chunks)]

    assert apply("slow-storage", *records) == ([("b", pytest.approx(4 * 0.7))] if found else [])


@pytest.mark.parametrize(("seconds", "found"), [(8.0, True), (6.0, False)])
def test_single_slow_server(apply, process, worker, seconds, found):
    chunk = {"file": "https://far/1.root", "seconds": 10.0, "bytes_read": 10**7, "requests": 10}
    read = {"open_seconds": 1.0, "read_seconds": seconds - 1.0}
    # At 5 MB/s or more, reading 10 MB is not slow.
    read = read if found else {"open_seconds": 0.5, "read_seconds": 1.4}

    assert apply("slow-storage", worker("w1"), *process(*[{**chunk, **read}] * 3)) == (
        [("far", pytest.approx(2 * (8.0 - 2.0)))] if found else []
    )


@pytest.mark.parametrize(
    ("read_seconds", "requests", "found"),
    [(3.0, 50, True), (3.0, 200, False), (1.0, 50, False)],
)
def test_single_server_with_slow_requests(
    apply, process, worker, read_seconds, requests, found
):
    """Requests of 0.1 s are slow, unless reading takes less than half as long as opening."""
    chunk = {"file": "https://far/1.root", "seconds": 10.0, "bytes_read": 10**5}
    chunk |= {"open_seconds": 4.0, "read_seconds": read_seconds, "requests": requests}

    rows = apply(
        "slow-storage", worker("w1"), *process(*[chunk] * 3), columns="entity, confidence"
    )
    assert rows == ([("far", "medium")] if found else [])


@pytest.mark.parametrize(("times", "core_seconds"), [(4, 12.0 / 4), (2, 12.0)])
def test_single_slow_server_with_repeated_reads_of_baskets(
    apply, process, worker, times, core_seconds
):
    """The baskets of nJet have 4 bytes for each of 1,000 events and are read several times."""
    branches = [{"branch": "nJet", "uncompressed_bytes": 4 * 1_000 * times}]
    read = {"open_seconds": 1.0, "read_seconds": 7.0, "bytes_read": 10**7, "requests": 10}
    chunks = [{"file": "https://far/1.root", "seconds": 10.0, "branches": branches, **read}] * 3

    assert apply("slow-storage", worker("w1"), *process(*chunks)) == [
        ("far", pytest.approx(core_seconds))
    ]


def test_opening_that_is_slow_for_some_files(apply, process, worker):
    """11 of 20 files are opened in 0.9 s, the others at once."""
    chunks = [
        {"file": f"{number}.root", "seconds": 1.0, "open_seconds": 0.9 * (number < 11)}
        for number in range(20)
    ]
    [(sentence,)] = apply("file-opening", worker("w1"), *process(*chunks), columns="sentence")
    # 20 times the mean of all but the first chunk.
    assert "takes 9.5 s" in sentence


@pytest.mark.parametrize(("open_seconds", "found"), [(0.5, True), (0.2, False)])
def test_opening_small_files(apply, process, worker, open_seconds, found):
    chunks = [
        {"file": f"{number}.root", "seconds": 1.0, "open_seconds": open_seconds}
        for number in range(20)
    ]

    assert apply(
        "file-opening", worker("w1"), *process(*chunks), columns="core_seconds, change"
    ) == (
        [
            (
                # Opening may take 5 % of the rest: files larger by a factor of 20.
                pytest.approx(10.0 * (1 - 1 / 20)),
                (
                    "Merge the files, with hadd for example, into about 1 of 20,000 events"
                    " (now 20 of 1,000)."
                ),
            )
        ]
        if found
        else []
    )


def test_chunks_from_a_checkpoint_open_no_file(apply, process, worker):
    chunks = [
        {"file": f"{number}.root", "seconds": 1.0, "open_seconds": 0.5} for number in range(20)
    ]
    loaded = [{**chunk, "seconds": 0.01, "from_checkpoint": True} for chunk in chunks]

    [(sentence,)] = apply(
        "file-opening", worker("w1"), *process(*chunks, *loaded), columns="sentence"
    )

    assert sentence.startswith("Opening 20 files, for 20 chunks, takes 10.0 s, 50 % ")


def test_preloading_is_not_opening(apply, process, worker):
    read = {"branches": [{"branch": "x", "compressed_bytes": 9}], "read_seconds": 1e-4}
    chunks = [{"seconds": 1.0, "open_seconds": 0.5, **read}] * 20

    assert apply("file-opening", worker("w1"), *process(*chunks)) == []


@pytest.mark.parametrize(("seconds", "found"), [(3.0, ["TT"]), (1.9, [])])
def test_expensive_dataset(apply, process, worker, seconds, found):
    chunks = [{"seconds": 1.0, "dataset": "DY"}] * 6
    chunks += [{"seconds": seconds, "dataset": "TT", "file": "2.root"}] * 6

    assert apply(
        "expensive-dataset", worker("w1"), *process(*chunks), columns="entity, wall_seconds_min"
    ) == [(dataset, None) for dataset in found]


@pytest.mark.exhaustive
def test_a_dataset_whose_chunks_all_warmed_up(apply, process, workers):
    """Events of A take 2 ms, half of which is opening; those of B and C take 1 ms."""
    opened = {"seconds": 2.0, "open_seconds": 1.0, "dataset": "A", "file": "A.root"}
    chunks = []
    for number in range(4):
        address = {"worker": f"w{number}"}
        chunks += [
            {"seconds": 10.0, "events": 10_000, "dataset": "C", "file": "C.root", **address},
            *[{**opened, **address}] * 3,
            *[{"seconds": 1.0, "dataset": "B", "file": "B.root", **address}] * 3,
        ]
    assert apply("expensive-dataset", *workers, *process(*chunks)) == []


def test_the_sentence_about_a_dataset_agrees_with_its_totals(apply, process, worker):
    """Two slow chunks: the mean is 6 ms an event, the median 3 ms."""
    chunks = [{"seconds": 1.0, "dataset": "DY", "file": "1.root"}] * 6
    chunks += [{"seconds": seconds, "dataset": "TT"} for seconds in (3, 3, 3, 3, 12, 12)]

    [(sentence, change)] = apply(
        "expensive-dataset", worker("w1"), *process(*chunks), columns="sentence, change"
    )
    assert sentence.startswith(
        "Events of TT take 6 ms each, 6.0 times as long as those of other datasets: 86 % of "
        "the compute time for 50 % of the events."
    )
    assert "Submit this dataset first" in change

    # Its chunks come first.
    [(change,)] = apply(
        "expensive-dataset", worker("w1"), *process(*chunks[::-1]), columns="change"
    )
    assert change == "No change is needed."


def test_a_dataset_beside_one_that_only_reads(apply, process, worker):
    """Chunks of DY spend all of their time reading."""
    chunks = [{"seconds": 1.0, "read_seconds": 1.0, "dataset": "DY"}] * 6
    chunks += [{"seconds": 3.0, "dataset": "TT", "file": "2.root"}] * 6

    assert apply("expensive-dataset", worker("w1"), *process(*chunks)) == []


def test_reading_does_not_make_a_dataset_expensive(apply, process, worker):
    chunks = [{"seconds": 1.0, "dataset": "DY"}] * 6
    chunks += [{"seconds": 3.0, "read_seconds": 2.0, "dataset": "TT", "file": "2.root"}] * 6

    assert apply("expensive-dataset", worker("w1"), *process(*chunks)) == []


def test_skipped_files(apply, process, worker, chunk, run):
    bad = {"dataset": "TT", "filename": "bad.root", "exception": "OSError: not a ROOT file"}

    assert apply(
        "skipped-files",
        worker("w1"),
        chunk("metadata-1", run_id=100, worker="w1", until="metadata", **bad),
        *run("metadata-1", 0.1, 0.2, run_id=100),
        *process({"seconds": 4.0}, {"seconds": 2.0, "file": "2.root"}),
        columns="entity, sentence, core_seconds, wall_seconds_max",
    ) == [
        (
            "TT: bad.root",
            (
                "The result lacks events of 1 of 3 files, because reading them failed"
                " (OSError): bad.root. The files that were processed took 3.0 core-seconds on "
                "average."
            ),
            None,
            None,
        )
    ]


@pytest.mark.parametrize(
    ("skipped", "entity"),
    [
        ({"/a/1.root": "TT", "/b/2.root": "TT"}, "TT: 1.root, 2.root"),
        ({"/a/1.root": "TT", "/b/2.root": "WW"}, "1.root, 2.root"),
        ({f"/a/{i}.root": "TT" for i in range(5)}, "TT: 0.root, 1.root, 2.root and 2 more"),
    ],
    ids=["files of a dataset", "several datasets", "many files"],
)
def test_names_of_skipped_files(apply, worker, chunk, run, skipped, entity):
    records = [worker("w1")]
    for number, (filename, dataset) in enumerate(skipped.items()):
        key, about = f"metadata-{number}", {"run_id": 100 + number}
        bad = {"dataset": dataset, "filename": filename, "exception": "OSError: cut off"}
        records += [
            chunk(key, worker="w1", until="metadata", **bad, **about),
            *run(key, number + 0.1, number + 0.2, **about),
        ]
    assert apply("skipped-files", *records, columns="entity") == [(entity,)]


def test_a_file_with_a_skipped_and_a_processed_chunk(apply, process, worker, chunk, run):
    chunks = process({"seconds": 4.0}, {"seconds": 2.0, "file": "2.root"})
    bad = {"dataset": "DY", "filename": "2.root", "exception": "OSError: cut off"}
    skipped = chunk("chunk-9", run_id=100, worker="w1", until="processed", **bad)

    [(sentence,)] = apply(
        "skipped-files",
        *[worker("w1"), *chunks, skipped, *run("chunk-9", 7.0, 8.0, run_id=100)],
        columns="sentence",
    )
    assert sentence.startswith("The result lacks events of 1 of 2 files")


def test_no_skipped_files(apply, process, worker):
    assert apply("skipped-files", worker("w1"), *process({"seconds": 4.0})) == []
