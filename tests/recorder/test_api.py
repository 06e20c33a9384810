"""The ways to start and end a recording, and what it must not do to a run."""

import asyncio
import logging
import stat
import time

import dask.array as da
import pytest
from distributed import Client, LocalCluster

import roast_recorder
from roast_recorder import client_recording

pytestmark = pytest.mark.cluster


def kinds(lines):
    return [line["kind"] for line in lines]


def leftovers(dask_scheduler):
    """What a scheduler still has of recorders."""
    wrapped = [
        name
        for handlers in (dask_scheduler.handlers, dask_scheduler.stream_handlers)
        for name, handler in handlers.items()
        if hasattr(handler, "roast_listeners")
    ]
    return (
        [name for name in dask_scheduler.plugins if "roast" in str(name)]
        + [name for name in dask_scheduler.handlers if "roast" in str(name)]
        + wrapped
    )


def test_a_context_manager_records_from_header_to_trailer(client, tmp_path, read_lines):
    for name in ("trace.jsonl", "trace.jsonl.zst"):
        trace = tmp_path / name
        trace.write_text("an older one")
        trace.chmod(0o644)

        with roast_recorder.record(client, trace):
            assert da.ones((100, 100), chunks=50).sum().compute() == 10_000
            client.log_event("my topic", {"cut": 30, "text": "<b>"})

        lines = read_lines(trace)
        assert kinds(lines)[0] == "header"
        assert kinds(lines)[-1] == "trailer"
        assert {"environment", "worker_added", "worker_sample", "task", "transition"} <= set(
            kinds(lines)
        )
        [event] = [line for line in lines if line.get("topic") == "my topic"]
        assert event["payload"] == {"cut": 30, "text": "<b>"}
        assert stat.S_IMODE(trace.stat().st_mode) == 0o600, "others must not read it"
        assert client.run_on_scheduler(leftovers) == []


def test_start_and_stop(client, tmp_path, read_lines):
    trace = tmp_path / "trace.jsonl"
    recording = roast_recorder.record(client, trace, flush_interval_seconds=0.1)

    recording.start()
    client.submit(sum, [1, 2], key="early").result()
    until = time.monotonic() + 10
    while "early" not in trace.read_text():
        assert time.monotonic() < until, "nothing was written during the run"
        time.sleep(0.05)
    recording.stop()
    recording.stop()

    lines = read_lines(trace)
    assert kinds(lines).count("trailer") == 1
    assert recording.records_by_kind.total() == len(lines)


def test_an_asynchronous_client(cluster, tmp_path, read_lines):
    async def run():
        async with Client(cluster.scheduler_address, asynchronous=True) as client:
            async with roast_recorder.record(client, tmp_path / "with.jsonl"):
                await client.submit(sum, [1, 2])
            recording = await roast_recorder.record(client, tmp_path / "start.jsonl").start()
            await client.submit(sum, [1, 2, 3])
            await recording.stop()
            with pytest.raises(TypeError, match="async with"):
                roast_recorder.record(client, tmp_path / "wrong.jsonl").__enter__()

    asyncio.run(run())

    for name in ("with.jsonl", "start.jsonl"):
        lines = read_lines(tmp_path / name)
        assert kinds(lines)[-1] == "trailer"
        assert "memory" in {line.get("finish") for line in lines}


def test_the_trace_of_a_remote_scheduler_is_written_by_the_client(
    scheduler_process, tmp_path, read_lines, monkeypatch
):
    _, address = scheduler_process
    monkeypatch.chdir(tmp_path)

    with Client(address) as client, roast_recorder.record(client, "here.jsonl"):
        client.wait_for_workers(2, timeout=60)
        assert client.gather(client.map(abs, range(-50, 0))) == list(range(50, 0, -1))

    lines = read_lines(tmp_path / "here.jsonl")
    finished = [line for line in lines if line.get("finish") == "memory"]
    assert len(finished) == 50
    assert kinds(lines).count("worker_added") == 2
    assert kinds(lines)[-1] == "trailer"


def test_two_recorders_do_not_disturb_each_other(client, tmp_path, read_lines):
    with roast_recorder.record(client, tmp_path / "outer.jsonl"):
        inner = roast_recorder.record(client, tmp_path / "inner.jsonl")
        inner.start()
        client.submit(divmod, 7, 0, retries=1, key="fails").exception()
        inner.stop()
        client.submit(divmod, 8, 0, retries=1, key="fails-later").exception()

    def transitions(name):
        return [
            (line["key"], line["start"], line["finish"], line.get("exception"))
            for line in read_lines(tmp_path / name)
            if line["kind"] == "transition"
        ]

    outer = transitions("outer.jsonl")
    of_inner = transitions("inner.jsonl")
    assert len(of_inner) > 5
    assert [row for row in outer if row in of_inner][: len(of_inner)] == of_inner
    assert {row[3] for row in outer if row[0] == "fails-later"} > {None}
    assert client.run_on_scheduler(leftovers) == []


def test_the_users_exception_reaches_the_user(client, tmp_path, read_lines):
    def fail():
        raise ValueError("mine")

    with (
        pytest.raises(ValueError, match="mine"),
        roast_recorder.record(client, tmp_path / "trace.jsonl"),
    ):
        client.submit(fail).result()

    lines = read_lines(tmp_path / "trace.jsonl")
    assert kinds(lines)[-1] == "trailer"
    assert [line["exception"] for line in lines if line.get("finish") == "erred"] == [
        "ValueError('mine')"
    ]


def test_another_type_than_client_is_refused_and_keeps_the_older_trace(cluster, tmp_path):
    (tmp_path / "trace.jsonl").write_text("an older one")
    for client in (cluster, cluster.scheduler_address, 8786):
        with pytest.raises(TypeError, match=r"takes a distributed\.Client, not a"):
            roast_recorder.record(client, tmp_path / "trace.jsonl")

    assert (tmp_path / "trace.jsonl").read_text() == "an older one"


def test_a_closed_client_is_refused_and_keeps_the_older_trace(cluster, tmp_path):
    (tmp_path / "older.jsonl").write_text("an older one")
    client = Client(cluster)
    client.close()

    for name in ("older.jsonl", "new.jsonl"):
        with pytest.raises((OSError, RuntimeError)):
            roast_recorder.record(client, tmp_path / name).start()

    assert (tmp_path / "older.jsonl").read_text() == "an older one"
    assert not (tmp_path / "new.jsonl").exists()


def test_two_recordings_into_one_file_are_refused(client, tmp_path, read_lines):
    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        with pytest.raises(ValueError, match="is being recorded to"):
            roast_recorder.record(client, tmp_path / "trace.jsonl").start()
        client.submit(sum, [1, 2]).result()

    assert kinds(read_lines(tmp_path / "trace.jsonl"))[-1] == "trailer"


def test_async_with_needs_an_asynchronous_client(client, tmp_path):
    async def run():
        async with roast_recorder.record(client, tmp_path / "trace.jsonl"):
            pass

    with pytest.raises(TypeError, match="use 'with'"):
        asyncio.run(run())


def test_a_client_closed_in_the_block_ends_the_trace_in_order(
    cluster, tmp_path, read_lines, caplog
):
    with (
        caplog.at_level(logging.WARNING, "roast_recorder"),
        Client(cluster) as client,
        roast_recorder.record(client, tmp_path / "trace.jsonl", flush_interval_seconds=0.05),
    ):
        client.submit(sum, [1, 2], key="before").result()
        client.close()

    assert caplog.text == ""
    lines = read_lines(tmp_path / "trace.jsonl")
    assert "before" in {line.get("key") for line in lines}
    assert kinds(lines)[-1] == "trailer"


def test_a_killed_scheduler_is_logged_and_stopping_does_not_wait(
    scheduler_process, tmp_path, read_lines, caplog, monkeypatch
):
    monkeypatch.setattr(client_recording, "RECONNECT_SECONDS", 2.0)
    scheduler, address = scheduler_process
    with caplog.at_level(logging.WARNING, "roast_recorder"):
        client = Client(address)
        recording = roast_recorder.record(
            client, tmp_path / "trace.jsonl", flush_interval_seconds=0.05
        )
        recording.start()
        client.submit(sum, [1, 2], key="before").result(timeout=60)
        time.sleep(0.5)
        scheduler.kill()
        until = time.monotonic() + 30
        while "ends here" not in caplog.text:
            assert time.monotonic() < until, "nothing was logged"
            time.sleep(0.05)
        recording.stop()
        client.close(timeout=1)

    lines = read_lines(tmp_path / "trace.jsonl")
    assert "before" in {line.get("key") for line in lines}
    assert kinds(lines)[-1] != "trailer"


@pytest.mark.parametrize(("limit_bytes", "dropped"), [(2**20, False), (5_000, True)])
def test_a_burst_is_complete_or_counted(client, tmp_path, read_lines, limit_bytes, dropped):
    with roast_recorder.record(
        client, tmp_path / "trace.jsonl", buffer_limit_bytes=limit_bytes
    ):
        client.gather(client.map(abs, range(2_000), pure=False))

    *lines, trailer = read_lines(tmp_path / "trace.jsonl")
    lost = {line["record_kind"]: line["records"] for line in lines if line["kind"] == "loss"}
    lost_tasks = trailer["dropped_by_kind"].get("task", 0)
    assert bool(lost_tasks) == dropped
    assert kinds(lines).count("task") + lost_tasks == 2_000
    assert set(lost) == set(trailer["dropped_by_kind"])


def test_a_recording_that_fails_to_start_leaves_nothing_behind(client, tmp_path, monkeypatch):
    def fail(*_):
        raise ValueError("no header today")

    monkeypatch.setattr(client_recording, "header", fail)

    with pytest.raises(ValueError, match="no header"):
        roast_recorder.record(client, tmp_path / "trace.jsonl").start()

    assert client.run_on_scheduler(leftovers) == []


def test_a_cluster_closed_first_ends_the_trace_in_order(tmp_path, read_lines):
    with (
        LocalCluster(n_workers=1, dashboard_address="127.0.0.1:0") as own,
        Client(own) as client,
        roast_recorder.record(client, tmp_path / "trace.jsonl"),
    ):
        client.submit(sum, [1, 2]).result()
        own.close()

    trailer = read_lines(tmp_path / "trace.jsonl")[-1]
    assert (trailer["kind"], trailer["reason"]) == ("trailer", "the scheduler closed")


def test_a_target_that_is_no_trace_is_refused_before_the_run(client, tmp_path):
    for name, error in (
        ("nowhere/trace.jsonl", FileNotFoundError),
        ("trace.json", ValueError),
        ("trace", ValueError),
    ):
        if error is ValueError:
            (tmp_path / name).write_text("precious")
        with pytest.raises(error, match=name):
            roast_recorder.record(client, tmp_path / name).start()
        assert error is not ValueError or (tmp_path / name).read_text() == "precious"
        assert client.run_on_scheduler(leftovers) == []


def test_a_disk_that_fills_does_not_stop_the_run(client, tmp_path, caplog):
    (tmp_path / "full.jsonl").symlink_to("/dev/full")

    with (
        caplog.at_level(logging.WARNING, "roast_recorder"),
        roast_recorder.record(client, tmp_path / "full.jsonl") as recording,
    ):
        assert client.gather(client.map(abs, range(-9, 0))) == list(range(9, 0, -1))

    assert recording.dropped_by_kind["transition"] >= 9 * 4
    assert recording.records_by_kind.total() == 0
    assert caplog.text.count("cannot be written") == 1
