"""The plugin on a real scheduler of simulated workers: what it records, what it leaves."""

import asyncio
import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest

pytest.importorskip("dask._expr", reason="the simulated scheduler needs Dask of 2025 or later")

# What follows needs it, too.
from dask._expr import LLGExpr
from dask._task_spec import Task, TaskRef
from distributed import SchedulerPlugin
from distributed.protocol import Serialized, serialize

from roast_recorder.scheduler import plugin, wire_format
from roast_recorder.scheduler.plugin import RecorderPlugin, operation_name
from roast_recorder.scheduler.wire_format import pack
from roast_recorder.settings import OPTIONAL_KINDS, Settings
from roast_schemas.describe import json_schema


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


simulated = load(Path(__file__).parents[3] / "benchmarks" / "simulated.py")

RUN_ON = RecorderPlugin._run_on
CLIENT = simulated.CLIENT
WORKERS = ["tcp://10.0.0.1:40000", "tcp://10.0.0.2:40000"]
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


@pytest.fixture(autouse=True)
def nobody_is_waited_for(monkeypatch):
    """The simulated workers cannot be asked, and no puller comes who has not come yet."""

    async def run_on(_recorder, _worker, _function):
        return None

    monkeypatch.setattr(RecorderPlugin, "_run_on", run_on)
    monkeypatch.setattr(plugin, "HEARTBEAT_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(plugin, "CLOSE_TIMEOUT_SECONDS", 0.1)


def on_a_scheduler(work):
    """Give what `work` gives when it has a scheduler with two workers and a client."""

    async def run():
        async with simulated.simulated_scheduler(len(WORKERS)) as scheduler:
            return await work(scheduler)

    return asyncio.run(run())


async def attached(scheduler, **settings):
    settings = Settings(**{"flush_interval_seconds": 0.01, **settings})
    recorder = RecorderPlugin("abc", CLIENT, settings.as_dict())
    await recorder.start(scheduler)
    scheduler.add_plugin(recorder, name=recorder.name)
    await asyncio.sleep(0)  # the first step of the snapshot
    return recorder


async def pulled(recorder):
    """Pull to the end: the records, of which one of each kind is validated, and the ending."""
    records, received, ending = [], 0, ""
    while not ending:
        answer = await recorder.pull(received)
        for received, content in answer["batches"]:  # noqa: B007
            records += wire_format.records(content)
        ending = answer["ending"]
    for record in {record["kind"]: record for record in records}.values():
        VALIDATOR.validate(json.loads(json.dumps(record)))
    return records, ending


async def stopped(recorder):
    await recorder.detach()
    records, _ = await pulled(recorder)
    return records


async def submit(scheduler, *tasks, keys=None, **options):
    keys = keys or [task.key for task in tasks]
    await scheduler.update_graph(
        client=CLIENT,
        expr_ser=Serialized(*serialize(LLGExpr({task.key: task for task in tasks}))),
        keys=set(keys),
        span_metadata={"collections": []},
        internal_priority={task.key: number for number, task in enumerate(tasks)},
        submitting_task=None,
        **options,
    )


def task(key, *dependencies):
    return Task(key, simulated.nothing, *map(TaskRef, dependencies))


def err(scheduler, key):
    """Have the worker of a task report that it failed."""
    state = scheduler.tasks[key]
    scheduler.stream_handlers["task-erred"](
        key=key,
        worker=state.processing_on.address,
        stimulus_id=f"task-erred-{key}",
        run_id=state.run_id,
        exception=b"",
        traceback=b"",
        exception_text="ValueError('no')",
        traceback_text="File …",
        thread=7,
        startstops=({"action": "compute", "start": 1.0, "stop": 2.0},),
    )


def release(scheduler, *keys):
    scheduler.client_releases_keys(list(keys), CLIENT, "client-releases-keys")


def beat(scheduler, worker=WORKERS[0], digests=(), **message):
    metrics = simulated.metrics(digests_total_since_heartbeat=dict(digests))
    scheduler.handlers["heartbeat_worker"](
        address=worker, resolve_address=False, metrics=metrics, **message
    )


def of_kind(kind, records):
    return [record for record in records if record["kind"] == kind]


def keys_of(kind, records):
    return {record["key"] for record in of_kind(kind, records)}


class Independent(SchedulerPlugin):
    """What anybody could write to check the recorder."""

    name = "independent"

    def __init__(self):
        self.seen = []

    def transition(self, key, start, finish, *_, stimulus_id, **_others):
        self.seen.append((str(key), start, finish, stimulus_id))


def as_seen(records):
    names = ("key", "start", "finish", "stimulus_id")
    return [tuple(map(record.get, names)) for record in of_kind("transition", records)]


class Rude:
    def __str__(self):
        raise RuntimeError("no text for you")


# -- transitions ----------------------------------------------------------------------------


def test_transitions_equal_those_of_an_independent_plugin():
    async def work(scheduler):
        recorder, independent = await attached(scheduler), Independent()
        scheduler.add_plugin(independent)
        await simulated.run_tasks(scheduler, [f"work-{number}" for number in range(100)])
        await submit(scheduler, task("a"), task("b", "a"), annotations={"retries": 1})
        err(scheduler, "a")
        err(scheduler, "a")
        release(scheduler, "a", "b")
        return await stopped(recorder), independent.seen

    records, seen = on_a_scheduler(work)

    assert as_seen(records) == seen
    assert len(seen) > 500


def test_each_attempt_that_fails_tells_why():
    async def work(scheduler):
        recorder = await attached(scheduler)
        await submit(scheduler, task("a"), annotations={"retries": 1})
        err(scheduler, "a")
        err(scheduler, "a")
        return await stopped(recorder)

    ends = [record for record in on_a_scheduler(work) if record.get("start") == "processing"]

    assert [record["finish"] for record in ends] == ["released", "erred"]
    for record in ends:
        assert record["worker"] in WORKERS
        assert record["thread"] == 7
        assert record["exception"] == "ValueError('no')"
        assert record["traceback"] == "File …"
        assert record["startstops"][0]["action"] == "compute"


# -- what is odd ----------------------------------------------------------------------------

ODD, ODD_TOO = ("x", np.int64(1)), ("y", (np.float64(0.5), "z"))


async def odd_enters(scheduler):
    recorder = await attached(scheduler)
    await submit(scheduler, task(ODD), task(ODD_TOO, ODD))
    return recorder


async def odd_is_there(scheduler):
    await submit(scheduler, task(ODD), task(ODD_TOO, ODD))
    return await attached(scheduler)


@pytest.mark.parametrize("begin", [odd_enters, odd_is_there])
def test_keys_that_hold_numbers_of_numpy_are_their_texts(begin):
    async def work(scheduler):
        recorder, independent = await begin(scheduler), Independent()
        scheduler.add_plugin(independent)
        simulated.finish_tasks(scheduler)
        release(scheduler, ODD, ODD_TOO)
        return await stopped(recorder), independent.seen

    records, seen = on_a_scheduler(work)

    assert {record["key"]: record["dependencies"] for record in of_kind("task", records)} == {
        str(ODD): [],
        str(ODD_TOO): [str(ODD)],
    }
    assert as_seen(records)[-len(seen) :] == seen
    assert {key for key, *_ in as_seen(records)} == {str(ODD), str(ODD_TOO)}


@pytest.mark.parametrize(
    "key",
    [
        17,
        b"raw",
        ("x", True),
        pytest.param(np.float64(0.5)),
        pytest.param(np.str_("a")),
    ],
    ids=repr,
)
def test_keys_of_any_type_are_their_texts(key):
    async def work(scheduler):
        recorder = await attached(scheduler)
        await submit(scheduler, task(key), task("y", key))
        simulated.finish_tasks(scheduler)
        return await stopped(recorder)

    records = on_a_scheduler(work)

    assert {record["key"]: record["dependencies"] for record in of_kind("task", records)} == {
        str(key): [],
        "y": [str(key)],
    }
    assert {name for name, *_ in as_seen(records)} == {str(key), "y"}


def test_keys_of_scattered_data_are_their_texts():
    async def work(scheduler):
        recorder = await attached(scheduler)
        scheduler.update_data(who_has={ODD: [WORKERS[0]]}, nbytes={ODD: 28}, client=CLIENT)
        await submit(scheduler, task("y", ODD))
        simulated.finish_tasks(scheduler)
        release(scheduler, ODD, "y")
        return await stopped(recorder)

    records = on_a_scheduler(work)

    assert [record["dependencies"] for record in of_kind("task", records)] == [[str(ODD)]]
    assert {key for key, *_ in as_seen(records)} == {str(ODD), "y"}


def test_an_odd_key_is_its_text_before_the_snapshot_has_come_to_it(monkeypatch):
    monkeypatch.setattr(plugin, "TASKS_PER_STEP", 1)

    async def work(scheduler):
        await submit(scheduler, task("a", "b"), task("b", ODD), task(ODD), keys=["a"])
        recorder = await attached(scheduler)
        simulated.finish_tasks(scheduler)
        recorder._buffer.seal()  # as the hook does when much has come
        return await stopped(recorder)

    assert {key for key, *_ in as_seen(on_a_scheduler(work))} == {"a", "b", str(ODD)}


def test_an_attempt_at_an_odd_key_tells_its_cause():
    async def work(scheduler):
        recorder = await odd_enters(scheduler)
        err(scheduler, ODD)
        return await stopped(recorder)

    [cause] = {record["cause"] for record in on_a_scheduler(work) if "cause" in record}

    assert cause == str(ODD)


@pytest.mark.parametrize(
    ("given", "priority"), [(0, 0), (np.int64(3), -3), (np.float64(0.5), -0.5), (True, -1)]
)
def test_priorities_of_any_type_are_numbers(given, priority):
    async def work(scheduler):
        recorder = await attached(scheduler)
        await submit(scheduler, task("a"), user_priority=given)
        return await stopped(recorder)

    [record] = of_kind("task", on_a_scheduler(work))

    assert list(record["priority"]) == [priority, 1, 0]
    assert json.loads(json.dumps(record)) == {**record, "priority": [priority, 1, 0]}


def test_annotations_of_any_type_are_plain():
    odd = {"set": {1}, ("a", 1): np.float64(1.5), "rude": Rude(), "big": 2**70}

    async def work(scheduler):
        recorder = await attached(scheduler)
        await submit(scheduler, task("a"), annotations={"odd": odd})
        return await stopped(recorder)

    [record] = of_kind("task", on_a_scheduler(work))

    assert record["annotations"] == {
        "odd": {"set": [1], "('a', 1)": 1.5, "rude": "<Rude>", "big": str(2**70)}
    }


@pytest.mark.parametrize("when", ["enters", "is there"])
def test_annotations_that_cannot_be_made_plain_cost_no_other_task(when):
    def annotation(key):
        return {Rude(): 1} if key == "b" else key

    async def work(scheduler):
        recorder = await attached(scheduler) if when == "enters" else None
        chain = task("a"), task("b", "a"), task("c", "b")
        await submit(scheduler, *chain, keys=["c"], annotations={"odd": annotation})
        return await stopped(recorder or await attached(scheduler))

    assert {"a", "c"} <= keys_of("task", on_a_scheduler(work))


# -- fine metrics and spans -----------------------------------------------------------------

SPANS = {"span": {"name": ("outer", "inner"), "ids": ("id-outer", "id-inner")}}
BESIDE = {("get-data", "network", "seconds"): 0.5, ("gather-dep", "decompress", "bytes"): 7}
WITH_SPAN = {("execute", "id-inner", "work", "compute", "seconds"): 1.5}
# The same once more, and what is no fine metric.
SQUASHED = {("execute", "work", "compute", "seconds"): 1.5, "tick-duration": 0.02}


@pytest.mark.parametrize("extensions", [{"spans": WITH_SPAN}, {"spans": {}}, {}, None], ids=str)
def test_a_heartbeat_tells_fine_metrics(extensions):
    async def work(scheduler):
        await submit(scheduler, task("a"), annotations=SPANS)
        recorder = await attached(scheduler)
        beat(scheduler, digests=BESIDE | SQUASHED, extensions=extensions)
        return await stopped(recorder)

    found = of_kind("fine_metric", on_a_scheduler(work))

    names = ("context", "span_id", "prefix", "activity", "unit")
    of_tasks = WITH_SPAN if extensions and extensions["spans"] else {}
    assert {
        tuple(filter(None, map(record.get, names))): record["delta"] for record in found
    } == BESIDE | of_tasks
    assert {(record["worker"], record["server_id"]) for record in found} == {
        (WORKERS[0], "Worker-0")
    }


def test_a_heartbeat_without_fine_metrics_tells_nothing():
    async def work(scheduler):
        recorder = await attached(scheduler)
        beat(scheduler, digests={"tick-duration": 0.02})
        return await stopped(recorder)

    assert of_kind("fine_metric", on_a_scheduler(work)) == []


@pytest.mark.parametrize("kinds", [OPTIONAL_KINDS, ("task",)], ids=["on", "off"])
def test_who_detaches_asks_the_workers_first(monkeypatch, kinds):
    async def run_on(recorder, worker, _function):
        beat(recorder._scheduler, worker, BESIDE)

    monkeypatch.setattr(RecorderPlugin, "_run_on", run_on)

    async def work(scheduler):
        return await stopped(await attached(scheduler, kinds=kinds))

    found = of_kind("fine_metric", on_a_scheduler(work))

    asked = WORKERS if "fine_metric" in kinds else []
    assert [record["worker"] for record in found] == [w for w in asked for _ in BESIDE]


@pytest.mark.parametrize("delta", [np.float64(1.5), np.int64(2)], ids=type)
def test_a_fine_metric_of_a_number_of_numpy_is_a_number(delta):
    async def work(scheduler):
        recorder = await attached(scheduler)
        beat(scheduler, digests={("custom", "mine", "things"): delta})
        return await stopped(recorder)

    [record] = of_kind("fine_metric", on_a_scheduler(work))

    assert record["delta"] == delta


@pytest.mark.parametrize("when", ["enters", "is there"])
def test_a_span_and_its_parent_are_recorded_once(when):
    async def work(scheduler):
        if when == "is there":
            await submit(scheduler, task("a-0"), annotations=SPANS)
        recorder = await attached(scheduler)
        for number in range(3):
            await submit(scheduler, task(f"work{number}-{number}"), annotations=SPANS)
        return await stopped(recorder)

    records = on_a_scheduler(work)

    assert {record["span_id"] for record in of_kind("task", records)} == {"id-inner"}
    spans = [
        (record["span_id"], list(record["span_name"]), record.get("parent_id"))
        for record in of_kind("span", records)
    ]
    assert sorted(spans) == [
        ("id-inner", ["outer", "inner"], "id-outer"),
        ("id-outer", ["outer"], None),
    ]


# -- the snapshot ---------------------------------------------------------------------------


def test_no_task_is_missing_although_others_come_and_go_meanwhile(monkeypatch):
    monkeypatch.setattr(plugin, "TASKS_PER_STEP", 1)
    there = [f"there-{number}" for number in range(3_000)]

    async def work(scheduler):
        await submit(scheduler, *map(task, there))
        recorder = await attached(scheduler)
        for number in range(10):
            release(scheduler, *there[number::20])
            await simulated.run_tasks(scheduler, [f"come-{number}", f"go-{number}"])
        assert not recorder._snapshot.done()
        return await stopped(recorder)

    records = on_a_scheduler(work)

    come = {f"{name}-{number}" for name in ("come", "go") for number in range(10)}
    assert keys_of("task", records) == {*there, *come}
    assert keys_of("transition", records) <= keys_of("task", records)


def test_a_task_that_goes_while_the_recorder_comes_is_not_missing():
    async def work(scheduler):
        await submit(scheduler, task("a"), task("b"))
        asyncio.get_running_loop().call_soon(release, scheduler, "a")
        return await stopped(await attached(scheduler))

    records = on_a_scheduler(work)

    assert keys_of("transition", records) == {"a"}
    assert keys_of("task", records) == {"a", "b"}


def test_who_detaches_at_once_waits_for_the_snapshot(monkeypatch):
    monkeypatch.setattr(plugin, "TASKS_PER_STEP", 100)
    there = [f"there-{number}" for number in range(3_000)]

    async def work(scheduler):
        await submit(scheduler, *map(task, there))
        return await stopped(await attached(scheduler))

    records = on_a_scheduler(work)

    assert sorted(record["key"] for record in of_kind("task", records)) == sorted(there)
    assert {record["state"] for record in of_kind("task", records)} == {"processing", "queued"}
    assert [record["worker"] for record in of_kind("worker_added", records)] == WORKERS
    assert [record["client"] for record in of_kind("client_added", records)] == [CLIENT]


# -- what is left ---------------------------------------------------------------------------


def state_of(scheduler):
    names = [one.get_coro().__qualname__ for one in asyncio.all_tasks()]
    return (
        dict(scheduler.plugins),
        dict(scheduler.handlers),
        dict(scheduler.stream_handlers),
        [name for name in names if name.startswith("RecorderPlugin")],
    )


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def detach_and_pull(scheduler, recorder):
    await scheduler.handlers[operation_name("detach", "abc")]()
    await pulled(recorder)


async def abandon(scheduler, recorder):  # noqa: ARG001
    await scheduler.handlers[operation_name("detach", "abc")](abandon=True)


async def go_away(scheduler, recorder):
    scheduler.remove_client(CLIENT)
    await until(lambda: recorder.name not in scheduler.plugins)


@pytest.mark.parametrize("end", [detach_and_pull, abandon, go_away])
def test_nothing_of_ours_is_left(monkeypatch, end):
    monkeypatch.setattr(plugin, "ORPHANED_SECONDS", 0.05)

    async def work(scheduler):
        before = state_of(scheduler)
        recorder = await attached(scheduler, sample_interval_seconds=0.01)
        during = state_of(scheduler)
        await simulated.run_tasks(scheduler, ["a", "b"])
        await end(scheduler, recorder)
        await asyncio.sleep(0)
        return before, during, state_of(scheduler)

    before, during, after = on_a_scheduler(work)

    assert all(now != then for now, then in zip(during, before, strict=True))
    assert after == before


def test_a_recorder_stays_while_its_client_does_or_somebody_pulls(monkeypatch):
    monkeypatch.setattr(plugin, "ORPHANED_SECONDS", 0.05)

    async def work(scheduler):
        recorder = await attached(scheduler, sample_interval_seconds=0.01)
        await asyncio.sleep(0.1)
        assert recorder.name in scheduler.plugins
        pulling = asyncio.create_task(pulled(recorder))
        await asyncio.sleep(0.05)
        scheduler.remove_client(CLIENT)
        await asyncio.sleep(0.1)
        assert recorder.name in scheduler.plugins
        pulling.cancel()
        await until(lambda: recorder.name not in scheduler.plugins)

    on_a_scheduler(work)


def test_what_comes_after_detaching_is_not_recorded():
    async def work(scheduler):
        recorder = await attached(scheduler)
        await recorder.detach()
        await simulated.run_tasks(scheduler, ["a"])
        beat(scheduler, digests=BESIDE)
        scheduler.log_event("topic", "late")
        records, ending = await pulled(recorder)
        return records, ending

    records, ending = on_a_scheduler(work)

    assert ending == "recording was stopped"
    assert not {"task", "transition", "fine_metric"} & {record["kind"] for record in records}
    assert "late" not in [record["payload"] for record in of_kind("event", records)]


# -- the scheduler closes -------------------------------------------------------------------


@pytest.mark.parametrize("cancelled", [False, True], ids=["waits", "cancelled"])
def test_who_pulls_gets_what_comes_until_a_scheduler_has_gone(cancelled):
    async def work(scheduler):
        recorder, independent = await attached(scheduler), Independent()
        scheduler.add_plugin(independent)
        await submit(scheduler, *(task(f"work-{number}") for number in range(20)))
        pulling = asyncio.create_task(pulled(recorder))
        closing = asyncio.create_task(scheduler.close())
        if cancelled:
            await recorder._last_pull_waits.wait()
            pulling.cancel()
        await closing
        return *await pulling, independent.seen

    records, ending, seen = on_a_scheduler(work)

    assert ending == "the scheduler closed"
    assert sorted(record["worker"] for record in of_kind("worker_removed", records)) == WORKERS
    assert [record["client"] for record in of_kind("client_removed", records)] == [CLIENT]
    assert as_seen(records) == seen
    assert any(stimulus.startswith("handle-worker-cleanup") for *_, stimulus in seen)


def test_a_scheduler_that_nobody_pulls_from_closes_all_the_same():
    async def work(scheduler):
        await attached(scheduler)
        async with asyncio.timeout(2):
            await scheduler.close()

    on_a_scheduler(work)


def test_a_worker_that_cannot_be_reached_does_not_keep_a_scheduler_from_closing(monkeypatch):
    async def connect(*_, **__):
        await asyncio.sleep(60)

    monkeypatch.setattr(RecorderPlugin, "_run_on", RUN_ON)
    monkeypatch.setattr(plugin, "connect", connect)

    async def work(scheduler):
        await attached(scheduler)
        try:
            async with asyncio.timeout(2):
                await scheduler.close()
        finally:
            scheduler._event_finished.set()  # what else waits for that would wait for ever

    on_a_scheduler(work)


# -- kinds ----------------------------------------------------------------------------------


#: Graphs are told by the client that sends them.
ON_SCHEDULER = tuple(kind for kind in OPTIONAL_KINDS if kind != "graph")


def kinds_recorded(*kinds):
    """The optional kinds that a run tells which has something of each."""
    chunk = SimpleNamespace(dataset="ttbar", filename="f.root", treename="Events")

    async def work(scheduler):
        recorder = await attached(scheduler, kinds=kinds)
        await submit(scheduler, Task("a", print, chunk), annotations=SPANS)
        beat(scheduler, digests=BESIDE, extensions={"spans": WITH_SPAN})
        scheduler.log_event("topic", "message")
        rows = [
            ("section", 1, pack([{"key": "a", "name": "cuts"}])),
            ("profile", 1, ("tcp://w", "Worker-1", pack([{"prefix": "a"}]))),
        ]
        scheduler.log_event(f"roast-worker-{recorder._trace_id}", {"rows": rows})
        simulated.finish_tasks(scheduler)
        records = await stopped(recorder)
        assert of_kind("worker_added", records)
        return {record["kind"] for record in records} & set(ON_SCHEDULER)

    return on_a_scheduler(work)


@pytest.mark.parametrize("kinds", [ON_SCHEDULER, ()], ids=["all", "none"])
def test_all_kinds_are_recorded_or_none(kinds):
    assert kinds_recorded(*kinds) == set(kinds)


@pytest.mark.parametrize("kind", ON_SCHEDULER)
def test_a_kind_that_is_switched_off_is_not_recorded(kind):
    assert kind not in kinds_recorded(*(set(ON_SCHEDULER) - {kind}))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind,
        )
        for kind in ON_SCHEDULER
    ],
)
def test_a_kind_is_recorded_although_all_others_are_switched_off(kind):
    assert kinds_recorded(kind) == {kind}
