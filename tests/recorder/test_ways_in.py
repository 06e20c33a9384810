"""The ways to record what one did not write and does not own: run, attach, preload."""

import json
import logging
import os
import signal
import subprocess
import sys
import time

import pytest
from distributed import Client, LocalCluster

from roast_recorder.cli import main
from roast_recorder.commands import attach

pytestmark = pytest.mark.cluster

SCRIPT = """
import sys
from distributed import Client, get_client

def inner(number):
    # A client on a worker: it must not record anything.
    with get_client() as client:
        return number + 1

if __name__ == "__main__":
    with Client({address}) as client:
        print(sum(client.map(inner, range(50), pure=False)[0].result() for _ in range(1)))
        client.gather(client.map(abs, range(100), pure=False))
    sys.exit(3)
"""

LOCAL = "n_workers=1, threads_per_worker=1, dashboard_address='127.0.0.1:0'"


def roast_record(*arguments, **keywords):
    return subprocess.Popen(
        [sys.executable, "-m", "roast_recorder", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **keywords,
    )  # fmt: skip


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys, caplog):
    """Call `roast-record` in this process: what it says of a call that cannot be."""
    monkeypatch.chdir(tmp_path)
    # It stays as it is in a command's own process; here other tests come after it.
    for name in ("distributed", "distributed.client", "distributed.core"):
        caplog.set_level(logging.CRITICAL, name)

    def refused(*arguments):
        try:
            code = main(arguments)
        except SystemExit as error:  # of argparse
            code = error.code
        assert code == 2
        return capsys.readouterr().err

    return refused


def ended(process, timeout_seconds=60):
    out, err = process.communicate(timeout=timeout_seconds)
    return process.returncode, out, err


def kinds(lines):
    return [line["kind"] for line in lines]


def finished(lines):
    return {line["key"] for line in lines if line.get("finish") == "memory"}


@pytest.mark.parametrize("where", ["its own cluster", "a cluster that is there"])
def test_run_records_a_script_as_it_is(tmp_path, read_lines, start_scheduler, where):
    address = LOCAL
    if where != "its own cluster":
        address = repr(start_scheduler(workers=1)[1])
    (tmp_path / "script.py").write_text(SCRIPT.format(address=address))

    code, out, err = ended(
        roast_record(
            "run", "-o", "trace.jsonl", "--", sys.executable, "script.py", cwd=tmp_path
        )
    )

    assert (code, out) == (3, "1\n"), err
    lines = read_lines(tmp_path / "trace.jsonl")
    assert kinds(lines)[0] == "header"
    assert kinds(lines)[-1] == "trailer"
    assert len([key for key in finished(lines) if key.startswith("abs-")]) == 100
    assert [path.name for path in tmp_path.glob("trace*")] == ["trace.jsonl"]
    assert str(tmp_path / "trace.jsonl") in err


ASYNC_SCRIPT = """
import asyncio
from distributed import Client

async def main():
    async with Client({local}, asynchronous=True) as client:
        print(await client.submit(sum, [1, 2]))

if __name__ == "__main__":
    asyncio.run(main())
"""

TWO_CLUSTERS = """
from distributed import Client

if __name__ == "__main__":
    for number in (1, 2):
        with Client({local}) as client:
            client.submit(abs, number, key=f"of-{{number}}").result()
            Client(client.scheduler.address).close()  # the same scheduler, a second client
"""


def test_run_records_an_asynchronous_client(tmp_path, read_lines):
    (tmp_path / "script.py").write_text(ASYNC_SCRIPT.format(local=LOCAL))

    code, out, err = ended(
        roast_record("run", "-o", "t.jsonl", "--", sys.executable, "script.py", cwd=tmp_path)
    )

    assert (code, out) == (0, "3\n"), err
    assert kinds(read_lines(tmp_path / "t.jsonl"))[-1] == "trailer"


def test_run_gives_each_scheduler_a_trace_of_its_own(tmp_path, read_lines):
    (tmp_path / "script.py").write_text(TWO_CLUSTERS.format(local=LOCAL))

    code, _, err = ended(
        roast_record(
            "run", "-o", "t.jsonl.zst", "--", sys.executable, "script.py", cwd=tmp_path
        )
    )

    assert code == 0, err
    for name, key in (("t.jsonl.zst", "of-1"), ("t-2.jsonl.zst", "of-2")):
        lines = read_lines(tmp_path / name)
        assert finished(lines) == {key}
        assert kinds(lines)[-1] == "trailer"
    assert not (tmp_path / "t-3.jsonl.zst").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "nowhere/t.jsonl", "--", "true"], "nowhere/t.jsonl"),
        (["-o", "t.json", "--", "true"], "invalid trace name 't.json'"),
        (["-o", "t.jsonl", "--", "no-such-program"], "'no-such-program' cannot be run"),
        (["-o", "t.jsonl", "--set", "speed=9", "--", "true"], "unknown setting 'speed'"),
        (
            ["-o", "t.jsonl", "--set", "redact=9", "--", "true"],
            "invalid redact=9: use true or false",
        ),
        (["-o", "t.jsonl", "--set", "redact", "--", "true"], "give NAME=VALUE"),
    ],
)
def test_run_says_at_once_what_cannot_be(tmp_path, refused, arguments, message):
    err = refused("run", *arguments)

    assert message.replace("'t.json'", f"'{tmp_path}/t.json'") in err
    assert "Traceback" not in err
    assert not list(tmp_path.glob("t*"))


def test_run_of_a_program_without_a_client_says_so(tmp_path):
    code, _, err = ended(
        roast_record("run", "-o", tmp_path / "t.jsonl", "--", "sh", "-c", "exit 7")
    )

    assert code == 7
    assert "nothing was recorded" in err


def wait_until_attached(process):
    line = process.stderr.readline()
    assert "recording tcp://" in line or "recording tls://" in line, line


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM", "duration", "the scheduler's end"])
def test_attach_records_until_it_is_told(tmp_path, read_lines, start_scheduler, how):
    scheduler, address = start_scheduler(workers=1)
    with Client(address) as client:
        client.wait_for_workers(1, timeout=60)
        early = client.submit(abs, -1, key="early")
        early.result()
        duration = ["--duration", "4"] if how == "duration" else []
        process = roast_record("attach", address, "-o", tmp_path / "t.jsonl", *duration)
        wait_until_attached(process)
        client.gather(client.map(abs, range(100), pure=False))
        if how == "the scheduler's end":
            scheduler.terminate()
        elif how != "duration":
            process.send_signal(signal.SIGINT if how == "Ctrl-C" else signal.SIGTERM)
        code, _, err = ended(process)

    assert code == 0, err
    assert "Traceback" not in err
    assert "0 dropped" in err
    lines = read_lines(tmp_path / "t.jsonl")
    assert kinds(lines)[-1] == "trailer"
    assert len(finished(lines)) == 100
    [there] = [line for line in lines if line.get("key") == "early" and "state" in line]
    assert there["state"] == "memory"
    assert kinds(lines).count("client_added") >= 2
    assert {"span", "worker_added"} <= set(kinds(lines))


def test_attach_to_a_tls_cluster(tmp_path, read_lines):
    pytest.importorskip("cryptography")
    from distributed import Security

    security = Security.temporary()
    files = {}
    for option, pem in (
        ("--tls-ca-file", security.tls_ca_file),
        ("--tls-cert", security.tls_client_cert),
        ("--tls-key", security.tls_client_key),
    ):
        files[option] = tmp_path / f"{option.strip('-')}.pem"
        files[option].write_text(pem)
    arguments = [text for option in files.items() for text in option]
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0",
            security=security, protocol="tls",
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        assert cluster.scheduler_address.startswith("tls://")
        process = roast_record(
            "attach", cluster.scheduler_address, "-o", tmp_path / "t.jsonl", *arguments
        )
        wait_until_attached(process)
        client.gather(client.map(abs, range(20), pure=False))
        process.send_signal(signal.SIGINT)
        code, _, err = ended(process)

    assert code == 0, err
    lines = read_lines(tmp_path / "t.jsonl")
    assert len(finished(lines)) == 20
    assert kinds(lines)[-1] == "trailer"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tcp://127.0.0.1:1", "-o", "t.jsonl"], "no scheduler answers at 'tcp://127.0.0.1:1'"),
        (["missing.json", "-o", "t.jsonl"], "'missing.json': No such file or directory"),
        (["wrong.json", "-o", "t.jsonl"], "'wrong.json' is no scheduler file"),
        (["no-such.invalid:1", "-o", "t.jsonl"], "answers at 'no-such.invalid:1'"),
        (["tcp://127.0.0.1:1"], "required: -o"),
        (["tcp://127.0.0.1:1", "-o", "t.jsonl", "--duration", "no"], "'no' is no number"),
    ],
)
def test_attach_says_in_a_line_what_is_wrong(
    tmp_path, monkeypatch, refused, arguments, message
):
    (tmp_path / "wrong.json").write_text("[]")
    monkeypatch.setattr(attach, "CONNECT_TIMEOUT_SECONDS", 1.0)

    err = refused("attach", *arguments)

    assert message in err
    assert "Traceback" not in err


def test_attach_gives_up_in_its_own_process(tmp_path):
    (tmp_path / "wrong.json").write_text("[]")

    code, _, err = ended(roast_record("attach", "wrong.json", "-o", "t.jsonl", cwd=tmp_path))

    assert (code, len(err.splitlines())) == (2, 1)


def test_a_preload_makes_a_folder_for_each_scheduler(
    tmp_path, start_scheduler, read_lines, monkeypatch
):
    monkeypatch.setenv("DASK_ROAST__RECORDER__DIRECTORY", str(tmp_path))
    monkeypatch.setenv("DASK_ROAST__RECORDER__KINDS", "['task', 'transition']")
    monkeypatch.setenv("DASK_ROAST__RECORDER__SEGMENT_LIMIT_BYTES", "20_000")
    for _ in range(2):
        process, address = start_scheduler(
            "--preload", "roast_recorder.preload", workers=1, bare=False
        )
        with Client(address) as client:
            client.wait_for_workers(1, timeout=60)
            for _ in range(3):
                client.gather(client.map(abs, range(300), pure=False))
                time.sleep(0.7)
        process.terminate()
        process.wait(30)

    folders = sorted(path.parent for path in tmp_path.glob("*/000001.jsonl.zst"))
    assert len(folders) == 2
    for folder in folders:
        segments = sorted(folder.glob("*.jsonl.zst"))
        assert len(segments) >= 2
        assert [read_lines(segment)[0]["segment"] for segment in segments] == list(
            range(1, len(segments) + 1)
        )
        lines = [line for segment in segments for line in read_lines(segment)]
        assert {"worker_sample", "event", "environment"}.isdisjoint(kinds(lines))
        assert kinds(lines).count("task") == 900
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "roast.recorder.directory does not say where traces go"),
        ({"DIRECTORY": "/nowhere"}, "roast.recorder.directory='/nowhere' is no folder"),
        ({"DIRECTORY": "/tmp", "FLUSH_INTERVAL_SECONDS": "-1"}, "flush_interval_seconds=-1"),
        ({"DIRECTORY": "/tmp", "COLOUR": "red"}, "roast.recorder.colour"),
    ],
)
def test_a_preload_that_cannot_record_says_why_and_the_scheduler_runs(
    tmp_path, variables, message
):
    environment = {f"DASK_ROAST__RECORDER__{name}": text for name, text in variables.items()}
    file = tmp_path / "scheduler.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", "scheduler", "--preload", "roast_recorder.preload",
         "--scheduler-file", str(file), "--port", "0", "--host", "127.0.0.1", "--no-dashboard"],
        env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 30
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert json.loads(file.read_text())["address"]
    process.terminate()
    _, err = process.communicate(timeout=30)

    [line] = [line for line in err.splitlines() if "is not recorded" in line]
    assert message in line
