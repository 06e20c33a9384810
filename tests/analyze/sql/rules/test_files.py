"""Rules slow-file, slow-storage, file-opening, expensive-dataset and skipped-files."""

import pytest


def chunks_of_files(seconds: dict[str, float], **fields) -> list[dict]:
    """Return 8 chunks of each file, which four workers process at the same time."""
    return [
        {"file": file, "seconds": duration, "worker": f"w{(number + place) % 4}", **fields}
        for number in range(8)
        for place, (file, duration) in enumerate(seconds.items())
    ]


def with_fields(chunks: list[dict], file: str, **fields) -> list[dict]:
    """Return the chunks, with other fields for those of a file."""
    return [{**chunk, **fields} if chunk["file"] == file else chunk for chunk in chunks]


@pytest.fixture
def workers(worker):
    """Return four workers."""
    return [worker(f"w{number}") for number in range(4)]


def test_slow_file(apply_each, process, workers):
    def four(seconds):
        files = {"a.root": 1.0, "b.root": 1.0, "c.root": seconds, "d.root": 1.0}
        return chunks_of_files(files)

    def few(seconds):
        files = {"a.root": 1.0, "b.root": 1.0, "c.root": seconds, "d.root": 1.0, "e.root": 1.0}
        return [*chunks_of_files(files)[:10], {"seconds": 1.0, "worker": "w3"}]

    # If a file is submitted first, most of its chunks are the first ones of their workers,
    # which are not compared.
    first = [{"file": "c.root", "seconds": 4.0, "worker": f"w{n % 4}"} for n in range(6)]
    first += chunks_of_files(dict.fromkeys(("a.root", "b.root", "d.root", "e.root"), 1.0))

    cases = (four(2.0), four(1.4), few(4.0), few(2.5), first)
    of_four, *others = apply_each(
        "slow-file",
        *([*workers, *process(*chunks)] for chunks in cases),
        columns="entity, core_seconds, wall_seconds_min",
    )
    assert of_four == [("c.root", pytest.approx(8.0), pytest.approx(1.0))]
    assert [[entity for entity, *_ in rows] for rows in others] == [
        [],
        ["c.root"],
        [],
        ["c.root"],
    ]


def test_slow_input_of_a_file(apply_each, process, workers):
    files = {"a.root": 1.0, "b.root": 1.0, "c.root": 2.0, "d.root": 1.0}
    # The number of bytes read is unknown.
    few = chunks_of_files(files | {"e.root": 1.0}, read_seconds=0.2)[:20]
    sized = [
        {**chunk, "open_seconds": 0.0, "read_seconds": chunk["seconds"] - 0.9}
        for chunk in chunks_of_files(files, bytes_read=10**6)
    ]

    cases = (few, with_fields(few, "c.root", read_seconds=1.2), sized)
    none, [unknown], [known] = apply_each(
        "slow-file",
        *([*workers, *process(*chunks)] for chunks in cases),
        columns="entity, confidence, sentence",
    )
    assert none == []
    assert unknown[0] == "c.root"
    assert unknown[2].endswith("Opening and reading the file take longer.")
    assert known[1] == "high"
    assert known[2].endswith("The file is read at 888 KiB/s per thread, others at 9.54 MiB/s.")


def test_cpu_time_of_a_slow_file(apply_each, process, workers):
    """Other chunks compute for 0.5 of 1 s, and chunks of c.root take 2 s."""
    files = {"a.root": 1.0, "b.root": 1.0, "c.root": 2.0, "d.root": 1.0}
    chunks = chunks_of_files(files, read_seconds=0.1, cpu_seconds=0.5)
    computes = "Reading does not explain this: the events of the file cost more."
    causes = {
        0.5: "Neither reading nor CPU time explains this: for 8.0 s, the threads waited in",
        1.5: computes,
        None: computes,  # the CPU time is unknown
    }

    found = apply_each(
        "slow-file",
        *([*workers, *process(*with_fields(chunks, "c.root", cpu_seconds=s))] for s in causes),
        columns="sentence, change",
    )
    for (cpu_seconds, cause), [(sentence, change)] in zip(causes.items(), found, strict=True):
        assert cause in sentence
        assert ("what the processor waits for in c.root" in change) == (cpu_seconds == 0.5)


@pytest.mark.exhaustive
def test_slow_server_and_slow_link(apply_each, process, worker):
    def records(workers, *reads):
        """Five chunks for each worker, server and time of reading."""
        chunks = [
            {
                "file": f"root://{server}//{number}.root",
                "seconds": 1.0,
                "worker": name,
                "open_seconds": 0.0,
                "read_seconds": read_seconds,
                "bytes_read": 10**6,
            }
            for name, server, read_seconds in reads
            for number in range(5)
        ]
        return [*workers, *process(*chunks)]

    one = [worker("w1")]
    # Workers of two hosts read the same files; the first chunk of each worker is left out.
    hosts = [worker("w1", host="a"), worker("w2", host="b")]
    assert apply_each(
        "slow-storage",
        records(one, ("w1", "near:1094", 0.1), ("w1", "far:1094", 0.4)),
        records(one, ("w1", "near:1094", 0.1), ("w1", "far:1094", 0.2)),
        records(hosts, ("w1", "near:1094", 0.1), ("w2", "near:1094", 0.8)),
        records(hosts, ("w1", "near:1094", 0.1), ("w2", "near:1094", 0.2)),
    ) == [
        [("far:1094", pytest.approx(5 * 0.3))],
        [],
        [("b", pytest.approx(4 * 0.7))],
        [],
    ]


def test_server_that_is_slower_than_local_files(apply_each, process, worker):
    def records(seconds):
        times = {"root://far:1094//1.root": seconds, "/data/1.root": 0.1}
        chunks = [
            {"file": file, "seconds": 1.0, "read_seconds": read_seconds, "bytes_read": 10**6}
            for file, read_seconds in times.items()
            for _ in range(5)
        ]
        return [worker("w1"), *process(*chunks)]

    sentence = (
        "Files of far:1094 are read at 2.38 MiB/s per thread, local files at 9.54 MiB/s; "
        "opening and reading take 40 % of the time of their chunks."
    )
    assert apply_each(
        "slow-storage", records(0.4), records(0.2), columns="confidence, sentence"
    ) == [[("high", sentence)], []]


@pytest.mark.exhaustive
def test_single_slow_server(apply_each, process, worker):
    def records(**fields):
        chunk = {"file": "https://far/1.root", "seconds": 10.0, "bytes_read": 10**7}
        read = {"open_seconds": 1.0, "read_seconds": 7.0, "requests": 10}
        return [worker("w1"), *process(*[{**chunk, **read, **fields}] * 3)]

    def basket_reads(times):
        """The baskets of nJet have 4 bytes for each of 1,000 events."""
        return [{"branch": "nJet", "uncompressed_bytes": 4 * 1_000 * times}]

    assert apply_each(
        "slow-storage",
        records(),
        # At 5 MB/s or more, reading 10 MB is not slow.
        records(open_seconds=0.5, read_seconds=1.4),
        # Baskets are read several times.
        records(branches=basket_reads(times=3)),
        records(branches=basket_reads(times=2)),
    ) == [
        [("far", pytest.approx(2 * (8.0 - 2.0)))],
        [],
        [("far", pytest.approx(12.0 / 3))],
        [("far", pytest.approx(12.0))],
    ]


def test_single_server_with_slow_requests(apply_each, process, worker):
    """Requests of 0.1 s are slow, unless reading takes less than half as long as opening."""

    def records(read_seconds, requests):
        chunk = {"file": "https://far/1.root", "seconds": 10.0, "bytes_read": 10**5}
        chunk |= {"open_seconds": 4.0, "read_seconds": read_seconds, "requests": requests}
        return [worker("w1"), *process(*[chunk] * 3)]

    assert apply_each(
        "slow-storage",
        *(records(3.0, 50), records(3.0, 200), records(1.0, 50)),
        columns="entity, confidence",
    ) == [[("far", "medium")], [], []]


def test_time_of_opening_files(apply_each, process, worker):
    # 11 of 20 files are opened in 0.9 s, the others at once.
    some = [
        {"file": f"{number}.root", "seconds": 1.0, "open_seconds": 0.9 * (number < 11)}
        for number in range(20)
    ]
    # Chunks from a checkpoint open no file.
    chunks = [
        {"file": f"{number}.root", "seconds": 1.0, "open_seconds": 0.5} for number in range(20)
    ]
    loaded = [{**chunk, "seconds": 0.01, "from_checkpoint": True} for chunk in chunks]

    [(of_some,)], [(of_all,)] = apply_each(
        "file-opening",
        [worker("w1"), *process(*some)],
        [worker("w1"), *process(*chunks, *loaded)],
        columns="sentence",
    )
    # 20 times the mean of all but the first chunk.
    assert "takes 9.5 s" in of_some
    assert of_all.startswith("Opening 20 files, for 20 chunks, takes 10.0 s, 50 % ")


def test_opening_small_files(apply_each, process, worker):
    def small(open_seconds):
        return [
            {"file": f"{number}.root", "seconds": 1.0, "open_seconds": open_seconds}
            for number in range(20)
        ]

    # Preloading is not opening.
    read = {"branches": [{"branch": "x", "compressed_bytes": 9}], "read_seconds": 1e-4}
    preloaded = [{"seconds": 1.0, "open_seconds": 0.5, **read}] * 20

    assert apply_each(
        "file-opening",
        *([worker("w1"), *process(*chunks)] for chunks in (small(0.5), small(0.2), preloaded)),
        columns="core_seconds, change",
    ) == [
        [
            (
                # Opening may take 5 % of the rest: files larger by a factor of 20.
                pytest.approx(10.0 * (1 - 1 / 20)),
                (
                    "Merge the files, with hadd for example, into about 1 of 20,000 events"
                    " (now 20 of 1,000)."
                ),
            )
        ],
        [],
        [],
    ]


def test_unpickling_of_a_large_processor(apply_each, process, worker, task):
    """Until its file is open, each chunk takes 0.8 s; samples show what tasks were in."""

    def records(name, leaf):
        package = "/x/site-packages"
        frames = [
            {"name": "_work_function", "filename": f"{package}/coffea/processor/executor.py",
             "line_number": 1},
            {"name": name, "filename": f"{package}/{leaf}", "line_number": 1},
        ]  # fmt: skip
        tree = {
            "frames": frames, "parents": [None, 0, 1], "node_frames": [None, 0, 1],
            "line_numbers": [None, 8, 2], "calls": [],
            "slices": [
                {"nodes": [0, 1, 2], "counts": [2000] * 3, "start_t": 1.0, "stop_t": 21.0}
            ],
        }  # fmt: skip
        profile = {
            "kind": "profile", "worker": "w1", "server_id": "id-w1-0.0", "prefix": "chunk",
            "t": 22.0, "start_t": 1.0, "stop_t": 21.0, "interval_seconds": 0.01, "tree": tree,
        }  # fmt: skip
        chunks = [{"file": "1.root", "seconds": 1.0, "open_seconds": 0.8}] * 20
        tasks = [task(f"chunk-{number}") for number in range(1, 21)]
        return [worker("w1"), *tasks, *process(*chunks), profile]

    [[(unpickled, change)], [(opened, _)], [(by_user, _)]] = apply_each(
        "file-opening",
        records("_gc_callback", "distributed/gc.py"),
        records("open", "uproot/reading.py"),
        # The processor can unpickle something itself.
        records("loads", "cloudpickle/cloudpickle.py"),
        columns="sentence, change",
    )

    before = "for 20 chunks, and what precedes it in coffea's function, takes 16.0 s"
    assert unpickled == (
        opened.replace("for 20 chunks, takes 16.0 s", before)
        + " In 20.0 sampled seconds, tasks were in coffea's own function, which unpickles the "
        "processor before it opens the file."
    )
    assert change.startswith("If the processor contains large tables, load them once in each")
    assert by_user == opened


def test_expensive_dataset(apply_each, process, worker):
    def records(dy, tt, more=()):
        chunks = [{"seconds": 1.0, "dataset": "DY", **dy}] * 6
        chunks += [{"dataset": "TT", "file": "2.root", **tt}] * 6
        chunks += [{"file": "3.root", **one} for one in more]
        return [worker("w1"), *process(*chunks)]

    assert apply_each(
        "expensive-dataset",
        records({}, {"seconds": 3.0}),
        records({}, {"seconds": 1.9}),
        # Chunks of DY spend all of their time reading.
        records({"read_seconds": 1.0}, {"seconds": 3.0}),
        # Reading does not make a dataset expensive.
        records({}, {"seconds": 3.0, "read_seconds": 2.0}),
        # Another dataset costs nearly as much.
        records({}, {"seconds": 3.0}, [{"seconds": 2.5, "dataset": "QCD"}] * 6),
        columns="entity, wall_seconds_min",
    ) == [[("TT", None)], [], [], [], []]


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


def test_the_sentence_about_a_dataset_agrees_with_its_totals(apply_each, process, worker):
    """Two slow chunks: the mean is 6 ms an event, the median 3 ms."""
    chunks = [{"seconds": 1.0, "dataset": "DY", "file": "1.root"}] * 6
    chunks += [{"seconds": seconds, "dataset": "TT"} for seconds in (3, 3, 3, 3, 12, 12)]

    [(sentence, if_last)], [(_, if_first)] = apply_each(
        "expensive-dataset",
        [worker("w1"), *process(*chunks)],
        [worker("w1"), *process(*chunks[::-1])],
        columns="sentence, change",
    )
    assert sentence.startswith(
        "Events of TT take 6 ms each, 6.0 times as long as those of the next dataset, DY: 86 % "
        "of the compute time for 50 % of the events."
    )
    assert "Submit this dataset first" in if_last
    assert if_first == "No change is needed."


def test_skipped_files(apply_each, process, worker, chunk, run):
    bad = {"dataset": "TT", "filename": "bad.root", "exception": "OSError: not a ROOT file"}
    skipped = [
        worker("w1"),
        chunk("metadata-1", run_id=100, worker="w1", until="metadata", **bad),
        *run("metadata-1", 0.1, 0.2, run_id=100),
        *process({"seconds": 4.0}, {"seconds": 2.0, "file": "2.root"}),
    ]
    # One chunk of a file is skipped, another one is processed.
    cut_off = {"dataset": "DY", "filename": "2.root", "exception": "OSError: cut off"}
    partly = [
        worker("w1"),
        *process({"seconds": 4.0}, {"seconds": 2.0, "file": "2.root"}),
        chunk("chunk-9", run_id=100, worker="w1", until="processed", **cut_off),
        *run("chunk-9", 7.0, 8.0, run_id=100),
    ]

    found, [(_, sentence, *_)], none = apply_each(
        "skipped-files",
        *(skipped, partly, [worker("w1"), *process({"seconds": 4.0})]),
        columns="entity, sentence, core_seconds, wall_seconds_max",
    )
    assert found == [
        (
            "TT: bad.root",
            (
                "The result lacks events of 1 of 3 files: bad.root. The number of entries of "
                "one file could not be read (OSError). The files that were processed took 3.0 "
                "core-seconds on average."
            ),
            None,
            None,
        )
    ]
    assert sentence.startswith(
        "The result lacks events of 1 of 2 files: 2.root. Reading or processing one chunk "
        "raised OSError."
    )
    assert none == []


def test_chunks_that_were_skipped_can_be_in_readable_files(apply, worker, chunk, run):
    """One chunk is damaged, and one file lacks a branch; the dataset is unknown."""

    def skipped(number, entries, exception):
        key, about = f"chunk-{number}", {"run_id": number, "worker": "w1"}
        names = {"filename": f"{number}.root", "entry_start": 0, "entry_stop": entries}
        return [
            chunk(key, until="processed", exception=exception, **names, **about),
            *run(key, number, number + 0.5, **about),
        ]

    [(sentence, change)] = apply(
        "skipped-files",
        worker("w1"),
        *skipped(1, 1000, "DeserializationError('outside expected range')"),
        *skipped(2, 2000, "AttributeError(\"no field named 'MET'\")"),
        columns="sentence, change",
    )

    assert sentence == (
        "The result lacks events of 2 of 2 files: 1.root and 1 more. Reading or processing 2 "
        "chunks with 3,000 events raised AttributeError, DeserializationError."
    )
    assert change == (
        "Repair or remove the files with DeserializationError. Find the cause of "
        "AttributeError: the file can be damaged or lack a branch, or the processor can have "
        "an error. Then run these files again. Without skipbadfiles the run stops at the first "
        "one."
    )


def test_files_of_a_server_that_did_not_answer(apply, process, worker, chunk, run):
    """Two of four files are skipped after a timeout of 3 s; others are opened in 0.1 s."""
    records = [worker("w1")]
    for number in range(4):
        key, name, stop_t = (
            f"metadata-{number}",
            f"root://far//{number}.root",
            3.0 * number + 0.1,
        )
        skipped = number > 1
        error = {"exception": "FSTimeoutError()"} if skipped else {}
        about = {"run_id": 100 + number} if skipped else {}
        records += [
            chunk(key, filename=name, dataset="DY"),
            *(
                [
                    chunk(
                        key,
                        worker="w1",
                        until="metadata",
                        filename=name,
                        dataset="DY",
                        **error,
                        **about,
                    )
                ]
                if skipped
                else []
            ),
            *run(key, 3.0 * number, stop_t + 2.9 * skipped, run_id=100 + number),
        ]
    done = [{"seconds": 2.0, "file": f"root://far//{number}.root"} for number in (0, 1)]

    [(sentence, change)] = apply(
        "skipped-files", *records, *process(*done), columns="sentence, change"
    )

    assert sentence == (
        "The result lacks events of 2 of 4 files: root://far//2.root and 1 more. The number of "
        "entries of 2 files could not be read (FSTimeoutError). A server did not answer in "
        "time, or the connection to it failed: these 2 attempts took 6 s, others 0.1 s each "
        "(median). The files that were processed took 2.0 core-seconds on average."
    )
    assert change == (
        "The files with FSTimeoutError can be intact: allow the server more time "
        "(xrootdtimeout of coffea's Runner), or read another replica or through another "
        "redirector. Then run these files of DY again. Without skipbadfiles, Dask repeats "
        "tasks that fail (retries of DaskExecutor), and the run stops if all attempts do."
    )


def test_faults_of_servers_and_paths_beside_damage(apply, worker, chunk, run):
    errors = (
        "OSError: not a ROOT file",
        "ConnectionRefusedError(111)",
        "OSError: [ERROR] Server responded: [3005] x",
        "PermissionError(13)",
    )
    records = [worker("w1")]
    for number, error in enumerate(errors):
        about = {"run_id": number, "filename": f"root://h//{number}.root", "exception": error}
        records += [
            chunk(f"metadata-{number}", worker="w1", until="metadata", **about),
            *run(f"metadata-{number}", number, number + 0.5, run_id=number),
        ]

    [(sentence, change)] = apply("skipped-files", *records, columns="sentence, change")

    assert (
        " A server did not answer in time, or the connection to it failed "
        "(ConnectionRefusedError): this attempt took 0.5 s."
    ) in sentence
    assert change == (
        "Repair or remove the files with OSError. The files with ConnectionRefusedError can be "
        "intact: check whether the workers can reach the server, or read another replica or "
        "through another redirector. The server reported OSError: the files can be intact. "
        "Read another replica or through another redirector. Check the paths and the rights of "
        "the workers for the files with PermissionError. Check the credentials of the workers, "
        "such as a proxy or token that has expired. Then run these files again. Without "
        "skipbadfiles the run stops at the first one."
    )


def test_errors_of_the_processor_are_not_of_files(apply_each, worker, chunk, run):
    """The file could be opened, or is on no server."""

    def records(error, filename):
        records = [worker("w1")]
        for number in range(4):
            about = {"run_id": number, "worker": "w1"}
            failed = {"exception": error} if number == 1 else {}
            entries = {"dataset": "DY", "entry_start": 0, "entry_stop": 1, "open_seconds": 0.1}
            times = {"start_t": number, "stop_t": number + 0.5, "until": "processed"}
            records += [
                chunk(f"P-{number}", filename=filename, **entries, **times, **failed, **about),
                *run(f"P-{number}", number, number + 0.5, **about),
            ]
        return records

    missing = "FileNotFoundError(2, 'No such file or directory: corrections.json')"
    rows = apply_each(
        "skipped-files",
        records(missing, "root://far//1.root"),
        records("TimeoutError('lock timed out')", "/disk/1.root"),
        columns="sentence, change",
    )

    for [(sentence, change)], name in zip(
        rows, ("FileNotFoundError", "TimeoutError"), strict=True
    ):
        assert "server" not in sentence
        assert change.startswith(f"Find the cause of {name}: the file can be damaged or lack a")


def test_one_file_without_access_at_the_end(apply, worker, chunk, run):
    """It never could be opened: nothing is known about the time."""
    records = [worker("w1")]
    for number in range(20):
        about = {"run_id": number, "worker": "w1"}
        ended = {"exception": "PermissionError(13)"} if number >= 18 else {"open_seconds": 0.1}
        file = "z.root" if number >= 18 else f"{number}.root"
        entries = {"dataset": "DY", "entry_start": number, "entry_stop": number + 1}
        times = {"start_t": number, "stop_t": number + 0.5, "until": "processed"}
        records += [
            chunk(f"P-{number}", filename=file, **entries, **times, **ended, **about),
            *run(f"P-{number}", number, number + 0.5, **about),
        ]

    [(sentence, change)] = apply("skipped-files", *records, columns="sentence, change")

    assert "No chunk that began" not in sentence
    assert "Access ended" not in change


def test_opening_without_files_that_could_not_be_opened(
    apply_each, process, worker, chunk, run
):
    """Tasks that count entries take 0.2 s; one of them ends after a timeout of 60 s."""
    done = [
        {
            "seconds": 1.0,
            "open_seconds": 0.5,
            "read_seconds": 0.1,
            "branches_read": 1,
            "file": f"{n}.root",
        }
        for n in range(4)
    ]
    records = [worker("w1"), *process(*done, *done)]
    for number in range(2):
        key = f"metadata-{number}"
        records += [
            chunk(key, filename=f"{number}.root"),
            *run(key, 20.0 + number, 20.2 + number),
        ]
    bad = chunk(
        "metadata-9",
        run_id=9,
        worker="w1",
        until="metadata",
        filename="9.root",
        exception="FSTimeoutError()",
    )
    skipped = [
        chunk("metadata-9", filename="9.root"),
        bad,
        *run("metadata-9", 30.0, 90.0, run_id=9),
    ]

    without, with_timeout = apply_each(
        "file-opening", records, [*records, *skipped], columns="sentence, core_seconds"
    )

    assert without == with_timeout != []


def test_skipped_files_of_a_run_that_stops_early(apply, process, worker, chunk, run):
    """Of 4 files, one is skipped, one processed, one fails, and one is not reached."""
    entries = {"entry_start": 0, "entry_stop": 1000}
    bad = {"dataset": "DY", "filename": "bad.root", "exception": "OSError: not a ROOT file"}

    [(sentence,)] = apply(
        "skipped-files",
        worker("w1"),
        *(chunk(f"metadata-{n}", filename=f"{n}.root") for n in (1, 2, 3)),
        chunk("metadata-4", run_id=100, worker="w1", until="metadata", **bad),
        *run("metadata-4", 0.1, 0.2, run_id=100),
        *process({"seconds": 4.0}),
        chunk("chunk-2", filename="2.root", **entries),
        *run("chunk-2", 5.0, 6.0, outcome="erred"),
        columns="sentence",
    )
    assert "events of 1 of 4 files" in sentence


def test_names_of_skipped_files(apply_each, worker, chunk, run):
    def records(skipped):
        records = [worker("w1")]
        for number, (filename, dataset) in enumerate(skipped.items()):
            key, about = f"metadata-{number}", {"run_id": 100 + number}
            bad = {"dataset": dataset, "filename": filename, "exception": "OSError: cut off"}
            records += [
                chunk(key, worker="w1", until="metadata", **bad, **about),
                *run(key, number + 0.1, number + 0.2, **about),
            ]
        return records

    assert apply_each(
        "skipped-files",
        # Files of a dataset, of several datasets, and many files.
        records({"/a/1.root": "TT", "/b/2.root": "TT"}),
        records({"/a/1.root": "TT", "/b/2.root": "WW"}),
        records({f"/a/{i}.root": "TT" for i in range(5)}),
        columns="entity",
    ) == [
        [("TT: 1.root, 2.root",)],
        [("1.root, 2.root",)],
        [("TT: 0.root, 1.root, 2.root and 2 more",)],
    ]


def test_chunks_that_could_not_be_opened_from_an_instant_on(apply_each, worker, chunk, run):
    """A token expires after 2.9 s; or one of many chunks has no rights."""
    denied = Exception(
        "Failed to open file: WorkItem(dataset='DY', filename='a.root'). The error was: "
        "PermissionError('[Errno 13] Permission denied: \"a.root\"')."
    )

    def chunks(*refused):
        for number in range(6):
            key, about = f"P-{number}", {"run_id": number, "worker": "w1"}
            error = {"exception": repr(denied)} if number in refused else {}
            yield chunk(
                key, dataset="DY", filename="ab"[number % 2] + ".root", entry_start=number,
                entry_stop=number + 1, start_t=number, stop_t=number + 0.5, until="processed",
                **error, **about,
            )  # fmt: skip
            yield from run(key, number, number + 0.5, **about)

    [(from_then_on, change)], [(once, once_change)] = apply_each(
        "skipped-files",
        [worker("w1"), *chunks(3, 4, 5)],
        [worker("w1"), *chunks(3)],
        columns="sentence, change",
    )
    assert (
        "3 chunks with 3 events raised PermissionError. No chunk that began after 2.0 s "
        in (from_then_on)
    )
    assert (
        " could open its file (3 failed). Before that, 3 chunks did, and these 2 files could "
        "be opened."
    ) in from_then_on
    assert "Access ended during the run" in change
    assert "No chunk that began" not in once
    assert "Access ended" not in once_change
    assert "such as a proxy or token that has expired." in once_change


def test_files_that_were_counted_and_opened(apply, process, worker, chunk, run):
    """A run that stops early has counted the entries of more files than it has opened."""
    done = [
        {"file": "0.root", "seconds": 1.0, "open_seconds": 0.5, "read_seconds": 0.1,
         "branches_read": 1}
    ] * 8  # fmt: skip
    records = [worker("w1"), *process(*done)]
    for number in range(4):
        key = f"metadata-{number}"
        records += [chunk(key, filename=f"{number}.root"), *run(key, 20.0, 20.2)]

    [(sentence,)] = apply("file-opening", *records, columns="sentence")
    # Of 8 chunks, 4.0 of 8.0 s, and 4 counts of 0.2 s.
    assert sentence == (
        "Opening 1 file, for 8 chunks, and 4 files to count their entries, takes 4.8 s, 55 % "
        "of the compute time of chunks and of counting together: 0.5 s for each chunk."
    )
