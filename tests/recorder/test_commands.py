"""The command ``roast-record``: run, attach and demo."""

import logging
import signal
import subprocess
import sys

import pytest
from distributed import Client

from roast_recorder import __version__
from roast_recorder.cli import main
from roast_recorder.commands import attach

pytestmark = pytest.mark.cluster

SCRIPT = """
import sys
from distributed import Client, get_client

def inner(number):
    # A client on a worker must not record anything.
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


def ended(process, timeout_seconds=60):
    out, err = process.communicate(timeout=timeout_seconds)
    return process.returncode, out, err


def kinds(lines):
    return [line["kind"] for line in lines]


def finished(lines):
    return {line["key"] for line in lines if line.get("finish") == "memory"}


@pytest.mark.parametrize("where", ["its own cluster", "an existing cluster"])
def test_run_records_an_unchanged_script(tmp_path, read_lines, start_scheduler, where):
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


INVALID_CALLS = [
    ("run -o nowhere/t.jsonl -- true", "nowhere/t.jsonl"),
    ("run -o t.json -- true", "t.json'"),
    ("run -o t.jsonl -- no-such-program", "cannot run 'no-such-program'"),
    ("run -o t.jsonl --set speed=9 -- true", "unknown setting 'speed'"),
    ("run -o t.jsonl --set redact=9 -- true", "invalid redact=9: use true or false"),
    ("run -o t.jsonl --set redact -- true", "invalid --set 'redact': use NAME=VALUE"),
    ("attach tcp://127.0.0.1:1 -o t.jsonl", "no scheduler answers at 'tcp://127.0.0.1:1'"),
    ("attach missing.json -o t.jsonl", "cannot read scheduler file 'missing.json': No such"),
    ("attach wrong.json -o t.jsonl", "invalid scheduler file 'wrong.json'"),
    ("attach no-such.invalid:1 -o t.jsonl", "answers at 'no-such.invalid:1'"),
    ("attach tcp://127.0.0.1:1", "required: -o"),
    ("attach tcp://127.0.0.1:1 -o t.jsonl --duration no", "invalid number of seconds 'no'"),
    ("", "required: COMMAND"),
    ("fly", "invalid choice: 'fly'"),
    ("demo --chunksize 0", "invalid number '0': use 1 or more"),
    ("demo --workers many", "invalid number 'many': use 1 or more"),
    ("demo --files missing.root", "no file 'missing.root'"),
    ("demo -o wrong.json/below", "cannot create folder 'wrong.json/below'"),
]


def test_invalid_calls(tmp_path, monkeypatch, capsys, caplog):
    pytest.importorskip("coffea")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(attach, "CONNECT_TIMEOUT_SECONDS", 1.0)
    (tmp_path / "wrong.json").write_text("[]")
    # `attach` silences these loggers, which other tests need.
    for name in ("distributed", "distributed.client", "distributed.core"):
        caplog.set_level(logging.CRITICAL, name)
    failures = []
    for call, message in INVALID_CALLS:
        try:
            code = main(call.split())
        except SystemExit as error:  # of argparse
            code = error.code
        err = capsys.readouterr().err
        if code != 2 or message not in err or "Traceback" in err or list(tmp_path.glob("t*")):
            failures.append((call, code, err))
    assert failures == []


def test_run_reports_that_nothing_was_recorded(tmp_path):
    code, _, err = ended(
        roast_record("run", "-o", tmp_path / "t.jsonl", "--", "sh", "-c", "exit 7")
    )

    assert code == 7
    assert "nothing was recorded" in err


def wait_until_attached(process):
    line = process.stderr.readline()
    assert "recording tcp://" in line or "recording tls://" in line, line


@pytest.mark.parametrize("how", ["Ctrl-C", "duration", "the scheduler's end"])
def test_attach_records_until_it_ends(tmp_path, read_lines, start_scheduler, how):
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
            process.send_signal(signal.SIGINT)
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


def test_an_error_is_one_line(tmp_path):
    (tmp_path / "wrong.json").write_text("[]")

    code, _, err = ended(roast_record("attach", "wrong.json", "-o", "t.jsonl", cwd=tmp_path))

    assert (code, len(err.splitlines())) == (2, 1)


def test_version_and_help(capsys):
    for option, text in (("--version", f"roast-trace {__version__}\n"), ("--help", "demo")):
        with pytest.raises(SystemExit) as exit_:
            main([option])
        assert exit_.value.code == 0
        assert text in capsys.readouterr().out
