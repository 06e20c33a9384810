"""The plugin on a real scheduler with simulated workers: its records, and its removal.

An independent plugin receives all transitions, which every recording must contain.
"""

import asyncio
import contextlib
import importlib.util
import json
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest

pytest.importorskip("dask._expr", reason="the simulated scheduler needs Dask of 2025 or later")

from dask._expr import LLGExpr
from dask._task_spec import Task, TaskRef
from distributed import SchedulerPlugin
from distributed.protocol import Serialized, serialize

from roast_recorder.probes import samples
from roast_recorder.probes.wanted_keys import KEYS_PER_PART
from roast_recorder.scheduler import plugin, tasks, transitions, wire_format, worker_plugins
from roast_recorder.scheduler.plugin import RecorderPlugin
from roast_recorder.scheduler.wire_format import pack
from roast_recorder.scheduler.worker_plugins import WorkerPlugins
from roast_recorder.settings import MIN_INTERVALS, OPTIONAL_KINDS, Settings
from roast_recorder.worker.plugin import operation_name
from roast_schemas.describe import json_schema


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


simulated = load(Path(__file__).parents[3] / "benchmarks" / "simulated.py")

RUN_ON = WorkerPlugins._run_on
CLIENT = simulated.CLIENT
WORKERS = ["tcp://10.0.0.1:40000", "tcp://10.0.0.2:40000"]
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


@pytest.fixture(autouse=True)
def short_timeouts(monkeypatch):
    """Answer requests to simulated workers at once, and shorten the wait for a puller."""

    async def run_on(_plugins, _worker, _function):
        return None

    monkeypatch.setattr(WorkerPlugins, "_run_on", run_on)
    monkeypatch.setattr(worker_plugins, "FLUSH_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(plugin, "CLOSE_TIMEOUT_SECONDS", 0.1)


def on_a_scheduler(work):
    """Run `work` on a scheduler with two workers and a client; return its result."""

    async def run():
        async with simulated.simulated_scheduler(len(WORKERS)) as scheduler:
            return await work(scheduler)

    return asyncio.run(run())


async def nothing(_scheduler):
    pass


def recorded(work, before=nothing, **settings):
    """Return the records of `work`; `before` runs first and is not recorded."""

    async def run(scheduler):
        await before(scheduler)
        recorder = await attached(scheduler, **settings)
        await work(scheduler)
        return await stopped(recorder)

    return on_a_scheduler(run)


class Independent(SchedulerPlugin):
    """A minimal plugin, independent of the recorder, to compare with."""

    name = "independent"

    def __init__(self):
        self.seen = []

    def transition(self, key, start, finish, *_, stimulus_id, **_others):
        self.seen.append((str(key), start, finish, stimulus_id))


async def attached(scheduler, **settings):
    settings = Settings(**{"flush_interval_seconds": 0.05, **settings})
    order = RecorderPlugin("abc", CLIENT, settings.as_dict())
    await order.start(scheduler)
    recorder = order.recorder
    recorder.independent = Independent()
    if "transition" in settings.kinds:
        scheduler.add_plugin(recorder.independent)
    await asyncio.sleep(0)  # the first step of the snapshot
    return recorder


async def pulled(recorder):
    """Pull to the end, validate a record of each kind; return records and ending."""
    records, received, ending = [], 0, ""
    while not ending:
        answer = await recorder.pull(received)
        for received, content in answer["batches"]:  # noqa: B007
            records += wire_format.records(content)
        ending = answer["ending"]
    for record in {record["kind"]: record for record in records}.values():
        VALIDATOR.validate(json.loads(json.dumps(record)))
    names = ("key", "start", "finish", "stimulus_id")
    transitions = [tuple(map(line.get, names)) for line in of_kind("transition", records)]
    assert transitions == recorder.independent.seen
    return records, ending


async def stopped(recorder):
    await recorder.detach()
    return (await pulled(recorder))[0]


async def submit(scheduler, *tasks, keys=None, **options):
    await scheduler.update_graph(
        client=CLIENT,
        expr_ser=Serialized(*serialize(LLGExpr({task.key: task for task in tasks}))),
        keys=set(keys or [task.key for task in tasks]),
        span_metadata={"collections": []},
        internal_priority={task.key: number for number, task in enumerate(tasks)},
        submitting_task=None,
        **options,
    )


def task(key, *dependencies):
    return Task(key, simulated.nothing, *map(TaskRef, dependencies))


def err(scheduler, key):
    """Report the failure of a task, as its worker would."""
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


class NoText:
    def __str__(self):
        raise RuntimeError("no text")


# -- transitions and keys -------------------------------------------------------------------

ODD, ODD_TOO = ("x", np.int64(1)), ("y", (np.float64(0.5), "z"))


def test_failed_attempts_keep_their_errors():
    async def work(scheduler):
        await simulated.run_tasks(scheduler, [f"work-{number}" for number in range(100)])
        await submit(scheduler, task(ODD), task("b", ODD), annotations={"retries": 1})
        err(scheduler, ODD)
        err(scheduler, ODD)
        release(scheduler, ODD, "b")

    records = recorded(work)

    assert len(of_kind("transition", records)) > 500
    assert {record["cause"] for record in records if "cause" in record} == {str(ODD)}
    # Dask does not pass plugins the error of the first attempt, which is retried.
    ends = [record for record in records if record.get("start") == "processing"][-2:]
    assert [record["finish"] for record in ends] == ["released", "erred"]
    for record in ends:
        assert record["worker"] in WORKERS
        assert record["thread"] == 7
        assert (record["exception"], record["traceback"]) == ("ValueError('no')", "File …")
        assert record["startstops"][0]["action"] == "compute"


@pytest.mark.parametrize("entered", ["before", "as data", "as a dependency", "after"])
@pytest.mark.parametrize("key", [ODD, ODD_TOO, b"raw", ("x", True)], ids=str)
def test_keys_of_any_type_are_recorded_as_text(key, entered):
    is_data = entered in ("as data", "as a dependency")

    async def enter(scheduler):
        if is_data:
            scheduler.update_data(who_has={key: [WORKERS[0]]}, nbytes={key: 28}, client=CLIENT)
        if entered != "as data":
            await submit(scheduler, *([] if is_data else [task(key)]), task("y", key))

    async def work(scheduler):
        if entered != "before":
            await enter(scheduler)
        simulated.finish_tasks(scheduler)
        release(scheduler, key, "y")

    records = recorded(work, before=enter if entered == "before" else nothing)

    expected = {} if entered == "as data" else {"y": [str(key)]}
    expected |= {} if is_data else {str(key): []}
    tasks = {record["key"]: record["dependencies"] for record in of_kind("task", records)}
    assert tasks == expected
    assert keys_of("transition", records) == {str(key), *expected}


def test_an_odd_key_is_text_before_the_snapshot_has_reached_it(monkeypatch):
    monkeypatch.setattr(tasks, "TASKS_PER_STEP", 1)

    async def work(scheduler):
        await submit(scheduler, *map(task, "abcdefgh"))
        await submit(scheduler, task(ODD))
        recorder = await attached(scheduler)
        simulated.finish_tasks(scheduler)
        recorder._buffer.seal()  # as the hook does after many transitions
        return await stopped(recorder)

    assert keys_of("transition", on_a_scheduler(work)) == {*"abcdefgh", str(ODD)}


# -- tasks, metrics and spans ---------------------------------------------------------------


def test_priorities_and_annotations_of_any_type_are_plain():
    odd = {"set": {1}, ("a", 1): np.float64(1.5), "no text": NoText(), "big": 2**70}
    priorities = [0, np.int64(3), np.float64(0.5), True]

    async def work(scheduler):
        for number, priority in enumerate(priorities):
            options = {"user_priority": priority, "annotations": {"odd": odd}}
            await submit(scheduler, task(f"t{number}"), **options)

    tasks = json.loads(json.dumps(of_kind("task", recorded(work))))

    assert [record["priority"][0] for record in tasks] == [0, -3, -0.5, -1]
    assert tasks[0]["annotations"] == {
        "odd": {"set": [1], "('a', 1)": 1.5, "no text": "<NoText>", "big": str(2**70)}
    }


@pytest.mark.parametrize("exists", [False, True])
def test_annotations_that_raise_do_not_affect_other_tasks(exists):
    def annotation(key):
        return {NoText(): 1} if key == "b" else key

    async def work(scheduler):
        chain = task("a"), task("b", "a"), task("c", "b")
        await submit(scheduler, *chain, keys=["c"], annotations={"odd": annotation})

    records = recorded(nothing, before=work) if exists else recorded(work)

    recorded_tasks = {record["key"]: record for record in of_kind("task", records)}
    annotations = {key: recorded_tasks[key]["annotations"] for key in "abc"}
    assert annotations == {"a": {"odd": "a"}, "b": {"odd": "<dict>"}, "c": {"odd": "c"}}


SPANS = {"span": {"name": ("outer", "inner"), "ids": ("id-outer", "id-inner")}}
OUTSIDE = {("get-data", "network", "seconds"): 0.5, ("gather-dep", "decompress", "bytes"): 7}
IN_SPAN = {("execute", "id-inner", "work", "compute", "seconds"): 1.5}
# The same without the span, and a digest that is not a fine metric.
OTHERS = {("execute", "work", "compute", "seconds"): 1.5, "tick-duration": 0.02}


def test_what_workers_execute_is_collected_rarely(monkeypatch):
    """A thousand tasks are cancelled one by one, of which two had begun."""
    clock, collected = iter(range(1_000_000)), []
    for name in ("monotonic", "thread_time"):
        monkeypatch.setattr(transitions, name, lambda: next(clock))

    class Executing(dict):
        def items(self):
            collected.append(1)
            return super().items()

    keys = [f"a-{number}" for number in range(1000)]

    async def cancel(scheduler):
        await submit(scheduler, *map(task, keys))
        for seconds, worker in enumerate(scheduler.workers.values(), 1):
            begun = next(iter(worker.processing))
            worker.executing, worker.last_seen = Executing({begun: seconds}), 100.0
        for key in keys:
            release(scheduler, key)

    ended = [
        line.get("start_t")
        for line in of_kind("transition", recorded(cancel))
        if line["start"] == "processing"
    ]
    assert sorted(t for t in ended if t) == [98.0, 99.0]
    assert len(ended) > 100
    assert len(collected) < len(ended) / 10


def test_fine_metrics_of_heartbeats():
    names = ("context", "span_id", "prefix", "activity", "unit")
    for extensions, digests, expected in [
        ({"spans": IN_SPAN}, OUTSIDE | OTHERS, OUTSIDE | IN_SPAN),
        ({"spans": {}}, OUTSIDE | OTHERS, OUTSIDE),
        ({}, OUTSIDE | OTHERS, OUTSIDE),
        (None, OUTSIDE | OTHERS, OUTSIDE),
        ({}, OTHERS, {}),
        ({}, {("custom", "mine", "a"): np.float64(1.5), ("custom", "mine", "b"): np.int64(2)},
         {("custom", "mine", "a"): 1.5, ("custom", "mine", "b"): 2.0}),
    ]:  # fmt: skip

        async def work(scheduler, digests=digests, extensions=extensions):
            await submit(scheduler, task("a"), annotations=SPANS)
            beat(scheduler, digests=digests, extensions=extensions)

        found = of_kind("fine_metric", recorded(work))

        assert {
            tuple(filter(None, map(record.get, names))): record["delta"] for record in found
        } == expected
        assert {(r["worker"], r["server_id"]) for r in found} <= {(WORKERS[0], "Worker-0")}
        assert {type(record["delta"]) for record in found} <= {int, float}


def test_detaching_flushes_the_workers(monkeypatch):
    async def run_on(plugins, worker, _function):
        beat(plugins._scheduler, worker, OUTSIDE)

    monkeypatch.setattr(WorkerPlugins, "_run_on", run_on)

    for kinds, flushed in ((OPTIONAL_KINDS, WORKERS), (("task",), [])):
        found = of_kind("fine_metric", recorded(nothing, kinds=kinds))
        assert [r["worker"] for r in found] == [w for w in flushed for _ in OUTSIDE]


@pytest.mark.parametrize("exists", [False, True])
def test_a_span_and_its_parent_are_recorded_once(exists):
    async def before(scheduler):
        if exists:
            await submit(scheduler, task("a-0"), annotations=SPANS)

    async def work(scheduler):
        for number in range(3):
            await submit(scheduler, task(f"work{number}-{number}"), annotations=SPANS)

    records = recorded(work, before=before)

    assert {record["span_id"] for record in of_kind("task", records)} == {"id-inner"}
    spans = of_kind("span", records)
    assert sorted((s["span_id"], list(s["span_name"]), s.get("parent_id")) for s in spans) == [
        ("id-inner", ["outer", "inner"], "id-outer"),
        ("id-outer", ["outer"], None),
    ]


def test_all_spans_are_recorded_without_records_of_tasks():
    async def before(scheduler):
        for name in ("fit", "plot"):
            span = {"name": (name,), "ids": (f"id-{name}",)}
            await submit(scheduler, task(f"{name}-0"), annotations={"span": span})

    spans = of_kind("span", recorded(nothing, before=before, kinds=["span"]))
    assert [span["span_id"] for span in spans] == ["id-fit", "id-plot"]


# -- the snapshot ---------------------------------------------------------------------------


def test_no_task_is_missing_while_others_are_added_and_forgotten(monkeypatch):
    monkeypatch.setattr(tasks, "TASKS_PER_STEP", 1)
    existing = [f"existing-{number}" for number in range(300)]
    append = tasks.Tasks.append

    def slowly(recorded, new, t, client=None, stimulus_id=None):
        if client is None:
            time.sleep(0.003)
        append(recorded, new, t, client, stimulus_id)

    monkeypatch.setattr(tasks.Tasks, "append", slowly)

    async def work(scheduler):
        await submit(scheduler, *map(task, existing))
        asyncio.get_running_loop().call_soon(release, scheduler, existing[-1])
        recorder = await attached(scheduler)
        for number in range(3):
            release(scheduler, *existing[number::6])
            await simulated.run_tasks(scheduler, [f"come-{number}", f"go-{number}"])
        assert not recorder._running[-1].done()
        return await stopped(recorder)

    records = on_a_scheduler(work)

    new = {f"{name}-{number}" for name in ("come", "go") for number in range(3)}
    assert keys_of("task", records) == {*existing, *new}
    assert existing[-1] in keys_of("transition", records) <= keys_of("task", records)


def test_detaching_at_once_waits_for_the_snapshot(monkeypatch):
    monkeypatch.setattr(tasks, "TASKS_PER_STEP", 100)
    existing = [f"existing-{number}" for number in range(1_000)]

    async def before(scheduler):
        await submit(scheduler, *map(task, existing))

    records = recorded(nothing, before=before)

    assert sorted(record["key"] for record in of_kind("task", records)) == sorted(existing)
    assert {record["state"] for record in of_kind("task", records)} == {"processing", "queued"}
    assert [record["worker"] for record in of_kind("worker_added", records)] == WORKERS
    assert [record["client"] for record in of_kind("client_added", records)] == [CLIENT]


# -- removal --------------------------------------------------------------------------------


def state_of(scheduler):
    codes = [one.get_coro().cr_code for one in asyncio.all_tasks()]
    return (
        {name for name in scheduler.plugins if name != Independent.name},
        dict(scheduler.handlers),
        dict(scheduler.stream_handlers),
        [code for code in codes if "roast_recorder" in code.co_filename],
    )


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def detach_and_pull(scheduler, recorder):
    await scheduler.handlers[operation_name("detach", "abc")]()
    scheduler.remove_plugin(Independent.name)
    await simulated.run_tasks(scheduler, ["late"])
    beat(scheduler, digests=OUTSIDE)
    scheduler.log_event("topic", "late")
    records, ending = await pulled(recorder)
    assert ending == "recording was stopped"
    assert "fine_metric" not in {record["kind"] for record in records}
    assert "late" not in [record.get("key") or record.get("payload") for record in records]


async def abandon(scheduler, recorder):  # noqa: ARG001
    await scheduler.handlers[operation_name("detach", "abc")](abandon=True)


async def disconnect(scheduler, recorder):
    scheduler.remove_client(CLIENT)
    await until(lambda: recorder.name not in scheduler.plugins)


@pytest.mark.parametrize("end", [detach_and_pull, abandon, disconnect])
def test_nothing_is_left_on_the_scheduler(monkeypatch, end):
    monkeypatch.setattr(plugin, "ORPHANED_SECONDS", 0.05)

    async def work(scheduler):
        before = state_of(scheduler)
        recorder = await attached(scheduler, sample_interval_seconds=0.1)
        during = state_of(scheduler)
        await simulated.run_tasks(scheduler, ["a", "b"])
        await end(scheduler, recorder)
        await asyncio.sleep(0)
        return before, during, state_of(scheduler)

    before, during, after = on_a_scheduler(work)

    assert all(now != then for now, then in zip(during, before, strict=True))
    assert after == before


def test_a_recorder_stays_while_its_client_is_connected_or_batches_are_pulled(monkeypatch):
    monkeypatch.setattr(plugin, "ORPHANED_SECONDS", 0.3)

    async def work(scheduler):
        recorder = await attached(scheduler, sample_interval_seconds=0.1)
        await asyncio.sleep(0.4)
        assert recorder.name in scheduler.plugins
        pulling = asyncio.create_task(pulled(recorder))
        await asyncio.sleep(0.05)
        scheduler.remove_client(CLIENT)
        await asyncio.sleep(0.4)
        assert recorder.name in scheduler.plugins
        pulling.cancel()
        await until(lambda: recorder.name not in scheduler.plugins)

    on_a_scheduler(work)


def test_samples_that_fail_are_counted_and_logged_once(monkeypatch, caplog):
    attempts = []

    def fail(_scheduler):
        attempts.append(1)
        raise RuntimeError("no metrics here")

    monkeypatch.setattr(samples, "scheduler_metrics", fail)

    async def work(_scheduler):
        await until(lambda: len(attempts) > 2)

    records = recorded(work, sample_interval_seconds=0.1)

    reason = "an error in the recorder: RuntimeError: no metrics here"
    losses = of_kind("loss", records)
    assert {(loss["record_kind"], loss["reason"]) for loss in losses} == {
        ("scheduler_sample", reason)
    }
    assert sum(loss["records"] for loss in losses) == len(attempts)
    assert [record.message for record in caplog.records if reason in record.message] == [
        f"roast: records of kind 'scheduler_sample' are incomplete: {reason}"
    ]


def test_short_intervals_of_a_client_of_another_version_are_refused():
    async def work(scheduler):
        before = state_of(scheduler)
        for name in MIN_INTERVALS:
            order = RecorderPlugin("abc", CLIENT, {**Settings().as_dict(), name: 1e-6})
            with pytest.raises(ValueError, match=f"invalid {name}=1e-06: use a number of sec"):
                await order.start(scheduler)
        assert state_of(scheduler) == before

    on_a_scheduler(work)


def test_the_rest_can_be_pulled_without_an_event_loop():
    async def work(scheduler):
        recorder = await attached(scheduler)
        scheduler.worker_plugins[recorder.name] = b"of workers that cannot be asked any more"
        await simulated.run_tasks(scheduler, ["a"])
        return await asyncio.to_thread(recorder.pull_rest)

    batches, ending = on_a_scheduler(work)

    records = [line for _, content in batches for line in wire_format.records(content)]
    assert ending == "the scheduler closed"
    assert keys_of("task", records) == {"a"}


# -- a closing scheduler --------------------------------------------------------------------


@pytest.mark.parametrize("cancelled", [False, True], ids=["waits", "cancelled"])
def test_the_last_pull_contains_everything_until_the_scheduler_is_gone(cancelled):
    async def work(scheduler):
        recorder = await attached(scheduler)
        await submit(scheduler, *(task(f"work-{number}") for number in range(20)))
        pulling = asyncio.create_task(pulled(recorder))
        closing = asyncio.create_task(scheduler.close())
        if cancelled:
            await recorder._last_pull_waits.wait()
            pulling.cancel()
        await closing
        return await pulling

    records, ending = on_a_scheduler(work)

    assert ending == "the scheduler closed"
    assert sorted(record["worker"] for record in of_kind("worker_removed", records)) == WORKERS
    assert [record["client"] for record in of_kind("client_removed", records)] == [CLIENT]
    stimuli = [record["stimulus_id"] for record in of_kind("transition", records)]
    assert any(stimulus.startswith("handle-worker-cleanup") for stimulus in stimuli)


@pytest.mark.parametrize("unreachable", [False, True])
def test_neither_a_missing_puller_nor_a_silent_worker_blocks_a_closing_scheduler(
    monkeypatch, unreachable
):
    async def connect(*_, **__):
        await asyncio.sleep(60)

    if unreachable:
        monkeypatch.setattr(WorkerPlugins, "_run_on", RUN_ON)
        monkeypatch.setattr(worker_plugins, "connect", connect)

    async def work(scheduler):
        await attached(scheduler)
        with contextlib.ExitStack() as stack:
            stack.callback(scheduler._event_finished.set)  # others would wait for that
            async with asyncio.timeout(2):
                await scheduler.close()

    on_a_scheduler(work)


# -- kinds ----------------------------------------------------------------------------------

#: Clients record the others, and graphs if they arrive in a message.
ON_SCHEDULER = tuple(
    kind for kind in OPTIONAL_KINDS if not kind.startswith(("graph", "client_", "cluster_"))
)


def kinds_recorded(*kinds):
    """Return the optional kinds in the trace of a run that produces all of them."""
    chunk = SimpleNamespace(dataset="ttbar", filename="f.root", treename="Events")

    async def work(scheduler):
        await submit(scheduler, Task("a", print, chunk), annotations=SPANS)
        beat(scheduler, digests=OUTSIDE, extensions={"spans": IN_SPAN})
        scheduler.log_event("topic", "message")
        rows = [
            ("section", 1, pack([{"key": "a", "name": "cuts"}])),
            ("profile", 1, pack([{"prefix": "a"}])),
            ("stall", 1, pack([{"worker": "tcp://w", "start_t": 1.0, "stop_t": 2.0}])),
        ]
        scheduler.log_event("roast-worker-abc", {"rows": rows})
        simulated.finish_tasks(scheduler)

    records = recorded(work, kinds=kinds)

    assert of_kind("worker_added", records)
    return {record["kind"] for record in records} & set(ON_SCHEDULER)


def test_kinds_are_recorded_if_they_are_requested():
    assert kinds_recorded(*ON_SCHEDULER) == set(ON_SCHEDULER)
    for kind in ON_SCHEDULER:
        assert kinds_recorded(kind) == {kind}


# -- hooks as an unknown version of Dask could call them --------------------------------------


@pytest.fixture
def called_directly():
    """Return the records of direct calls of the recorder's hooks."""

    def run(call):
        async def work(scheduler):
            await simulated.run_tasks(scheduler, ["before"])
            recorder = await attached(scheduler)
            call(recorder, scheduler)
            await recorder.detach()
            batches = (await recorder.pull(0))["batches"]
            return [record for _, batch in batches for record in wire_format.records(batch)]

        return on_a_scheduler(work)

    return run


class Odd:
    """A value of a type that Dask does not have today."""

    def __str__(self):
        return "odd"


PHASES = [{"action": "compute", "start": 1.0, "stop": 2.0}]


@pytest.mark.parametrize(
    ("arguments", "named", "expected", "lost"),
    [
        (("x", "memory", "released"), {}, {"finish": "released"}, []),
        (("x", "memory", "released", 1, 2), {"stimulus_id": "s", "new": 1}, {"key": "x"}, []),
        (("x", "processing", "erred"), {"new": 1}, {"finish": "erred"}, ["scheduler has no"]),
        (
            ("x", "processing", "memory"),
            {"nbytes": None, "startstops": PHASES, "stimulus_id": "s"},
            {"startstops": PHASES},
            ["scheduler has no"],
        ),
        (
            ("x", "processing", "memory"),
            {"nbytes": "12", "startstops": Odd(), "thread": 7},
            {"thread": 7},
            ["scheduler has no", "type of nbytes", "type of startstops"],
        ),
        (
            ("x", "processing", "memory"),
            {"startstops": [("compute", 1.0, 2.0)]},
            {"finish": "memory"},
            ["scheduler has no", "type of startstops"],
        ),
        ((Odd(), "memory", "released"), {}, {"key": "odd"}, []),
        ((None, "released", "waiting"), {}, {"key": "None"}, []),
    ],
)  # fmt: skip
def test_transitions_with_other_arguments(called_directly, arguments, named, expected, lost):
    records = called_directly(lambda recorder, _: recorder.transition(*arguments, **named))

    transition = of_kind("transition", records)[-1]
    assert expected.items() <= transition.items()
    assert "exception" not in transition
    reasons = sorted(loss["reason"] for loss in of_kind("loss", records))
    assert len(reasons) == len(lost)
    assert all(any(part in reason for reason in reasons) for part in lost)
    for record in records:
        VALIDATOR.validate(json.loads(json.dumps(record)))


def test_transitions_that_cannot_be_recorded_are_counted(called_directly):
    def call(recorder, _):
        for _ in range(1_000):
            recorder.transition()

    records = called_directly(call)

    losses = of_kind("loss", records)
    assert {loss["record_kind"] for loss in losses} == {"transition"}
    assert sum(loss["records"] for loss in losses) == 1_000


@pytest.mark.parametrize(
    ("hook", "arguments", "named", "kind"),
    [
        ("update_graph", (), {"tasks": ["before"]}, "task"),
        ("update_graph", (), {"client": CLIENT, "tasks": 5}, "task"),
        ("remove_worker", (), {}, "worker_removed"),
        ("add_worker", ("nowhere",), {}, "worker_added"),
        ("add_client", (), {"new": 1}, "client_added"),
        ("log_event", (), {}, "event"),
    ],
)
def test_hooks_with_other_arguments_count_a_loss(called_directly, hook, arguments, named, kind):
    records = called_directly(
        lambda recorder, scheduler: getattr(recorder, hook)(scheduler, *arguments, **named)
    )

    assert [loss["record_kind"] for loss in of_kind("loss", records)] == [kind]


@pytest.mark.parametrize(
    ("hook", "arguments", "named", "kind"),
    [
        ("update_graph", (), {"client": CLIENT, "tasks": [], "keys": None}, None),
        ("remove_worker", (WORKERS[0],), {}, "worker_removed"),
        ("remove_worker", (), {"worker": WORKERS[0], "reason": 1}, "worker_removed"),
        ("add_client", (), {"client": "c", "new": 1}, "client_added"),
    ],
)
def test_hooks_with_more_or_fewer_arguments_record(
    called_directly, hook, arguments, named, kind
):
    records = called_directly(
        lambda recorder, scheduler: getattr(recorder, hook)(scheduler, *arguments, **named)
    )

    assert not of_kind("loss", records)
    assert kind is None or of_kind(kind, records)


# -- large events, graphs and clients -------------------------------------------------------


@pytest.mark.parametrize("number", [KEYS_PER_PART, 3 * KEYS_PER_PART])
def test_only_changes_of_wanted_keys_are_recorded(number):
    keys = [("key", n) for n in range(number)]

    async def before(scheduler):
        for key in keys:
            scheduler.new_task(key, None, "released")
        scheduler.client_desires_keys(keys[:10], CLIENT)

    async def work(scheduler):
        scheduler.client_desires_keys(keys, CLIENT)
        release(scheduler, *keys[10:], "unknown")
        release(scheduler, *keys[:10])

    changes = {}
    for record in of_kind("wanted_keys", recorded(work, before, kinds=["wanted_keys"])):
        for change in record["changes"]:
            changes.setdefault(change["action"], Counter()).update(change["keys"])
            assert len(change["keys"]) < 2 * KEYS_PER_PART
    once = dict.fromkeys(map(str, keys), 1)
    assert changes == {"desires": once, "releases": once}


@pytest.mark.parametrize("key", [("x", 1), ODD, ODD_TOO, b"raw", "text"], ids=str)
def test_wanted_keys_of_any_type_are_recorded_as_text(key):
    async def work(scheduler):
        await submit(scheduler, task(key))
        release(scheduler, key)

    records = of_kind("wanted_keys", recorded(work, kinds=["wanted_keys"]))

    changes = [change for record in records for change in record["changes"]]
    assert [change["keys"] for change in changes if change["action"] == "desires"] == [
        [str(key)]
    ]
    assert [change["keys"] for change in changes if change["action"] == "releases"] == [
        [str(key)]
    ]


def test_a_large_event_is_recorded_as_a_small_one():
    keys = {("key", n) for n in range(20_000)}
    removal = {"action": "remove-worker", "processing-tasks": keys, "stimulus_id": "x"}

    async def work(scheduler):
        scheduler.log_event(WORKERS[0], removal)
        scheduler.log_event("mine", {"broken": [NoText()] * 5_000})

    events = {r["topic"]: r for r in of_kind("event", recorded(work, kinds=["event"]))}

    removed = events[WORKERS[0]]
    assert {tuple(key) for key in removed["payload"].pop("processing-tasks")} == keys
    assert removed["payload"] == {"action": "remove-worker", "stimulus_id": "x"}
    assert removed["worker"] == WORKERS[0]
    assert events["mine"]["payload"]["broken"] == ["<NoText>"] * 5_000


def test_long_errors_are_cut():
    begin, end = "ValueError('" + "a" * 50_000, "z" * 50_000 + "')"
    error = transitions.error_of(
        {"exception_text": begin + "x" * 10**7 + end, "traceback_text": end}
    )

    assert error["exception"].startswith(begin[:50_000])
    assert error["exception"].endswith(end[-50_000:])
    assert f"… ({len(begin) + 10**7 + len(end):,} characters) …" in error["exception"]
    assert len(error["exception"]) < 101_000
    assert error["traceback"] == end


def test_workers_are_sampled_in_steps(monkeypatch):
    monkeypatch.setattr(samples, "WORKERS_PER_STEP", 1)

    async def work(_scheduler):
        await asyncio.sleep(0.3)

    found = of_kind("worker_sample", recorded(work, sample_interval_seconds=0.1))

    numbers = Counter(sample["worker"] for sample in found)
    assert numbers[WORKERS[0]] >= 3
    assert abs(numbers[WORKERS[0]] - numbers[WORKERS[1]]) <= 1


def test_workers_of_large_clusters_are_sampled_rarely(monkeypatch):
    monkeypatch.setattr(samples, "MAX_SAMPLES_PER_SECOND", 0.001)
    sampled = []
    taken = samples.scheduler_metrics
    monkeypatch.setattr(samples, "scheduler_metrics", lambda s: sampled.append(1) or taken(s))

    async def work(_scheduler):
        await until(lambda: len(sampled) > 3)

    records = recorded(work, sample_interval_seconds=0.1)

    # At the beginning and at the end.
    times = [sample["t"] for sample in of_kind("worker_sample", records)]
    assert len(times) == 2 * len(WORKERS)
    assert len(of_kind("scheduler_sample", records)) == len(sampled)


def test_few_workers_are_asked_for_their_last_measurements_at_a_time(monkeypatch):
    running, most, asked = [0], [0], []

    async def run_on(_plugins, worker, _function):
        running[0] += 1
        most[0] = max(most[0], running[0])
        asked.append(worker)
        await asyncio.sleep(0)
        running[0] -= 1

    monkeypatch.setattr(WorkerPlugins, "_run_on", run_on)
    monkeypatch.setattr(worker_plugins, "FLUSHES_AT_ONCE", 3)

    async def run():
        async with simulated.simulated_scheduler(20) as scheduler:
            recorder = await attached(scheduler)
            await stopped(recorder)
            return list(scheduler.workers)

    assert sorted(asyncio.run(run())) == sorted(asked)
    assert most == [3]
