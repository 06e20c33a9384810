"""The code of the writing process, called in this process, and the loss of its client."""

import pytest

from roast_recorder.scheduler import recording, wire_format
from roast_recorder.settings import Settings
from roast_recorder.writer.process import serve


def batch(number):
    """Return a batch of one event, whose payload is the number."""
    row = "event", float(number), 1, {"topic": "t", "payload": number}
    return number, wire_format.encode([], [row], None)


def begin(target, **order):
    header = {"kind": "header", "t": 0.0, "trace_id": "abc"}
    order = {"header": header, "settings": Settings().as_dict(), **order}
    return "open", ({"target": str(target), **order},)


class Connection:
    """A connection that delivers these requests, accepts some answers, and closes."""

    def __init__(self, requests, receives):
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


def answers_to(*requests, receives=1000):
    connection = Connection(requests, receives)
    serve(connection)
    return connection.answers


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


def test_an_error_is_answered_as_one_that_the_client_can_raise(tmp_path):
    for order, error_type in [
        (begin(tmp_path / "no" / "trace.jsonl"), FileNotFoundError),
        (begin(tmp_path / "a\0b.jsonl"), ValueError),
        (("open", ({"target": "trace.jsonl"},)), OSError),  # a TypeError
    ]:
        [(error, _, _)] = answers_to(order)
        assert type(error) is error_type


def test_without_a_batch_there_is_no_trace(trace, tmp_path):
    assert answers_to() == []
    assert len(answers_to(begin(trace))) == 1
    assert answers_to(begin(trace), receives=0) == []

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("end", "last"), [([("finish", (2.0, "end"))], "trailer"), ([], "event")]
)
def test_a_client_that_receives_no_answer(trace, written, end, last):
    answers_to(begin(trace), ("write_batches", ([batch(1)],)), *end, receives=1)

    assert written() == ([1], last)


@pytest.mark.parametrize(
    ("complete", "last"), [(True, "trailer"), (False, "event")], ids=["complete", "not"]
)
def test_the_remaining_batches_are_fetched(trace, written, monkeypatch, complete, last):
    calls = []

    def fetch_rest(writer, order):
        calls.append((order, writer.state.received))
        writer.write_batches([batch(1), batch(2)])
        if complete:
            writer.finish(3.0, "the client disconnected")
        return complete

    monkeypatch.setattr(recording, "fetch_rest", fetch_rest)
    answers_to(begin(trace, rescue={"address": "a"}), ("write_batches", ([batch(1)],)))

    assert calls == [({"address": "a"}, 1)]
    assert written() == ([1, 2], last)
