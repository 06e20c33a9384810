"""Further ways to end a recording; TLS. See tests/recorder/test_endings.py.

Every orderly end leaves a trailer that counts the file, and no transition is missing.
"""

import asyncio
import signal
import subprocess
import sys

import pytest
from distributed import Client, LocalCluster

import roast_recorder
from recorder.test_endings import (
    SCRIPT,
    counted,
    is_whole,
    is_whole_until,
    transitions,
    when_closed,
    work,
)

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
def test_a_closing_scheduler(logged, tmp_path, read_lines, how):
    client = Client(logged.address)
    recording = roast_recorder.record(client, tmp_path / "trace.jsonl.zst")
    recording.start()
    futures = work(client)

    logged.process.send_signal(getattr(signal, how))
    logged.process.wait(30)
    recording.stop()
    client.close(timeout=2)
    del futures

    lines = read_lines(tmp_path / "trace.jsonl.zst")
    assert is_whole(lines)
    assert lines[-1]["reason"] == "the scheduler closed"
    assert transitions(lines) == logged.transitions()
    assert {"worker_removed", "client_removed"} <= set(counted(lines))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_client_that_is_closed_first(logged, tmp_path, read_lines, asynchronous):
    async def run():
        client = await Client(logged.address, asynchronous=True)
        await roast_recorder.record(client, tmp_path / "trace.jsonl").start()
        await client.gather(client.map(abs, range(200), pure=False))
        await client.close()

    if asynchronous:
        asyncio.run(run())
    else:
        with Client(logged.address) as client:
            recording = roast_recorder.record(client, tmp_path / "trace.jsonl")
            recording.start()
            client.gather(client.map(abs, range(200), pure=False))
        recording.stop()

    lines = read_lines(tmp_path / "trace.jsonl")
    assert is_whole_until(lines, logged)
    assert counted(lines)["task"] == 200


CLIENT = """
import asyncio, os, signal, sys, time
from distributed import Client
import roast_recorder

address, trace, how = sys.argv[1:]

async def run_async():
    client = await Client(address, asynchronous=True)
    await roast_recorder.record(client, trace).start()
    await client.gather(client.map(abs, range(300), pure=False))

def run():
    client = Client(address)
    recording = roast_recorder.record(client, trace)
    recording.start()
    client.gather(client.map(abs, range(300), pure=False))
    if how == "exits":
        return
    os.kill(os.getpid(), {"SIGKILL": 9, "SIGTERM": 15, "SIGHUP": 1}[how])

if how == "its loop ends":
    asyncio.run(run_async())
else:
    run()
"""


@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "exits", "its loop ends"])
def test_a_client_that_has_gone(logged, tmp_path, read_lines, how):
    """Its writing process fetches the rest: everything before is in the trace."""
    trace = tmp_path / "trace.jsonl.zst"

    subprocess.run([sys.executable, "-c", CLIENT, logged.address, str(trace), how], timeout=60)
    lines = when_closed(trace, read_lines)

    assert is_whole_until(lines, logged)
    assert counted(lines)["task"] == 300
    assert [finish for *_, finish, _ in transitions(lines)].count("memory") == 300


def test_attach_records_what_an_independent_plugin_sees(logged, tmp_path, read_lines):
    """On a cluster that has distributed alone."""
    (tmp_path / "script.py").write_text(SCRIPT)
    trace = tmp_path / "trace.jsonl"
    program = [sys.executable, str(tmp_path / "script.py"), logged.address]
    attach = [sys.executable, "-m", "roast_recorder", "attach", logged.address]

    attached = subprocess.Popen([*attach, "-o", str(trace)], stderr=subprocess.PIPE, text=True)
    attached.stderr.readline()  # printed when it has started
    subprocess.run(program, check=True, timeout=90)
    attached.send_signal(signal.SIGINT)
    attached.communicate(timeout=60)

    lines = read_lines(trace)
    seen = transitions(lines)
    assert is_whole_until(lines, logged)
    assert len(seen) > 1_500
    assert [key for key, _, finish, _ in seen if finish == "erred"] == ["fails"]


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
        command = [sys.executable, "-m", "roast_recorder", "attach", cluster.scheduler_address]
        process = subprocess.Popen(
            [*command, "-o", str(tmp_path / "t.jsonl"), *map(str, arguments)],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert "recording tls://" in process.stderr.readline()
        client.gather(client.map(abs, range(20), pure=False))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)

    assert process.returncode == 0, err
    lines = read_lines(tmp_path / "t.jsonl")
    assert [line.get("finish") for line in lines].count("memory") == 20
    assert lines[-1]["kind"] == "trailer"
