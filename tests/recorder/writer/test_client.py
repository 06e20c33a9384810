"""The writer's client with real processes: they are killed, replaced, and outlive it."""

import asyncio
import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import time

import pytest

from roast_recorder.scheduler import wire_format
from roast_recorder.settings import Settings
from roast_recorder.writer import client
from roast_recorder.writer.client import MAX_TRIES, Writer

HEADER = {"kind": "header", "t": 0.0, "trace_id": "abc"}

#: Longer than any operation here takes on a busy machine.
TIMEOUT_SECONDS = 60.0


def batch(number, *payloads):
    """Return a batch of events with these payloads, or with its number."""
    rows = [
        ("event", float(number), 1, {"topic": "t", "payload": payload})
        for payload in payloads or [number]
    ]
    return number, wire_format.encode([], rows, None)


def kill(writer):
    os.kill(writer._process.pid, signal.SIGKILL)


@pytest.fixture(params=["trace.jsonl.zst", "folder"])
def target(request, tmp_path):
    return tmp_path / request.param


@pytest.fixture
def trace(tmp_path):
    return tmp_path / "trace.jsonl"


@pytest.fixture
def work():
    """Open a writer, await a function of it, and return the writer."""

    def run(target, do):
        async def main():
            writer = Writer(str(target), HEADER, Settings().as_dict())
            await writer.open()
            await do(writer)
            return writer

        return asyncio.run(main())

    return run


@pytest.fixture
def written(read_lines):
    """Read the payloads of a trace's events, and the kind of its last line."""

    def payloads(target):
        files = sorted(target.iterdir()) if target.is_dir() else [target]
        lines = [line for file in files for line in read_lines(file)]
        return [line["payload"] for line in lines if line["kind"] == "event"], lines[-1]["kind"]

    return payloads


# -- writing --------------------------------------------------------------------------------


def test_batches_are_in_the_trace_on_return(target, work, written, caplog):
    async def do(writer):
        await writer.write([{"kind": "environment", "t": 0.5, "section": "a", "name": "b"}])
        for number in (1, 2, 3):
            await writer.write_batches([batch(number)])
            assert writer.state.records_by_kind["event"] == number
            assert written(target) == (list(range(1, number + 1)), "event")
        await asyncio.gather(*(writer.write_batches([batch(number)]) for number in (4, 5, 6)))
        process = writer._process
        assert os.getsid(process.pid) == process.pid != os.getsid(0)
        await writer.finish(7.0, "end")
        assert process.returncode == 0

    writer = work(target, do)

    assert written(target) == ([1, 2, 3, 4, 5, 6], "trailer")
    assert writer.state.records_by_kind == {
        "header": 1,
        "environment": 1,
        "event": 6,
        "trailer": 1,
    }
    assert writer.state.dropped_by_kind == {}
    files = target.iterdir() if target.is_dir() else [target]
    assert writer.state.nbytes == sum(file.stat().st_size for file in files)
    assert not caplog.records


def test_a_cancelled_caller_does_not_lose_its_request(trace, work, written):
    async def do(writer):
        waiting = asyncio.create_task(writer.write_batches([batch(1, *range(5_000))]))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await writer.write_batches([batch(2, 5_000)])
        await writer.finish(3.0, "end")

    work(trace, do)

    assert written(trace) == (list(range(5_001)), "trailer")


def test_requests_at_interpreter_exit_wait_for_the_request_of_the_thread(
    trace, work, written, monkeypatch, caplog
):
    busy, most = [], []

    async def do(writer):
        exchange = writer._exchange

        def observe(*request):
            busy.append(request)
            most.append(len(busy))
            time.sleep(0.1)
            try:
                return exchange(*request)
            finally:
                busy.pop()

        monkeypatch.setattr(writer, "_exchange", observe)
        first = asyncio.create_task(writer.write_batches([batch(1)]))
        await asyncio.sleep(0.05)
        writer._thread.shutdown(wait=False)  # as at interpreter exit: it takes no more work
        await writer.write_batches([batch(2)])
        await first
        await writer.finish(3.0, "end")

    work(trace, do)

    assert max(most) == 1
    assert written(trace) == ([1, 2], "trailer")
    assert not caplog.records


def test_finishing_without_an_event_loop_and_after_the_end(trace, work, written):
    async def do(writer):
        """Write nothing."""

    writer = work(trace, do)
    writer.finish_now([batch(1)], 2.0, "end")
    writer.finish_now([batch(1), batch(2, 0, 0)], 3.0, "again")

    async def late():
        await writer.write_batches([(3, b"invalid")])
        await writer.write([{"kind": "environment", "t": 2.0}])
        await writer.finish(3.0, "again")
        await writer.abandon()

    asyncio.run(late())
    assert writer.state.dropped_by_kind == {"event": 2, "environment": 1, "batch": 1}
    assert written(trace) == ([1], "trailer")


def test_a_hanging_disk_does_not_hang_the_end(trace, work, monkeypatch, caplog):
    spawned, stopped = [], []

    async def do(writer):
        monkeypatch.setattr(client, "EXIT_TIMEOUT_SECONDS", 0.2)
        monkeypatch.setattr(client, "_spawn", lambda: spawned.append(1))
        stopped.append(writer._process)
        stopped[0].send_signal(signal.SIGSTOP)
        unanswered = asyncio.create_task(writer.write_batches([batch(1)]))
        await asyncio.sleep(0.05)
        writer.finish_now([batch(1), batch(2, 0, 0)], 2.0, "end")
        writer.log_end("end")
        await unanswered

    work(trace, do)

    assert stopped[0].wait(timeout=10) == -signal.SIGKILL
    assert spawned == []
    late, last = caplog.records
    assert "could not be finished in time" in late.message
    assert last.levelname == "WARNING"
    assert last.message.endswith("3 records were dropped; the recording did not end cleanly")


@pytest.fixture(params=["killed", "unkillable"])
def hang_at_start(request, monkeypatch):
    """Stop processes as soon as they start; return them. Some ignore that they are killed."""
    monkeypatch.setattr(client, "OPEN_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(client, "EXIT_TIMEOUT_SECONDS", 0.2)
    spawn, stopped = client._spawn, []

    def spawn_stopped():
        process, connection = spawn()
        process.send_signal(signal.SIGSTOP)
        if request.param == "unkillable":  # as if it waited for a disk
            monkeypatch.setattr(process, "kill", lambda: None)
        stopped.append(process)
        return process, connection

    monkeypatch.setattr(client, "_spawn", spawn_stopped)
    yield stopped
    for process in stopped:
        process.send_signal(signal.SIGKILL)


def test_a_hanging_disk_does_not_hang_the_start(trace, hang_at_start):
    writer = Writer(str(trace), HEADER, Settings().as_dict())

    with pytest.raises(OSError, match=r"trace.jsonl could not be opened within 0.2 s"):
        asyncio.run(writer.open())

    [thread] = writer._thread._threads
    thread.join(5)  # the exit of the interpreter waits for it
    assert not thread.is_alive()
    assert len(hang_at_start) == 1
    assert not trace.exists()


def test_warnings_are_logged_in_this_process(trace, work, caplog):
    async def do(writer):
        for _ in range(2):
            await writer.write([{"kind": "event", "t": 1.0, "topic": "t", "payload": 2**70}])
        await writer.finish(2.0, "end")

    work(trace, do)

    [record] = caplog.records
    assert (record.name, record.levelname) == ("roast_recorder", "WARNING")
    assert record.message.startswith("roast: a record of kind event cannot be encoded")


def test_an_invalid_target_is_refused(tmp_path):
    for name, error, message in [
        ("x.json", ValueError, "x.json"),
        ("no/x.jsonl", FileNotFoundError, "no' does not exist: create it"),
    ]:
        writer = Writer(str(tmp_path / name), HEADER, Settings().as_dict())

        with pytest.raises(error, match=message):
            asyncio.run(writer.open())

        asyncio.run(writer.finish(1.0, "end"))
        assert writer._process is None


def test_modules_in_the_working_folder_do_not_shadow_pythons(
    tmp_path, work, monkeypatch, written
):
    (tmp_path / "pickle.py").write_text("raise SystemExit('not the standard library')\n")
    monkeypatch.chdir(tmp_path)

    work("trace.jsonl", lambda writer: writer.finish(1.0, "end"))

    assert written(tmp_path / "trace.jsonl") == ([], "trailer")


# -- the process is killed ------------------------------------------------------------------


def test_another_process_continues(target, work, written, caplog):
    async def do(writer):
        for number in range(1, 7):
            await writer.write_batches([batch(number)])
            if number in (1, 2, 5):
                kill(writer)
        await writer.finish(7.0, "end")

    writer = work(target, do)

    assert written(target) == ([1, 2, 3, 4, 5, 6], "trailer")
    assert writer.state.records_by_kind == {"header": 1, "event": 6, "trailer": 1}
    assert writer.state.dropped_by_kind == {}
    assert [record.message for record in caplog.records] == [
        f"roast: the process that writes {target} died (exit code -9); another continues"
    ] * 3


@pytest.fixture
def lose_answers(monkeypatch):
    """Kill the process before its next answers arrive, except answers to ``open``."""
    exchange, left = Writer._exchange, []

    def exchange_or_kill(self, operation, *arguments):
        if operation == "open" or not left:
            return exchange(self, operation, *arguments)
        left.pop()
        self._connection.send((operation, arguments))
        error, _, _ = self._connection.recv()
        assert error is None
        kill(self)
        return False

    monkeypatch.setattr(Writer, "_exchange", exchange_or_kill)
    return lambda times: left.extend([None] * times)


def test_batches_written_but_not_answered_are_written_once(target, work, written, lose_answers):
    async def do(writer):
        await writer.write_batches([batch(1)])
        lose_answers(MAX_TRIES - 1)
        await writer.write_batches([batch(2), batch(3)])
        await writer.write_batches([batch(4)])
        lose_answers(1)
        await writer.finish(5.0, "end")

    writer = work(target, do)

    assert written(target) == ([1, 2, 3, 4], "trailer")
    assert writer.state.records_by_kind == {"header": 1, "event": 4, "trailer": 1}
    assert writer.state.dropped_by_kind == {}


def test_after_three_processes_the_trace_ends_and_records_are_dropped(
    trace, work, written, lose_answers, caplog
):
    async def do(writer):
        await writer.write_batches([batch(1)])
        lose_answers(MAX_TRIES)
        await writer.write_batches([batch(2, 0, 0)])
        last = writer._process
        await writer.write_batches([batch(4)])
        await writer.write([{"kind": "environment", "t": 5.0}])
        await writer.finish(6.0, "end")
        assert last.returncode == -signal.SIGKILL

    writer = work(trace, do)

    assert written(trace) == ([1], "event")
    assert writer.state.dropped_by_kind == {"event": 3, "environment": 1}
    [message] = [record.message for record in caplog.records if "ends here" in record.message]
    assert message == f"roast: {trace} ends here: it cannot be written; the run continues"


def test_a_trace_that_another_program_changed_is_not_continued(trace, work, caplog):
    async def do(writer):
        await writer.write_batches([batch(1)])
        kill(writer)
        trace.write_bytes(b"")
        await writer.write_batches([batch(2)])
        await writer.finish(3.0, "end")

    writer = work(trace, do)

    assert trace.read_bytes() == b""
    assert writer.state.dropped_by_kind == {"event": 1}
    assert "was changed by another program" in caplog.text


# -- the process outlives its client --------------------------------------------------------


def test_a_released_process_closes_the_trace(trace, work, written):
    writer = work(trace, lambda writer: writer.write_batches([batch(1), batch(2)]))
    process = writer._process

    writer.release()
    writer.release()
    asyncio.run(writer.write_batches([batch(3)]))
    asyncio.run(writer.finish(4.0, "end"))

    assert process.wait(TIMEOUT_SECONDS) == 0
    assert written(trace) == ([1, 2], "event")
    assert writer.state.dropped_by_kind == {"event": 1}


def test_signals_of_the_terminal_and_the_batch_job_are_ignored(trace, work, written, caplog):
    async def do(writer):
        for number, sent in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), 1):
            os.kill(writer._process.pid, sent)
            await writer.write_batches([batch(number)])
        await writer.finish(4.0, "end")

    work(trace, do)

    assert written(trace) == ([1, 2, 3], "trailer")
    assert not caplog.records


PARENT = """
import asyncio, os, sys, time
sys.path += {path!r}
from roast_recorder.settings import Settings
from roast_recorder.writer.client import Writer

async def run():
    writer = Writer({target!r}, {header!r}, Settings().as_dict())
    await writer.open()
    await writer.write_batches([(1, {content!r})])
    child = os.fork() if {forks} else None
    if child != 0:
        print(child or 0, flush=True)
    time.sleep(600)

asyncio.run(run())
"""


@pytest.mark.parametrize(
    ("name", "forks"), [("folder", False), ("trace.jsonl.zst", True)], ids=["alone", "forked"]
)
def test_a_killed_parent_leaves_a_readable_trace(tmp_path, written, name, forks):
    """A fork of the parent can survive it and keep the connection open."""
    target = tmp_path / name
    program = PARENT.format(
        path=sys.path, target=str(target), header=HEADER, content=batch(1)[1], forks=forks
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as parent:
        readable, _, _ = select.select([parent.stdout], [], [], TIMEOUT_SECONDS)
        child = int(parent.stdout.readline()) if readable else 0
        parent.kill()
        parent.wait()
        try:
            wait_until_unlocked(target / "000001.jsonl.zst" if target.is_dir() else target)
        finally:
            if child:
                os.kill(child, signal.SIGKILL)

    assert written(target) == ([1], "event")


def wait_until_unlocked(path):
    """Wait until the writing process has closed the file."""
    until = time.monotonic() + TIMEOUT_SECONDS
    with path.open("rb") as file:
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            time.sleep(0.02)
    raise TimeoutError(f"{path} is still being written")
