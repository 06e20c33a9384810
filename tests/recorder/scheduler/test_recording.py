"""The pump: a batch is acknowledged when it has been written, and not before."""

import asyncio

import pytest

from roast_recorder.scheduler import wire_format
from roast_recorder.scheduler.buffer import BATCHES_PER_PULL, Buffer
from roast_recorder.scheduler.recording import pump

ENDED = {"batches": [], "ending": "it was stopped"}


def answer(*numbers, ending=""):
    # A comm makes lists of tuples.
    return {"batches": [[number, b"content"] for number in numbers], "ending": ending}


class Recorder:
    """Returns these answers, one per pull, and keeps the acknowledgements."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.received = []

    async def pull(self, received):
        self.received.append(received)
        next_answer = self.answers.pop(0)
        if isinstance(next_answer, Exception):
            raise next_answer
        return next_answer


class MemoryWriter:
    def __init__(self, error=None):
        self.written = []
        self.error = error

    async def write_batches(self, batches):
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        self.written += batches


def test_batches_are_acknowledged_when_they_are_written():
    for answers, acknowledged, written in [
        ([ENDED], [0], []),
        ([answer(1, 2), answer(5, 9), ENDED], [0, 2, 9], [1, 2, 5, 9]),
        ([answer(1), answer(), answer(), answer(2), ENDED], [0, 1, 1, 1, 2], [1, 2]),
        ([answer(1), answer(2, 3, ending="it was stopped")], [0, 1], [1, 2, 3]),
    ]:
        recorder, writer = Recorder(*answers), MemoryWriter()

        ending = asyncio.run(pump(recorder.pull, writer))

        assert ending == "it was stopped"
        assert recorder.received == acknowledged
        assert writer.written == [(number, b"content") for number in written]


def test_an_error_of_the_writer_or_the_recorder_ends_the_pump():
    recorder = Recorder(answer(1), ENDED)
    with pytest.raises(OSError, match="disk"):
        asyncio.run(pump(recorder.pull, MemoryWriter(OSError("disk"))))
    assert recorder.received == [0], "nothing was acknowledged"

    recorder, writer = Recorder(answer(1), OSError("gone")), MemoryWriter()
    with pytest.raises(OSError, match="gone"):
        asyncio.run(pump(recorder.pull, writer))
    assert len(writer.written) == 1


def test_everything_in_a_buffer_arrives_once_although_answers_are_lost():
    buffer, writer, pulls = Buffer(10**8), MemoryWriter(), []
    total = BATCHES_PER_PULL + 4

    async def pull(received):
        number = len(pulls)
        pulls.append(received)
        if number < total:
            buffer.append((("span", "profile")[number % 2], float(number), 1, {}))
            buffer.seal()
            buffer.pull(received)  # this answer never arrives
        batches = buffer.pull(received)
        ended = number >= total and not batches and buffer.empty
        return {
            "batches": [[batch.number, batch.content] for batch in batches],
            "ending": "it was stopped" if ended else "",
        }

    asyncio.run(pump(pull, writer))

    found = [row[1] for _, content in writer.written for row in wire_format.decode(content)[1]]
    assert found == list(range(total))
