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
