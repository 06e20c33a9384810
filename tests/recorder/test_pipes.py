"""Messages between two processes arrive whole, or the other end has gone."""

import io
import os
import threading

import pytest

from roast_recorder.writer import pipes

MESSAGES = [
    (),
    ("done",),
    ("batches", [(1, False, b"\x00\xff"), (2, True, b"")]),
    ("records", [{"kind": "event", "t": 1.5, "payload": {("x", 1): {1, 2}, None: "\ud800"}}]),
    ("done", {"nbytes": 2**70}, None, True, (1, (2,))),
]


def sent(*messages):
    stream = io.BytesIO()
    for message in messages:
        pipes.send(stream, message)
    return stream.getvalue()


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_arrives_as_it_was_sent(message):
    assert pipes.receive(io.BytesIO(sent(message))) == message


def test_messages_arrive_one_by_one_and_then_none():
    stream = io.BytesIO(sent(*MESSAGES))

    assert [pipes.receive(stream) for _ in MESSAGES] == MESSAGES
    assert pipes.receive(stream) is None


def test_whoever_goes_in_the_middle_of_a_message_has_said_nothing():
    content = sent(("batches", [(1, False, b"content")]))

    for nbytes in range(len(content)):
        assert pipes.receive(io.BytesIO(content[:nbytes])) is None


def test_a_message_larger_than_a_pipe():
    message = ("batches", [(1, False, os.urandom(2**20))])
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as answers, os.fdopen(writing, "wb") as questions:
        sender = threading.Thread(target=pipes.send, args=(questions, message))
        sender.start()

        assert pipes.receive(answers) == message
        sender.join()


@pytest.mark.parametrize("buffering", [0, -1], ids=["raw", "buffered"])
def test_nobody_reads_any_more(buffering):
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "wb", buffering=buffering)

    with pytest.raises(BrokenPipeError):
        pipes.send(stream, ("done",))

    with pytest.raises(BrokenPipeError):
        pipes.send(stream, ("done",))


class Short(io.RawIOBase):
    """A raw file that takes a few bytes at a time, as one may that is interrupted."""

    def __init__(self):
        self.content = b""

    def writable(self):
        return True

    def write(self, data):
        self.content += bytes(data[:10])
        return len(data[:10])


def test_a_raw_file_that_takes_less_than_all_is_given_the_rest():
    stream = Short()

    pipes.send(stream, ("a message", "of more than ten bytes"))

    assert pipes.receive(io.BytesIO(stream.content)) == ("a message", "of more than ten bytes")
