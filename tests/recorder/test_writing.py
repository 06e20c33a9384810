"""The writing process's own work, done in this process: questions in, a trace out."""

import io
import os
import pickle
import threading

import pytest

from roast_recorder.scheduler import rescue
from roast_recorder.scheduler import wire_format as rows
from roast_recorder.settings import Settings
from roast_recorder.writer import pipes
from roast_recorder.writer.process import Writing, serve

SECRET = "postgres://me:hunter2hunter2@db/x"
CLEAN = "postgres://<redacted>@db/x"


def event(number, payload=None):
    return ("event", float(number), 1, {"topic": "t", "payload": payload or number})


def loss(reason, kind, records, start_t, stop_t):
    fields = {"reason": reason, "record_kind": kind, "records": records}
    return ("loss", 9.0, 1, {**fields, "start_t": start_t, "stop_t": stop_t})


def batch(number, *others, transitions=(), compressed=False):
    content = rows.encode(list(transitions), list(others), None)
    return number, rows.compress(content) if compressed else content


def order(target, progress=None, header=None, **settings):
    return {
        "target": str(target),
        "header": {"kind": "header", "t": 0.0, "trace_id": "abc", **(header or {})},
        "settings": Settings(**settings).as_dict(),
        "retain_root": None,
        "progress": progress,
    }


def begin(target, rescue=None, **options):
    return "begin", order(target, **options), rescue


def answers_to(*questions):
    """Serve these questions, after which nobody asks any more."""
    asked, answers = io.BytesIO(), io.BytesIO()
    for question in questions:
        pipes.send(asked, question)
    asked.seek(0)
    serve(asked, answers)
    answers.seek(0)
    return list(iter(lambda: pipes.receive(answers), None))


@pytest.fixture
def trace(tmp_path):
    return tmp_path / "trace.jsonl"


@pytest.fixture
def written(trace, read_lines):
    """Read what is in the trace: its events' payloads, and the last line's kind."""

    def read():
        lines = read_lines(trace)
        return [line["payload"] for line in lines if line["kind"] == "event"], lines[-1]["kind"]

    return read


# -- questions and answers ------------------------------------------------------------------


def test_a_trace_from_header_to_trailer(trace, read_lines):
    moved = [2.5, ("x", 1), "memory", "released", "s"]
    fact = {"kind": "environment", "t": 1.0, "section": "client", "name": "pid", "value": 7}

    answers = answers_to(
        begin(trace),
        ("records", [fact]),
        ("batches", [batch(1, event(2), event(3), transitions=moved)]),
        ("finish", 4.0, "it was stopped"),
    )

    lines = read_lines(trace)
    assert [(line["kind"], line["t"]) for line in lines] == [
        ("header", 0.0),
        ("environment", 1.0),
        ("event", 2.0),
        ("transition", 2.5),
        ("event", 3.0),
        ("trailer", 4.0),
    ]
    assert lines[-1]["reason"] == "it was stopped"
    assert [kind for kind, *_ in answers] == ["done"] * 4
    _, told, _ = answers[-1]
    assert sum(told["records_by_kind"].values()) == len(lines)
    assert told["nbytes"] == trace.stat().st_size
    assert (told["dropped_by_kind"], told["warnings"]) == ({}, [])


def test_an_answer_comes_when_it_is_written(trace, written):
    """Asked over real pipes, by somebody who waits."""
    (questions, asking), (answering, answers) = os.pipe(), os.pipe()
    with (
        os.fdopen(questions, "rb") as questions,
        os.fdopen(asking, "wb") as asking,
        os.fdopen(answering, "rb") as answering,
        os.fdopen(answers, "wb", buffering=0) as answers,
    ):
        serving = threading.Thread(target=serve, args=(questions, answers))
        serving.start()
        pipes.send(asking, begin(trace))
        pipes.receive(answering)
        for number in (1, 2, 3):
            pipes.send(asking, ("batches", [batch(number, event(number))]))
            pipes.receive(answering)
            assert written() == (list(range(1, number + 1)), "event")
        pipes.send(asking, ("abandon",))
        pipes.receive(answering)
        serving.join()

    assert written() == ([1, 2, 3], "event")


def test_compressed_batches_and_others(trace, written):
    answers_to(
        begin(trace),
        ("batches", [batch(1, event(1)), batch(2, event(2), compressed=True)]),
        ("finish", 3.0, "end"),
    )

    assert written() == ([1, 2], "trailer")


@pytest.mark.parametrize(
    "asked",
    [
        [[1, 2, 3]],
        [[1], [1], [2, 3]],
        [[1, 2], [1, 2, 3]],
        [[1, 2, 3], [1, 2], [3]],
        # Of a batch that the buffer has dropped the number is missing.
        [[1], [1, 3], [3]],
    ],
)
def test_a_batch_that_is_asked_for_again_is_written_once(trace, written, asked):
    answers_to(
        begin(trace),
        *(("batches", [batch(number, event(number)) for number in ns]) for ns in asked),
        ("finish", 4.0, "end"),
    )

    assert written() == (sorted({number for numbers in asked for number in numbers}), "trailer")


@pytest.mark.parametrize("nothing", [("batches", []), ("records", []), ("batches", [batch(1)])])
def test_nothing_to_write_is_answered_too(trace, written, nothing):
    answers = answers_to(begin(trace), nothing, ("batches", [batch(2, event(2))]))

    assert [kind for kind, *_ in answers] == ["done"] * 3
    assert written() == ([2], "event")


# -- how it ends ----------------------------------------------------------------------------


def test_nobody_has_asked_anything(trace):
    assert answers_to() == []
    assert not trace.exists()


def test_nobody_asks_any_more(trace, written):
    answers = answers_to(begin(trace), ("batches", [batch(1, event(1))]))

    assert len(answers) == 2
    assert written() == ([1], "event")


def test_somebody_goes_in_the_middle_of_a_question(trace, written):
    whole = io.BytesIO()
    for question in (begin(trace), ("batches", [batch(1, event(1))])):
        pipes.send(whole, question)
    nbytes = whole.tell()
    pipes.send(whole, ("batches", [batch(2, event(2))]))

    serve(io.BytesIO(whole.getvalue()[: nbytes + 20]), io.BytesIO())

    assert written() == ([1], "event")


def test_what_is_asked_after_the_end_is_not_heard(trace):
    answers = answers_to(
        begin(trace), ("abandon",), ("batches", [batch(1, event(1))]), ("finish", 1.0, "end")
    )

    assert len(answers) == 2
    assert not trace.exists(), "a trace of nothing is none"


class Deaf(io.BytesIO):
    """The answers to somebody who goes after so many of them."""

    def __init__(self, heard):
        super().__init__()
        self.left = heard

    def flush(self):
        self.left -= 1
        if self.left < 0:
            raise BrokenPipeError


@pytest.mark.parametrize(
    ("end", "last"), [([("finish", 2.0, "end")], "trailer"), ([], "event")], ids=["end", "none"]
)
def test_nobody_hears_the_answers(trace, written, end, last):
    asked = io.BytesIO()
    for question in (begin(trace), ("batches", [batch(1, event(1))]), *end):
        pipes.send(asked, question)
    asked.seek(0)

    serve(asked, Deaf(heard=1))

    assert written() == ([1], last)


def test_nobody_hears_even_the_first_answer(trace):
    asked = io.BytesIO()
    pipes.send(asked, begin(trace))
    asked.seek(0)

    serve(asked, Deaf(heard=0))

    assert not trace.exists()


@pytest.mark.parametrize(
    ("fetched", "last"), [(True, "trailer"), (False, "event")], ids=["fetched", "gone"]
)
def test_the_rest_is_fetched_when_nobody_asks_any_more(
    trace, written, monkeypatch, fetched, last
):
    heard = []

    def fetch_the_rest(writing, order):
        heard.append((order, writing.received))
        writing.write_batches([batch(1, event(1)), batch(2, event(2))])
        if fetched:
            writing.finish(3.0, "the client has gone")
        return fetched

    monkeypatch.setattr(rescue, "fetch_the_rest", fetch_the_rest)
    answers_to(begin(trace, rescue={"address": "a"}), ("batches", [batch(1, event(1))]))

    assert heard == [({"address": "a"}, 1)]
    assert written() == ([1, 2], last)


# -- targets that cannot be -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "settings", "kind", "text"),
    [
        (lambda path: path / "no" / "x.jsonl", {}, "OSError", "No such file"),
        (lambda path: path / "no" / "no" / "x", {}, "OSError", "No such file"),
        (lambda path: path, {"upload_url": "odd://x"}, "ValueError", "odd"),
        (lambda path: path / "a\0b.jsonl", {}, "ValueError", "null byte"),
    ],
)
def test_a_target_that_cannot_be(tmp_path, make, settings, kind, text):
    [(said, name, arguments)] = answers_to(begin(make(tmp_path), **settings), ("abandon",))

    assert (said, name) == ("refused", kind)
    assert text in str(arguments)


# -- losses ---------------------------------------------------------------------------------


def test_what_the_recorder_lost_is_counted_and_told(trace, read_lines):
    answers = answers_to(
        begin(trace),
        (
            "batches",
            [
                batch(1, event(1), loss("too much", "worker_sample", 7, 2.0, 5.0)),
                batch(2, loss("too much", "worker_sample", 3, 6.0, 8.0), event(9)),
                batch(3, loss("odd", "event", 1, 4.0, 4.0)),
            ],
        ),
        ("finish", 10.0, "end"),
    )

    lines = read_lines(trace)
    told = [line for line in lines if line["kind"] == "loss"]
    facts = ("reason", "record_kind", "records", "start_t", "stop_t")
    assert [tuple(line[fact] for fact in facts) for line in told] == [
        ("too much", "worker_sample", 7, 2.0, 5.0),
        ("too much", "worker_sample", 3, 6.0, 8.0),
        ("odd", "event", 1, 4.0, 4.0),
    ]
    dropped = {"worker_sample": 10, "event": 1}
    assert lines[-1]["dropped_by_kind"] == dropped
    assert answers[-1][1]["dropped_by_kind"] == dropped
    assert lines[-1]["records_by_kind"]["loss"] == 3
    assert lines[-1]["records_by_kind"]["event"] == 2


def test_a_record_that_cannot_be_written_is_counted_and_told_of_once(trace, written):
    odd = [{"kind": "event", "t": 1.0, "topic": "t", "payload": 2**70}]

    answers = answers_to(begin(trace), ("records", odd), ("records", odd), ("abandon",))

    _, second, third, last = [told for _, told, _ in answers]
    assert [len(told["warnings"]) for told in (second, third, last)] == [1, 0, 0]
    assert last["dropped_by_kind"] == {"event": 2}
    assert written() == ([], "loss")


@pytest.mark.parametrize(
    "odd",
    [event(2, 10**5_000), ("fine_metric", 2.0, 1, ("w", "id", {("seconds",): 1.0}))],
    ids=["int", "metric"],
)
def test_a_row_that_no_record_can_be_made_of_is_lost_alone(trace, written, odd):
    answers_to(begin(trace), ("batches", [batch(1, event(1), odd, event(3))]))

    payloads, _ = written()
    assert {1, 3} <= set(payloads)


# -- secrets --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "found", "replaced"),
    [({}, CLEAN, 3), ({"redact": False}, SECRET, 0), ({"redact_patterns": ["db/x"]}, None, 6)],
    ids=["redact", "as it is", "patterns"],
)
def test_secrets_stay_out_of_the_trace(trace, read_lines, settings, found, replaced):
    fact = {"kind": "environment", "t": 1.0, "section": "client", "name": "url"}
    answers_to(
        begin(trace, header={"scheduler": SECRET}, **settings),
        ("records", [{**fact, "value": SECRET}]),
        ("batches", [batch(1, event(1, SECRET))]),
        ("finish", 2.0, "end"),
    )

    header, environment, event_, trailer = read_lines(trace)
    seen = [header["scheduler"], environment["value"], event_["payload"]]
    assert seen == [found or "postgres://<redacted>@<redacted>"] * 3
    assert trailer["redacted_values"] == replaced


# -- going on where another was killed ------------------------------------------------------


def killed_after(target, *questions, **options):
    """What a process that is killed has said in its last answer; its file stays as it is."""
    writing = Writing(order(target, **options))
    _, progress = writing.answer()
    for operation, argument in questions:
        {"batches": writing.write_batches, "records": writing.write}[operation](argument)
        _, progress = writing.answer()
    writing.write_batches([batch(99, event(99))])  # of this nobody has heard
    writing.segments.abandon()
    return progress


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.zst"])
def test_another_goes_on(tmp_path, read_lines, ending):
    trace = tmp_path / f"trace{ending}"
    questions = [("records", []), ("batches", [batch(1, event(1)), batch(4, event(4))])]
    progress = killed_after(trace, *questions)

    answers_to(
        begin(trace, progress=progress),
        ("batches", [batch(4, event(4)), batch(5, event(5))]),
        ("finish", 6.0, "end"),
    )

    lines = read_lines(trace)
    assert [line["payload"] for line in lines if line["kind"] == "event"] == [1, 4, 5]
    assert lines[-1]["records_by_kind"] == {"header": 1, "event": 3}


def test_another_goes_on_with_a_folder(tmp_path, read_lines):
    progress = killed_after(
        tmp_path / "trace",
        *(("batches", [batch(n, event(n))]) for n in (1, 2, 3)),
        segment_limit_bytes=1,
    )

    answers_to(
        begin(tmp_path / "trace", progress=progress, segment_limit_bytes=1),
        ("batches", [batch(3, event(3))]),
        ("batches", [batch(4, event(4))]),
        ("finish", 6.0, "end"),
    )

    segments = [read_lines(path) for path in sorted((tmp_path / "trace").iterdir())]
    assert [
        line["payload"] for lines in segments for line in lines if line["kind"] == "event"
    ] == [1, 2, 3, 4]
    assert [lines[-1]["kind"] for lines in segments] == ["trailer"] * 4


def test_another_goes_on_before_anything_was_written(trace, written):
    writing = Writing(order(trace))
    _, progress = writing.answer()
    writing.segments.abandon()

    answers_to(begin(trace, progress=progress), ("batches", [batch(1, event(1))]))

    assert written() == ([1], "event")


def test_a_trace_that_was_changed_meanwhile_is_not_gone_on_with(trace):
    progress = killed_after(trace, ("batches", [batch(1, event(1))]))
    trace.write_bytes(b"")

    [(said, name, arguments)] = answers_to(begin(trace, progress=progress), ("abandon",))

    assert (said, name) == ("refused", "ValueError")
    assert "was changed meanwhile" in str(arguments)


@pytest.mark.parametrize("header", [{}, {"scheduler": SECRET}], ids=["header", "secret header"])
def test_the_count_of_secrets_goes_on(trace, read_lines, header):
    progress = killed_after(trace, ("batches", [batch(1, event(1, SECRET))]), header=header)

    answers_to(
        begin(trace, progress=progress, header=header),
        ("batches", [batch(2, event(2, SECRET))]),
        ("finish", 3.0, "end"),
    )

    assert read_lines(trace)[-1]["redacted_values"] == 2 + len(header)


def test_what_is_given_back_is_small(trace):
    """It comes with every answer, so it must not grow with the trace."""
    writing = Writing(order(trace))
    sizes = []
    for number in range(1, 301):
        writing.write_batches([batch(number, event(number))])
        told, progress = writing.answer()
        sizes.append(len(progress))
    writing.abandon()

    assert sizes[-1] <= sizes[150] + 100
    assert pickle.loads(progress)["received"] == 300
    assert told["records_by_kind"] == {"header": 1, "event": 300}
