"""Secrets planted in all inputs of a recording do not reach the trace."""

import contextlib
import itertools
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import dask
import distributed
import pytest
import zstandard
from distributed import Client, LocalCluster, Nanny, get_worker, span

import roast_recorder

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore:.* refused Bearer")]

#: Parts of each secret. Dask cuts keys at hyphens, so no part may be in the trace. The source,
#: which is recorded too, contains no whole secret.
FRAGMENTS = ["c4n4ry", "Tr1ll", "9f8e7d6c5b4a"]

#: Secrets that are recognized only by their shape.
SHAPES = [
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
]


@dataclass
class WorkItem:
    """The attributes of coffea's work items that the recorder reads."""

    dataset: str
    filename: str
    treename: str = "Events"
    entrystart: int = 0
    entrystop: int = 10
    fileuuid: bytes = b"\x01"
    usermeta: dict = field(default_factory=dict)


XROOTD = "root://user:{}@eos.site:1094//store/file.root?authz=Bearer%20{}&xrd.wantprot=unix"
S3 = "https://s3.site/bucket/file.root?X-Amz-Credential={}&X-Amz-Signature={}&partNumber=1"


def _make_repository(folder, url):
    folder.mkdir()
    identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
    for words in (
        ["init", "-q"],
        [*identity, "commit", "-q", "--allow-empty", "-m", "first"],
        ["remote", "add", "origin", url],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Record a run with secrets in all places.

    Returns the text of the trace, the number of secrets and the writer's arguments.
    """
    folder, numbers = tmp_path_factory.mktemp("secrets"), itertools.count(1)

    def new():
        return "{}-{}-{}-{}".format(*FRAGMENTS[:2], next(numbers), FRAGMENTS[2])

    with pytest.MonkeyPatch.context() as patch:
        plant_in_process(patch, folder, new)
        with dask.config.set(configuration(new)):
            arguments = record_run(folder / "trace.jsonl.zst", new)
    data = (folder / "trace.jsonl.zst").read_bytes()
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        return reader.read().decode(), next(numbers), arguments


def plant_in_process(patch, folder, new):
    """Plant secrets in environment variables, arguments, a batch job and a repository."""
    for name, value in {
        "AWS_SECRET_ACCESS_KEY": new(), "X509_USER_PROXY": f"/tmp/{new()}",
        "SLURM_JOB_ID": "77", "SLURM_JWT": new(), "SLURM_JOB_COMMENT": new(),
        "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_BEARER": new(),
        "_CONDOR_JOB_AD": str(folder / "job.ad"),
    }.items():  # fmt: skip
        patch.setenv(name, value)
    (folder / "job.ad").write_text(
        f'ClusterId = 1\nProcId = 0\nEnvironment = "A={new()}"\nArgs = "-x {new()}"\n'
    )
    arguments = [
        "my.py", "--token", new(), f"--password={new()}", new(), "--n=3",
        f"https://u:{new()}@site/x", "-H", f"Authorization: Bearer {new()}",
    ]  # fmt: skip
    patch.setattr(sys, "argv", arguments)
    _make_repository(folder / "work", f"https://oauth2:{new()}@git.site/group/repo.git")
    patch.chdir(folder / "work")


def configuration(new):
    return {
        "distributed.nanny.environ": {"WHATEVER": new(), "OMP_NUM_THREADS": new()},
        "distributed.comm.tls.ca-file": f"/etc/{new()}.pem",
        "distributed.scheduler.preload-argv": ["--x", new()],
        "distributed.dashboard.link": f"https://u:{new()}@hub/{{port}}/status",
        "distributed.adaptive.interval": f"password={new()}",
        "gateway.auth.kwargs": {"x": new()},
        "jobqueue.slurm.job-script-prologue": [f"export X={new()}"],
        "some.site.plain": new(),
        "some.list": [new(), {"headers": new()}],
        "some.long.api_key": new(),
        "distributed.comm.tls.client.key": new(),
        "distributed.scheduler.worker-ttl": None,
        "jobqueue.slurm.password": new(),
        "s3.token": new(),
    }


def record_run(path, new):
    """Plant secrets in the names, keys, errors, events and metadata of a run.

    Returns the arguments of the process that writes the trace.
    """
    items = [
        WorkItem("a", XROOTD.format(new(), new()), usermeta={"api_token": new(), "xsec": 1.0}),
        WorkItem("b", S3.format(new(), new()), usermeta={"nested": {"password": new()}}),
    ]
    error = f"login refused for https://me:{new()}@site/ with password={new()!r}, token {new()}"

    def fail(_item):
        raise OSError(error)

    def report(_item, password, url, bearer):
        distributed.print(f"connect with password={password}")
        distributed.warn(f"{url} refused {bearer}")
        get_worker().log_event(url, {"sent": [("Authorization", bearer)]})
        with roast_recorder.section(f"read {url}"):
            pass

    options = {
        "n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0",
        "env": {"WORKERS_OWN": new()},
    }  # fmt: skip
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster(**options))
        client = stack.enter_context(Client(cluster, name=f"me-token={new()}"))
        kinds = {"transfers": True, "worker_transitions": True}
        recording = stack.enter_context(roast_recorder.record(client, path, code=True, **kinds))
        for number, item in enumerate(items):
            client.submit(fail, item, key=f"chunk-{number}", retries=1).exception()

        # In a separate process: unpickled in this one, a plugin replaces the methods of the
        # recorder's classes, and later tests would patch its modules without effect.
        async def start_worker(name):
            return await Nanny(cluster.scheduler_address, name=name, nthreads=1)

        worker = cluster.sync(start_worker, f"https://u:{new()}@node password={new()}")
        with dask.annotate(secret_key=new()), span(f"token={new()}", f"https://u:{new()}@h/x"):
            key = f"read root://u:{new()}@site//f"
            secrets = new(), f"https://u:{new()}@h/y", f"Bearer {new()}"
            client.submit(
                report, 1, *secrets, key=key, workers=[worker.worker_address]
            ).result()
        # The group of a tuple key is its whole first element, of a string key its prefix.
        client.submit(len, "a", key=(f"load https://u:{new()}@h token={new()}", 3)).result()
        for key in (
            f"get-password={new()}-x",
            f"get Bearer {new()}",
            *map("get {}".format, SHAPES),
        ):
            client.submit(len, "a", key=key).result()
        layer = dask.delayed(len)("a", dask_key_name=f"sum --api-key {new()} -v")
        client.compute(layer).result()
        client.cancel(client.submit(len, "a", key=f"drop?sig={new()}&x=1"))
        client.scatter({f"https://me:{new()}@site/password={new()}": 1, f"Bearer {new()}": 2})
        client.log_event(
            f"topic secret={new()}", {"authorization": f"Bearer {new()}", "n": 1, "url": "x"}
        )
        client.log_event("topic", [f"GET /x Authorization: Bearer {new()}", {"key": new()[:0]}])
        client.log_event("topic", f"sent {{'Authorization': 'Bearer {new()}'}} {SHAPES}")
        client.run(lambda _: None, new())
        cluster.sync(worker.close)
        arguments = Path(f"/proc/{recording._writer._process.pid}/cmdline")
        return arguments.read_text() if arguments.exists() else None


def test_no_canary_is_in_the_trace(planted):
    text, secrets, _ = planted

    assert secrets >= 60
    leaks = [line for line in text.splitlines() if any(f in line for f in FRAGMENTS + SHAPES)]
    assert leaks == []


def test_records_contain_redacted_names(planted):
    text, *_ = planted
    text = re.sub("<redacted:[0-9a-f]{10}>", "<redacted>", text)
    lines = [json.loads(line) for line in text.splitlines()]

    def values(kind, name):
        return {json.dumps(line.get(name)) for line in lines if line["kind"] == kind}

    changed = {line["key"] for line in lines if line["kind"] == "worker_transition"}
    moved = {key for line in lines if line["kind"] == "transfer" for key in line["keys"]}
    assert {"chunk-0", "read root://<redacted>@site//f"} <= changed
    assert {"https://<redacted>@site/password=<redacted>"} <= moved & changed
    assert '["token=<redacted>", "https://<redacted>@h/x"]' in values("span", "span_name")
    assert '"https://<redacted>@node password=<redacted>"' in values("worker_added", "name")
    assert '"load https://<redacted>@h token=<redacted>"' in values("task", "group")
    assert '"read https://<redacted>@h/y"' in values("section", "name")
    topics = {"topic secret=<redacted>", "https://<redacted>@h/y", "topic", "print", "warn"}
    assert set(map(json.dumps, topics)) <= values("event", "topic")
    assert {'"Client-me-token=<redacted>"'} == values("client_added", "client")


def test_the_trailer_contains_the_number_of_replacements(planted):
    text, *_ = planted
    lines = text.splitlines()

    assert '"kind":"trailer"' in lines[-1]
    assert f'"redacted_values":{text.count("<redacted:")}' in lines[-1]
    assert text.count("<redacted:") >= 12


def test_text_beside_secrets_remains(planted):
    text, *_ = planted

    for part in ("eos.site:1094//store/file.root", "s3.site/bucket/file.root", '"xsec":1.0',
                 "login refused for https://", "partNumber=1", '"topic":"topic"',
                 '"SLURM_JOB_ID":"77"',
                 '"ClusterId = 1\\nProcId = 0"', '"my.py"', '"--n=3"',
                 "git.site/group/repo.git",
                 '"git commit"', "OMP_NUM_THREADS", "site/x"):  # fmt: skip
        assert part in text


def test_arguments_of_the_writer_contain_no_address(planted):
    arguments = planted[2]
    if arguments is None:
        pytest.skip("no /proc")

    assert "roast_recorder.writer.process" in arguments
    assert not any(part in arguments for part in ["127.0.0.1", *FRAGMENTS])
