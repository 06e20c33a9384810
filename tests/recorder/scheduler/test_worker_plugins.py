"""Chunk meters on real workers: they come, measure, tell, and leave nothing behind."""

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
from roast_recorder.scheduler import worker_plugins as meters_module
from roast_recorder.scheduler.wire_format import unpack
from roast_recorder.scheduler.worker_plugins import WorkerPlugins
from roast_recorder.settings import Settings
from roast_recorder.worker.plugin import TOPIC

pytestmark = pytest.mark.cluster

# Workers can't import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Recorder(SchedulerPlugin):
    """As much of a recorder as meters need."""

    def __init__(self, scheduler, trace_id, kinds=("chunk", "section"), measures=True):
        self.name = f"test-{trace_id}"
        self.rows = []
        self.heard = []
        self._scheduler = scheduler
        pickled = pickled_worker_plugin(trace_id, Settings(kinds=kinds)) if measures else None
        self.meters = WorkerPlugins(scheduler, trace_id, pickled, frozenset(kinds), self.append)

    def append(self, row, *_how):
        self.rows.append(row)

    def log_event(self, topic, msg):
        self.heard.append((topic, self.meters.receive(topic, msg)))

    async def come(self):
        self._scheduler.add_plugin(self, name=self.name)
        await self.meters.register()

    async def go(self):
        await self.meters.unregister()
        self._scheduler.remove_plugin(name=self.name)

    def told(self, kind="chunk"):
        found = []
        for row_kind, _, _, content in self.rows:
            if row_kind == kind:
                found += unpack(content) if isinstance(content, bytes) else [content]
        return found


@pytest.fixture
def record(client, cluster):
    """Have a recorder come; it goes with the test, if not before."""
    with contextlib.ExitStack() as stack:

        def record(trace_id, **options):
            recorder = Recorder(cluster.scheduler, trace_id, **options)
            client.sync(recorder.come)
            stack.callback(go, client, cluster, recorder)
            return recorder

        yield record
    assert what_is_left(client, cluster) == ([], [], {})


def go(client, cluster, recorder):
    if recorder.name in cluster.scheduler.plugins:
        client.sync(recorder.go)


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
            told = {"name": str(section), "start_t": time.time(), "stop_t": time.time()}
            current_measurement().add_section(told)
        if fails:
            raise ValueError("no jets")
        return get_worker().address

    return call_measured(lambda: {"dataset": f"DY-{number}"}, "processed", process, (), {})


# -- telling ---------------------------------------------------------------------------------


def test_a_chunk_is_told_before_its_task_ends(record, client, cluster):
    recorder = record("t")

    future = client.submit(chunk, pure=False)
    worker = future.result()

    [told] = recorder.told()
    assert (told["key"], told["worker"]) == (future.key, worker)
    assert told["run_id"] == cluster.scheduler.tasks[future.key].run_id
    assert told["dataset"] == "DY-0"
    assert told["measured"]["until"] == "processed"
    assert told["measured"]["memory_peak"] > 0


def test_a_chunk_that_fails_is_told_as_well(record, client):
    recorder = record("t")

    future = client.submit(chunk, fails=True, pure=False)
    with pytest.raises(ValueError, match="no jets"):
        future.result()

    [told] = recorder.told()
    assert (told["key"], told["exception"]) == (future.key, "ValueError('no jets')")


def test_each_attempt_is_told_with_its_number(record, client, cluster):
    recorder = record("t")

    future = client.submit(chunk, fails=True, pure=False, retries=2)
    with pytest.raises(ValueError, match="no jets"):
        future.result()

    numbers = [told["run_id"] for told in recorder.told()]
    assert len(set(numbers)) == 3
    assert numbers[-1] == cluster.scheduler.tasks[future.key].run_id


def test_sections_are_told_with_their_task(record, client):
    recorder = record("t")

    future = client.submit(chunk, sections=2, pure=False)
    worker = future.result()

    of_chunk = recorder.told()[0]
    assert [
        (told["name"], told["key"], told["worker"], told["run_id"])
        for told in recorder.told("section")
    ] == [(name, future.key, worker, of_chunk["run_id"]) for name in "01"]


def test_sections_that_were_too_many_are_a_loss(record, client):
    recorder = record("t")

    client.submit(chunk, sections=MAX_SECTIONS + 3, pure=False).result()

    assert len(recorder.told("section")) == MAX_SECTIONS
    [loss] = recorder.told("loss")
    assert (loss["record_kind"], loss["records"]) == ("section", 3)


@pytest.mark.parametrize("kind", ["chunk", "section"])
def test_what_nobody_wants_to_know_is_not_recorded(record, client, kind):
    recorder = record("t", kinds=[kind])

    client.submit(chunk, sections=1, pure=False).result()

    assert {row_kind for row_kind, *_ in recorder.rows} == {kind}


def test_times_are_told_by_the_schedulers_clock(record, client):
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

    [told] = recorder.told()
    assert told["start_t"] - 5_000 <= t <= told["stop_t"] - 5_000


def test_names_that_dask_cannot_send_cost_nothing(record, client):
    recorder = record("t")

    def odd():
        from roast_recorder.coffea.measurement import call_measured

        identity = {"dataset": {1, 2}, "filename": "\udcff", "treename": float("nan")}
        return call_measured(lambda: identity, "processed", lambda: "result", (), {})

    assert client.submit(odd, pure=False).result() == "result"
    assert client.submit(chunk, pure=False).result() in client.scheduler_info()["workers"]

    first, _ = recorder.told()
    assert (first["dataset"], first["filename"]) == ("{1, 2}", "?")


def test_dask_keeps_nothing_of_it(record, client):
    recorder = record("t")

    client.gather(client.map(chunk, range(50), pure=False))

    assert len(recorder.told()) == 50
    assert topics_of_roast(client) == []


def test_what_others_log_is_none_of_it(record, client):
    recorder = record("t")

    client.log_event("theirs", {"measured": "{}"})

    assert ("theirs", False) in recorder.heard
    assert recorder.rows == []
    assert [message for _, message in client.get_events("theirs")] == [{"measured": "{}"}]


@pytest.mark.parametrize("topic", [None, 7, ("a", 1), "", "roast", "chunks"])
def test_whatever_others_log_under_is_none_of_it(cluster, topic):
    meters = Recorder(cluster.scheduler, "t").meters

    assert meters.receive(topic, {"measured": "{}"}) is False


# -- recorders -------------------------------------------------------------------------------


def test_two_recorders_are_told_of_the_same_chunks(record, client):
    first, second = record("one"), record("two")

    client.gather(client.map(chunk, range(10), pure=False))

    assert len(first.told()) == len(second.told()) == 10
    assert {told["key"] for told in first.told()} == {told["key"] for told in second.told()}
    # To either, what the other is told is meant for a recorder, and not for its trace.
    assert {heard for topic, heard in first.heard if "roast" in topic} == {True}
    assert {topic for topic, _ in first.heard if "roast" in topic} == {
        TOPIC.format(trace_id="one"),
        TOPIC.format(trace_id="two"),
    }


def test_when_one_leaves_the_other_goes_on(record, client, cluster):
    first, second = record("one"), record("two")

    client.sync(first.go)
    client.gather(client.map(chunk, range(10), pure=False))

    assert len(first.told()) == 0
    assert len(second.told()) == 10
    assert what_is_left(client, cluster)[0] == ["roast-recorder-two"]


def test_a_recorder_that_does_not_measure_sends_no_meters(record, client, cluster):
    recorder = record("t", measures=False)

    client.submit(chunk, pure=False).result()

    assert recorder.rows == []
    assert what_is_left(client, cluster) == ([], [], {})


@pytest.mark.parametrize("how", ["unregister", "unregister_soon"])
def test_meters_are_withdrawn_as_often_as_one_likes(record, client, cluster, how):
    recorder = record("t")

    async def withdraw():
        for _ in range(2):
            going = getattr(recorder.meters, how)()
            if going is not None:
                await going
        await recorder.meters.unregister()
        await recorder.meters._request

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


def test_a_worker_that_joins_later_measures(record, client, cluster):
    before = set(cluster.scheduler.workers)
    recorder = record("t")

    cluster.scale(3)
    client.wait_for_workers(3, timeout=60)
    [late] = set(cluster.scheduler.workers) - before
    client.submit(chunk, workers=[late], pure=False).result()

    assert [told["worker"] for told in recorder.told()] == [late]
    client.retire_workers([late], close_workers=True)
    cluster.scale(2)
    wait_until(lambda: set(cluster.scheduler.workers) == before)


@pytest.mark.parametrize("how", ["restart_workers", "restart"])
def test_a_worker_that_is_restarted_measures(record, client, cluster, how):
    first = set(cluster.scheduler.workers)
    recorder = record("t")

    if how == "restart_workers":
        client.restart_workers([min(first)], timeout=60)
    else:
        client.restart(timeout=60)
    client.wait_for_workers(2, timeout=60)
    again = min(set(cluster.scheduler.workers) - first)
    client.submit(chunk, workers=[again], pure=False).result()

    assert [told["worker"] for told in recorder.told()] == [again]


def test_a_worker_that_does_not_answer_is_not_waited_for(
    record, client, cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(meters_module, "ANSWER_TIMEOUT_SECONDS", 0.2)
    worker = min(cluster.scheduler.workers)
    begun, end = tmp_path / "begun", tmp_path / "end"

    async def stand_still():
        begun.touch()
        while not end.exists():
            time.sleep(0.01)  # noqa: ASYNC251 - its event loop stands still

    client.run(stand_still, workers=[worker], wait=False)
    wait_until(begun.exists)

    recorder = record("t")
    assert not recorder.meters._request.done()
    end.touch()
    wait_until(recorder.meters._request.done)
    client.submit(chunk, workers=[worker], pure=False).result()

    assert len(recorder.told()) == 1


def test_a_worker_that_cannot_measure_is_said(record, client, caplog):
    class Unusable(WorkerPlugin):
        def setup(self, worker):  # noqa: ARG002
            raise RuntimeError("no meters here")

    recorder = record("t", measures=False)
    recorder.meters._pickled = cloudpickle.dumps(Unusable())
    client.sync(recorder.meters.register)

    assert client.submit(chunk, pure=False).result()
    assert recorder.rows == []
    assert "2 of 2 workers cannot be recorded from within (RuntimeError" in caplog.text


def replaced():
    """Whether uproot's function is another one, in the worker's process."""
    from uproot.models.TBasket import Model_TBasket

    return hasattr(Model_TBasket.read_members, "__wrapped__")


def test_functions_on_workers_are_theirs_again_afterwards(client, cluster, tmp_path):
    pytest.importorskip("uproot")
    client.run(replaced)
    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        assert set(client.run(replaced).values()) == {True}
        client.gather(client.map(chunk, range(10), pure=False))

    assert set(client.run(replaced).values()) == {False}
    assert what_is_left(client, cluster) == ([], [], {})


def test_workers_that_are_not_to_measure_are_left_alone(client, tmp_path):
    pytest.importorskip("uproot")
    with roast_recorder.record(client, tmp_path / "trace.jsonl", measure_chunks=False):
        assert set(client.run(replaced).values()) == {False}


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


def test_workers_that_share_a_process_each_tell_of_their_own(tmp_path, read_lines):
    trace = tmp_path / "trace.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL_IN_ONE_PROCESS, str(trace)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    addresses = json.loads(done.stdout)

    told = [line for line in read_lines(trace) if line["kind"] == "chunk"]

    assert len(told) == len(addresses) == 20
    assert {line["key"]: line["worker"] for line in told} == addresses
    assert len(set(addresses.values())) == 2


def test_a_worker_that_has_distributed_alone_measures(start_scheduler, tmp_path, read_lines):
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
