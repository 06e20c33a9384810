"""The writing process's work, called in this process: requests in, answers and a trace out."""

import pytest

from roast_recorder.scheduler import recording, wire_format
from roast_recorder.settings import Settings
from roast_recorder.writer.process import serve

SECRET = "postgres://me:hunter2hunter2@db/x"


def event(number, payload=None):
    return ("event", float(number), 1, {"topic": "t", "payload": payload or number})


def batch(number, *rows, transitions=(), compressed=False):
    content = wire_format.encode(list(transitions), rows, None)
    return number, wire_format.compress(content) if compressed else content


def batches(*numbers):
    """Request that these batches be written, each of one event of its number."""
    return "write_batches", ([batch(number, event(number)) for number in numbers],)


def begin(target, *, resume=None, rescue=None, header=None, **settings):
    order = {
        "target": str(target),
        "header": {"kind": "header", "t": 0.0, "trace_id": "abc", **(header or {})},
        "settings": Settings(**settings).as_dict(),
        "retain_root": None,
        "rescue": rescue,
        "resume": resume,
    }
    return "open", (order,)


class Client:
    """A connection that delivers these requests, and closes."""

    def __init__(self, *requests, receives=1000):
        self.requests = list(requests)
        self.answers = []
        self.receives = receives

    def poll(self, _timeout):
        return True

    def recv(self):
        if not self.requests:
            raise EOFError
        return self.requests.pop(0)

    def send(self, answer):
        if len(self.answers) == self.receives:
            raise BrokenPipeError
        self.answers.append(answer)


def answers_to(*requests, **options):
    client = Client(*requests, **options)
    serve(client)
    return client.answers


@pytest.fixture
def trace(tmp_path):
    return tmp_path / "trace.jsonl"


@pytest.fixture
def written(trace, read_lines):
    """Read the payloads of the trace's events, and the kind of its last line."""

    def read():
        lines = read_lines(trace)
        return [line["payload"] for line in lines if line["kind"] == "event"], lines[-1]["kind"]

    return read


# -- requests and answers ---------------------------------------------------------------------


def test_a_trace_from_header_to_trailer(trace, read_lines):
    transition = [2.5, ("x", 1), "memory", "released", "s"]
    fact = {"kind": "environment", "t": 1.0, "section": "client", "name": "pid", "value": 7}

    answers = answers_to(
        begin(trace),
        ("write", ([fact],)),
        ("write_batches", ([batch(1, event(2), event(3), transitions=transition)],)),
        ("finish", (4.0, "recording was stopped")),
        batches(4),
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
    assert lines[-1]["reason"] == "recording was stopped"
    assert [error for error, _, _ in answers] == [None] * 4
    _, status, _ = answers[-1]
    assert sum(status["records_by_kind"].values()) == len(lines)
    assert status["nbytes"] == trace.stat().st_size
    assert (status["dropped_by_kind"], status["warnings"]) == ({}, [])


@pytest.mark.parametrize(
    "requested",
    [
        [[1, 2, 3]],
        [[1], [], [1], [2, 3]],
        [[1, 2], [1, 2, 3]],
        [[1, 2, 3], [1, 2], [3]],
        # The number of a batch that the buffer dropped is missing.
        [[1], [1, 3], [3]],
    ],
)
def test_a_batch_is_written_once(trace, written, requested):
    answers = answers_to(begin(trace), *(batches(*numbers) for numbers in requested))

    assert len(answers) == 1 + len(requested)
    assert written()[0] == sorted({number for numbers in requested for number in numbers})


def test_compressed_batches_and_empty_batches(trace, written):
    several = [batch(1, event(1)), batch(2), batch(3, event(3), compressed=True)]

    answers_to(begin(trace), ("write_batches", (several,)))

    assert written()[0] == [1, 3]


@pytest.mark.parametrize(
    "invalid",
    [event(2, 10**5_000), ("fine_metric", 2.0, 1, ("w", "id", {("seconds",): 1.0}))],
    ids=["int", "metric"],
)
def test_an_invalid_row_does_not_cost_the_others(trace, written, invalid):
    answers_to(begin(trace), ("write_batches", ([batch(1, event(1), invalid, event(3))],)))

    assert {1, 3} <= set(written()[0])


def test_a_dropped_record_is_counted_and_warned_about_once(trace, written):
    record = {"kind": "event", "t": 1.0, "topic": "t", "payload": 2**70}

    answers = answers_to(begin(trace), ("write", ([record],)), ("write", ([record],)))

    assert [len(status["warnings"]) for _, status, _ in answers] == [0, 1, 0]
    assert answers[-1][1]["dropped_by_kind"] == {"event": 2}
    assert written() == ([], "loss")


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("no/x.jsonl", FileNotFoundError, "No such file"),
        ("no/no/x", FileNotFoundError, "No such file"),
        ("a\0b.jsonl", ValueError, "null byte"),
    ],
)
def test_an_invalid_target_is_answered_with_the_error(tmp_path, name, error, text):
    [(answered, status, state)] = answers_to(begin(tmp_path / name), batches(1))

    assert (type(answered), status, state) == (error, None, None)
    assert text in str(answered)


def test_any_other_error_is_answered_as_an_oserror():
    [(error, _, _)] = answers_to(("open", ({"target": "trace.jsonl"},)))

    assert type(error) is OSError
    assert "TypeError" in str(error)


# -- the client is gone -----------------------------------------------------------------------


def test_without_any_request_there_is_no_trace(tmp_path):
    assert answers_to() == []
    assert len(answers_to(begin(tmp_path / "trace.jsonl"))) == 1
    assert answers_to(begin(tmp_path / "trace.jsonl"), receives=0) == []

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("end", "last"), [([("finish", (2.0, "end"))], "trailer"), ([], "event")]
)
def test_a_client_that_receives_no_answer(trace, written, end, last):
    answers_to(begin(trace), batches(1), *end, receives=1)

    assert written() == ([1], last)


@pytest.mark.parametrize(
    ("complete", "last"), [(True, "trailer"), (False, "event")], ids=["complete", "not"]
)
def test_the_remaining_batches_are_fetched(trace, written, monkeypatch, complete, last):
    calls = []

    def fetch_the_rest(writer, order):
        calls.append((order, writer.received))
        writer.write_batches([batch(1, event(1)), batch(2, event(2))])
        if complete:
            writer.finish(3.0, "the client has gone")
        return complete

    monkeypatch.setattr(recording, "fetch_rest", fetch_the_rest)
    answers_to(begin(trace, rescue={"address": "a"}), batches(1))

    assert calls == [({"address": "a"}, 1)]
    assert written() == ([1, 2], last)


# -- redaction --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected", "replaced"),
    [
        ({}, "postgres://<redacted>@db/x", 4),
        ({"redact": False}, SECRET, 0),
        ({"redact_patterns": ["db/x"]}, "postgres://<redacted>@<redacted>", 8),
    ],
    ids=["redact", "off", "patterns"],
)
def test_secrets_are_redacted(trace, read_lines, settings, expected, replaced):
    fact = {"kind": "environment", "t": 1.0, "section": "client", "name": "url"}
    reason = {"reason": SECRET, "record_kind": "event", "records": 1}
    loss = ("loss", 1.0, 1, {**reason, "start_t": 1.0, "stop_t": 1.0})
    answers_to(
        begin(trace, header={"scheduler": SECRET}, **settings),
        ("write", ([{**fact, "value": SECRET}],)),
        ("write_batches", ([batch(1, event(1, SECRET), loss)],)),
        ("finish", (2.0, "end")),
    )

    header, environment, lost, event_, trailer = read_lines(trace)
    redacted = [header["scheduler"], environment["value"], event_["payload"], lost["reason"]]
    assert redacted == [expected] * 4
    assert trailer["redacted_values"] == replaced


# -- resuming after a kill --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.zst", "folder"])
def test_another_process_resumes(tmp_path, read_lines, name):
    target = tmp_path / name
    options = {"segment_limit_bytes": 1, "header": {"scheduler": SECRET}}
    *_, (_, _, state), _ = answers_to(begin(target, **options), batches(1, 3), ("abandon", ()))

    answers_to(
        begin(target, resume=state, **options),
        batches(3, 4),
        ("finish", (6.0, "end")),
    )

    files = sorted(target.iterdir()) if target.is_dir() else [target]
    segments = [read_lines(path) for path in files]
    payloads = [line["payload"] for s in segments for line in s if line["kind"] == "event"]
    assert payloads == [1, 3, 4]
    assert [lines[-1]["kind"] for lines in segments] == ["trailer"] * len(segments)
    assert segments[-1][-1]["redacted_values"] == 1


def test_another_process_resumes_an_empty_trace(trace, written):
    (_, _, state), _ = answers_to(begin(trace), ("abandon", ()))

    answers_to(begin(trace, resume=state), batches(1))

    assert written() == ([1], "event")


def test_a_changed_trace_is_not_resumed(trace):
    *_, (_, _, state), _ = answers_to(begin(trace), batches(1), ("abandon", ()))
    trace.write_bytes(b"")

    [(error, _, _)] = answers_to(begin(trace, resume=state), ("abandon", ()))

    assert type(error) is ValueError
    assert "was changed by another program" in str(error)


def test_the_state_does_not_grow_with_the_trace(trace):
    answers = answers_to(begin(trace), *map(batches, range(1, 301)))

    assert len(answers[300][2]) <= len(answers[150][2]) + 100
    assert answers[300][1]["records_by_kind"] == {"header": 1, "event": 300}
