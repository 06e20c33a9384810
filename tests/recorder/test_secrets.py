"""Secrets planted in all inputs of a recording do not reach the trace."""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import dask
import pytest
import zstandard
from distributed import Client, LocalCluster

import roast_recorder

pytestmark = pytest.mark.cluster

CANARY = "c4n4ry-Tr1ll-{}-9f8e7d6c5b4a"


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


def canaries():
    number = 0
    while True:
        number += 1
        yield CANARY.format(number)


def _make_repository(folder, url):
    folder.mkdir()
    identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
    for words in (
        ["init", "-q"],
        [*identity, "commit", "-q", "--allow-empty", "-m", "first"],
        ["remote", "add", "origin", url],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Record a run with secrets in all places; return text of the trace and secrets."""
    fresh, made = canaries(), []

    def new():
        made.append(next(fresh))
        return made[-1]

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", new())
    monkeypatch.setenv("X509_USER_PROXY", f"/tmp/{new()}")
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_JWT", new())
    monkeypatch.setenv("SLURM_JOB_COMMENT", new())
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_BEARER", new())
    (tmp_path / "job.ad").write_text(
        f'ClusterId = 1\nProcId = 0\nEnvironment = "A={new()}"\nArgs = "-x {new()}"\n'
    )
    monkeypatch.setenv("_CONDOR_JOB_AD", str(tmp_path / "job.ad"))
    monkeypatch.setattr(
        sys,
        "argv",
        [
            "my.py", "--token", new(), f"--password={new()}", new(), "--n=3",
            f"https://u:{new()}@site/x", "-H", f"Authorization: Bearer {new()}",
        ],
    )  # fmt: skip
    _make_repository(tmp_path / "work", f"https://oauth2:{new()}@git.site/group/repo.git")
    monkeypatch.chdir(tmp_path / "work")
    configuration = {
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
    items = [
        WorkItem("a", XROOTD.format(new(), new()), usermeta={"api_token": new(), "xsec": 1.0}),
        WorkItem("b", S3.format(new(), new()), usermeta={"nested": {"password": new()}}),
    ]
    text = f"login refused for https://me:{new()}@site/ with password={new()!r}, token {new()}"

    def fail(_item):
        raise OSError(text)

    def use(_item, password):
        return password and None

    with (
        dask.config.set(configuration),
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            env={"WORKERS_OWN": new()},
        ) as cluster,
        Client(cluster) as client,
        roast_recorder.record(
            client,
            tmp_path / "trace.jsonl.zst",
            code=True,
            transfers=True,
            worker_transitions=True,
        ),
    ):
        for number, item in enumerate(items):
            client.submit(fail, item, key=f"chunk-{number}", retries=1).exception()
        with dask.annotate(secret_key=new()):
            client.submit(use, 1, new(), key=f"read root://u:{new()}@site//f").result()
        client.scatter({f"https://me:{new()}@site/password={new()}": 1})
        client.log_event("topic", {"authorization": f"Bearer {new()}", "n": 1, "url": new()})
        made.pop()  # the name `url` does not denote a secret
        client.run(lambda _: None, new())
    data = (tmp_path / "trace.jsonl.zst").read_bytes()
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        return reader.read().decode(), made


def test_no_canary_is_in_the_trace(planted):
    text, secrets = planted

    assert len(secrets) >= 38
    assert [secret for secret in secrets if secret in text] == []


def test_records_of_workers_contain_redacted_keys(planted):
    text, _ = planted
    lines = [json.loads(line) for line in text.splitlines()]
    changed = {line["key"] for line in lines if line["kind"] == "worker_transition"}
    moved = {key for line in lines if line["kind"] == "transfer" for key in line["keys"]}

    assert {"chunk-0", "read root://<redacted>@site//f"} <= changed
    assert {"https://<redacted>@site/password=<redacted>"} <= moved & changed


def test_the_trailer_contains_the_number_of_replacements(planted):
    text, _ = planted
    lines = text.splitlines()

    assert '"kind":"trailer"' in lines[-1]
    assert f'"redacted_values":{text.count("<redacted>")}' in lines[-1]
    assert text.count("<redacted>") >= 12


def test_text_beside_secrets_remains(planted):
    text, _ = planted

    for part in ("eos.site:1094//store/file.root", "s3.site/bucket/file.root", '"xsec":1.0',
                 "login refused for https://", "partNumber=1", '"topic":"topic"',
                 '"SLURM_JOB_ID":"77"',
                 '"ClusterId = 1\\nProcId = 0"', '"my.py"', '"--n=3"',
                 "git.site/group/repo.git",
                 '"git commit"', "OMP_NUM_THREADS", "site/x"):  # fmt: skip
        assert part in text


def test_arguments_of_the_writer_contain_no_address(tmp_path):
    code = f"""
import os, subprocess
from distributed import Client, LocalCluster
import roast_recorder
if __name__ == "__main__":
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster:
        with Client(cluster) as client:
            with roast_recorder.record(client, {str(tmp_path / "t.jsonl")!r}) as recording:
                pid = recording._writer._process.pid
                print(open(f"/proc/{{pid}}/cmdline").read())
"""
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("no /proc")
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    ).stdout

    assert "roast_recorder.writer.process" in out
    assert "127.0.0.1" not in out
