"""The pump: what is written is acknowledged, and nothing else."""

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
    """Gives these answers, one at a pull, and notes what it was told."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.received = []

    async def pull(self, received):
        self.received.append(received)
        said = self.answers.pop(0)
        if isinstance(said, Exception):
            raise said
        return said


class Memory:
    """A writer that keeps what it is given, unless it fails."""

    def __init__(self, error=None):
        self.written = []
        self.error = error

    async def write_batches(self, batches):
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        self.written += batches


@pytest.mark.parametrize(
    ("answers", "told", "written"),
    [
        ([ENDED], [0], []),
        ([answer(1), ENDED], [0, 1], [1]),
        ([answer(1, 2), answer(5, 9), ENDED], [0, 2, 9], [1, 2, 5, 9]),
        # Nothing new says nothing new.
        ([answer(1), answer(), answer(), answer(2), ENDED], [0, 1, 1, 1, 2], [1, 2]),
        ([answer(1), answer(2, 3, ending="it was stopped")], [0, 1], [1, 2, 3]),
    ],
)
def test_batches_are_acknowledged_when_they_are_written(answers, told, written):
    recorder, memory = Recorder(*answers), Memory()

    ending = asyncio.run(pump(recorder.pull, memory))

    assert ending == "it was stopped"
    assert recorder.received == told
    assert [number for number, _ in memory.written] == written
    assert all(type(batch) is tuple for batch in memory.written)


def test_an_error_of_the_writer_ends_it_and_nothing_is_acknowledged():
    recorder = Recorder(answer(1), ENDED)

    with pytest.raises(OSError, match="no more"):
        asyncio.run(pump(recorder.pull, Memory(OSError("no more"))))

    assert recorder.received == [0]


def test_an_error_of_the_recorder_ends_it():
    recorder, memory = Recorder(answer(1), OSError("gone")), Memory()

    with pytest.raises(OSError, match="gone"):
        asyncio.run(pump(recorder.pull, memory))

    assert len(memory.written) == 1


def test_from_a_buffer_everything_arrives_once_though_answers_are_lost():
    buffer, memory, pulls = Buffer(10**8), Memory(), []
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

    asyncio.run(pump(pull, memory))

    found = [row[1] for _, content in memory.written for row in wire_format.decode(content)[1]]
    assert found == list(range(total))
