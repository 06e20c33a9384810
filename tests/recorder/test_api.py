"""Starting and ending a recording, and its effects on the run."""

import asyncio
import gc
import logging
import re
import stat
import threading
import time

import dask
import dask.array as da
import pytest
from distributed import Client, Scheduler

import roast_recorder
from roast_recorder import client_recording, preload
from roast_recorder import settings as settings_module

pytestmark = pytest.mark.cluster


def kinds(lines):
    return [line["kind"] for line in lines]


def wait_until(condition, what, seconds=30):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.05)


def leftovers(dask_scheduler):
    """Return the plugins and handlers of recorders that are left on a scheduler."""
    handlers = {**dask_scheduler.handlers, **dask_scheduler.stream_handlers}
    return [
        *(name for name in (*dask_scheduler.plugins, *handlers) if "roast" in str(name)),
        *(name for name, handler in handlers.items() if hasattr(handler, "roast_listeners")),
        *(name for name in dask_scheduler.worker_plugins if "roast" in name),
    ]


# -- environments --------------------------------------------------------------------------


def test_another_version_of_python_records_with_its_own_recorder(
    client, trace, read_lines, monkeypatch
):
    """Bytecode of this version must not reach the scheduler or the workers."""
    monkeypatch.setattr("platform.python_version", lambda: "3.99.0")
    monkeypatch.setattr("cloudpickle.register_pickle_by_value", pytest.fail)

    with roast_recorder.record(client, trace):
        client.submit(abs, -1).result()

    lines = read_lines(trace)
    described = {line.get("worker") for line in lines if line["kind"] == "environment"}
    assert set(client.scheduler_info()["workers"]) <= described


def test_a_scheduler_of_this_process_that_did_not_start(client, trace, read_lines):
    async def create():
        return Scheduler(dashboard=False)

    failed = asyncio.run(create())
    with roast_recorder.record(client, trace):
        client.submit(abs, -1).result()

    assert failed.status.name == "init"
    assert kinds(read_lines(trace))[-1] == "trailer"


# -- ways to record -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.zst"])
def test_a_context_manager_records_from_header_to_trailer(
    client, tmp_path, monkeypatch, read_lines, name
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("an older one")
    (tmp_path / name).chmod(0o644)

    with roast_recorder.record(client, name):
        assert da.ones((100, 100), chunks=50).sum().compute() == 10_000
        client.log_event("my topic", {"cut": 30, "text": "<b>"})

    lines = read_lines(tmp_path / name)
    assert (kinds(lines)[0], kinds(lines)[-1]) == ("header", "trailer")
    assert lines[0]["scheduler"] == client.scheduler.address
    assert lines[0]["versions"].keys() == {"dask", "distributed", "python", "roast-trace"}
    expected = {"environment", "worker_added", "worker_sample", "task", "transition"}
    assert expected <= set(kinds(lines))
    [event] = [line for line in lines if line.get("topic") == "my topic"]
    assert event["payload"] == {"cut": 30, "text": "<b>"}
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, "readable by others"
    assert client.run_on_scheduler(leftovers) == []


def test_only_the_kinds_in_the_settings_are_recorded(client, trace, by_kind):
    with roast_recorder.record(client, trace, kinds=["task"]):
        da.ones((100, 100), chunks=50).sum().compute()
        client.run_on_scheduler(lambda: time.sleep(0.3))

    expected = {"header", "worker_added", "client_added", "task", "trailer"}
    assert by_kind(trace).keys() == expected


def test_a_trace_without_a_path_is_a_new_file_and_its_end_is_reported(
    client, tmp_path, monkeypatch, capfd, read_lines
):
    monkeypatch.chdir(tmp_path)
    for recorded in (client, None):  # a cluster, and this process
        with roast_recorder.record(recorded) as recording:
            assert "roast-analyze" not in capfd.readouterr().err
        command = f"roast: recorded; open the trace with: roast-analyze {recording.path} --open"
        assert capfd.readouterr().err.splitlines()[-1] == command

    traces = list(tmp_path.iterdir())
    assert len(traces) == 2
    for trace in traces:
        assert re.fullmatch(r"roast-\d{8}-\d{6}-[0-9a-f]{6}\.jsonl\.zst", trace.name)
        assert kinds(read_lines(trace))[-1] == "trailer"


def test_start_and_stop(client, trace, read_lines):
    recording = roast_recorder.record(client, trace, flush_interval_seconds=0.1)

    recording.start()
    client.submit(sum, [1, 2], key="early").result()
    wait_until(lambda: "early" in trace.read_text(), "nothing was written during the run")
    recording.stop()
    recording.stop()

    lines = read_lines(trace)
    assert kinds(lines).count("trailer") == 1
    assert recording.records_by_kind.total() == len(lines)
    assert recording.nbytes == trace.stat().st_size
    with pytest.raises(RuntimeError, match="was already started"):
        recording.start()


def test_tasks_are_recorded_while_workers_receive_the_plugin(client, trace, read_lines):
    async def block_event_loop():
        time.sleep(2)  # noqa: ASYNC251 - on purpose

    slow, quick = client.scheduler_info()["workers"]
    recording = roast_recorder.record(client, trace)
    client.run(block_event_loop, workers=[slow], wait=False)

    starting = threading.Thread(target=recording.start)
    starting.start()
    wait_until(lambda: client.run_on_scheduler(leftovers), "the recorder was not attached")
    client.submit(abs, -1, key="meanwhile", workers=[quick]).result()
    assert starting.is_alive()
    starting.join()
    recording.stop()

    found = [line for line in read_lines(trace) if line.get("key") == "meanwhile"]
    assert found[0]["kind"] == "task"
    assert [line["finish"] for line in found[1:]][:3] == ["waiting", "processing", "memory"]


def test_nothing_of_a_recorder_remains_in_memory(cluster, trace):
    with Client(cluster) as client, roast_recorder.record(client, trace) as recording:
        client.submit(abs, -1).result()

    def is_ours(value):
        return (
            type(value).__name__ == "RecorderPlugin" and value._trace_id == recording.trace_id
        )

    gc.collect()
    assert not any(map(is_ours, gc.get_objects()))


def test_an_asynchronous_client(cluster, client, tmp_path, read_lines):
    async def run():
        async with Client(cluster.scheduler_address, asynchronous=True) as own:
            async with roast_recorder.record(own, tmp_path / "with.jsonl"):
                await own.submit(sum, [1, 2])
            recording = await roast_recorder.record(own, tmp_path / "start.jsonl").start()
            await own.submit(sum, [1, 2, 3])
            await recording.stop()
            with pytest.raises(TypeError, match="use 'async with'"):
                roast_recorder.record(own, tmp_path / "wrong.jsonl").__enter__()
        with pytest.raises(TypeError, match="use 'with'"):
            await roast_recorder.record(client, tmp_path / "wrong.jsonl").__aenter__()

    asyncio.run(run())

    for name in ("with.jsonl", "start.jsonl"):
        lines = read_lines(tmp_path / name)
        assert kinds(lines)[-1] == "trailer"
        assert "memory" in {line.get("finish") for line in lines}


def test_two_recorders_do_not_interfere(client, tmp_path, by_kind):
    with roast_recorder.record(client, tmp_path / "outer.jsonl"):
        with pytest.raises(ValueError, match="is being recorded to"):
            roast_recorder.record(client, tmp_path / "outer.jsonl").start()
        with roast_recorder.record(client, tmp_path / "inner.jsonl"):
            client.submit(divmod, 7, 0, retries=1, key="fails").exception()
        client.submit(divmod, 8, 0, retries=1, key="fails-later").exception()

    names = ("key", "start", "finish", "exception")
    outer, inner = (
        [tuple(map(line.get, names)) for line in by_kind(tmp_path / name)["transition"]]
        for name in ("outer.jsonl", "inner.jsonl")
    )
    assert len(inner) > 5
    assert [row for row in outer if row in inner][: len(inner)] == inner
    assert {row[3] for row in outer if row[0] == "fails-later"} > {None}
    assert client.run_on_scheduler(leftovers) == []


# -- calls that are refused -----------------------------------------------------------------


def test_an_invalid_client_is_refused_and_the_older_trace_is_kept(cluster, tmp_path):
    older, new = tmp_path / "older.jsonl", tmp_path / "new.jsonl"
    older.write_text("an older one")
    closed = Client(cluster)
    recordings = [roast_recorder.record(closed, trace) for trace in (older, new)]
    closed.close()

    for client in (cluster, cluster.scheduler_address, 8786):
        with pytest.raises(TypeError, match=r"takes a distributed\.Client, not a"):
            roast_recorder.record(client, older)
    with pytest.raises(ValueError, match="the client is closed"):
        roast_recorder.record(closed, older)
    for recording in recordings:
        with pytest.raises((OSError, RuntimeError)):
            recording.start()

    assert older.read_text() == "an older one"
    assert not new.exists()


def test_a_target_that_is_not_a_trace_is_refused_before_the_run(client, tmp_path):
    with pytest.raises(ValueError, match="the path is empty"):
        roast_recorder.record(client, "")
    with pytest.raises(ValueError, match="cannot be written to s3://…: name a local"):
        roast_recorder.record(client, "s3://bucket/trace.jsonl")
    with pytest.raises(FileNotFoundError, match="nowhere' does not exist"):
        roast_recorder.record(client, tmp_path / "nowhere" / "trace.jsonl").start()
    for name in ("trace.json", "trace"):
        (tmp_path / name).write_text("precious")
        with pytest.raises(ValueError, match=name):
            roast_recorder.record(client, tmp_path / name).start()
        assert (tmp_path / name).read_text() == "precious"

    assert client.run_on_scheduler(leftovers) == []


# -- ends -----------------------------------------------------------------------------------


def test_a_plugin_that_a_client_unregisters(cluster, client, tmp_path, read_lines, caplog):
    """Dask calls nothing of the plugin, and no more of its hooks."""
    caplog.set_level("INFO", "roast_recorder")
    settings = {"directory": str(tmp_path), "flush_interval_seconds": 0.2}
    with dask.config.set({"roast.recorder": settings}):
        cluster.sync(preload.dask_setup, cluster.scheduler)
    stopped = roast_recorder.record(client, tmp_path / "s.jsonl", flush_interval_seconds=60)
    with (
        roast_recorder.record(client, tmp_path / "r.jsonl", flush_interval_seconds=0.2),
        stopped,
    ):
        client.gather(client.map(abs, range(10), pure=False))
        for name in list(cluster.scheduler.plugins):
            if name.startswith("roast-recorder"):
                client.unregister_scheduler_plugin(name)
        client.gather(client.map(abs, range(20), pure=False))
        stopped.stop()
        wait_until(lambda: not client.run_on_scheduler(leftovers), "still attached")
        wait_until(lambda: caplog.text.count("records in") == 3, "not ended")

    traces = [*tmp_path.glob("*.jsonl"), *tmp_path.glob("*/*.jsonl.zst")]
    assert len(traces) == 3
    for lines in map(read_lines, traces):
        assert [line.get("finish") for line in lines].count("memory") == 10
        assert "trailer" not in kinds(lines)
    removed = "the recorder's plugin was removed from the scheduler"
    assert caplog.text.count(removed) == 3
    summaries = [record for record in caplog.records if "records in" in record.message]
    assert {record.levelname for record in summaries} == {"WARNING"}


def test_the_users_exception_reaches_the_user(client, trace, read_lines):
    def fail():
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"), roast_recorder.record(client, trace):
        client.submit(fail).result()

    lines = read_lines(trace)
    assert kinds(lines)[-1] == "trailer"
    assert lines[-1]["reason"] == "the recorded block raised ValueError"
    [erred] = [line for line in lines if line.get("finish") == "erred"]
    assert erred["exception"] == "ValueError('mine')"


def test_the_users_exception_without_a_cluster(trace, read_lines):
    with pytest.raises(ValueError, match="mine"), roast_recorder.record(None, trace):
        raise ValueError("mine")

    assert read_lines(trace)[-1]["reason"] == "the recorded block raised ValueError"


def test_a_client_closed_in_the_block_ends_the_trace_in_order(
    cluster, trace, read_lines, caplog
):
    with (
        caplog.at_level(logging.WARNING, "roast_recorder"),
        Client(cluster) as client,
        roast_recorder.record(client, trace, flush_interval_seconds=0.05),
    ):
        client.submit(sum, [1, 2], key="before").result()
        client.close()

    assert caplog.text == ""
    lines = read_lines(trace)
    assert "before" in {line.get("key") for line in lines}
    assert kinds(lines)[-1] == "trailer"


def test_a_cluster_closed_first_ends_the_trace_in_order(own_cluster, trace, read_lines):
    with own_cluster(1) as (cluster, client), roast_recorder.record(client, trace):
        client.submit(sum, [1, 2]).result()
        cluster.close()

    trailer = read_lines(trace)[-1]
    assert (trailer["kind"], trailer["reason"]) == ("trailer", "the scheduler closed")


def test_a_killed_scheduler_is_logged_and_stopping_does_not_wait(
    start_scheduler, trace, read_lines, caplog, monkeypatch
):
    monkeypatch.setattr(client_recording, "RECONNECT_SECONDS", 2.0)
    scheduler, address = start_scheduler(workers=1)
    with caplog.at_level(logging.WARNING, "roast_recorder"):
        client = Client(address)
        recording = roast_recorder.record(client, trace, flush_interval_seconds=0.05)
        recording.start()
        client.submit(sum, [1, 2], key="before").result(timeout=60)
        wait_until(lambda: "before" in trace.read_text(), "nothing was written")
        killed_at = time.monotonic()
        scheduler.kill()
        # If it is killed between two pulls, Dask tries to connect for half a minute.
        wait_until(lambda: "ends here" in caplog.text, "nothing was logged", seconds=60)
        # Until then, the connection could have come back.
        assert time.monotonic() - killed_at > 2
        recording.stop()
        client.close(timeout=1)

    assert not recording.ended_in_order()
    assert kinds(read_lines(trace))[-1] != "trailer"


@pytest.mark.exhaustive
def test_a_scheduler_process_with_the_address_of_a_closed_cluster(
    own_cluster, start_scheduler, trace, by_kind
):
    """Only distributed is installed there: the plugin is sent with its code."""
    with own_cluster(1) as (cluster, _):
        closed = cluster.scheduler  # as long as anything refers to it, Dask has it in a list
        port = closed.address.rpartition(":")[2]
    _, address = start_scheduler("--port", port, workers=1)
    assert address == closed.address

    with Client(address) as client, roast_recorder.record(client, trace):
        client.submit(sum, [1, 2], key="a").result(timeout=60)

    assert [record["key"] for record in by_kind(trace)["task"]] == ["a"]


# -- losses ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit_bytes", "dropped"), [(2**20, False), (2_000, True)])
def test_a_burst_is_complete_or_counted(
    client, trace, by_kind, limit_bytes, dropped, monkeypatch
):
    # Smaller than is allowed, so that a few tasks fill it.
    monkeypatch.setitem(settings_module._RULES, "buffer_limit_bytes", (int, "a whole number"))
    with roast_recorder.record(client, trace, buffer_limit_bytes=limit_bytes):
        client.gather(client.map(abs, range(500), pure=False))

    records = by_kind(trace)
    [trailer] = records["trailer"]
    lost_tasks = trailer["dropped_by_kind"].get("task", 0)
    assert bool(lost_tasks) == dropped
    assert len(records["task"]) + lost_tasks == 500
    assert {loss["record_kind"] for loss in records["loss"]} == set(trailer["dropped_by_kind"])


def test_a_recording_that_cannot_write_leaves_the_scheduler(client, trace, monkeypatch):
    async def fail(*_):
        raise RuntimeError("unexpected")

    monkeypatch.setattr(client_recording.Writer, "write_batches", fail)

    with roast_recorder.record(client, trace):
        client.submit(abs, -1).result()

        wait_until(lambda: not client.run_on_scheduler(leftovers), "still attached")


def test_a_trace_that_is_removed_is_reported(client, tmp_path, caplog, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with (
        caplog.at_level(logging.WARNING, "roast_recorder"),
        roast_recorder.record(client, flush_interval_seconds=0.05) as recording,
    ):
        trace = tmp_path / recording.path
        wait_until(trace.exists, "no trace")
        trace.unlink()
        client.gather(client.map(abs, range(9), pure=False))

    assert recording.dropped_by_kind["transition"] >= 9 * 4
    assert not recording.ended_in_order()
    assert not trace.exists()
    unwritten, missing = caplog.messages
    removed = "it was removed or replaced while it was recorded"
    assert f"{trace} cannot be written ({removed})" in unwritten
    assert f"{trace} is missing: {removed}; {recording.dropped_by_kind.total()}" in missing
    assert "open the trace with" not in capfd.readouterr().err


def test_a_disk_that_fills_does_not_stop_the_run(client, trace, caplog):
    trace.symlink_to("/dev/full")

    with (
        caplog.at_level(logging.WARNING, "roast_recorder"),
        roast_recorder.record(client, trace) as recording,
    ):
        assert client.gather(client.map(abs, range(-9, 0))) == list(range(9, 0, -1))

    assert recording.dropped_by_kind["transition"] >= 9 * 4
    assert recording.records_by_kind.total() == 0
    assert caplog.text.count("cannot be written") == 1
