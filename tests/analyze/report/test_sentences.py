import pytest

from roast_analyze.report import data, page, sentences

NBSP = "\N{NO-BREAK SPACE}"


@pytest.fixture
def told(open_trace):
    """Sentences about a trace of some records, with plain spaces."""

    def told(sentence, *records, stop_t=10.0):
        text = sentence(data.gather(open_trace(*records, stop_t=stop_t)))
        return text.replace(NBSP, " ")

    return told


def test_what_a_run_of_plain_tasks_did(told, worker, task, run):
    records = worker("w1", nthreads=2), task("a-1"), *run("a-1", 1.0, 5.0)

    assert told(sentences.what_was_done, *records) == ("1 task in 4 s on 1 worker (2 threads).")
    assert told(sentences.how_it_went, *records) == (
        "The cores computed for 20 % of the time that they were there. Nothing failed."
    )


def test_a_run_that_never_ended_took_no_time_yet(told, worker, task, move):
    records = worker("w1"), task("a-1"), move(1.0, "a-1", "waiting>processing", worker="w1")

    assert told(sentences.what_was_done, *records) == "1 task on 1 worker (1 thread)."


def test_what_was_recorded_at_one_instant(told, worker, task, run):
    records = worker("w1"), task("a-1"), *run("a-1", 0.0, 0.0)

    assert told(sentences.what_was_done, *records, stop_t=0.0) == "1 task in 0 s on 1 worker."


def test_chunks_without_a_cluster_that_all_failed(told, chunk):
    measured = {"run_id": 1, "start_t": 1.0, "stop_t": 3.0, "exception": "OSError()"}
    about = {"worker": "pid:1", "entry_start": 0, "entry_stop": 10, **measured}

    assert told(sentences.what_was_done, chunk("a", **about)) == (
        "1 attempt at chunks, none of them finished, in 2 s on 1 worker."
    )


def test_one_of_something_is_no_plural(told, worker, task, run, sample):
    records = worker("w1"), task("a-1"), *run("a-1", 0.0, 0.5), sample(1.0, cpu=100, nthreads=1)

    assert told(sentences.time_spent, *records, stop_t=1.0).startswith(
        "The cluster offered 1 core-second; 50 %"
    )
    assert told(sentences.cpu, *records).startswith(
        "The workers used 1 core on average, with 1 thread for tasks."
    )


def test_a_prefix_of_which_no_time_is_known_took_no_share(told, task, move, chunk):
    records = task("b-1"), move(1.0, "b-1", "waiting>processing", worker="w1")
    alone = chunk("y", run_id=4, start_t=1.0, stop_t=2.0)

    assert told(sentences.tasks, *records, alone) == (
        "A prefix is a kind of task: what its key begins with."
    )


def test_what_a_run_of_chunks_did(told, worker, task, run, chunk):
    identity = {"dataset": "Z", "filename": "z.root", "entry_start": 0, "entry_stop": 1000}

    assert (
        told(
            sentences.what_was_done,
            worker("w1"),
            task("P-1"),
            chunk("P-1", **identity),
            *run("P-1", 1.0, 5.0),
        )
        == "1 chunk, 1,000 events, in 4 s on 1 worker (1 thread): 250 events/s."
    )


def test_bad_ends_are_counted_by_kind(told, worker, task, move, gone):
    assert told(
        sentences.how_it_went,
        worker("w1"),
        task("a-1"),
        task("a-2"),
        move(1.0, "a-1", "waiting>processing", worker="w1"),
        move(2.0, "a-1", "processing>erred", "task-erred-1.0", worker="w1", exception="E()"),
        move(3.0, "a-2", "waiting>processing", worker="w1"),
        move(4.0, "a-2", "processing>released", "handle-worker-cleanup-4.0"),
        gone("w1", 4.0, "handle-worker-cleanup-4.0"),
    ).endswith("1 task failed for good and 1 attempt was lost with its worker.")


def test_what_the_scheduler_had_to_do(told, worker, task, move):
    def moved():
        for n in range(4):
            yield move(1.0, f"a-{n}", "released>waiting")
            yield move(2.0, f"a-{n}", "waiting>queued")
            yield move(4.0 + n, f"a-{n}", "queued>processing", worker="w1")

    tick = {"kind": "worker_sample", "t": 3.0, "worker": "w1"}

    assert told(
        sentences.scheduler,
        worker("w1"),
        *(task(f"a-{n}") for n in range(4)),
        *moved(),
        {**tick, "metrics": {"event_loop_interval": 0.5}},
        stop_t=20.0,
    ) == (
        "The scheduler made 12 transitions, at most 80 transitions/s over 50 ms. Up to 4 ready "
        "tasks waited for a free thread. The slowest event loop of a worker came round every "
        "500 ms (idle: 0.02 s)."
    )


def test_workers_that_share_a_row_of_the_map_are_told(open_trace, worker):
    some = data.gather(open_trace(*(worker(f"w{n}") for n in range(3))))
    many = data.gather(open_trace(*(worker(f"w{n}") for n in range(81))))

    assert sentences.workers_put_together(some, 3, "…") == ""
    assert many.busy["row"].n_unique() == 40
    assert sentences.workers_put_together(many, 40, "a command").replace(NBSP, " ") == (
        "Each of the 40 rows stands for several of the 81 workers, in order. All of them: "
        "a command"
    )


def test_nothing_ran(told):
    assert told(sentences.what_was_done) == "No task ran in the 10 s of this recording."


def test_a_whole_trace(told, task):
    assert told(sentences.wholeness, task("a-1")) == (
        "The trace is whole: all 3 records were read and nothing is known to be missing."
    )


def test_a_trace_that_is_not_whole(told):
    loss = {"kind": "loss", "t": 1.0, "reason": "buffer <full>", "records": 7}

    assert told(sentences.wholeness, loss) == (
        "The trace is not whole: buffer <full>. At least 7 records missing."
    )


def test_the_longest_pause(open_trace, worker, task, run):
    gathered = data.gather(
        open_trace(
            worker("w1"), task("a-1"), task("a-2"), *run("a-1", 1.0, 2.0), *run("a-2", 6.0, 8.0)
        )
    )

    section = page.build(gathered).sections[0]

    assert section.sentences[0].replace(NBSP, " ") == (
        "Each lane is a thread of a worker, each bar a task in the colour of its prefix. From "
        "the first task to the last, 0.429 of up to 1 thread computed on average. The longest "
        "pause in which nothing computed was 4 s, 2 s after the start."
    )


def test_the_prefix_that_took_the_most(told, worker, task, run):
    assert told(
        sentences.tasks,
        worker("w1"),
        task("load-1"),
        task("sum-1"),
        *run("load-1", 1.0, 4.0),
        *run("sum-1", 4.0, 5.0),
    ).endswith("load took 75 % of all computing: 1 attempt, 3 s in the median.")


def test_the_commonest_exception_is_found_whatever_its_numbers_are(told, task, move):
    def fails(key, exception):
        return (
            task(key),
            move(1.0, key, "waiting>processing", worker="w1"),
            move(2.0, key, "processing>erred", "task-erred-1.0", exception=exception),
        )

    text = told(
        sentences.failures,
        *fails("a-1", "OSError('a.root')"),
        *fails("a-2", "KeyError at 0x7f01"),
        *fails("a-3", "KeyError at 0x8e22"),
    )

    assert text == "3 failures; by kind: 3 × task erred. Most often (2 ×): KeyError at 0x7f01"


def test_memory_against_the_limit(told, worker, sample):
    fields = {"memory": 3 * 1024**3, "memory_limit": 4 * 1024**3, "nthreads": 1, "cpu": 50.0}

    assert told(sentences.memory, worker("w1"), sample(1.0, **fields)) == (
        "The workers together held at most 3 GiB of 4 GiB allowed. The fullest worker reached "
        "75 % of its limit. Nothing was spilled to disk."
    )


def test_time_spent(told, worker, task, run):
    assert told(sentences.time_spent, worker("w1"), task("a-1"), *run("a-1", 1.0, 5.0)) == (
        "The cluster offered 10 core-seconds; 40 % of them computed results that were kept."
    )


# -- chunks ------------------------------------------------------------------------------


@pytest.fixture
def chunks(worker, chunk, run):
    """Records of chunks ``(dataset, file, worker, events, seconds)``, in turn."""

    def chunks(*rows, threads=1, **measured):
        records = [worker(name, nthreads=threads) for name in sorted({row[2] for row in rows})]
        t = 0.0
        for number, (dataset, filename, name, events, seconds) in enumerate(rows):
            entries = {"entry_start": 0, "entry_stop": events}
            about = {"dataset": dataset, "filename": filename, **entries}
            key = f"P-{number}"
            records += [
                chunk(key, **about),
                *run(key, t, t + seconds, worker=name, run_id=number),
            ]
            if measured:
                times = {"start_t": t, "stop_t": t + seconds}
                records.append(chunk(key, run_id=number, **about, **times, **measured))
            t += seconds
        return records

    return chunks


def all_told(sentence):
    return lambda data: "\n".join(sentence(data))


def test_the_cost_of_a_chunk_and_a_better_size(told, chunks):
    rows = [
        ("DY", "f.root", "w1", n, (1.0 + 1e-3 * n) * off)
        for n in (1000, 2000, 3000, 4000) * 2
        for off in (0.999, 1.001)
    ]

    assert told(all_told(sentences.costs), *chunks(*rows), stop_t=100.0) == (
        "DY: a chunk costs 1 s and 1 s a thousand events (off by <1 % in the median); 2,500 "
        "events a chunk now, better 4,000; whole files, smaller than the optimum: "
        "fixed time 20 %."
    )


def test_datasets_without_a_model_share_a_sentence_that_says_why(told, chunks):
    rows = [(name, "f.root", "w1", 1000, 1.0) for name in ("DY", "TT", "QCD") for _ in range(5)]

    assert told(all_told(sentences.costs), *chunks(*rows)) == (
        "What a chunk of DY, QCD and TT costs by its size: no model: fewer than 3 "
        "chunk sizes, and file opening was not measured."
    )


def test_of_many_datasets_the_first_are_told(told, chunks):
    rows = [
        (f"D{i}", "f.root", "w1", n, 1.0 + 1e-3 * n)
        for i in range(6)
        for n in (1000, 2000, 3000, 4000, 5000)
    ]

    lines = told(all_told(sentences.costs), *chunks(*rows)).splitlines()

    assert [line[:2] for line in lines[:-1]] == ["D0", "D1", "D2", "D3"]
    assert lines[-1] == "The same of 2 more datasets is in the table."


def test_slow_files_and_slow_workers_are_named_apart(told, chunks):
    slow = {"3.root": 3.0, "w1": 2.0}
    rows = [
        ("DY", file, name, 1000, slow.get(file, 1.0) * slow.get(name, 1.0))
        for file in ("/store/1.root", "2.root", "3.root", "4.root")
        for name in ("w0", "w1", "w2")
        for _ in range(3)
    ]

    assert told(sentences.slow, *chunks(*rows)) == (
        "Slow on every worker: the file 3.root (3.0 times). Slow on every file: the worker w1 "
        "(2.0 times)."
    )
    alike = [(*row[:4], 1.0) for row in rows]
    assert told(sentences.slow, *chunks(*alike)) == (
        "No file of the 4 files that can be compared is slow on every worker. No worker of the "
        "3 workers that can be compared is slow on every file."
    )
    assert told(sentences.slow, *chunks(rows[0])).startswith("Whether a file or a worker is")


def test_merging_against_processing(told, task, chunks, run):
    records = chunks(("DY", "f.root", "w1", 1000, 4.0))
    merge = task("reduce-1", dependencies=["P-0"])

    assert told(sentences.merging, *records) == ""
    assert told(sentences.merging, *records, merge, *run("reduce-1", 4.0, 5.0)) == (
        "Merging results took 1 s of computing, 25 % of what the chunks took."
    )
    assert told(sentences.merging, *records, merge, *run("reduce-1", 4.0, 12.0)) == (
        "Merging results took 8 s of computing, 2.0 times what the chunks took: merging "
        "outweighs processing."
    )


def test_what_the_time_of_chunks_went_into(told, chunks):
    rows = [("DY", "f.root", "w1", 1000, 4.0)]
    measured = {"open_seconds": 1.0, "process_seconds": 3.0, "read_seconds": 2.0}

    assert told(sentences.chunk_time, *chunks(*rows)) == (
        "What a chunk reads, and what it spends its time on, was not measured in this run."
    )
    assert told(sentences.chunk_time, *chunks(*rows, **measured, cpu_seconds=1.0)) == (
        "Attempts at chunks computed for 4 s: 1 s (25 %) opening files, 3 s (75 %) in the "
        "processor and 2 s (50 %) reading columns, in the processor or before. Their threads "
        "used the CPU for 25 % of the time."
    )


def test_the_costliest_branches(told, chunks):
    rows = [("DY", "f.root", "w1", 1000, 4.0), ("TT", "g.root", "w1", 1000, 4.0)]
    sized = [{"branch": "x", "compressed_bytes": 3}, {"branch": "y", "compressed_bytes": 1}]
    timed = [{**branch, "read_seconds": 4.0 - branch["compressed_bytes"]} for branch in sized]

    assert told(sentences.branches, *chunks(*rows)) == ""
    assert told(sentences.branches, *chunks(*rows, branches=sized)) == (
        "The costliest branches, by the bytes of what was read: x (75 %) and y (25 %)."
    )
    assert told(sentences.branches, *chunks(*rows, branches=timed)) == (
        "The costliest branches, by the time of reading columns: y (75 %) and x (25 %)."
    )


def test_skipped_chunks_and_results_from_checkpoints(told, chunks):
    rows = [("DY", "f.root", "w1", 1000, 4.0)]

    skipped = chunks(*rows, exception="E()")
    assert "1 attempt at chunks came to nothing, 1 of them skipped without a failure." in told(
        sentences.chunks, *skipped
    )
    assert told(sentences.how_it_went, *skipped).endswith("1 chunk was skipped.")
    loaded = chunks(*rows, from_checkpoint=True)
    assert told(sentences.chunks, *loaded).endswith(
        "The results of 1 chunk came from a checkpoint: their events are not known."
    )
    assert told(sentences.what_was_done, *loaded) == "1 chunk, in 4 s on 1 worker (1 thread)."


def test_workers_that_came_and_went(open_trace, worker, gone):
    gathered = data.gather(
        open_trace(
            worker("w1"),
            worker("w2", t=3.0),
            worker("w3", t=4.0),
            gone("w1", 5.0, "retire-workers-5.0"),
            gone("w2", 6.0, "handle-worker-cleanup-6.0"),
        )
    )

    assert sentences.comings_and_goings(gathered, 0.1) == (
        "Of these, 2 came after the start and 1 left as they were told to."
    )
    assert sentences.workers(gathered).endswith(f"1{NBSP}worker went away unexpectedly.")


def test_workers_that_stayed(open_trace, worker):
    assert sentences.comings_and_goings(data.gather(open_trace(worker("w1"))), 0.1) == ""


def test_the_worst_straggler_is_named(told, task, run):
    attempts = []
    for i in range(11):
        attempts += [task(f"a-{i}"), *run(f"a-{i}", 0.0, 4.0 if i == 7 else 1.0, run_id=i)]

    assert told(sentences.stragglers, *attempts) == (
        "1 attempt took at least twice as long as is usual for the prefix, 3 s more in all. "
        "The worst, a-7, took 4 s instead of 1 s, 4 times as long."
    )
    assert told(sentences.stragglers) == (
        "No attempt took twice as long as is usual for its prefix."
    )


def test_prefixes_that_consist_of_groups(told, task, run):
    one = [task("a-1", group="a"), *run("a-1", 0.0, 1.0)]

    assert told(sentences.task_groups, *one) == ""
    assert told(
        sentences.task_groups, *one, task("a-2", group="a-x"), *run("a-2", 0.0, 5.0)
    ) == (
        "Tasks of a prefix come in groups, the layers of the graphs: 2 of them. The costliest, "
        "a-x, computed for 5 s in 1 attempt."
    )


def test_tasks_that_came(told, task):
    assert told(sentences.submissions) == ""
    assert told(sentences.submissions, task("a-1")) == "1 task came in one batch."
    assert told(sentences.submissions, task("a-1"), task("a-2"), task("b-1", t=5.0)) == (
        "3 tasks came in 2 batches, such as graphs; the largest had 2."
    )


def test_tasks_that_were_stolen(told):
    def log(what):
        return {"kind": "event", "t": 1.0, "topic": "stealing", "payload": [what, "a-1"]}

    name = "distributed.scheduler.work-stealing"
    fact = {"section": "dask configuration", "name": name, "value": False}
    mine = {"kind": "event", "t": 1.0, "topic": "mine", "payload": 1}

    assert told(sentences.stealing) == ""
    assert told(sentences.stealing, mine) == "No task was stolen by an idle worker."
    assert told(
        sentences.stealing, log("confirm"), log("confirm"), log("already-computing")
    ) == ("2 tasks were stolen by idle workers from busy ones; 1 request came too late.")
    off = {"kind": "environment", "t": 0.0, **fact}
    assert told(sentences.stealing, off) == "Work stealing was off."


def test_what_is_known_of_movement_without_a_record(told, task, move):
    parts = [{"action": "transfer", "start": 1.0, "stop": 1.5, "source": "tcp://b:1"}]
    fetched = move(
        2.0, "a-1", "processing>memory", "task-finished-1", worker="tcp://a:1", startstops=parts
    )
    sent = move(0.5, "a-1", "waiting>processing", worker="tcp://a:1")

    assert told(sentences.movement, task("a-1"), sent, fetched) == (
        "Workers fetched results from each other 1 time, for 500 ms added up; the most between "
        "two of them, 500 ms, from b:1 to a:1. a waited for 100 % of it. How many bytes these "
        "were was not recorded."
    )
    assert told(sentences.movement).startswith("No worker had to fetch")


def test_what_moved_if_it_was_recorded(told):
    ends = {"source": "tcp://b:1", "destination": "tcp://a:1"}
    transfer = {
        "kind": "transfer",
        "t": 1.0,
        "start_t": 1.0,
        "stop_t": 1.5,
        "nbytes": 2048,
        **ends,
    }

    assert told(sentences.movement, transfer, transfer) == (
        "Workers sent each other 4 KiB in 2 transfers; the most, 4 KiB, went from b:1 to a:1."
    )


def test_versions_that_differ(told):
    def fact(section, version):
        about = {"section": f"{section} versions", "name": "numpy", "value": version}
        return {"kind": "environment", "t": 0.0, **about}

    assert told(sentences.versions_differ, fact("client", "2"), fact("scheduler", "2")) == ""
    assert told(sentences.versions_differ, fact("client", "2"), fact("scheduler", "1")) == (
        "Versions differ: numpy (client 2, scheduler 1)."
    )


def test_prefixes_that_have_no_box(open_trace, task):
    gathered = data.gather(open_trace(*(task(f"p{i}-1") for i in range(25))))

    assert sentences.durations_left_out(gathered, 25) == ""
    assert sentences.durations_left_out(gathered, 20) == (
        "The 20 prefixes that computed the most, of 25."
    )
