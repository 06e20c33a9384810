"""The pump: a batch is acknowledged only after it has been written."""

import asyncio

import pytest

from roast_recorder.scheduler.recording import pump

ENDED = {"batches": [], "ending": "it was stopped"}


def answer(*numbers, ending=""):
    # A comm converts tuples to lists.
    return {"batches": [[number, b"content"] for number in numbers], "ending": ending}


class MemoryWriter:
    """A writer that keeps the numbers of batches, or raises an error."""

    def __init__(self, error=None):
        self.written = []
        self.error = error

    def note_idle(self):
        pass

    async def write_batches(self, batches):
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        self.written += [number for number, _ in batches]


def pumped(answers, writer, received):
    """Pump these answers; return the ending. Acknowledgements are added to `received`."""
    remaining = iter(answers)

    async def pull(number):
        received.append(number)
        found = next(remaining)
        if isinstance(found, Exception):
            raise found
        return found

    return asyncio.run(pump(pull, writer))


@pytest.mark.parametrize(
    ("answers", "acknowledged", "written"),
    [
        ([ENDED], [0], []),
        ([answer(1, 2), answer(5, 9), ENDED], [0, 2, 9], [1, 2, 5, 9]),
        ([answer(1), answer(), answer(), answer(2), ENDED], [0, 1, 1, 1, 2], [1, 2]),
        ([answer(1), answer(2, 3, ending="it was stopped")], [0, 1], [1, 2, 3]),
    ],
)
def test_batches_are_acknowledged_when_they_are_written(answers, acknowledged, written):
    writer, received = MemoryWriter(), []

    assert pumped(answers, writer, received) == "it was stopped"
    assert (received, writer.written) == (acknowledged, written)


def test_an_error_of_the_writer_or_the_recorder_ends_the_pump():
    received, writer = [], MemoryWriter()
    with pytest.raises(OSError, match="disk"):
        pumped([answer(1), ENDED], MemoryWriter(OSError("disk")), received)
    with pytest.raises(OSError, match="gone"):
        pumped([answer(1), OSError("gone")], writer, [])

    assert received == [0], "the batch was acknowledged"
    assert writer.written == [1]
