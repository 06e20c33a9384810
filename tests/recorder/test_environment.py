"""What is recorded of processes, the program and the cluster, and what stays out."""

import logging
import os
import sys
import time
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

import roast_recorder
from roast_recorder import process

pytestmark = pytest.mark.cluster


def facts_in(lines):
    return [line for line in lines if line["kind"] == "environment"]


def wait_for_workers_to_say(path, workers):
    """Wait until workers have said what they are: a busy machine takes its time."""
    deadline = time.monotonic() + 30
    while path.read_text().count('"section":"process","name":"worker"') < workers:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def record_run(tmp_path, read_lines):
    """Facts of a recording of a cluster of its own, of a few workers that are there."""

    def record_run(workers=2, later=0, before=lambda _client: None, **settings):
        path = tmp_path / "trace.jsonl"
        with (
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            before(client)
            with roast_recorder.record(client, path, **settings):
                cluster.scale(workers + later)
                client.wait_for_workers(workers + later)
                client.submit(sum, [1]).result()
                if "environment" in settings.get("kinds", ["environment"]):
                    wait_for_workers_to_say(path, workers + later)
        return facts_in(read_lines(path))

    return record_run


def of(section, facts):
    return {fact["name"]: fact.get("value") for fact in facts if fact["section"] == section}


def processes(facts):
    return [fact for fact in facts if fact["section"] == process.PROCESS]


def test_every_process_says_what_it_runs_with_and_on(record_run):
    facts = record_run(workers=2)

    told = processes(facts)
    assert sorted(fact["name"] for fact in told) == ["client", "scheduler", "worker", "worker"]
    assert len({fact["server_id"] for fact in told if "server_id" in fact}) == 2
    for fact in told:
        value = fact["value"]
        assert value["machine"]["cores"] == os.cpu_count()
        assert value["python"] == sys.version.split()[0]
        assert value["jobs"] == []
        packages = dict(of("packages", facts)[value["packages"]])
        assert packages["dask"] == dask.__version__
        differing = of("configuration", facts)[value["configuration"]]
        # Older versions of Dask change this list themselves.
        changed = {"distributed.scheduler.http.routes"}
        if "dask_awkward" in sys.modules:  # by another test, and it configures Dask
            changed.add("distributed.scheduler.allowed-imports")
            changed |= {name for name in differing if name.startswith("awkward.")}
        assert differing.keys() <= changed
        assert (
            of("defaults", facts)[value["defaults"]]["distributed.worker.memory.spill"] == 0.7
        )


def test_workers_that_come_later_say_so_too_and_what_they_share_is_written_once(record_run):
    facts = record_run(workers=1, later=2)

    assert [fact["name"] for fact in processes(facts)].count("worker") == 3
    for section in ("packages", "defaults"):
        names = [fact["name"] for fact in facts if fact["section"] == section]
        # The client tells it, and the scheduler once for all.
        assert len(names) - len(set(names)) <= 1
        assert len(names) <= 3


def test_scheduler_and_cluster(record_run):
    facts = record_run(workers=1)

    scheduler, cluster = of("scheduler", facts), of("cluster", facts)
    assert scheduler["workers when recording began"] == 1
    assert "shuffle" in scheduler["worker plugins"]
    assert {"stealing", "spans"} <= set(scheduler["extensions"])
    assert not any(name.startswith("roast") for name in scheduler["plugins"])
    assert cluster["type"] == "distributed.deploy.local.LocalCluster"
    assert (cluster["workers asked for"], cluster["nthreads"]) == (1, 1)


def test_plugins_that_come_meanwhile_are_named_at_the_end(client, tmp_path, read_lines):
    from distributed import SchedulerPlugin

    class Late(SchedulerPlugin):
        name = "late"

    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        client.register_plugin(Late())
    client.unregister_scheduler_plugin("late")

    scheduler = of("scheduler", facts_in(read_lines(tmp_path / "trace.jsonl")))
    assert "late" not in scheduler["plugins"]
    assert "late" in scheduler["plugins when recording ended"]
    assert "worker plugins when recording ended" not in scheduler


def test_the_program(client, tmp_path, read_lines, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/x/my.py", "data.root", "--token", "canary", "-n", "4"])

    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        pass

    told = of("client", facts_in(read_lines(tmp_path / "trace.jsonl")))
    assert told["program"] == "my.py"
    assert told["arguments"] == ["data.root", "--token", "<redacted>", "-n", "4"]


def test_a_worker_in_a_job_and_one_package_that_differs(record_run, tmp_path):
    (tmp_path / "fakepkg-7.0.dist-info").mkdir()

    def change(dask_worker, folder):
        if dask_worker.name == 0:
            os.environ.update(SLURM_JOB_ID="77", SLURM_JOB_PARTITION="cms", SLURM_JWT="canary")
            sys.path.append(folder)

    facts = record_run(before=lambda client: client.run(change, folder=str(tmp_path)))

    workers = [fact["value"] for fact in processes(facts) if fact["name"] == "worker"]
    [there] = [worker for worker in workers if worker["jobs"]]
    assert there["jobs"] == [{"system": "SLURM", "job_id": "77", "queue": "cms"}]
    packages = of("packages", facts)
    assert dict(packages[there["packages"]])["fakepkg"] == "7.0"
    assert sum("fakepkg" in dict(listed) for listed in packages.values()) == 1


def test_without_the_kind_nothing_is_said(record_run):
    assert record_run(kinds=["task", "transition"]) == []


def test_only_known_packages(record_run):
    [listed] = of("packages", record_run(packages="known")).values()

    assert {"dask", "numpy"} <= dict(listed).keys()
    assert "pytest" not in dict(listed)


def test_workers_without_roast_say_what_they_are(scheduler_process, tmp_path, read_lines):
    _, address = scheduler_process

    with Client(address) as client:
        client.wait_for_workers(2)
        with roast_recorder.record(client, tmp_path / "t.jsonl"):
            wait_for_workers_to_say(tmp_path / "t.jsonl", 2)

    names = [fact["name"] for fact in processes(facts_in(read_lines(tmp_path / "t.jsonl")))]
    assert sorted(names) == ["client", "scheduler", "worker", "worker"]


def test_a_part_that_fails_costs_no_other(monkeypatch):
    def fail(*_):
        raise OSError("no such thing")

    monkeypatch.setattr(process.machine, "describe", fail)
    monkeypatch.setattr(process.packages, "installed", fail)

    told, sheets = process.describe("client", roast_recorder.settings.Settings().as_dict())

    assert told["role"] == "client"
    assert "machine" not in told
    assert {section for section, _ in sheets.values()} == {"configuration", "defaults"}


def test_there_is_an_end_of_sheets():
    known = process.Sheets()

    new = [known.is_new(str(n)) for n in range(process.MAX_SHEETS + 5)]

    assert new.count(True) == process.MAX_SHEETS
    assert (known.lacks("0"), known.lacks(str(process.MAX_SHEETS))) == (False, True)


def test_what_is_not_on_the_list_never_gets_in(client, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-of-the-environment")

    with (
        dask.config.set({"jobqueue.password": "canary-of-the-configuration"}),
        roast_recorder.record(client, tmp_path / "trace.jsonl"),
    ):
        pass

    assert "canary" not in Path(tmp_path / "trace.jsonl").read_text()
