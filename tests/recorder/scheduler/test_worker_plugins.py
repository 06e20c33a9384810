"""Plugins on real workers: they are registered, send records, and leave nothing behind."""

import contextlib
import sys
import time

import cloudpickle
import pytest
from distributed import (
    Client,
    Event,
    LocalCluster,
    SchedulerPlugin,
    WorkerPlugin,
    get_worker,
)

import roast_recorder
from roast_recorder.coffea.measurement import MAX_SECTIONS
from roast_recorder.pickling import pickled_worker_plugin
from roast_recorder.scheduler import worker_plugins
from roast_recorder.scheduler.tap import Tap
from roast_recorder.scheduler.wire_format import unpack
from roast_recorder.scheduler.worker_plugins import WorkerPlugins
from roast_recorder.settings import Settings
from roast_recorder.worker.plugin import TOPIC

pytestmark = pytest.mark.cluster

# Workers can't import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Recorder(SchedulerPlugin):
    """The part of a recorder that worker plugins need."""

    def __init__(self, scheduler, trace_id="t", measures=True):
        self.name = f"test-{trace_id}"
        self.rows = []
        self.received = []
        self._scheduler = scheduler
        settings = Settings(kinds=("chunk", "section"))
        pickled = pickled_worker_plugin(trace_id, settings) if measures else None
        self.plugins = WorkerPlugins(scheduler, trace_id, pickled, self.rows.append, Tap(print))

    def log_event(self, topic, msg):
        self.received.append((topic, self.plugins.receive(topic, msg)))

    async def start_recording(self):
        self._scheduler.add_plugin(self, name=self.name)
        await self.plugins.register()

    async def end_recording(self):
        await self.plugins.unregister()
        self._scheduler.remove_plugin(name=self.name)

    def records(self, kind="chunk"):
        found = []
        for row_kind, _, _, content in self.rows:
            if row_kind == kind:
                found += unpack(content) if isinstance(content, bytes) else [content]
        return found


@pytest.fixture
def record(client, cluster):
    """Return a function that starts a recorder, which ends with the test at the latest."""
    with contextlib.ExitStack() as stack:

        def record(*args, **options):
            recorder = Recorder(cluster.scheduler, *args, **options)
            client.sync(recorder.start_recording)
            stack.callback(end, client, cluster, recorder)
            return recorder

        yield record
    assert what_is_left(client, cluster) == ([], [], {})


def end(client, cluster, recorder):
    if recorder.name in cluster.scheduler.plugins:
        client.sync(recorder.end_recording)


def what_is_left(client, cluster):
    """Return what recorders left: plugins and topics on the scheduler, all state on workers."""

    def on_worker(dask_worker):
        state = sys.modules.get("_roast_recorder_here_2")
        plugins = [name for name in dask_worker.plugins if "roast" in name]
        finders = [str(one) for one in sys.meta_path if "roast" in type(one).__module__]
        return plugins + finders + (list(state.listeners) + state.patched if state else [])

    return (
        [name for name in cluster.scheduler.worker_plugins if "roast" in name],
        [topic for topic in client.get_events() if "roast" in str(topic)],
        {worker: left for worker, left in client.run(on_worker).items() if left},
    )


def chunk(number=0, sections=0, identity=None, delay=0.0):
    """Process a chunk in a task; return the address of its worker."""
    from roast_recorder.coffea.measurement import call_measured, current_measurement

    worker = get_worker()

    def process():
        worker.scheduler_delay = delay
        for section in range(sections):
            fields = {"name": str(section), "start_t": time.time(), "stop_t": time.time()}
            current_measurement().add_section(fields)
        return worker.address

    try:
        fields = identity or {"dataset": f"DY-{number}"}
        return call_measured(lambda: fields, "processed", process, (), {})
    finally:
        worker.scheduler_delay = 0.0


# -- records ---------------------------------------------------------------------------------


def test_a_chunk_and_its_sections_are_recorded_before_the_task_ends(record, client, cluster):
    recorder = record()

    future = client.submit(chunk, sections=MAX_SECTIONS + 3, pure=False)
    worker = future.result()

    [of_chunk] = recorder.records()
    run_id = cluster.scheduler.tasks[future.key].run_id
    assert of_chunk["dataset"] == "DY-0"
    assert of_chunk["measured"]["until"] == "processed"
    assert of_chunk["measured"]["memory_peak"] > 0
    sections = recorder.records("section")
    assert [section["name"] for section in sections] == list(map(str, range(MAX_SECTIONS)))
    for found in (of_chunk, *sections):
        assert (found["key"], found["worker"], found["run_id"]) == (future.key, worker, run_id)
    [loss] = recorder.records("loss")
    assert (loss["record_kind"], loss["records"]) == ("section", 3)


def test_sections_of_a_running_task_are_recorded_when_recording_ends(record, client):
    """They are sent after up to half a second, and not lost if the recording ends before."""
    recorder = record()
    begun, end = Event("begun"), Event("end")

    def work():
        with roast_recorder.section("first part"):
            pass
        begun.set()
        end.wait()

    future = client.submit(work, pure=False)
    begun.wait()
    client.sync(recorder.plugins.flush)

    assert [section["name"] for section in recorder.records("section")] == ["first part"]
    end.set()
    future.result()


def test_odd_names_and_clocks(record, client):
    """Dask cannot send such names; times are on the scheduler's clock."""
    recorder = record()
    identity = {"dataset": {1, 2}, "filename": "\udcff", "treename": float("nan")}

    begun = time.time()
    client.submit(chunk, identity=identity, delay=5_000.0, pure=False).result()
    client.submit(chunk, pure=False).result()  # the connection is still open

    odd, _ = recorder.records()
    assert (odd["dataset"], odd["filename"]) == ("{1, 2}", "?")
    assert begun <= odd["start_t"] - 5_000 <= odd["stop_t"] - 5_000 <= time.time()


def test_events_of_other_topics_are_left_alone(record, client, cluster):
    recorder = record(measures=False)

    client.log_event("theirs", {"rows": "mine"})

    assert ("theirs", False) in recorder.received
    assert [message for _, message in client.get_events("theirs")] == [{"rows": "mine"}]
    for topic in (None, 7, ("a", 1), "", "roast", "chunks"):
        assert recorder.plugins.receive(topic, {"rows": []}) is False
    # Without a plugin for workers nothing is registered.
    client.submit(chunk, pure=False).result()
    assert recorder.rows == []
    assert what_is_left(client, cluster) == ([], [], {})


# -- recorders -------------------------------------------------------------------------------


def test_two_recorders_record_the_same_chunks_until_one_ends(record, client, cluster):
    first, second = record("one"), record("two")

    client.gather(client.map(chunk, range(10), pure=False))

    one, two = ([line["key"] for line in recorder.records()] for recorder in (first, second))
    assert len(one) == len(two) == 10
    assert set(one) == set(two)
    # Each receives the events of both, and records its own only. Dask does not keep them.
    events = {event for event in first.received if "roast" in event[0]}
    assert events == {(TOPIC.format(trace_id=trace_id), True) for trace_id in ("one", "two")}
    assert what_is_left(client, cluster)[1] == []

    client.sync(first.end_recording)
    client.gather(client.map(chunk, range(10), pure=False))

    assert (len(first.records()), len(second.records())) == (10, 20)
    assert what_is_left(client, cluster)[0] == ["roast-recorder-two"]


def replaced():
    """Return whether uproot's function is wrapped in the worker's process."""
    from uproot.models.TBasket import Model_TBasket

    return hasattr(Model_TBasket.read_members, "__wrapped__")


@pytest.mark.parametrize("how", ["unregister", "unregister_soon"])
def test_unregistering_twice_has_no_further_effect(record, client, cluster, how):
    pytest.importorskip("uproot")
    client.run(replaced)
    recorder = record()
    assert set(client.run(replaced).values()) == {True}

    async def withdraw():
        for _ in range(2):
            going = getattr(recorder.plugins, how)()
            if going is not None:
                await going
        await recorder.plugins.unregister()
        await recorder.plugins._request

    client.sync(withdraw)
    client.submit(chunk, pure=False).result()

    assert recorder.rows == []
    assert set(client.run(replaced).values()) == {False}
    assert what_is_left(client, cluster) == ([], [], {})


# -- workers ---------------------------------------------------------------------------------


def test_registering_does_not_wait_for_a_silent_worker(
    record, client, cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(worker_plugins, "ANSWER_TIMEOUT_SECONDS", 0.2)
    worker = min(cluster.scheduler.workers)
    begun, end = tmp_path / "begun", tmp_path / "end"

    async def stand_still():
        begun.touch()
        while not end.exists():
            time.sleep(0.01)  # noqa: ASYNC251 - blocks its event loop

    def wait_until(true):
        until = time.monotonic() + 30
        while not true():
            assert time.monotonic() < until
            time.sleep(0.02)

    client.run(stand_still, workers=[worker], wait=False)
    wait_until(begun.exists)

    recorder = record()
    assert not recorder.plugins._request.done()
    end.touch()
    wait_until(recorder.plugins._request.done)
    client.submit(chunk, workers=[worker], pure=False).result()

    assert len(recorder.records()) == 1


def test_a_worker_that_cannot_be_recorded_is_logged(record, client, caplog):
    class Unusable(WorkerPlugin):
        def setup(self, worker):  # noqa: ARG002
            raise RuntimeError("no meters here")

    recorder = record(measures=False)
    recorder.plugins._pickled = cloudpickle.dumps(Unusable())

    async def register():
        await recorder.plugins.register()
        await recorder.plugins._request  # also of slow workers

    client.sync(register)

    assert client.submit(chunk, pure=False).result()
    assert recorder.rows == []
    assert "2 of 2 workers cannot run the recorder's plugin (RuntimeError" in caplog.text


def two_workers_in_this_process():
    with (
        LocalCluster(n_workers=2, processes=False, dashboard_address="127.0.0.1:0") as shared,
        Client(shared) as client,
    ):
        recorder = Recorder(shared.scheduler)
        client.sync(recorder.start_recording)
        futures = client.map(chunk, range(20), pure=False)
        addresses = {future.key: future.result() for future in futures}
        assert len(recorder.records()) == 20
        assert {line["key"]: line["worker"] for line in recorder.records()} == addresses
        assert len(set(addresses.values())) == 2
        client.sync(recorder.end_recording)
        assert what_is_left(client, shared) == ([], [], {})


def test_workers_that_share_a_process_record_their_own_chunks(in_another_process):
    in_another_process(two_workers_in_this_process)


@pytest.mark.exhaustive
def test_a_worker_with_distributed_only_measures_chunks(start_scheduler, tmp_path, read_lines):
    uproot = pytest.importorskip("uproot")
    processor = pytest.importorskip("coffea.processor")
    from coffea.nanoevents import BaseSchema

    with uproot.recreate(tmp_path / "f.root") as file:
        file.mktree("Events", {"x": "f8"}).extend({"x": [0.0] * 30})
    _, address = start_scheduler(workers=1)

    def process(events):
        if "roast_recorder.coffea.measurement" in sys.modules:
            raise AssertionError("it is installed")
        return {"x": float(events.x.to_numpy().sum()), "n": len(events)}

    trace = tmp_path / "trace.jsonl"
    with Client(address) as client, roast_recorder.record(client, trace):
        client.wait_for_workers(1, timeout=60)
        executor = processor.DaskExecutor(client=client, status=False)
        runner = processor.Runner(executor=executor, schema=BaseSchema, chunksize=10)
        fileset = {"DY": [str(tmp_path / "f.root")]}
        result = runner(fileset, treename="Events", processor_instance=process)

    assert result == {"x": 0.0, "n": 30}
    chunks = [line for line in read_lines(trace) if line["kind"] == "chunk"]
    measured = [
        (line["entry_start"], line["measured"]["events"], line["measured"]["columns"][0])
        for line in chunks
        if "run_id" in line
    ]
    assert sorted(measured) == [(start, 10, "x-data") for start in (0, 10, 20)]
