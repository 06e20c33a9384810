"""No secret reaches the trace, wherever it enters, and the trace says how many did not."""

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
    """What coffea hands to a chunk's task, as far as the recorder looks."""

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


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A run with secrets in all places; gives the trace's bytes, and the secrets."""
    fresh, made = canaries(), []

    def new():
        made.append(next(fresh))
        return made[-1]

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", new())
    monkeypatch.setenv("X509_USER_PROXY", f"/tmp/{new()}")
    configuration = {
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
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        roast_recorder.record(client, tmp_path / "trace.jsonl.zst"),
    ):
        for number, item in enumerate(items):
            client.submit(fail, item, key=f"chunk-{number}", retries=1).exception()
        with dask.annotate(secret_key=new()):
            client.submit(use, 1, new(), key=f"read root://u:{new()}@site//f").result()
        client.log_event("topic", {"authorization": f"Bearer {new()}", "n": 1, "url": new()})
        made.pop()  # of a value under an innocent name nobody can tell that it is secret
        client.run(lambda _: None, new())
    data = (tmp_path / "trace.jsonl.zst").read_bytes()
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        return reader.read().decode(), made


def test_no_canary_is_in_the_trace(planted):
    text, secrets = planted

    assert len(secrets) >= 18
    assert [secret for secret in secrets if secret in text] == []


def test_the_trace_says_how_many_values_were_replaced(planted):
    text, _ = planted
    lines = text.splitlines()

    assert '"kind":"trailer"' in lines[-1]
    assert f'"redacted_values":{text.count("<redacted>")}' in lines[-1]
    assert text.count("<redacted>") >= 12


def test_what_is_no_secret_is_still_there(planted):
    text, _ = planted

    for part in ("eos.site:1094//store/file.root", "s3.site/bucket/file.root", '"xsec":1.0',
                 "login refused for https://", "partNumber=1", '"topic":"topic"'):  # fmt: skip
        assert part in text


def test_nothing_secret_is_seen_in_the_writing_process(tmp_path):
    """Neither its arguments nor its files tell how the scheduler is reached."""
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

    assert "roast_recorder.writing" in out
    assert "127.0.0.1" not in out
