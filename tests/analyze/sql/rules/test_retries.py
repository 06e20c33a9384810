"""Rule retries: attempts that failed."""

from math import comb

import pytest


def test_by_exception(apply_each, worker, task, run):
    """Seven of eight attempts of 2 s fail, five of them with a timeout."""
    records = [worker("w1"), *(task(f"read-{number}") for number in range(8))]
    for number in range(7):
        begin = 2.0 * number
        records += run(
            f"read-{number}", begin, begin + 2.0, outcome="retried" if number < 5 else "erred",
            exception="TimeoutError: 5 s" if number < 5 else "OSError('no such file')",
            phases=[("compute", begin, begin + 2.0)],
        )  # fmt: skip
    # Coffea quotes the error.
    quoted = "Failed creating nanoevents: WorkItem(a='f'). The error was: KeyError('pt')."
    failed = run("a", 1.0, 5.0, outcome="retried", exception=repr(Exception(quoted)))

    found, [(entity, sentence)] = apply_each(
        "retries",
        [*records, *run("read-7", 14.0, 16.0)],
        [worker("w1"), task("a"), *failed],
        columns="entity, sentence",
    )
    assert dict(found) == {
        "OSError": "2 tasks (read) failed for good with OSError: their results are missing, "
        "and those of all tasks that need them. 2 attempts failed. "
        "The error: OSError('no such file')",
        "TimeoutError": "5 attempts at 5 tasks (read) failed with TimeoutError: "
        "10.0 s of computing were lost. The error: TimeoutError: 5 s",
    }
    assert entity == "KeyError"
    assert sentence.endswith("The error: KeyError('pt')")


def test_a_task_that_failed_for_good_saves_nothing(apply_each, worker, task, run):
    """The client can compute it again."""
    error = {"outcome": "erred", "exception": "ValueError()", "run_id": 1}
    failed = [worker("w1"), task("a"), *run("a", 1.0, 5.0, **error)]
    again = run("a", 6.0, 7.0, run_id=2)

    [(saving,)], [(saving_if_recovered,)] = apply_each(
        "retries", failed, [*failed, *again], columns="wall_seconds_max"
    )
    assert saving is None
    assert saving_if_recovered is not None


def test_other_outcomes(apply, worker, task, run):
    """Tasks of killed workers belong to another rule."""
    killed = {"outcome": "erred", "exception": "KilledWorker: a"}
    records = [worker("w1", nthreads=4), task("a-killed"), *run("a-killed", 1.0, 5.0, **killed)]
    for outcome in ("memory", "lost", "cancelled"):
        key = f"a-{outcome}"
        records += [task(key), *run(key, 0.0, 9.0, outcome=outcome)]
    assert apply("retries", *records) == []


@pytest.mark.exhaustive
def test_tasks_of_several_prefixes(apply, worker, task, run):
    records = [worker("w1")]
    for number, prefix in enumerate(("read", "fit", "fit")):
        key = f"{prefix}-{number}"
        failed = {"outcome": "erred", "exception": "ValueError('x')"}
        records += [task(key), *run(key, 1.0 * number, number + 1.0, **failed)]

    [(sentence,)] = apply("retries", *records, columns="sentence")

    assert sentence.startswith("3 tasks (such as fit) failed for good with ValueError: ")


@pytest.fixture
def attempts(worker, task, chunk, run):
    """Return the records of attempts at chunks: file, first entry, outcome and exception."""

    def attempts(*rows: tuple[str, int, str, str | None]) -> list[dict]:
        records = [worker("w1")]
        for number, (file, entry_start, outcome, exception) in enumerate(rows):
            key, begin = f"Dijet-{file}-{entry_start}", 2.0 * number
            about = {"dataset": file[:2], "filename": f"/d/{file}", "treename": "Events"}
            records += [
                task(key),
                chunk(key, **about, entry_start=entry_start, entry_stop=entry_start + 1000),
                *run(key, begin, begin + 1.0, outcome=outcome, exception=exception),
            ]
        return records

    return attempts


ZLIB = "error('Error -3 while decompressing data: invalid code')"


def test_a_file_that_is_probably_damaged(apply, attempts, open_trace):
    records = attempts(
        ("DY1.root", 0, "memory", None),
        ("DY2.root", 0, "memory", None),
        ("DY2.root", 1000, "retried", ZLIB),
        ("DY2.root", 1000, "erred", ZLIB),
        ("DY2.root", 2000, "retried", ZLIB),
        ("DY2.root", 3000, "retried", "OSError('an error of the network')"),
    )
    columns = "entity, sentence, change, evidence"
    found = {row[0]: row[1:] for row in apply("retries", *records, columns=columns)}
    sentence, change, evidence = found["zlib.error"]

    assert (
        " All 3 failed attempts were in DY2.root (tree Events, entries 1,000 to 3,000, "
        "dataset DY). 1 of its other chunks succeeded, 1 failed. 1 chunk of other files "
        "was attempted, and none failed. The error: error('Error -3"
    ) in sentence
    assert change == "/d/DY2.root is probably damaged: check it, or copy it again."
    assert open_trace(*records).rows(
        f"SELECT entry_start, attempt FROM ({evidence}) ORDER BY ALL"
    ) == [(1000, 1), (1000, 2), (2000, 1)]


@pytest.mark.exhaustive
def test_several_files_are_damaged_if_as_many_can_be_read(apply_each, attempts):
    """If a program can read few files, those need not be damaged."""

    def records(others):
        rows = [(f"DY{number}.root", 0, "erred", ZLIB) for number in range(3)]
        rows += [(f"DY{number + 3}.root", 0, "memory", None) for number in range(others)]
        return attempts(*rows)

    # A file that can be read later is not damaged.
    later = attempts(("DY.root", 0, "retried", ZLIB), ("DY.root", 0, "memory", None))

    [(_, if_many)], [(_, if_few)], [(sentence, if_later)] = apply_each(
        "retries", records(others=3), records(others=2), later, columns="sentence, change"
    )
    assert if_many.startswith("The files are probably damaged")
    assert if_few.startswith("Find the cause of zlib")
    assert " It was in DY.root (tree Events, entries 0 to 1,000, dataset DY). " in sentence
    assert if_later.startswith("Find the cause of zlib.error. Repeat only the operation")


def test_a_file_is_blamed_only_beside_others(apply_each, attempts):
    """An error of the processor fails everywhere; Dask stops after the first chunks."""

    def records(failed_files, others):
        rows = [
            (f"DY{file}.root", start, "erred", "KeyError('jet_pt')")
            for file in range(failed_files)
            for start in (0, 1000)
        ]
        rows += [(f"TT{number}.root", 0, "memory", None) for number in range(others)]
        return attempts(*rows)

    [(alone, change_alone)], [(compared, change_compared)], [(_, change_everywhere)] = (
        apply_each(
            "retries", records(1, 0), records(1, 3), records(3, 0), columns="sentence, change"
        )
    )

    assert " No chunk of other files was attempted. " in alone
    assert change_alone == (
        "Find the cause of KeyError in the code that raised it (traceback in view failures): "
        "too few chunks of other files were attempted to blame this one."
    )
    assert " 3 chunks of other files were attempted, and none failed. " in compared
    assert change_compared == "Find the cause of KeyError in /d/DY0.root."
    assert change_everywhere == (
        "Find the cause of KeyError in the code: it failed in each of the 3 files that were "
        "attempted."
    )


MISSING_TREE = (
    "UprootMissTreeError(\"not found: 'Events' (with any cycle number)\\n\\n    Available "
    "keys: 'events;1'\\n\")"
)


@pytest.fixture
def counts(worker, task, chunk, run):
    """Return the records of tasks that read the number of entries: file and exception."""

    def counts(*rows: tuple[str, str | None], outcome="erred") -> list[dict]:
        records = [worker("w1")]
        for number, (file, exception) in enumerate(rows):
            key, begin = f"automatic_retries-{number}-{file}", 40.0 + number
            ended = {"outcome": outcome, "exception": exception} if exception else {}
            records += [
                task(key),
                chunk(key, dataset=file[:2], filename=f"/d/{file}", treename="Events"),
                *run(key, begin, begin + 0.5, run_id=100 + number, **ended),
            ]
        return records

    return counts


def test_a_file_whose_entries_could_not_be_read(apply_each, attempts, counts, chunk):
    """It is compared with files whose entries or chunks were read; a chunk only with chunks."""
    others = [(f"TT{number}.root", None) for number in range(6)]
    wrong = ("DY.root", MISSING_TREE)
    processed = [(f"TT{number}.root", 0, "memory", None) for number in (1, 7)]
    # With skipbadfiles, these tasks succeed without an answer.
    skipped = [
        chunk(
            f"automatic_retries-{number + 1}-{file}", run_id=101 + number,
            dataset="TT", filename=f"/d/{file}", exception=MISSING_TREE, until="metadata",
        )
        for number, (file, _) in enumerate(others)
    ]  # fmt: skip

    [named], [with_chunks], [alone], [everywhere], [others_skipped], [in_chunk] = apply_each(
        "retries",
        counts(wrong, *others),
        [*counts(wrong, *others[:2]), *attempts(*processed)],
        counts(wrong, *others[:2]),
        counts(wrong, *((file, MISSING_TREE) for file, _ in others)),
        [*counts(wrong, *others), *skipped],
        [*counts(*others), *attempts(("DY.root", 0, "erred", "KeyError('jet_pt')"))],
        columns="sentence, change",
    )

    advice = (
        "Find the cause of UprootMissTreeError{}: {} Check whether all files have this tree."
    )
    sentence, change = named
    assert (
        " It was in DY.root (tree Events, dataset DY). No chunk of it was processed. 6 other "
        'files were attempted, and none failed. The error: UprootMissTreeError("not found: '
        "'Events' (with any cycle number) Available keys: 'events;1' \")"
    ) in sentence
    assert change == (
        "Find the cause of UprootMissTreeError in /d/DY.root. Check whether all files have "
        "this tree."
    )
    # Of TT1.root, both were read.
    assert " 3 other files were attempted, and none failed. " in with_chunks[0]
    assert with_chunks[1] == change
    assert " 2 other files were attempted, and none failed. " in alone[0]
    assert alone[1] == advice.format(
        "", "too few other files were attempted to blame this one."
    )
    assert everywhere[1] == advice.format(
        "", "it failed in each of the 7 files that were attempted."
    )
    assert " 6 other files were attempted, and 6 failed. " in others_skipped[0]
    assert "DY.root" not in others_skipped[1]
    # Their entries say nothing about a processor.
    assert " No chunk of other files was attempted. " in in_chunk[0]
    assert "too few chunks of other files were attempted to blame this one." in in_chunk[1]


def response(path: str) -> str:
    """Return the text of an error of aiohttp, as coffea quotes it."""
    headers = (
        "headers=<CIMultiDictProxy('Host': 'far', 'User-Agent': 'Python/3.11 aiohttp/3.14')>"
    )
    return (
        f"Failed to open file: WorkItem(filename='{path}'). The error was: ClientResponseError("
        f"RequestInfo(url=URL('{path}'), method='GET', {headers}, real_url=URL('{path}')), (), "
        f"status=503, message='Service Unavailable', {headers})."
    )


def test_an_error_that_a_server_reports(apply_each, attempts):
    """Neither the code nor a file is to blame, also if it is in one file, or in each."""

    def records(failed, others=0):
        failed = [
            (file, start, "erred", repr(Exception(response("http://far/" + file))))
            for file in failed
            for start in (0, 1000)
        ]
        rows = attempts(*failed, *((f"TT{n}.root", 0, "memory", None) for n in range(others)))
        return [
            {**row, "filename": row["filename"].replace("/d/", "http://far/")}
            if "filename" in row
            else row
            for row in rows
        ]

    [one], [beside_others], [each] = apply_each(
        "retries",
        records(["DY1.root"]),
        records(["DY1.root"], others=4),
        records(["DY1.root", "DY2.root", "DY3.root"]),
        columns="sentence, change",
    )

    advice = (
        "The server reported ClientResponseError: {} can be intact. Repeat the work later, or "
        "read another replica or through another redirector."
    )
    assert one[0].endswith(
        " The error: ClientResponseError(URL('http://far/DY1.root'), status=503, "
        "message='Service Unavailable')"
    )
    assert one[1] == beside_others[1] == advice.format("http://far/DY1.root")
    assert each[1] == advice.format("the files")


@pytest.mark.exhaustive
def test_a_hint_is_given_also_if_few_files_were_attempted(apply_each, attempts):
    absent = "FileNotFoundError(2, 'No such file or directory')"
    one, each = (
        [(f"DY{number}.root", 0, "erred", absent) for number in range(files)]
        for files in (1, 3)
    )

    [(of_one,)], [(of_each,)] = apply_each(
        "retries", attempts(*one), attempts(*each), columns="change"
    )

    look = "Check whether the workers can see the file at this path."
    assert of_one == (
        "Find the cause of FileNotFoundError: too few chunks of other files were attempted to "
        f"blame this one. {look}"
    )
    assert of_each == (
        "Find the cause of FileNotFoundError: it failed in each of the 3 files that were "
        f"attempted. {look}"
    )


@pytest.mark.exhaustive
def test_the_place_of_nearly_all_failed_attempts(apply_each, attempts):
    def records(*files):
        rows = [
            (f"{file}.root", 1000 * n, "erred", "KeyError('pt')")
            for n, file in enumerate(files)
        ]
        return attempts(
            *rows, *((f"{file}.root", 0, "memory", None) for file in ("DY9", "TT9"))
        )

    [(of_file,)], [(of_dataset,)], [(unknown,)] = apply_each(
        "retries",
        records("DY1", *["DY2"] * 19),
        records("DY1", "DY2", "DY3"),
        records("DY1", "TT1", "TT2"),
        columns="sentence",
    )
    assert "19 of the 20 failed attempts were in DY2.root (tree " in of_file
    assert "All 3 failed attempts were in dataset DY. 1 of its other " in of_dataset
    assert "were in" not in unknown


@pytest.mark.exhaustive
def test_without_a_cluster(apply_each, worker, chunk, open_trace):
    """A chunk of the second file fails; in the other run, its entries cannot be counted."""
    about = {"dataset": "DY", "filename": "/d/1.root", "treename": "Events", "worker": "pid:1"}
    entries = {"entry_start": 0, "entry_stop": 1000}
    good = chunk(
        "c-1", run_id=1, **about, **entries, start_t=1.0, stop_t=3.0, until="processed"
    )
    about |= {"filename": "/d/2.root", "exception": ZLIB, "run_id": 2}
    failed = chunk("c-2", **about, **entries, start_t=3.0, stop_t=5.0, until="opened")
    unreadable = chunk("m-2", **about, start_t=3.0, stop_t=5.0, until="metadata")
    in_chunk, in_metadata = apply_each(
        "retries",
        [worker("pid:1"), good, failed],
        [worker("pid:1"), good, unreadable],
        columns="sentence, change, evidence",
    )

    [(sentence, change, evidence)] = in_chunk
    assert sentence.startswith(
        "1 chunk failed for good with zlib.error: its events are missing. One attempt failed. "
        "It was in 2.root (tree Events, entries 0 to 1,000, dataset DY). "
    )
    assert change == "/d/2.root is probably damaged: check it, or copy it again."
    assert len(open_trace(worker("pid:1"), good, failed).rows(evidence)) == 1
    [(sentence, change, _)] = in_metadata
    assert sentence.startswith(
        "1 file could not be read because of zlib.error: its events are missing. One attempt "
        "failed. It was in 2.root (tree Events, dataset DY). No chunk of it was processed. "
    )
    assert change == "/d/2.root is probably damaged: check it, or copy it again."


def test_a_host_where_tasks_fail(apply_each, worker, task, run):
    """Tasks fail on one of two hosts; on one of its workers; on both hosts alike."""

    def records(fails):
        workers = [
            worker(f"w{n}", name=f"worker-{n}", host="good" if n < 2 else "bad")
            for n in range(4)
        ]
        records = []
        for number in range(40):
            key, on = f"read-{number}", number % 4
            error = (
                {"outcome": "erred", "exception": "OSError('cvmfs')"}
                if fails(on, number)
                else {}
            )
            records += [
                task(key),
                *run(key, 1.0 * number, number + 1.0, worker=f"w{on}", **error),
            ]
        return [*workers, *records]

    [(host, advice)], [(one, _)], [(all_alike, _)], [(by_chance, _)] = apply_each(
        "retries",
        records(lambda on, _: on >= 2),
        records(lambda on, _: on == 3),
        records(lambda _, number: number < 20),
        records(lambda on, number: on == 2 and number < 10),
        columns="sentence, change",
    )
    assert (
        " All 20 failed attempts were on host bad. On other hosts, 20 attempts at such tasks "
        "succeeded, and none failed with OSError. The error: OSError('cvmfs')"
    ) in host
    assert advice.startswith("Find out what differs on host bad: free disks, ")
    assert " All 10 failed attempts were on worker worker-3 on host bad. " in one
    # Two failed attempts of 40 on one of four workers.
    assert "failed attempts were on" not in all_alike + by_chance


@pytest.mark.parametrize(
    ("found", "tries", "failed", "tries_there"),
    [(56, 60, 56, 56), (2, 40, 2, 10), (9, 40, 10, 10), (1, 3, 3, 1), (900, 9000, 950, 4000)],
)
def test_the_chance_that_failures_are_in_one_place(rows, found, tries, failed, tries_there):
    """Count the ways in which at least so many of them are there."""
    query = f"SELECT _hypergeometric_tail({found}, {tries}, {failed}, {tries_there})"
    ways = sum(
        comb(tries_there, n) * comb(tries - tries_there, failed - n)
        for n in range(found, min(failed, tries_there) + 1)
    )

    [(chance,)] = rows(query, {"kind": "event", "t": 1.0, "topic": "x"})

    assert chance == pytest.approx(ways / comb(tries, failed))


def test_a_worker_that_fails_quickly_and_so_receives_most_tasks(apply_each, worker, task, run):
    """Of 60 tasks, 56 fail at once on one of three workers; 4 others succeed."""

    def records(*rows):
        """Write attempts: number of the task, worker, and whether it fails."""
        traces = [worker(f"w{n}", name=str(n), host="h") for n in range(4)]
        traces += [task(f"read-{number}") for number in {number for number, _, _ in rows}]
        for run_id, (number, on, fails) in enumerate(rows):
            error = {"outcome": "retried", "exception": "OSError('x')"} if fails else {}
            begin = 1.0 * run_id
            about = {"worker": f"w{on}", "run_id": run_id, **error}
            traces += run(f"read-{number}", begin, begin + 0.5, **about)
        return traces

    good = [(number, number % 4, False) for number in range(28)]
    attracting = [
        (number, 1 if number > 3 else 2 * (number % 2), number > 3) for number in range(60)
    ]
    few, again = [[(100 + n, 1, True) for n in range(3)] * times for times in (1, 4)]

    [(named,)], [(three,)], [(retried,)], [(elsewhere_too,)] = apply_each(
        "retries",
        records(*attracting),
        records(*good, *few),
        # Further attempts at the same three tasks are no further tries.
        records(*good, *again),
        # Each of three tasks fails on any worker.
        records(*good, *((100 + n, on, True) for n in range(3) for on in range(4))),
        columns="sentence",
    )

    assert (
        " All 56 failed attempts were on worker 1 on host h. On other workers, 4 attempts at "
        "such tasks succeeded, and none failed with OSError. "
    ) in named
    assert "failed attempts were on" not in three + retried + elsewhere_too


def test_a_module_that_the_workers_lack(apply, worker, task, run):
    missing = {
        "outcome": "erred",
        "exception": """ModuleNotFoundError("No module named 'btag.sf'")""",
    }

    [(change,)] = apply(
        "retries", worker("w1"), task("a"), *run("a", 1.0, 2.0, **missing), columns="change"
    )

    assert change.startswith("Install btag.sf where the workers run: ")


def test_the_kind_of_error(apply, worker, task, run):
    errors = {
        "OSError('[ERROR] Server responded: [3011] No such file: root://x//f')": (
            "Find the cause of OSError. Check whether the workers can see the file at this "
            "path."
        ),
        "PermissionError('VOMS: authentication failed')": "Check the credentials",
        "MemoryError('Unable to allocate 3 GiB')": "Use smaller chunks or partitions",
        "TimeoutError('[ERROR] Operation expired')": "did not answer in time",
        "ConnectionError('Connection refused')": "the workers can reach the server.",
        "KeyInFileError(\"not found: 'Jet_pt'\")": "Check whether all files have this branch.",
        "ValueError('3 != 4')": "Find the cause of ValueError.",
    }
    records = [worker("w1")]
    for number, error in enumerate(errors):
        key, begin = f"a{number}-1", 1.0 * number
        records += [task(key), *run(key, begin, begin + 1, outcome="erred", exception=error)]

    changes = dict(apply("retries", *records, columns="entity, change"))

    for error, change in errors.items():
        assert change in changes[error.partition("(")[0]]


def test_a_server_that_does_not_answer(apply_each, worker, task, chunk, run):
    """Chunks of two files on a server end with timeouts of 3 s, others take 1 s."""

    def records(server):
        records = [worker("w1")]
        for number in range(6):
            key, start, fails = f"Dijet-{number}", 4.0 * number, number < 2
            error = {"outcome": "erred", "exception": "FSTimeoutError()"} if fails else {}
            about = {
                "dataset": "DY",
                "filename": f"{server}{number}.root",
                "treename": "Events",
            }
            stop = start + (3.0 if fails else 1.0)
            records += [
                task(key),
                chunk(key, **about, entry_start=0, entry_stop=1000),
                *run(key, start, stop, phases=[("compute", start, stop)], **error),
            ]
        return records

    [(sentence, change)], [(_, of_disk)] = apply_each(
        "retries", records("root://far//"), records("/disk/"), columns="sentence, change"
    )

    assert (
        " 2 attempts failed. Each took 3 s (median), those that succeeded 1 s (median). "
    ) in sentence
    assert change == (
        "The files can be intact. The server of the files did not answer in time: allow it "
        "more time (xrootdtimeout of coffea's Runner, timeout of uproot), or read another "
        "replica or through another redirector."
    )
    assert of_disk.endswith("did not answer in time: check its load, or allow more time.")


def test_retries_of_which_none_succeeded(apply_each, worker, task, run):
    """Each of 3 tasks fails in 2 s, and again in 1 s; in others, with another end."""

    def records(again, seconds_are_known=True):
        records = [worker("w1")]
        for number in range(3):
            key, t = f"fit-{number}", 4.0 * number
            for attempt, (start, stop) in enumerate(((t, t + 2.0), (t + 2.0, t + 3.0))):
                error = again if attempt else "AssertionError('process {} has no children')"
                ended = {
                    "outcome": "erred" if attempt else "retried",
                    "exception": error.format(number + 7 * attempt),
                    "phases": [("compute", start, stop)] if seconds_are_known else [],
                }
                records += run(key, start, stop, run_id=2 * number + attempt, **ended)
            records.append(task(key))
        return records

    def recovered():
        start = {"outcome": "retried", "exception": same, "phases": []}
        return [
            *(task("fit-9"), *run("fit-9", 50.0, 51.0, run_id=90, **start)),
            *run("fit-9", 51.0, 52.0, run_id=91),
        ]

    same = "AssertionError('process {} has no children')"

    def others():
        """Ten retries of other tasks succeed."""
        failed = {"outcome": "retried", "exception": "OSError('again')", "phases": []}
        for number in range(10):
            key, t = f"read-{number}", 20.0 + number
            yield task(key)
            yield from run(key, t, t + 0.4, run_id=200 + number, **failed)
            yield from run(key, t + 0.4, t + 0.9, run_id=300 + number)

    [(sentence, change)], [(unknown, _)], other, [(if_one_recovers, of_one)], both = apply_each(
        "retries",
        records(same),
        records(same, seconds_are_known=False),
        records("RuntimeError('no')"),
        [*records(same), *recovered()],
        [*records(same), *others()],
        columns="sentence, change",
    )

    assert (
        " 6 attempts failed. 3 retries took 3.0 s, and none succeeded: each ended with an "
        "error of the same type. The error: "
    ) in sentence
    # Elsewhere they are of use.
    assert [advice for _, advice in both if "fewer retries" in advice] == []
    assert [text for text, _ in both if "3 retries took 3.0 s, and none succeeded" in text]
    assert change == (
        "Find the cause of AssertionError (process 0 has no children). Use fewer retries until "
        "it is fixed."
    )
    assert (
        " None of 3 retries succeeded: each ended with an error of the same type. " in unknown
    )
    of_first, of_second = sorted(other)
    assert " 3 retries took 3.0 s, and none succeeded. The error: " in of_first[0]
    assert "failed for good with RuntimeError" in of_second[0]
    assert "retries" not in of_first[1] + of_second[1]
    assert "Repeat only" not in of_first[1]
    assert "retries" not in if_one_recovers + of_one


def test_a_message_beside_the_type_of_an_error(apply, worker, task, run):
    """It is quoted if it has three words, up to twelve of them."""
    causes = {
        "RuntimeError('no calibration in here')": "RuntimeError (no calibration in here).",
        "KeyError('pt')": "KeyError.",
        "Exception: " + "long text " * 9: "Exception (" + "long text " * 6 + "…).",
        "TypeError: a b " + "c" * 900: "TypeError (a b " + "c" * 116 + " …).",
    }
    records = [worker("w1")]
    for number, error in enumerate(causes):
        failed = {"outcome": "erred", "exception": error}
        records += [task(f"a-{number}"), *run(f"a-{number}", number, number + 1.0, **failed)]

    changes = dict(apply("retries", *records, columns="entity, change"))

    for cause in causes.values():
        assert changes[cause.split()[0].rstrip(".")] == "Find the cause of " + cause


def test_a_task_that_the_scheduler_refused(apply_each, worker, task, run, move, chunk):
    """Its inputs exceed the memory of a worker. A task without a worker is of another rule."""
    inputs = [f"P-{number}" for number in range(3)]
    text = (
        "MemoryError: Task 'reduce-1' has 915.54 MiB worth of input dependencies, but worker "
        "w1 has memory_limit set to 667.57 MiB."
    )
    work = [worker("w1"), *(task(key) for key in inputs)]
    work += [line for key in inputs for line in run(key, 0.0, 4.0, run_id=1)]
    entries = {"filename": "a.root", "entry_start": 0, "entry_stop": 9}
    chunks = [chunk(key, run_id=1, **entries) for key in inputs]
    error = {"exception": text, "cause": "reduce-1", "worker": "w1"}
    refused = [
        task("reduce-1", dependencies=inputs),
        move(4.0, "reduce-1", "released>waiting"),
        move(4.0, "reduce-1", "processing>erred", **error),
    ]
    of_dask = [refused[0] | {"dependencies": inputs[:2]}, *refused[1:]]
    no_worker = [*refused[:2], refused[2] | {"exception": "NoValidWorkerError: a"}]

    [(entity, sentence, change)], [(_, _, advice)], others, computed = apply_each(
        "retries",
        [*work, *chunks, *refused],
        [*work, *of_dask],
        [*work, *no_worker],
        [*work, *refused, *run("reduce-1", 5.0, 6.0)],
        columns="entity, sentence, change",
    )
    assert entity == "MemoryError, refused"
    assert sentence == (
        "The scheduler refused 1 task (reduce) with MemoryError before it began: its 3 inputs "
        "have 915.54 MiB together, more than the memory limit of its worker, 667.57 MiB. Its "
        "result is missing, and those of all tasks that need it."
    )
    assert change == (
        "Merge fewer results at once (a smaller treereduction: now 3 inputs), return smaller "
        "results from the processor, or give each worker more memory: Dask checks the inputs "
        "alone, and the task needs memory beside them."
    )
    assert advice.startswith("Return smaller results from the tasks before it, or give each")
    assert others == computed == []


@pytest.mark.exhaustive
def test_a_merge_of_skipped_chunks_alone(ask, worker, task, run, chunk):
    """Its error follows from the skipped files, which rank before it."""
    records = [worker("w1")]
    for number in range(2):
        key, about = f"P-{number}", {"run_id": number, "worker": "w1"}
        entries = {"filename": f"{number}.root", "entry_start": 0, "entry_stop": 9}
        error = {"exception": "PermissionError(13)", "until": "processed"}
        records += [task(key), chunk(key, **entries, **error, **about)]
        records += run(key, number, number + 0.5, **about)
    empty = {"outcome": "erred", "exception": "ValueError('Empty list provided to reduction')"}
    merge = task("reduce-1", dependencies=["P-0", "P-1"])

    query = ask(*records, merge, *run("reduce-1", 2.0, 3.0, **empty))

    assert query("SELECT id FROM findings ORDER BY rank LIMIT 2") == [
        ("skipped-files",),
        ("retries",),
    ]
    [(sentence, change)] = query("SELECT sentence, change FROM findings WHERE id = 'retries'")
    assert (
        " It merges only chunks that coffea skipped, which leave nothing to merge" in sentence
    )
    assert change == (
        "Mend the cause of the skipped files first (rule skipped-files): this error follows "
        "from them."
    )


def test_an_error_that_follows_from_refused_requests(apply, worker, task, run, chunk):
    """A proxy expires while a chunk is read; the next ones cannot open their files."""
    refused = (
        "Failed to open file: WorkItem(a='f'). The error was: ClientResponseError(status=403, "
        "message='Forbidden')."
    )
    followed = "TypeError(\"'ClientResponseError' object is not subscriptable\")"
    ends = [None, None, followed, repr(Exception(refused)), repr(Exception(refused))]
    records = [worker("w1")]
    for number, error in enumerate(ends):
        key, about = f"P-{number}", {"run_id": number, "worker": "w1"}
        measured = {"exception": error, "until": "processed"} if error else {}
        opened = {} if number > 2 else {"open_seconds": 0.1}
        records += [
            task(key),
            chunk(
                key, filename=f"{number % 2}.root", entry_start=number, entry_stop=number + 1,
                start_t=2.0 * number, stop_t=2.0 * number + 1, **opened, **measured, **about,
            ),
            *run(
                key, 2.0 * number, 2.0 * number + 1, exception=error, **about,
                outcome=("memory", "memory", "retried", "erred", "erred")[number],
            ),
        ]  # fmt: skip

    found = apply("retries", *records, columns="entity, sentence, change")
    texts = {entity: (sentence, change) for entity, sentence, change in found}

    sentence, change = texts["ClientResponseError"]
    assert (
        " No chunk that began after 4.0 s could open its file (2 failed). Before that, 3 "
        "chunks did, and these 2 files could be opened."
    ) in sentence
    assert change.endswith("such as a proxy or token that has expired.")
    sentence, change = texts["TypeError"]
    assert (
        " The error names ClientResponseError, with which no chunk that began later could open "
        "its file."
    ) in sentence
    assert change == (
        "Find the cause of ClientResponseError first, from which this error follows. Check the "
        "credentials of the workers, such as a proxy or token that has expired."
    )
