"""Plugins on real workers: they are registered, send records, and leave nothing behind."""

import contextlib
import json
import subprocess
import sys
import time

import cloudpickle
import pytest
from distributed import Client, SchedulerPlugin, WorkerPlugin, get_worker

import roast_recorder
from roast_recorder.coffea.measurement import MAX_SECTIONS
from roast_recorder.pickling import pickled_worker_plugin
from roast_recorder.scheduler import worker_plugins
from roast_recorder.scheduler.wire_format import unpack
from roast_recorder.scheduler.worker_plugins import WorkerPlugins
from roast_recorder.settings import Settings
from roast_recorder.worker.plugin import TOPIC

pytestmark = pytest.mark.cluster

# Workers can't import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Recorder(SchedulerPlugin):
    """As much of a recorder as worker plugins need."""

    def __init__(self, scheduler, trace_id, kinds=("chunk", "section"), measures=True):
        self.name = f"test-{trace_id}"
        self.rows = []
        self.received = []
        self._scheduler = scheduler
        pickled = pickled_worker_plugin(trace_id, Settings(kinds=kinds)) if measures else None
        self.plugins = WorkerPlugins(
            scheduler, trace_id, pickled, frozenset(kinds), self.append
        )

    def append(self, row, *_how):
        self.rows.append(row)

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
    """Start a recorder; it ends with the test, if not before."""
    with contextlib.ExitStack() as stack:

        def record(trace_id, **options):
            recorder = Recorder(cluster.scheduler, trace_id, **options)
            client.sync(recorder.start_recording)
            stack.callback(end, client, cluster, recorder)
            return recorder

        yield record
    assert what_is_left(client, cluster) == ([], [], {})


def end(client, cluster, recorder):
    if recorder.name in cluster.scheduler.plugins:
        client.sync(recorder.end_recording)


def what_is_left(client, cluster):
    """On the scheduler: of plugins and topics. On workers: of anything."""

    def on_worker(dask_worker):
        state = sys.modules.get("_roast_recorder_here_1")
        plugins = [name for name in dask_worker.plugins if "roast" in name]
        finders = [str(one) for one in sys.meta_path if "roast" in type(one).__module__]
        return plugins + finders + (list(state.listeners) + state.patched if state else [])

    return (
        [name for name in cluster.scheduler.worker_plugins if "roast" in name],
        topics_of_roast(client),
        {worker: left for worker, left in client.run(on_worker).items() if left},
    )


def topics_of_roast(client):
    return [topic for topic in client.get_events() if "roast" in str(topic)]


def chunk(number=0, sections=0, fails=False):
    """A task that makes a chunk, and gives the address of its worker."""
    from roast_recorder.coffea.measurement import call_measured, current_measurement

    def process():
        for section in range(sections):
            chunk_record = {"name": str(section), "start_t": time.time(), "stop_t": time.time()}
            current_measurement().add_section(chunk_record)
        if fails:
            raise ValueError("no jets")
        return get_worker().address

    return call_measured(lambda: {"dataset": f"DY-{number}"}, "processed", process, (), {})


# -- records ---------------------------------------------------------------------------------


def test_each_attempt_is_recorded_with_its_run_id_and_exception(record, client, cluster):
    recorder = record("t")

    future = client.submit(chunk, fails=True, pure=False, retries=2)
    with pytest.raises(ValueError, match="no jets"):
        future.result()

    attempts = recorder.records()
    assert {(a["key"], a["exception"]) for a in attempts} == {
        (future.key, "ValueError('no jets')")
    }
    run_ids = [attempt["run_id"] for attempt in attempts]
    assert len(set(run_ids)) == 3
    assert run_ids[-1] == cluster.scheduler.tasks[future.key].run_id


def test_events_of_other_topics_are_left_alone(record, client, cluster):
    recorder = record("t", measures=False)

    client.log_event("theirs", {"rows": "mine"})

    assert ("theirs", False) in recorder.received
    assert [message for _, message in client.get_events("theirs")] == [{"rows": "mine"}]
    for topic in (None, 7, ("a", 1), "", "roast", "chunks"):
        assert recorder.plugins.receive(topic, {"rows": []}) is False
    # Without a plugin for workers nothing is registered.
    client.submit(chunk, pure=False).result()
    assert recorder.rows == []
    assert what_is_left(client, cluster) == ([], [], {})


def test_a_chunk_and_its_sections_are_recorded_before_the_task_ends(record, client, cluster):
    recorder = record("t")

    future = client.submit(chunk, sections=2, pure=False)
    worker = future.result()

    [of_chunk] = recorder.records()
    run_id = cluster.scheduler.tasks[future.key].run_id
    assert of_chunk["dataset"] == "DY-0"
    assert of_chunk["measured"]["until"] == "processed"
    assert of_chunk["measured"]["memory_peak"] > 0
    sections = recorder.records("section")
    assert [section["name"] for section in sections] == ["0", "1"]
    for found in (of_chunk, *sections):
        assert (found["key"], found["worker"], found["run_id"]) == (future.key, worker, run_id)


def test_too_many_sections_are_a_loss(record, client):
    recorder = record("t")

    client.submit(chunk, sections=MAX_SECTIONS + 3, pure=False).result()

    assert len(recorder.records("section")) == MAX_SECTIONS
    [loss] = recorder.records("loss")
    assert (loss["record_kind"], loss["records"]) == ("section", 3)


def test_kinds_that_are_not_requested_are_not_recorded(record, client):
    recorders = {kind: record(kind, kinds=[kind]) for kind in ("chunk", "section")}

    client.submit(chunk, sections=1, pure=False).result()

    for kind, recorder in recorders.items():
        assert {row_kind for row_kind, *_ in recorder.rows} == {kind}


def test_times_are_on_the_schedulers_clock(record, client):
    recorder = record("t")

    def on_a_slow_clock():
        from roast_recorder.coffea.measurement import call_measured

        worker = get_worker()

        def process():
            worker.scheduler_delay = 5_000.0
            return time.time()

        try:
            return call_measured(dict, "processed", process, (), {})
        finally:
            worker.scheduler_delay = 0.0

    t = client.submit(on_a_slow_clock, pure=False).result()

    [chunk_record] = recorder.records()
    assert chunk_record["start_t"] - 5_000 <= t <= chunk_record["stop_t"] - 5_000


def test_names_that_dask_cannot_send_are_recorded(record, client):
    recorder = record("t")

    def odd():
        from roast_recorder.coffea.measurement import call_measured

        identity = {"dataset": {1, 2}, "filename": "\udcff", "treename": float("nan")}
        return call_measured(lambda: identity, "processed", lambda: "result", (), {})

    assert client.submit(odd, pure=False).result() == "result"
    assert client.submit(chunk, pure=False).result() in client.scheduler_info()["workers"]

    first, _ = recorder.records()
    assert (first["dataset"], first["filename"]) == ("{1, 2}", "?")


# -- recorders -------------------------------------------------------------------------------


def test_two_recorders_record_the_same_chunks_until_one_ends(record, client, cluster):
    first, second = record("one"), record("two")

    client.gather(client.map(chunk, range(10), pure=False))

    assert len(first.records()) == len(second.records()) == 10
    assert {found["key"] for found in first.records()} == {
        found["key"] for found in second.records()
    }
    # Each receives the events of both, and records its own only. Dask does not keep them.
    topics = {TOPIC.format(trace_id=trace_id) for trace_id in ("one", "two")}
    events = {event for event in first.received if "roast" in event[0]}
    assert events == {(topic, True) for topic in topics}
    assert topics_of_roast(client) == []

    client.sync(first.end_recording)
    client.gather(client.map(chunk, range(10), pure=False))

    assert (len(first.records()), len(second.records())) == (10, 20)
    assert what_is_left(client, cluster)[0] == ["roast-recorder-two"]


@pytest.mark.parametrize("how", ["unregister", "unregister_soon"])
def test_unregistering_twice_has_no_further_effect(record, client, cluster, how):
    recorder = record("t")

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
    assert what_is_left(client, cluster) == ([], [], {})


# -- workers ---------------------------------------------------------------------------------


def wait_until(true, seconds=30):
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_worker_that_joins_later_is_recorded(record, client, cluster):
    before = set(cluster.scheduler.workers)
    recorder = record("t")

    cluster.scale(3)
    client.wait_for_workers(3, timeout=60)
    [late] = set(cluster.scheduler.workers) - before
    client.submit(chunk, workers=[late], pure=False).result()

    assert [chunk_record["worker"] for chunk_record in recorder.records()] == [late]
    client.retire_workers([late], close_workers=True)
    cluster.scale(2)
    wait_until(lambda: set(cluster.scheduler.workers) == before)


@pytest.mark.parametrize("how", ["restart_workers", "restart"])
def test_a_restarted_worker_is_recorded(record, client, cluster, how):
    first = set(cluster.scheduler.workers)
    recorder = record("t")

    if how == "restart_workers":
        client.restart_workers([min(first)], timeout=60)
    else:
        client.restart(timeout=60)
    client.wait_for_workers(2, timeout=60)
    again = min(set(cluster.scheduler.workers) - first)
    client.submit(chunk, workers=[again], pure=False).result()

    assert [chunk_record["worker"] for chunk_record in recorder.records()] == [again]


def test_registering_does_not_wait_for_a_silent_worker(
    record, client, cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(worker_plugins, "ANSWER_TIMEOUT_SECONDS", 0.2)
    worker = min(cluster.scheduler.workers)
    begun, end = tmp_path / "begun", tmp_path / "end"

    async def stand_still():
        begun.touch()
        while not end.exists():
            time.sleep(0.01)  # noqa: ASYNC251 - its event loop stands still

    client.run(stand_still, workers=[worker], wait=False)
    wait_until(begun.exists)

    recorder = record("t")
    assert not recorder.plugins._request.done()
    end.touch()
    wait_until(recorder.plugins._request.done)
    client.submit(chunk, workers=[worker], pure=False).result()

    assert len(recorder.records()) == 1


def test_a_worker_that_cannot_be_recorded_is_logged(record, client, caplog):
    class Unusable(WorkerPlugin):
        def setup(self, worker):  # noqa: ARG002
            raise RuntimeError("no meters here")

    recorder = record("t", measures=False)
    recorder.plugins._pickled = cloudpickle.dumps(Unusable())
    client.sync(recorder.plugins.register)

    assert client.submit(chunk, pure=False).result()
    assert recorder.rows == []
    assert "2 of 2 workers cannot be recorded from within (RuntimeError" in caplog.text


def replaced():
    """Whether uproot's function is another one, in the worker's process."""
    from uproot.models.TBasket import Model_TBasket

    return hasattr(Model_TBasket.read_members, "__wrapped__")


def test_patched_functions_on_workers_are_restored(client, cluster, tmp_path):
    pytest.importorskip("uproot")
    client.run(replaced)
    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        assert set(client.run(replaced).values()) == {True}
        client.gather(client.map(chunk, range(10), pure=False))

    assert set(client.run(replaced).values()) == {False}
    assert what_is_left(client, cluster) == ([], [], {})


SEVERAL_IN_ONE_PROCESS = """
import json, sys
from distributed import Client, LocalCluster, get_worker
import roast_recorder
from roast_recorder.process_state import here
from roast_recorder.coffea.measurement import call_measured

def chunk(number):
    fields = {"dataset": str(number)}
    return call_measured(lambda: fields, "processed", lambda: get_worker().address, (), {})

with (
    LocalCluster(n_workers=2, threads_per_worker=2, processes=False, dashboard_address=None)
    as cluster,
    Client(cluster) as client,
):
    with roast_recorder.record(client, sys.argv[1]):
        futures = client.map(chunk, range(20))
        addresses = dict(zip([future.key for future in futures], client.gather(futures)))
    print(json.dumps(addresses))
    assert not here().listeners
"""


def test_workers_that_share_a_process_record_their_own_chunks(tmp_path, read_lines):
    trace = tmp_path / "trace.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL_IN_ONE_PROCESS, str(trace)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    addresses = json.loads(done.stdout)

    chunk_record = [line for line in read_lines(trace) if line["kind"] == "chunk"]

    assert len(chunk_record) == len(addresses) == 20
    assert {line["key"]: line["worker"] for line in chunk_record} == addresses
    assert len(set(addresses.values())) == 2


def test_a_worker_with_distributed_only_measures_chunks(start_scheduler, tmp_path, read_lines):
    uproot = pytest.importorskip("uproot")
    pytest.importorskip("coffea")
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
        result = run(client, {"DY": [str(tmp_path / "f.root")]}, process)

    assert result == {"x": 0.0, "n": 30}
    chunks = [line for line in read_lines(trace) if line["kind"] == "chunk"]
    measured = [line for line in chunks if "run_id" in line]
    assert sorted((line["entry_start"], line["measured"]["events"]) for line in measured) == [
        (0, 10),
        (10, 10),
        (20, 10),
    ]
    assert {line["measured"]["columns"][0] for line in measured} == {"x-data"}


def run(client, fileset, process):
    from coffea import processor
    from coffea.nanoevents import BaseSchema

    executor = processor.DaskExecutor(client=client, status=False)
    runner = processor.Runner(executor=executor, schema=BaseSchema, chunksize=10)
    return runner(fileset, treename="Events", processor_instance=process)
