"""Probes are independent of each other: each can be left out, fail, or be added."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType

import cloudpickle
import pytest
from distributed import span

import roast_recorder
import roast_schemas
import roast_schemas.records
from roast_recorder.pickling import dumps_by_value, pickled_worker_plugin
from roast_recorder.probes import (
    DECODING,
    PROBES,
    ClientProbe,
    SchedulerProbe,
    WorkerProbe,
    decoder,
)
from roast_recorder.scheduler.plugin import RecorderPlugin
from roast_recorder.settings import Settings

# Workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

LOGS = {"transfers": True, "worker_transitions": True}

#: Kinds that every run of `work` has, of the core and of each probe.
ALWAYS = {
    "task", "transition", "worker_added", "client_added", "worker_sample", "scheduler_sample",
    "host_sample", "span", "fine_metric", "section", "profile", "environment", "graph_update",
    "client_program", "cluster_size", "wanted_keys", "worker_transition", "event",
}  # fmt: skip


def measured(number):
    with roast_recorder.section("part"):
        time.sleep(0.05)
    return number + 1


def work(client):
    with span("outer"):
        numbers = client.map(measured, range(4), pure=False)
        assert client.submit(sum, numbers, pure=False).result() == 10
    client.log_event("mine", "an event")


@pytest.mark.cluster
def test_the_rest_is_recorded_without_the_file_of_any_probe(client, tmp_path, by_kind):
    def recorded(name):
        trace = tmp_path / f"{name}.jsonl"
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, f"roast_recorder.probes.{name}", None)
            with roast_recorder.record(client, trace, host_interval_seconds=1.0, **LOGS):
                work(client)
        return by_kind(trace)

    assert recorded("none").keys() >= ALWAYS
    for name, kinds in PROBES.items():
        records = recorded(name)
        lost = {loss["record_kind"] for loss in records.pop("loss")}
        others = {*kinds} - {"task"}  # spans only add a value to it
        assert not others & {*records}, name
        assert records.keys() >= ALWAYS - others, name
        assert lost == {*kinds}, name
        assert records["trailer"][0]["dropped_by_kind"].keys() == lost, name


WITHOUT_FILES = """
import asyncio, importlib, pkgutil, sys
from types import SimpleNamespace
import roast_recorder
from roast_recorder import client_program, probes
from roast_recorder.settings import Settings, recorded_kinds

assert roast_recorder.__file__.startswith(sys.argv[1]), roast_recorder.__file__
assert not list(pkgutil.iter_modules(probes.__path__))
for module in pkgutil.walk_packages(roast_recorder.__path__, "roast_recorder."):
    if not module.name.startswith(("roast_recorder.coffea", "roast_recorder.demo")):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
asyncio.run(client_program.dask_setup(SimpleNamespace(id="Client-1")))
kinds = recorded_kinds(Settings().as_dict())
for side in ("OnScheduler", "OnWorker", "OnClient"):
    assert len(probes.load(side, kinds, Settings().as_dict())) == 14
print("imported")
try:
    import coffea
except ImportError:
    sys.exit()
with roast_recorder.record(path=f"{sys.argv[1]}/t.jsonl"):
    pass
"""


def test_the_files_of_probes_can_be_removed(tmp_path, by_kind):
    """No other module needs them, neither Dask's preloads nor recordings without a cluster."""
    for package in (roast_recorder, roast_schemas):
        folder = Path(package.__path__[0])
        shutil.copytree(folder, tmp_path / folder.name)
    for file in (tmp_path / "roast_recorder" / "probes").glob("[!_]*.py"):
        file.unlink()
    shutil.rmtree(tmp_path / "roast_recorder" / "probes" / "__pycache__", ignore_errors=True)
    command = [sys.executable, "-c", WITHOUT_FILES, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    done = subprocess.run(command, capture_output=True, text=True, env=environment)

    assert (done.returncode, done.stdout) == (0, "imported\n"), done.stderr
    if (tmp_path / "t.jsonl").exists():
        records = by_kind(tmp_path / "t.jsonl")
        assert not records["environment"]
        [lost] = records["loss"]
        assert "No module named 'roast_recorder.probes.environment'" in lost["reason"]


class OnScheduler(SchedulerProbe):
    def on_graph(self, tasks, t, client, stimulus_id):  # noqa: ARG002
        self.core.record("event", topic="graph", payload=len(tasks))
        raise RuntimeError("no more")

    def finish(self):
        self.core.record("event", topic="end", payload=self.core.settings["label"])


class OnWorker(WorkerProbe):
    def take_last(self):
        return [("event", 1, {"topic": "worker", "payload": self.core.worker.name})]


class OnClient(ClientProbe):
    def _install(self):
        raise KeyError("what Dask once had")


@pytest.mark.cluster
def test_a_probe_is_one_entry_and_one_module(client, trace, by_kind, monkeypatch, caplog):
    """Its records are those of its three sides, and what fails there is lost alone."""

    mine = ModuleType("roast_recorder.probes.mine")
    vars(mine).update(OnScheduler=OnScheduler, OnWorker=OnWorker, OnClient=OnClient)
    monkeypatch.setitem(sys.modules, mine.__name__, mine)
    monkeypatch.setitem(PROBES, "mine", ("event", "stall"))

    with roast_recorder.record(client, trace, label="a run"):
        work(client)

    records = by_kind(trace)
    payloads = {}
    for event in records["event"]:
        payloads.setdefault(event["topic"], []).append(event.get("payload"))
    assert payloads["graph"] == [4, 1]
    assert payloads["end"] == ["a run"]
    assert sorted(payloads["worker"]) == [0, 1]
    assert payloads["mine"] == ["an event"]
    assert {loss["record_kind"] for loss in records["loss"]} == {"event", "stall"}
    reasons = sorted({loss["reason"] for loss in records["loss"]})
    assert "RuntimeError: no more" in reasons[0]
    assert "'what Dask once had' is missing" in reasons[1]
    assert all(reason in caplog.text for reason in reasons)


def test_the_kinds_of_probes_are_declared():
    declared = roast_schemas.records.KINDS

    assert {kind for kinds in PROBES.values() for kind in kinds} <= {*declared}


def test_rows_that_need_a_decoder_have_one():
    for name, kinds in PROBES.items():
        found = getattr(import_module(f"roast_recorder.probes.{name}"), "DECODERS", {})
        assert bool(found) == (name in DECODING), name
        assert {*found} <= {*kinds}, name
        assert all(decoder(kind) == found.get(kind) for kind in kinds if kind != "task"), name


def test_the_writing_process_imports_no_dask_to_decode():
    modules = ", ".join(f"roast_recorder.probes.{name}" for name in DECODING)
    code = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert not {"dask", "distributed", "psutil"} & {*done.stdout.split()}


def test_probes_of_kinds_that_are_not_chosen_do_not_travel():
    few = Settings(kinds=("task", "transition", "stall"))
    for settings in (Settings(), few):
        plugin = RecorderPlugin("a", None, settings.as_dict())
        modules = {create.__module__.rpartition(".")[2] for _, create in plugin.sources}
        assert (modules == {"spans", "stalls"}) == (settings is few)
    sizes = {
        chosen: (
            len(dumps_by_value(RecorderPlugin("a", None, chosen.as_dict()))),
            len(pickled_worker_plugin("a", chosen)),
        )
        for chosen in (Settings(), few)
    }
    assert all(small < 0.8 * whole for whole, small in zip(*sizes.values(), strict=True))
    assert pickled_worker_plugin("a", Settings(kinds=("task",))) is None


@pytest.mark.cluster
def test_the_probe_of_the_contributing_guide(client, trace, by_kind, monkeypatch):
    guide = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text()
    [code] = re.findall(r"^   ```python\n(.*?)^   ```", guide, re.DOTALL | re.MULTILINE)
    module = ModuleType("roast_recorder.probes.kept_tasks")
    exec(textwrap.dedent(code), vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    # Settings do not list its kind, so that another one chooses it.
    monkeypatch.setitem(PROBES, "kept_tasks", ("kept_tasks", "event"))

    with roast_recorder.record(client, trace):
        work(client)

    records = by_kind(trace)
    assert [record["value"] for record in records["kept_tasks"]][-1:] == [{"tasks": 0}]
    assert records["loss"] == []
