"""The pump: a batch is acknowledged only after it has been written."""

import asyncio
import shutil
import signal
from pathlib import Path
from time import monotonic

import pytest
from distributed import Scheduler

from roast_recorder.scheduler import health, recording
from roast_recorder.scheduler.recording import SILENT, SchedulerRecording, pump
from roast_recorder.settings import Settings
from roast_recorder.writer.condition import conditions

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


def recorded(directory: Path, check) -> None:
    """Call a coroutine function with the recording of a scheduler, in a folder of `directory`.

    The recording has no samples, so an idle scheduler has nothing to write.
    """

    async def run():
        settings = Settings(kinds=("task",), flush_interval_seconds=0.05)
        target = str(directory / "run")
        async with Scheduler(host="127.0.0.1", dashboard_address=":0", port=0) as scheduler:
            found = SchedulerRecording(scheduler, target, settings, retain_root=str(directory))
            await found.start()
            await check(found)

    directory.mkdir(exist_ok=True)
    asyncio.run(run())


async def until(directory: Path, *expected: tuple[str, str]) -> None:
    """Wait for the conditions in a folder."""
    stop = monotonic() + 20
    while (found := [(one.state, one.detail) for one in conditions(directory)]) != [*expected]:
        assert monotonic() < stop, found
        await asyncio.sleep(0.02)


@pytest.mark.cluster
def test_a_writing_process_that_does_not_answer_is_noted(tmp_path, monkeypatch):
    """It is known to have something to write: an idle scheduler's may be stopped."""
    monkeypatch.setattr(health, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(recording, "WATCH_SECONDS", 0.1)
    directory = tmp_path / "traces"

    async def check(found):
        await asyncio.sleep(0)  # the header is requested
        await found._writer.begin()
        # Nothing else is to be written.
        process = found._writer._process
        process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(1)
            await until(directory, ("recording", ""))
            found._recorder.record("client_added", client="a")
            await until(directory, ("failing", SILENT))
            assert found._health()["state"] == "failing"
        finally:
            process.send_signal(signal.SIGCONT)
        await until(directory, ("recording", ""))
        assert found._health()["state"] == "recording"

    recorded(directory, check)


@pytest.mark.cluster
def test_a_note_that_is_deleted_is_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "WATCH_SECONDS", 0.1)
    directory = tmp_path / "traces"

    async def check(found):
        for _ in range(2):
            shutil.rmtree(directory)
            found._recorder.record("client_added", client="a")
            await asyncio.sleep(0.3)
            directory.mkdir()
            await wait_for_note()

    async def wait_for_note():
        stop = monotonic() + 20
        while not (found := list(conditions(directory))):
            assert monotonic() < stop
            await asyncio.sleep(0.02)
        assert "removed or replaced" in found[0].detail
        assert found[0].state == "not recorded"

    recorded(directory, check)
