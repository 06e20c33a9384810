"""The command ``roast-record``: run, attach and demo."""

import logging
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from distributed import Client

from roast_recorder import __version__
from roast_recorder.cli import main
from roast_recorder.client_preload import numbered
from roast_recorder.commands import attach, status

pytestmark = pytest.mark.cluster

SCRIPT = """
import asyncio, sys
from distributed import Client, get_client

def inner(number):
    # A client on a worker must not record anything.
    with get_client() as client:
        return number + 1

local = dict(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0",
             silence_logs=False)

async def work():
    async with Client(**local, asynchronous=True) as client:
        await client.submit(abs, -2, key="of-2")

if __name__ == "__main__":
    with Client(**local) as client:
        print(client.submit(inner, 1, key="of-1").result())
        Client(client.scheduler.address).close()  # the same scheduler, a second client
    asyncio.run(work())
    sys.exit(3)
"""


def roast_record(*arguments, **keywords):
    return subprocess.Popen(
        [sys.executable, "-m", "roast_recorder", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **keywords,
    )  # fmt: skip


def ended(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def ignore_hangups():
    """Ignore SIGHUP, as nohup does."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def kinds(lines):
    return [line["kind"] for line in lines]


def finished(lines):
    return {line["key"] for line in lines if line.get("finish") == "memory"}


@pytest.mark.exhaustive
def test_run_writes_a_trace_for_each_scheduler_of_an_unchanged_script(tmp_path, read_lines):
    """The first client is synchronous, the second asynchronous."""
    (tmp_path / "script.py").write_text(SCRIPT)
    program = [sys.executable, "script.py"]

    code, out, err = ended(
        roast_record("run", "-o", "t.jsonl.zst", "--", *program, cwd=tmp_path)
    )

    assert (code, out) == (3, "2\n"), err
    assert "preload" not in err
    for name, key in (("t.jsonl.zst", "of-1"), ("t-2.jsonl.zst", "of-2")):
        lines = read_lines(tmp_path / name)
        assert (kinds(lines)[0], kinds(lines)[-1]) == ("header", "trailer")
        assert finished(lines) == {key}
        assert str(tmp_path / name) in err
    assert not (tmp_path / "t-3.jsonl.zst").exists()


def only_trace(folder, err):
    """Return the trace in a folder; the last line of stderr is the command that opens it."""
    [trace] = folder.glob("*.zst")
    assert re.fullmatch(r"roast-\d{8}-\d{6}-[0-9a-f]{6}\.jsonl\.zst", trace.name)
    command = f"roast-record: open the trace with: roast-analyze {trace} --open"
    assert err.splitlines()[-1] == command
    return trace


@pytest.mark.exhaustive
def test_run_without_a_path_writes_a_new_file(tmp_path, read_lines):
    program = (
        "from distributed import Client; "
        "Client(processes=False, dashboard_address=None).submit(abs, -1, key='of-1').result()"
    )

    # With -I, Python ignores PYTHONPATH.
    command = [sys.executable, "-I", "-c", program]
    code, _, err = ended(roast_record("run", "--", *command, cwd=tmp_path))

    assert code == 0, err
    assert "INFO" not in err  # logs of the preload
    assert finished(read_lines(only_trace(tmp_path, err))) == {"of-1"}


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            "client = {client}; client.submit(abs, -1).result(); 1 / 0", id="not closed"
        ),
        pytest.param(
            "with {client} as client: client.submit(abs, -1).result(); 1 / 0", id="with"
        ),
    ],
)
def test_the_exception_that_ends_a_program_is_recorded(tmp_path, read_lines, program):
    client = "Client(processes=False, dashboard_address=None)"
    program = f"from distributed import Client\n{program.format(client=client)}"
    trace = tmp_path / "t.jsonl"

    code, *_ = ended(roast_record("run", "-o", trace, "--", sys.executable, "-c", program))

    assert code == 1
    assert read_lines(trace)[-1]["reason"] == "the program raised ZeroDivisionError"


def test_run_reports_that_nothing_was_recorded(tmp_path):
    # JSON has no sets.
    settings = ["--set", "kinds={'task','transition'}", "--set", "measure_chunks=false"]
    run = ("run", "-o", tmp_path / "t.jsonl", *settings)

    code, _, err = ended(roast_record(*run, "--", "sh", "-c", "exit 7"))

    assert code == 7
    assert "nothing was recorded" in err


@pytest.mark.exhaustive
def test_run_does_not_report_an_older_trace(tmp_path):
    """The client cannot be recorded, since the folder is no longer there."""
    trace = tmp_path / "folder" / "t.jsonl"
    trace.parent.mkdir()
    program = (
        "import pathlib; from distributed import Client; "
        f"folder = pathlib.Path({str(trace.parent)!r}); folder.chmod(0o500); "
        f"folder.rename({str(tmp_path / 'away')!r}); "
        "Client(processes=False, dashboard_address=None).close(); "
        f"folder.mkdir(); (folder / 't.jsonl').write_text('older')"
    )

    code, _, err = ended(roast_record("run", "-o", trace, "--", sys.executable, "-c", program))

    assert code == 0, err
    assert "this client is not recorded" in err
    assert err.splitlines()[-1].startswith("roast-record: nothing was recorded")


@pytest.mark.parametrize(
    ("target", "second"),
    [("t.jsonl.zst", "t-2.jsonl.zst"), ("run.v2/", "run.v2-2/"), ("a/run", "a/run-2")],
)
def test_traces_are_numbered(target, second):
    assert numbered(target, 1) == target
    assert numbered(target, 2) == second


@pytest.mark.exhaustive
def test_run_preloads_darshan_with_sufficient_limits(tmp_path, monkeypatch):
    # Any shared library will do; tests/nightly/test_darshan_runtime.py uses Darshan's.
    maps = Path("/proc/self/maps").read_text().split()
    library = next(word for word in maps if Path(word).name.startswith("libc.so"))
    monkeypatch.delenv("DARSHAN_CONFIG_PATH", raising=False)
    monkeypatch.delenv("DARSHAN_LOGPATH", raising=False)
    show = "echo $LD_PRELOAD $DARSHAN_ENABLE_NONMPI $DXT_ENABLE_IO_TRACE $DARSHAN_LOGPATH"
    run = ("run", "-o", tmp_path / "t.jsonl.zst", "--darshan", library, "--", "sh", "-c", show)

    code, out, err = ended(roast_record(*run))

    logs = tmp_path / "t.darshan"
    assert (code, out.split()) == (0, [str(Path(library).resolve()), "1", "1", str(logs)])
    assert f"roast-record: Darshan logs in {logs}\n" in err
    written = (logs / "darshan.conf").read_text()
    assert "MAX_RECORDS 65536 POSIX" in written
    # The configuration is that of the documentation.
    page = Path(__file__).parents[2] / "docs" / "how-to" / "darshan.md"
    assert written in page.read_text()

    monkeypatch.setenv("DARSHAN_CONFIG_PATH", "mine")
    monkeypatch.setenv("LD_PRELOAD", library)
    show = "echo $LD_PRELOAD $DARSHAN_CONFIG_PATH"
    _, out, _ = ended(roast_record(*run[:-1], show))
    assert out == f"{library}:{Path(library).resolve()} mine\n"


@pytest.mark.exhaustive
def test_attach_records_until_it_ends(tmp_path, read_lines, start_scheduler):
    scheduler, address = start_scheduler(workers=1)
    with Client(address) as client:
        client.wait_for_workers(1, timeout=60)
        early = client.submit(abs, -1, key="early")
        early.result()
        for how in ("duration", "Ctrl-C", "the scheduler's end"):
            trace = tmp_path / f"{how[0]}.jsonl"
            # Without a path, it writes a new file in the working folder.
            options = ["--duration", "2"] if how == "duration" else ["-o", trace]
            attach = ("attach", address, "--label", how, *options)
            process = roast_record(*attach, cwd=tmp_path, preexec_fn=ignore_hangups)
            assert "recording tcp://" in process.stderr.readline()
            process.send_signal(signal.SIGHUP)
            client.gather(client.map(abs, range(20), pure=False))
            if how == "Ctrl-C":
                process.send_signal(signal.SIGINT)
            elif how == "the scheduler's end":
                scheduler.terminate()
            code, _, err = ended(process)

            assert code == 0, (how, err)
            assert "Traceback" not in err
            assert "0 dropped" in err
            lines = read_lines(only_trace(tmp_path, err) if how == "duration" else trace)
            assert lines[0]["settings"]["label"] == how
            assert kinds(lines)[-1] == "trailer"
            assert len(finished(lines)) == 20
            [there] = [line for line in lines if line.get("key") == "early" and "state" in line]
            assert there["state"] == "memory"
            assert kinds(lines).count("client_added") >= 2
            assert {"span", "worker_added"} <= set(kinds(lines))


@pytest.mark.exhaustive
def test_attach_to_a_tls_cluster(own_cluster, tmp_path, trace, read_lines):
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
    with own_cluster(1, security=security, protocol="tls") as (cluster, client):
        assert cluster.scheduler_address.startswith("tls://")
        process = roast_record("attach", cluster.scheduler_address, "-o", trace, *arguments)
        assert "recording tls://" in process.stderr.readline()
        client.gather(client.map(abs, range(20), pure=False))
        process.send_signal(signal.SIGINT)
        code, _, err = ended(process)

    assert code == 0, err
    lines = read_lines(trace)
    assert len(finished(lines)) == 20
    assert kinds(lines)[-1] == "trailer"


INVALID_CALLS = [
    ("run -o nowhere/t.jsonl -- true", "nowhere' does not exist: create it, or name another"),
    (f"run -o {'t' * 300}.jsonl -- true", ".jsonl': File name too long"),
    ("run -o t.json -- true", "t.json'"),
    ("run -o t.jsonl --darshan libno.so -- true", "invalid --darshan 'libno.so': use the path"),
    ("run -o t.jsonl -- no-such-program", "cannot run 'no-such-program'"),
    ("run -o t.jsonl --set speed=9 -- true", "unknown setting 'speed'"),
    ("run -o t.jsonl --set redact=9 -- true", "invalid redact=9: use true or false"),
    ("run -o t.jsonl --set kinds=[task] -- true", 'a list of kinds, such as \'["task", '),
    ("run -o '' -- true", "invalid --output '': name a file or a folder, or leave it out"),
    ("attach tcp://127.0.0.1:1 -o ''", "invalid --output '': name a file or a folder"),
    (
        "run -o s3://me:secret@b/t -- true",
        "a trace cannot be written to s3://…: name a local file",
    ),
    (
        "attach tcp://127.0.0.1:1 -o root://h//t",
        "a trace cannot be written to root://…: name a",
    ),
    ("run -o t.jsonl --set packages=no -- true", "invalid packages='no'"),
    ("run -o t.jsonl --set redact -- true", "invalid --set 'redact': use NAME=VALUE"),
    ("attach tls://127.0.0.1:1 --tls-cert no.pem", "cannot read --tls-cert 'no.pem'"),
    (
        "attach tls://127.0.0.1:1",
        "no certificates for 'tls://127.0.0.1:1': use --tls-ca-file, --tls-cert, --tls-key",
    ),
    (
        "attach tls://127.0.0.1:1 --tls-ca-file wrong.json --tls-cert wrong.json",
        "use PEM files for --tls-ca-file, --tls-cert, --tls-key",
    ),
    ("attach tcp://127.0.0.1:1 -o t.jsonl", "no scheduler answers at 'tcp://127.0.0.1:1'"),
    ("attach missing.json -o t.jsonl", "cannot read scheduler file 'missing.json': No such"),
    ("attach wrong.json -o t.jsonl", "invalid scheduler file 'wrong.json'"),
    ("attach no-such.invalid:1 -o t.jsonl", "answers at 'no-such.invalid:1'"),
    ("attach tcp://127.0.0.1:1 -o t.jsonl --duration no", "invalid number of seconds 'no'"),
    ("", "required: COMMAND"),
    ("fly", "invalid choice: 'fly'"),
    ("demo --chunksize 0", "invalid number '0': use 1 or more"),
    ("demo --workers many", "invalid number 'many': use 1 or more"),
    ("demo --files missing.root", "no file 'missing.root'"),
    ("demo -o wrong.json/below", "cannot create folder 'wrong.json/below'"),
    ("demo -o full", "cannot write files to 'full': Is a directory"),
    (
        "demo --files wrong.json -o other",
        "cannot record to 'other/demo.jsonl.zst': FileN",
    ),
]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "run -o t.jsonl.zst python -c 'print(1)'",
            "put -- before the program: roast-record run -o t.jsonl.zst -- python -c 'print",
        ),
        (
            "run python3.11 fit.py --cut 1",
            "put -- before the program: roast-record run -- py",
        ),
        ("run ./job.sh --cut", "put -- before the program and its options: "),
        (
            "run fit.py",
            "cannot run 'fit.py': No such file or directory; use roast-record ",
        ),
        (
            "run -- 'python fit.py'",
            "cannot run 'python fit.py': No such file or directory; w",
        ),
        ("python fit.py", "use roast-record run -- python fit.py"),
        ("fit.py 'a b'", "use roast-record run -- python fit.py 'a b'"),
        ("record python fit.py", "use roast-record run -- python fit.py"),
        ("-o t.jsonl run python fit.py", "the command comes first: roast-record run -o …"),
        (
            "view t.jsonl.zst",
            "roast-record writes traces; to read one: roast-analyze t.jsonl",
        ),
        ("tcp://s:8786", "use roast-record attach tcp://s:8786"),
        ("run", "the following arguments are required: COMMAND; see roast-record run --help"),
        ("state", "argument COMMAND: invalid choice: 'state'"),
    ],
)
def test_frequent_mistakes_are_corrected(tmp_path, monkeypatch, capsys, call, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fit.py").touch()

    assert main(shlex.split(call)) == 2

    err = capsys.readouterr().err
    assert err.startswith(f"roast-record: {message}")
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("t*"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "status https://u:SECRET@h/x?X-Amz-Signature=SECRET",
            "cannot read 'https://h/x?…': status reads local folders; name one, or ask",
        ),
        ("status http:/u:SECRET@h/x", "cannot read 'http:/h/x': status reads local folders"),
        ("status --scheduler tcp://u:SECRET@127.0.0.1:1", "answers at 'tcp://127.0.0.1:1'"),
        ("attach http://u:SECRET@h/x?a=SECRET", "no scheduler answers at 'http://h/x?…'"),
        ("run -o https:/u:SECRET@h/x -- true", "a trace cannot be written to https:/…: name"),
        ("run -o https//u:SECRET@h/x -- true", "a trace cannot be written to https//…: name"),
        ("http://u:SECRET@h/x?a=SECRET", "use roast-record attach http://h/x?…"),
        ("run http://u:SECRET@h/x", "cannot run 'http://h/x': No such file"),
        ("demo --files http://u:SECRET@h/x", "no file 'http:/h/x'"),
    ],
)
def test_no_message_has_the_secrets_of_a_url(call, message, monkeypatch, capsys, caplog):
    monkeypatch.setattr(attach, "CONNECT_TIMEOUT_SECONDS", 1.0)
    for name in ("distributed", "distributed.client", "distributed.core"):
        caplog.set_level(logging.CRITICAL, name)

    assert main(shlex.split(call)) == 2

    err = capsys.readouterr().err
    assert message in err
    assert "SECRET" not in err
    assert err.count("\n") == 1


def test_invalid_calls(tmp_path, monkeypatch, capsys, caplog):
    pytest.importorskip("coffea")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(attach, "CONNECT_TIMEOUT_SECONDS", 1.0)
    (tmp_path / "wrong.json").write_text("[]")
    (tmp_path / "full" / "DYJets_0.unfinished").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "demo.jsonl.zst").symlink_to("/nowhere/demo.jsonl.zst")
    # `attach` silences these loggers, which other tests need.
    for name in ("distributed", "distributed.client", "distributed.core"):
        caplog.set_level(logging.CRITICAL, name)
    failures = []
    for call, message in INVALID_CALLS:
        code = main(shlex.split(call))
        err = capsys.readouterr().err
        is_right = code == 2 and message in err and "Traceback" not in err
        if not is_right or err.count("\n") != 1 or list(tmp_path.glob("t*")):
            failures.append((call, code, err))
    assert failures == []


@pytest.mark.parametrize(
    ("answer", "path", "detail"),
    [
        ({"state": "not started", "trace": "", "problem": "no place"}, "no trace", "no place"),
        (
            {"state": "recording", "trace_id": "a", "client": "c"},
            "trace a of c",
            "nothing was written for 60 s",
        ),
        ({"state": "recording", "trace": "/d/x", "flush_interval_seconds": 50.0}, "/d/x", ""),
    ],
)
def test_status_of_the_answer_of_a_scheduler(answer, path, detail):
    """Between two flushes, records wait; a recording that did not start can have no place."""
    found = status._condition({"last_write_age_seconds": 60.0, **answer})
    assert (found.path, found.detail) == (path, detail)


def test_version_and_help(capsys):
    for option, text in (("--version", f"roast-trace {__version__}\n"), ("--help", "demo")):
        with pytest.raises(SystemExit) as exit_:
            main([option])
        assert exit_.value.code == 0
        assert text in capsys.readouterr().out
