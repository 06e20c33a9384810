"""The writer: a process of its own writes, is killed, is replaced, and outlives its parent."""

import asyncio
import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from roast_recorder.scheduler import wire_format as rows
from roast_recorder.settings import Settings
from roast_recorder.writer import client as writers
from roast_recorder.writer import pipes
from roast_recorder.writer.client import MAX_TRIES, Writer

HEADER = {"kind": "header", "t": 0.0, "trace_id": "abc"}

#: More than anything here takes, on a machine that is busy with other things.
PATIENCE_SECONDS = 60.0


def event(number, payload=None):
    return ("event", float(number), 1, {"topic": "t", "payload": payload or number})


def batch(number, *others):
    """A batch of one event of the same number, or of these rows."""
    return number, rows.encode([], list(others or [event(number)]), None)


def made(target, **settings):
    return Writer(str(target), HEADER, Settings(**settings).as_dict())


def pid_of(writer):
    return writer._process.pid


def kill(writer):
    os.kill(pid_of(writer), signal.SIGKILL)


def wait_until_closed(path):
    """Wait until no process has the file open: its lock is free."""
    until = time.monotonic() + PATIENCE_SECONDS
    with path.open("rb") as file:
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            time.sleep(0.02)
    raise TimeoutError(f"{path} is still being written")


@pytest.fixture(params=["trace.jsonl", "trace.jsonl.zst", "folder"])
def target(request, tmp_path):
    return tmp_path / request.param


@pytest.fixture
def trace(tmp_path):
    return tmp_path / "trace.jsonl"


@pytest.fixture
def read(read_lines):
    """Read a trace in one file or in segments."""

    def lines(target):
        files = sorted(target.iterdir()) if target.is_dir() else [target]
        return [line for file in files for line in read_lines(file)]

    return lines


@pytest.fixture
def written(read):
    """Read which events are in a trace, and the kind of its last line."""

    def payloads(target):
        lines = read(target)
        return [line["payload"] for line in lines if line["kind"] == "event"], lines[-1]["kind"]

    return payloads


# -- writing --------------------------------------------------------------------------------


def test_a_trace_from_header_to_trailer(target, read, caplog):
    writer = made(target)

    async def run():
        await writer.open()
        await writer.write([{"kind": "environment", "t": 0.5, "section": "a", "name": "b"}])
        await writer.write_batches([batch(1), batch(2)])
        await writer.write_batches([batch(2), batch(3)])
        await writer.finish(4.0, "it was stopped")

    asyncio.run(run())

    lines = read(target)
    assert [line["kind"] for line in lines] == [
        "header",
        "environment",
        *["event"] * 3,
        "trailer",
    ]
    assert writer.records_by_kind == {"header": 1, "environment": 1, "event": 3, "trailer": 1}
    assert writer.dropped_by_kind == {}
    files = target.iterdir() if target.is_dir() else [target]
    assert writer.nbytes == sum(file.stat().st_size for file in files)
    assert not caplog.records


def test_what_was_written_is_there_on_return(trace, written):
    async def run():
        writer = made(trace)
        await writer.open()
        for number in (1, 2, 3):
            await writer.write_batches([batch(number)])
            assert writer.records_by_kind["event"] == number
            assert written(trace) == (list(range(1, number + 1)), "event")
        await writer.abandon()

    asyncio.run(run())

    assert written(trace) == ([1, 2, 3], "event")


def test_questions_are_asked_in_the_order_in_which_they_came(trace, written):
    async def run():
        writer = made(trace)
        await writer.open()
        await asyncio.gather(*(writer.write_batches([batch(number)]) for number in range(1, 9)))
        await writer.finish(9.0, "end")

    asyncio.run(run())

    assert written(trace) == (list(range(1, 9)), "trailer")


def test_whoever_does_not_wait_for_the_answer_does_not_lose_it(trace, written):
    async def run():
        writer = made(trace)
        await writer.open()
        many = [event(number) for number in range(1, 20_001)]
        waiting = asyncio.create_task(writer.write_batches([batch(1, *many)]))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await writer.write_batches([batch(2, event(20_001))])
        await writer.finish(3.0, "end")
        assert writer.records_by_kind["event"] == 20_001

    asyncio.run(run())

    assert written(trace) == (list(range(1, 20_002)), "trailer")


def test_without_an_event_loop(trace, written):
    writer = made(trace)
    asyncio.run(writer.open())

    writer.do_now("batches", [batch(1)])
    writer.do_now("finish", 2.0, "end")
    writer.do_now("finish", 3.0, "again")
    writer.do_now("abandon")

    assert written(trace) == ([1], "trailer")


def test_what_comes_after_the_end_is_counted_as_dropped(trace, written):
    writer = made(trace)

    async def run():
        await writer.open()
        await writer.finish(1.0, "end")
        await writer.write_batches([batch(1, event(1), event(2))])
        await writer.write([{"kind": "environment", "t": 2.0}])
        await writer.finish(3.0, "again")

    asyncio.run(run())

    assert writer.dropped_by_kind == {"event": 2, "environment": 1}
    assert written(trace) == ([], "trailer")


@pytest.mark.parametrize(
    ("operation", "arguments"), [("batches", [[batch(1)]]), ("finish", [2.0, "end"])]
)
def test_a_disk_that_hangs_does_not_hang_the_last_step(
    trace, monkeypatch, operation, arguments
):
    monkeypatch.setattr(writers, "EXIT_TIMEOUT_SECONDS", 0.2)
    writer = made(trace)
    asyncio.run(writer.open())
    first, others = writer._process, []
    spawn = writers._spawn
    monkeypatch.setattr(writers, "_spawn", lambda: others.append(spawn()) or others[-1])
    first.send_signal(signal.SIGSTOP)

    writer.do_now(operation, *arguments)

    writer._thread.shutdown()
    for process in others:
        process.kill()
        process.wait()
    assert first.wait(timeout=10) == -signal.SIGKILL
    assert others == []


def test_the_end_is_the_end_of_the_process(trace):
    writer = made(trace)
    asyncio.run(writer.open())
    process = writer._process

    asyncio.run(writer.finish(1.0, "end"))

    assert process.returncode == 0


def test_a_warning_is_told_in_this_process(trace, caplog):
    async def run():
        writer = made(trace)
        await writer.open()
        await writer.write([{"kind": "event", "t": 1.0, "topic": "t", "payload": 2**70}])
        await writer.finish(2.0, "end")

    asyncio.run(run())

    [told] = caplog.records
    assert (told.name, told.levelname) == ("roast_recorder", "WARNING")
    assert told.message.startswith("roast: a event record cannot be encoded")


# -- targets that cannot be -----------------------------------------------------------------


def holds_a_trace(path):
    (path / "trace").mkdir()
    (path / "trace" / "000001.jsonl.zst").write_bytes(b"content")
    return path / "trace"


def is_below_a_file(path):
    (path / "file").write_text("content")
    return path / "file" / "x.jsonl"


@pytest.mark.parametrize(
    ("make", "settings", "error", "text"),
    [
        (lambda path: path / "no" / "x.jsonl", {}, FileNotFoundError, "No such file .*x.jsonl"),
        (is_below_a_file, {}, NotADirectoryError, "Not a directory"),
        (holds_a_trace, {}, ValueError, "already holds the segments of a trace"),
        (lambda path: path, {"upload_url": "odd://bucket"}, ValueError, "odd"),
    ],
    ids=["no folder", "below a file", "another trace", "no such storage"],
)
def test_a_target_that_cannot_be_is_refused(tmp_path, make, settings, error, text):
    writer = made(make(tmp_path), **settings)

    with pytest.raises(error, match=text):
        asyncio.run(writer.open())

    asyncio.run(writer.finish(1.0, "end"))


def test_a_file_that_another_recording_writes_is_refused(trace, written):
    async def run():
        first, second = made(trace), made(trace)
        await first.open()
        with pytest.raises(ValueError, match="is being recorded to"):
            await second.open()
        await first.write_batches([batch(1)])
        await first.finish(2.0, "end")

    asyncio.run(run())

    assert written(trace) == ([1], "trailer")


def test_storage_that_is_not_installed_is_an_import_error(tmp_path):
    pytest.importorskip("fsspec")
    with contextlib.suppress(ImportError):
        import adlfs  # noqa: F401

        pytest.skip("it is installed here")

    with pytest.raises(ImportError, match="adlfs"):
        asyncio.run(made(tmp_path, upload_url="abfs://container/traces").open())


def test_files_of_the_user_are_not_taken_for_pythons(tmp_path, monkeypatch, written):
    (tmp_path / "select.py").write_text("raise SystemExit('this is mine')\n")
    monkeypatch.chdir(tmp_path)
    writer = made("trace.jsonl")

    asyncio.run(writer.open())
    asyncio.run(writer.finish(1.0, "end"))

    assert written(tmp_path / "trace.jsonl") == ([], "trailer")


# -- the process is killed ------------------------------------------------------------------


def test_another_process_goes_on(target, read, written, caplog):
    writer = made(target)

    async def run():
        await writer.open()
        for number in range(1, 7):
            await writer.write_batches([batch(number)])
            if number in (1, 2, 5):
                kill(writer)
        await writer.finish(7.0, "end")

    asyncio.run(run())

    assert written(target) == ([1, 2, 3, 4, 5, 6], "trailer")
    assert read(target)[-1]["records_by_kind"] == {"header": 1, "event": 6}
    assert writer.records_by_kind == {"header": 1, "event": 6, "trailer": 1}
    assert writer.dropped_by_kind == {}
    assert [record.message for record in caplog.records] == [
        f"roast: the process that writes {target} has died (exit code -9); another goes on"
    ] * 3


def test_segments_that_were_finished_stay_whole(tmp_path, read_lines):
    writer = made(tmp_path / "trace", segment_limit_bytes=1)

    async def run():
        await writer.open()
        for number in range(1, 6):
            await writer.write_batches([batch(number)])
            kill(writer)
        await writer.finish(6.0, "end")

    asyncio.run(run())

    segments = [read_lines(path) for path in sorted((tmp_path / "trace").iterdir())]
    assert [[line.get("payload") for line in lines] for lines in segments] == [
        [None, number, None] for number in range(1, 6)
    ]


@pytest.fixture
def killing(monkeypatch):
    """Kill the process over its next answers, but for those to ``begin``: they are lost."""
    left, asked = [], []
    send, receive = pipes.send, pipes.receive

    def noting(stream, message):
        asked.append(message[0])
        send(stream, message)

    def losing(stream):
        answer = receive(stream)
        if not left or asked[-1] == "begin":
            return answer
        assert answer[0] == "done"
        kill(left.pop())
        return None

    monkeypatch.setattr(pipes, "send", noting)
    monkeypatch.setattr(pipes, "receive", losing)
    return lambda writer, times: left.extend([writer] * times)


def test_what_was_written_but_not_answered_is_there_once(target, written, killing):
    writer = made(target)

    async def run():
        await writer.open()
        await writer.write_batches([batch(1)])
        killing(writer, 1)
        await writer.write_batches([batch(2), batch(3)])
        await writer.write_batches([batch(4)])
        killing(writer, 1)
        await writer.finish(5.0, "end")

    asyncio.run(run())

    assert written(target) == ([1, 2, 3, 4], "trailer")
    assert writer.records_by_kind == {"header": 1, "event": 4, "trailer": 1}


def test_a_process_that_is_killed_in_the_middle_of_its_work(target, read):
    writer = made(target)
    batches = [
        batch(number, *(event(number * 3_000 + n) for n in range(3_000)))
        for number in range(1, 9)
    ]

    async def run():
        await writer.open()
        for first in (0, 4):
            asked = asyncio.create_task(writer.write_batches(batches[first : first + 4]))
            await asyncio.sleep(0.03)
            kill(writer)
            await asked
        await writer.finish(9.0, "end")

    asyncio.run(run())

    found = [line["payload"] for line in read(target) if line["kind"] == "event"]
    assert found == list(range(3_000, 27_000))


def test_a_process_that_is_killed_before_it_has_read_the_question(trace, written):
    writer = made(trace)

    async def run():
        await writer.open()
        await writer.write_batches([batch(1)])
        os.kill(pid_of(writer), signal.SIGSTOP)
        large = [event(number, "x" * 1_000) for number in range(1_000)]
        asked = asyncio.create_task(writer.write_batches([batch(2, *large)]))
        await asyncio.sleep(0.05)
        kill(writer)
        await asked
        await writer.finish(3.0, "end")

    asyncio.run(run())

    payloads, last = written(trace)
    assert payloads == [1, *["x" * 1_000] * 1_000]
    assert last == "trailer"


@pytest.mark.parametrize("deaths", range(1, MAX_TRIES))
def test_so_many_may_die_over_one_question(trace, written, killing, caplog, deaths):
    writer = made(trace)

    async def run():
        await writer.open()
        for number in (1, 2):
            killing(writer, deaths)
            await writer.write_batches([batch(number)])
        await writer.finish(3.0, "end")

    asyncio.run(run())

    assert written(trace) == ([1, 2], "trailer")
    assert writer.dropped_by_kind == {}
    assert len(caplog.records) == 2 * deaths


def given_up(writer, killing):
    """Write one batch, and have every process die over the second."""

    async def run():
        await writer.open()
        await writer.write_batches([batch(1)])
        killing(writer, MAX_TRIES)
        await writer.write_batches([batch(2, event(2), event(3))])

    asyncio.run(run())


def test_then_the_trace_is_given_up_and_the_rest_is_counted(trace, written, killing, caplog):
    writer = made(trace)

    given_up(writer, killing)
    asyncio.run(writer.write_batches([batch(4)]))
    asyncio.run(writer.write([{"kind": "environment", "t": 5.0}]))
    asyncio.run(writer.finish(6.0, "end"))

    assert written(trace) == ([1], "event")
    assert writer.dropped_by_kind == {"event": 3, "environment": 1}
    [told] = [record.message for record in caplog.records if "ends here" in record.message]
    assert told == f"roast: {trace} ends here: it could not be written on; the run goes on"


def test_of_a_trace_that_is_given_up_no_process_is_left(trace, killing):
    writer = made(trace)

    given_up(writer, killing)
    asyncio.run(writer.finish(6.0, "end"))

    assert writer._process is None or writer._process.poll() is not None


def test_a_trace_that_another_has_changed_is_given_up(trace, caplog):
    writer = made(trace)

    async def run():
        await writer.open()
        await writer.write_batches([batch(1)])
        kill(writer)
        trace.write_bytes(b"")
        await writer.write_batches([batch(2)])
        await writer.finish(3.0, "end")

    asyncio.run(run())

    assert trace.read_bytes() == b""
    assert writer.dropped_by_kind == {"event": 1}
    assert "was changed meanwhile" in caplog.text


# -- nobody asks any more -------------------------------------------------------------------


def test_a_writer_that_is_released_closes_the_trace(target, written):
    writer = made(target)
    asyncio.run(writer.open())
    asyncio.run(writer.write_batches([batch(1), batch(2)]))
    process = writer._process

    writer.release()

    assert process.wait(PATIENCE_SECONDS) == 0
    assert written(target) == ([1, 2], "event")


def test_after_a_release_nothing_more_is_written(trace, written):
    writer = made(trace)
    asyncio.run(writer.open())
    asyncio.run(writer.write_batches([batch(1)]))
    process = writer._process

    writer.release()
    writer.release()
    asyncio.run(writer.write_batches([batch(2)]))
    asyncio.run(writer.finish(3.0, "end"))

    process.wait(PATIENCE_SECONDS)
    assert written(trace) == ([1], "event")
    assert writer.dropped_by_kind == {"event": 1}


PARENT = """
import asyncio, os, sys, time
sys.path += {path!r}
from roast_recorder.scheduler import wire_format as rows
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


@pytest.mark.parametrize("forks", [False, True], ids=["alone", "forked"])
def test_a_parent_that_is_killed_leaves_a_readable_trace(target, written, forks):
    """A fork of it may live on and hold the pipe open."""
    program = PARENT.format(
        path=sys.path, target=str(target), header=HEADER, content=batch(1)[2], forks=forks
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    )
    try:
        readable, _, _ = select.select([parent.stdout], [], [], PATIENCE_SECONDS)
        assert readable
        child = int(parent.stdout.readline())
    finally:
        parent.kill()
        parent.wait()
    try:
        wait_until_closed(target / "000001.jsonl.zst" if target.is_dir() else target)
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
        parent.stdout.close()

    assert written(target) == ([1], "event")


def test_signals_for_the_terminal_and_the_job_are_ignored(trace, written, caplog):
    writer = made(trace)

    async def run():
        await writer.open()
        for number, sent in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), 1):
            os.kill(pid_of(writer), sent)
            await writer.write_batches([batch(number)])
        await writer.finish(4.0, "end")

    asyncio.run(run())

    assert written(trace) == ([1, 2, 3], "trailer")
    assert not caplog.records


def test_it_is_in_a_session_of_its_own(trace):
    writer = made(trace)
    asyncio.run(writer.open())

    assert os.getsid(pid_of(writer)) == pid_of(writer) != os.getsid(0)

    asyncio.run(writer.abandon())
    assert not Path(trace).exists()
