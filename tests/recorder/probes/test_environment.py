"""Facts about processes, machines, packages, configuration, the program and the cluster."""

import importlib.metadata
import logging
import os
import re
import subprocess
import sys
import time
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import dask
import orjson
import pytest
from distributed import Client, Nanny, SchedulerPlugin
from distributed.deploy.spec import SpecCluster

import roast_recorder
from roast_recorder.commands.run import dask_variables
from roast_recorder.probes import environment
from roast_recorder.probes.environment import WITHHELD
from roast_recorder.program import start_of_program
from roast_recorder.scheduler.tap import Tap
from roast_recorder.scheduler.wire_format import unpack
from roast_recorder.settings import Settings


def record_facts(client, path, read_lines, workers, during=lambda: None):
    """Record until this number of workers is described; return the facts in the trace."""

    def wait_for(text, times):
        deadline = time.monotonic() + 30
        while path.read_text().count(text) < times:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    with roast_recorder.record(client, path):
        wait_for('"section":"client","name":"program"', 1)
        during()
        wait_for('"section":"process","name":"worker"', workers)
    return [line for line in read_lines(path) if line["kind"] == "environment"]


def of(section, facts):
    return {fact["name"]: fact.get("value") for fact in facts if fact["section"] == section}


def processes(facts):
    return [fact for fact in facts if fact["section"] == "process"]


class Late(SchedulerPlugin):
    name = "late"


@pytest.fixture(scope="module")
def facts(own_cluster, tmp_path_factory, read_lines):
    """Return the facts about a worker in a batch job, two that join later, and a plugin."""
    folder = tmp_path_factory.mktemp("facts")
    (folder / "fakepkg-7.0.dist-info").mkdir()

    def change(folder):
        os.environ.update(SLURM_JOB_ID="77", SLURM_JOB_PARTITION="cms", SLURM_JWT="canary")
        sys.path.append(folder)

    with (
        pytest.MonkeyPatch.context() as patch,
        own_cluster(1, silence_logs=logging.CRITICAL) as (cluster, client),
    ):
        client.run(change, str(folder))

        def during():
            cluster.scale(3)
            client.register_plugin(Late())

        patch.setattr(sys, "argv", ["/x/my.py", "a.root", "--token", "canary", "-n", "4"])
        return record_facts(client, folder / "trace.jsonl", read_lines, 3, during)


@pytest.mark.cluster
def test_every_process_is_described(facts):
    described = processes(facts)
    names = sorted(fact["name"] for fact in described)
    assert names == ["client", "scheduler", "worker", "worker", "worker"]
    assert len({fact["server_id"] for fact in described if "server_id" in fact}) == 3
    for fact in described:
        value = fact["value"]
        assert value["machine"]["cores"] == os.cpu_count()
        assert value["python"] == sys.version.split()[0]
        assert value["files"][0]["path"] == "/proc/cpuinfo"
        packages = dict(of("packages", facts)[value["packages"]])
        assert packages["dask"] == dask.__version__
        differing = of("configuration", facts)[value["configuration"]]
        # Older versions of Dask change this list themselves; the tests set the method.
        changed = {
            "distributed.scheduler.http.routes",
            "distributed.worker.multiprocessing-method",
        }
        if "dask_awkward" in sys.modules:  # imported by another test; it configures Dask
            changed.add("distributed.scheduler.allowed-imports")
            changed |= {name for name in differing if name.startswith("awkward.")}
        assert differing.keys() <= changed
        defaults = of("defaults", facts)[value["defaults"]]
        assert defaults["distributed.worker.memory.spill"] == 0.7


@pytest.mark.cluster
def test_sheets_are_recorded_once(facts):
    for section in ("packages", "defaults"):
        names = [fact["name"] for fact in facts if fact["section"] == section]
        # One process differs. The client records its own, the scheduler all others once.
        assert len(set(names)) <= 2
        assert len(names) <= 3


@pytest.mark.cluster
def test_a_worker_in_a_job_with_one_package_that_differs(facts):
    workers = [fact["value"] for fact in processes(facts) if fact["name"] == "worker"]

    [in_job] = [worker for worker in workers if worker["variables"]]
    assert in_job["variables"] == {"SLURM_JOB_ID": "77", "SLURM_JOB_PARTITION": "cms"}
    packages = of("packages", facts)
    assert dict(packages[in_job["packages"]])["fakepkg"] == "7.0"
    assert sum("fakepkg" in dict(listed) for listed in packages.values()) == 1


@pytest.mark.cluster
def test_scheduler_cluster_and_program(facts):
    scheduler, cluster, client = (of(s, facts) for s in ("scheduler", "cluster", "client"))

    assert "shuffle" in scheduler["worker plugins"]
    assert {"stealing", "spans"} <= set(scheduler["extensions"])
    assert not any(name.startswith("roast") for name in scheduler["plugins"])
    # Plugins that change during the run are recorded again.
    assert "late" not in scheduler["plugins"]
    assert "late" in scheduler["plugins when recording ended"]
    assert "worker plugins when recording ended" not in scheduler
    assert cluster["type"] == "distributed.deploy.local.LocalCluster"
    assert (cluster["workers asked for"], cluster["nthreads"]) == (1, 1)
    assert client["program"] == "my.py"
    assert re.sub(r":\w{10}>", ">", str(client["arguments"])) == (
        "['a.root', '--token', '<redacted>', '-n', '4']"
    )


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_workers_without_roast_are_described(start_scheduler, tmp_path, read_lines):
    _, address = start_scheduler(workers=1)

    with Client(address) as client:
        client.wait_for_workers(1)
        facts = record_facts(client, tmp_path / "t.jsonl", read_lines, 1)

    names = sorted(fact["name"] for fact in processes(facts))
    assert names == ["client", "scheduler", "worker"]


def test_a_failing_fact_leaves_the_others(monkeypatch):
    def fail(*_):
        raise OSError("no such thing")

    monkeypatch.setattr(environment, "machine", fail)
    monkeypatch.setattr(environment, "packages", fail)

    *sheets, process = environment.describe_process("client", Settings().as_dict())

    assert (process["section"], process["value"]["role"]) == ("process", "client")
    assert "machine" not in process["value"]
    assert {sheet["section"] for sheet in sheets} == {
        "configuration", "config_sources", "defaults",
    }  # fmt: skip


def test_a_number_beyond_64_bits_does_not_remove_the_configuration():
    with dask.config.set({"distributed.scheduler.allowed-failures": 2**70}):
        packed = environment.packed_facts("scheduler", Settings().as_dict())

    facts = [fact for _, records in packed for fact in unpack(records)]
    [sheet] = [fact["value"] for fact in facts if fact["section"] == "configuration"]
    assert str(2**70) in orjson.dumps(sheet).decode()


# --- files and variables -------------------------------------------------------------------


def test_only_listed_variables_are_recorded():
    environ = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_JWT": "canary", "QUEUE": "x"}

    assert environment.variables(environ) == {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0"}
    assert environment.variables({"HOME": "/root", "HOSTNAME": "h", "QUEUE": "x"}) == {}
    assert environment.variables({"OAR_JOB_ID": "x" * 99_999})["OAR_JOB_ID"] == "x" * 10_000


def test_files_of_machine_control_groups_and_pod(tmp_path):
    texts = {
        "/proc/cpuinfo": "processor\t: 0\nmodel name\t: Xeon\nflags: a\nmodel name\t: Xeon",
        "/proc/self/cgroup": "4:memory:/a\n2:cpu,cpuacct:/a/../b\n1:name=systemd:/c\n0::/a",
        "/sys/fs/cgroup/a/memory.max": "5000",
        "/sys/fs/cgroup/memory.max": "max",
        "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096",
        "/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us": "-1",
        "/sys/fs/cgroup/cpu/a/cpu.max": "1 2",
        "/var/run/secrets/kubernetes.io/serviceaccount/namespace": "physics",
    }
    for path, text in {
        **texts,
        "/sys/fs/cgroup/c/memory.max": "canary",
        "/var/run/secrets/kubernetes.io/serviceaccount/token": "canary",
    }.items():
        file = tmp_path / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    found = environment.files({"KUBERNETES_SERVICE_HOST": "x"}, tmp_path)

    texts["/proc/cpuinfo"] = "model name\t: Xeon"
    assert {file["path"]: file["text"] for file in found} == texts
    assert len(found) == len(texts)
    assert len(environment.files({}, tmp_path)) == len(texts) - 1
    assert environment.files({}, tmp_path / "missing") == []


def test_only_listed_lines_of_a_job_ad_are_recorded(tmp_path):
    ad = tmp_path / "job.ad"
    lines = ["ClusterId = 1", 'GlobalJobId = "s#1"', "JobStartDate = 17"]
    ad.write_text(
        "\n".join([*lines, 'Args = "canary"', "Owner = 1", 'Name = "a\\"b"', "Cpus = f()"])
    )

    [file] = environment.files({"_CONDOR_JOB_AD": str(ad)}, tmp_path)

    assert file == {"path": str(ad), "text": "\n".join(lines)}
    ad.write_bytes(b"\xff\xfe ClusterId\n= = =\n" * 100)
    assert environment.files({"_CONDOR_JOB_AD": str(ad)}, tmp_path) == []


def test_only_the_hosts_of_a_node_file_are_recorded(tmp_path):
    nodes = tmp_path / "pe_hostfile"
    nodes.write_text("n1.site 8 all.q@n1 <NULL>\n" * 9 + "n2\nn1.site 1\n$(canary)\nn3")

    [file] = environment.files({"SGE_ROOT": "/sge", "PE_HOSTFILE": str(nodes)}, tmp_path)

    assert file == {"path": str(nodes), "text": "n1.site\nn2\nn3"}
    assert environment.files({"PE_HOSTFILE": str(nodes)}, tmp_path) == []  # no job


# --- packages ------------------------------------------------------------------------------


def test_packages_are_named_by_their_folders(tmp_path):
    def folder(name, *packages):
        for package in packages:
            (tmp_path / name / package).mkdir(parents=True)
        return str(tmp_path / name)

    site = folder(
        "site",
        "numpy-2.1.0.dist-info", "dask_image-2026.5.0.dist-info", "Zope.Thing-1.dist-info",
        "old-0.9-py3.11.egg-info", "local-1.0+cuda12.dist-info", "numpy", "note.txt",
        "plain.egg-info", "empty.egg-info",
    )  # fmt: skip
    (tmp_path / "site/plain.egg-info/PKG-INFO").write_text("Name: Plain\nVersion: 7\n")

    # The first folder takes precedence, as in an import.
    found = environment.packages(folders=[site, folder("b", "numpy-3.dist-info"), "/missing"])

    assert [package for package in found if package[0] != "none"] == [
        ("dask-image", "2026.5.0"), ("local", "1.0+cuda12"), ("numpy", "2.1.0"),
        ("old", "0.9"), ("plain", "7"), ("zope-thing", "1"),
    ]  # fmt: skip
    known = [("dask-image", "2026.5.0"), ("numpy", "2.1.0")]
    assert environment.packages("known", [site]) == known
    assert dict(environment.packages())["orjson"] == importlib.metadata.version("orjson")


# --- configuration -------------------------------------------------------------------------


def differing(options, **how):
    with dask.config.set(options):
        return environment.configuration(**how)["configuration"]


def test_the_preload_of_run_is_no_option_of_the_user():
    [own] = dask.config.interpret_value(dask_variables()["DASK_DISTRIBUTED__CLIENT__PRELOAD"])

    with dask.config.set({"distributed.client.preload": [own]}):
        assert "distributed.client.preload" not in environment.configuration()["configuration"]
    with dask.config.set({"distributed.client.preload": ["mine", own]}):
        found = environment.configuration()["configuration"]
        assert found["distributed.client.preload"] == ["mine"]


@pytest.mark.parametrize(
    ("program", "name", "start"),
    [
        ("run.py", "", {}),
        ("./run.py", "", {}),
        ("fits/../fits/run.py", "", {"path": "fits/run.py"}),
        ("{here}/fits/run.py", "", {"path": "fits/run.py"}),
        ("../run.py", "", {}),
        ("/other/run.py", "", {}),
        ("{here}/fits/__main__.py", "fits.__main__", {"module": "fits"}),
        ("fits", "__main__", {}),
    ],
)
def test_how_the_program_was_started(monkeypatch, tmp_path, program, name, start):
    monkeypatch.chdir(tmp_path)
    main = SimpleNamespace(__spec__=ModuleSpec(name, None) if name else None)
    monkeypatch.setitem(sys.modules, "__main__", main)

    assert start_of_program(program.format(here=tmp_path)) == start


def test_the_configuration_contains_options_that_differ_from_the_defaults():
    defaults = environment.configuration()["defaults"]
    assert defaults["distributed.worker.memory.spill"] == 0.7
    assert defaults["distributed.comm.tls.client.key"] is None
    assert defaults["distributed.adaptive.maximum"] == "inf"  # JSON has no infinity

    for name, value in {
        "distributed.worker.memory.spill": 0.71,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.target": None,
        "distributed.scheduler.worker-ttl": "1 hour",
        "distributed.scheduler.preload": ["one", "two"],
        "distributed.worker.resources.GPU": 2,
        "distributed.comm.tls.min-version": 1.3,
        "distributed.nanny.pre-spawn-environ.OMP_NUM_THREADS": "4",
        "mine.workers": 4,
    }.items():
        assert differing({name: value})[name] == value

    assert "distributed.worker.memory.spill" not in differing(
        {"distributed.worker.memory.spill": 0.7}
    )
    spelled = differing({"distributed.scheduler.worker_ttl": "1 hour"})
    assert spelled["distributed.scheduler.worker-ttl"] == "1 hour"
    assert "distributed.scheduler.worker_ttl" not in spelled
    assert differing({"array.backend": "x" * 5_000})["array.backend"] == "x" * 1_000


def test_options_that_may_contain_a_secret_are_withheld():
    for name, value in {
        "distributed.nanny.environ.WHATEVER": "canary",
        "distributed.nanny.pre-spawn-environ.OMP_NUM_THREADS": "canary",
        "distributed.nanny.preload-argv": ["--x", "canary"],
        "distributed.comm.tls.ca-file": "/canary.pem",
        "distributed.client.security-loader": "canary.load",
        "distributed.scheduler.preload": ["import os\ncanary = 1"],
        "mine.name": "canary",
        "mine.list": ["canary"],
        "gateway.auth.kwargs": {"x": "canary"},
        "jobqueue.slurm.env-extra": ["export X=canary"],
    }.items():
        found = differing({name: value})
        assert "canary" not in str(list(found.values())), name
        assert WITHHELD in str([v for n, v in found.items() if n.startswith(name)]), name

    for empty in (False, "", []):  # contains no secret
        name = "distributed.comm.tls.ca-file"
        assert differing({name: empty})[name] == empty
    own = {"mine.site": "here", "mine.environ.X": "canary", "mine.thing": object()}
    found = differing(own, own=True)
    assert (found["mine.site"], found["mine.environ.X"]) == ("here", WITHHELD)
    assert found["mine.thing"] == "<builtins.object>"

    left_out = ["roast.recorder.x", "internal-inherit-config", "scheduler", "parent"]
    assert differing(dict.fromkeys(left_out, 1)).keys().isdisjoint(left_out)


def test_files_and_variables_that_set_options_are_named_without_values(tmp_path, monkeypatch):
    (tmp_path / "a.yaml").write_text(
        "distributed: {worker: {memory: {spill: 0.8, pause: 0.9}}}\n"
        "allowed-failures: 5\nmine: {token: canary}\n"
    )
    (tmp_path / "b.yaml").write_text("# only: comments\n")
    monkeypatch.setattr(dask.config, "paths", [str(tmp_path)])
    environ = {
        "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "0.81",
        "DASK_DISTRIBUTED__WORKER__RESOURCES": "{'GPU': 2}",
        "PATH": "canary",
    }
    set_by_code = {"distributed.worker.memory.pause": 0.91, "distributed.worker.nthreads": 3}

    with dask.config.set({
        "distributed.worker.memory.spill": 0.81, "mine.token": "canary",
        "distributed.worker.resources.GPU": 2, "distributed.scheduler.allowed-failures": 5,
        **set_by_code,
    }):  # fmt: skip
        found = environment.configuration_sources(environ)

    assert found == [
        {
            "kind": "file",
            "name": str(tmp_path / "a.yaml"),
            "options": [
                "distributed.worker.memory.spill",
                "distributed.worker.memory.pause",
                "distributed.scheduler.allowed-failures",  # the new name
                "mine.token",
            ],
        },
        {
            "kind": "variable",
            "name": "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL",
            "options": ["distributed.worker.memory.spill"],
        },
        {
            "kind": "variable",
            "name": "DASK_DISTRIBUTED__WORKER__RESOURCES",
            "options": ["distributed.worker.resources.GPU"],
        },
        {"kind": "code", "options": ["distributed.worker.memory.pause"]},
    ]


# --- cluster and program -------------------------------------------------------------------


def test_a_cluster_of_a_batch_system_is_described_by_listed_arguments():
    class SLURMCluster(SpecCluster):
        def __init__(self):
            self.new_spec = {
                "cls": Nanny,
                "options": {
                    "cores": 8, "memory": "16GB", "queue": "cms", "walltime": "01:00:00",
                    "processes": 2, "job_script_prologue": ["export TOKEN=canary"],
                    "env_extra": ["X=canary"], "worker_extra_args": ["--secret", "canary"],
                    "resources": {"GPU": 1, "x": "canary"}, "security": object(),
                    "log_directory": "/home/canary", "python": "/home/canary/bin/python",
                },
            }  # fmt: skip
            self.worker_spec = {0: self.new_spec, 1: self.new_spec}
            self._adaptive = SimpleNamespace(minimum=2, maximum=float("inf"))
            self._nthreads, self._name = 3, "canary"

    facts = environment.cluster_facts(SLURMCluster())

    assert facts.pop("type").endswith("SLURMCluster")
    assert facts == {
        "worker type": "distributed.nanny.Nanny", "workers asked for": 2, "cores": 8,
        "memory": "16GB", "queue": "cms", "walltime": "01:00:00", "processes": 2,
        "resources": {"GPU": 1}, "nthreads": 3, "adapts to minimum": 2,
        "adapts to maximum": "inf",
    }  # fmt: skip
    assert environment.cluster_facts(None) == {}


def test_arguments_that_resemble_a_token_are_withheld():
    plain = ["data.root", "--chunks", "100", "-v", "--year=2018", "TTTo2L2Nu_13TeV-powheg"]
    plain += ["2018UL_nanoaod_v9_all_chunks", "/store/user/a8Kd93jfL2mQ0xZ7/file.root"]
    assert environment.arguments(plain) == plain
    assert environment.arguments(
        ["c4n4ry-Tr1ll-1-9f8e7d6c5b4a", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY1x",
         "9f86d081884c7d659a2feaa0c55ad015", "two\nlines", "--thing=a8Kd93jfL2mQ0xZ7"]
    ) == [WITHHELD, WITHHELD, WITHHELD, WITHHELD, f"--thing={WITHHELD}"]  # fmt: skip
    assert environment.arguments(["x" * 1_000] * 1_000) == ["x" * 300] * 100


def test_the_git_commit_of_the_working_folder(tmp_path, monkeypatch):
    def git(*words):
        identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
        done = subprocess.run(["git", *identity, *words], check=True, capture_output=True)
        return done.stdout.decode().strip()

    monkeypatch.chdir(tmp_path)
    assert environment.git_facts() == {}
    git("init", "-b", "main")
    assert environment.git_facts() == {}
    (tmp_path / "analysis.py").write_text("1\n")
    git("add", ".")
    git("commit", "-m", "first")
    git("remote", "add", "origin", "https://oauth2:glpat-canary@git.site/group/r.git?x=canary")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    (tmp_path / "untracked.txt").write_text("x")

    assert environment.git_facts() == {
        "git commit": git("rev-parse", "HEAD"),
        "git branch": "main",
        "git remote": "git.site/group/r.git",
        "git dirty": False,
    }

    (tmp_path / "analysis.py").write_text("2\n")
    git("checkout", "-q", "--detach")
    for url, place in {
        "git@github.com:org/repo.git": "github.com/org/repo.git",
        "ssh://git@site:7999/org/repo.git": "site/org/repo.git",
        "/home/somebody/repo": None,
        "https://site/a8Kd93jfL2mQ0xZ7/repo": f"site/{WITHHELD}/repo",
    }.items():
        git("remote", "set-url", "origin", url)
        facts = environment.git_facts()
        assert facts["git remote"] == place
        assert (facts["git branch"], facts["git dirty"]) == (None, True)


def test_each_sheet_is_recorded_once_up_to_a_number(monkeypatch):
    monkeypatch.setattr(environment, "MAX_SHEETS", 1)
    rows = []
    names = ("plugins", "extensions", "worker_plugins", "nanny_plugins")
    core = SimpleNamespace(
        scheduler=SimpleNamespace(**dict.fromkeys(names, ())),
        tap=Tap(print),
        append=rows.append,
        record=lambda *_, **__: None,
        operation=lambda *_: None,
        run=lambda coroutine: coroutine.close(),
    )
    probe = environment.OnScheduler(core)
    for sheet in ("a", "a", "b"):
        probe.record_process([(sheet, b"sheet"), (None, b"process")])

    kinds, contents = [row[0] for row in rows], [row[3] for row in rows]
    assert kinds == ["environment"] * 3 + ["loss", "environment"]
    assert contents[:3] + contents[4:] == [b"sheet", b"process", b"process", b"process"]
    times = {name: contents[3].pop(name) for name in ("start_t", "stop_t")}
    assert times["start_t"] == times["stop_t"] == rows[3][1]
    assert contents[3] == {
        "reason": "more configurations or lists of packages than are kept",
        "record_kind": "environment",
        "records": 1,
    }
