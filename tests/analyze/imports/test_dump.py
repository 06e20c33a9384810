"""Conversion of cluster dumps to traces, which list what a dump does not contain."""

import gzip
import json
import os
import re
import subprocess
import sys
import time

import dask
import jsonschema
import msgpack
import pytest
import yaml
from distributed import Client, LocalCluster

from roast_analyze import Trace
from roast_schemas.describe import json_schema

CANARY = "canary-7f3a91-secret"

#: Settings with secrets, which a dump contains.
CONFIG = {
    "my-service": {"password": CANARY, "endpoint": f"https://me:{CANARY}@host", "note": CANARY},
    "distributed.comm.tls.ca-file": f"/{CANARY}",
}


def slow(x):
    time.sleep(0.02)
    return x


def bad(x, password):
    raise ValueError(f"bad {x}, password={password!r}, token: {password}")


def die(code):
    os._exit(code)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """A cluster of processes with failures, dumped in both ways: the paths, and the state."""
    folder = tmp_path_factory.mktemp("dumps")
    with (
        dask.config.set(CONFIG),
        LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        done = client.map(slow, range(30), pure=False)
        total = client.submit(sum, done)
        total.result()
        erred = client.map(bad, range(3), password=CANARY, pure=False, retries=1)
        client.gather(erred, errors="skip")  # completed before the worker dies
        killer = client.submit(die, 1, retries=0)
        keyed = client.submit(slow, 1, key=("tuple", 0))
        client.gather([*erred, killer, keyed], errors="skip")
        client.log_event("mine", {"n": 1, "api_key": CANARY})
        for future in (*done, total):
            future.result()
        for format_ in ("msgpack", "yaml"):
            client.dump_cluster_state(str(folder / "dump"), format=format_)
    with gzip.open(folder / "dump.msgpack.gz") as file:
        state = msgpack.unpack(file, strict_map_key=False)
    return folder, state


@pytest.fixture(params=["dump.msgpack.gz", "dump.yaml"])
def converted(request, dumps, tmp_path, command):
    folder, state = dumps
    if request.param.endswith("yaml"):
        state = yaml.safe_load((folder / request.param).read_text())
    path = tmp_path / "crash.jsonl.zst"
    code, said, error = command("import", "dump", folder / request.param, "-o", path)
    assert (code, error) == (0, "")
    return path, state, said


def as_key(value):
    return value if isinstance(value, str) else str(tuple(value))


@pytest.mark.cluster
def test_tasks_workers_and_transitions_are_those_of_the_dump(converted, ask):
    path, state, said = converted
    scheduler = state["scheduler"]
    tasks = {as_key(task["key"]): task for task in scheduler["tasks"].values()}

    found = ask(path, "SELECT key, task_group, len(dependencies) FROM tasks ORDER BY key")
    assert found == sorted(
        (key, task["group_key"], len(task["dependencies"])) for key, task in tasks.items()
    )
    assert "('tuple', 0)" in tasks
    assert ask(path, "SELECT DISTINCT prefix FROM tasks ORDER BY 1") == [
        ("bad",), ("die",), ("slow",), ("sum",), ("tuple",)
    ]  # fmt: skip
    columns = "worker, name, host, nthreads, memory_limit_bytes, server_id"
    assert ask(path, f"SELECT {columns} FROM workers ORDER BY worker") == sorted(
        (
            worker["address"], str(worker["name"]), worker["host"], worker["nthreads"],
            worker["memory_limit"], worker["server_id"],
        )
        for worker in scheduler["workers"].values()
    )  # fmt: skip
    log = scheduler["transition_log"]
    columns = "key, start, finish, stimulus_id, t"
    assert ask(path, f"SELECT {columns} FROM transitions ORDER BY seq") == [
        (as_key(key), start, finish, stimulus, t) for key, start, finish, _, stimulus, t in log
    ]
    assert f"{len(tasks)} tasks, 2 workers, {len(log)} transitions" in said
    logged = [
        e for events in scheduler["events"].values() if isinstance(events, list) for e in events
    ]
    assert ask(path, "SELECT count(*) FROM events WHERE topic <> 'worker-log'") == [
        (len(logged),)
    ]


@pytest.mark.cluster
def test_outcomes_errors_and_compute_times_are_those_of_the_dump(converted, ask):
    path, state, _ = converted
    ends = dict(ask(path, "SELECT key, arg_max(outcome, attempt) FROM task_runs GROUP BY key"))
    for task in state["scheduler"]["tasks"].values():
        if task["state"] in ("memory", "erred"):
            assert ends[as_key(task["key"])] == task["state"]
    erred = [t for t in state["scheduler"]["tasks"].values() if t["state"] == "erred"]

    failed = ask(path, "SELECT key, exception FROM failures WHERE what = 'task erred'")
    assert {key for key, _ in failed} == {as_key(task["key"]) for task in erred}
    texts = {key.split("-")[0]: text for key, text in failed}
    assert texts["bad"].startswith("ValueError(")
    assert texts["die"] == "KilledWorker (pickled in the dump, not read)"
    assert ask(path, "SELECT count(*) FROM task_runs WHERE outcome = 'retried'") == [(3,)]
    held = {
        as_key(key): part
        for worker in state["workers"].values()
        for key, task in worker["tasks"].items()
        for part in task.get("startstops", ())
        if part["action"] == "compute" and task["state"] == "memory"
    }
    found = ask(
        path,
        "SELECT key, compute_start_t, compute_stop_t FROM task_runs "
        "WHERE compute_start_t IS NOT NULL",
    )
    assert len(found) >= 20
    for key, start, stop in found:
        assert (start, stop) == (held[key]["start"], held[key]["stop"])


@pytest.mark.cluster
def test_the_trace_is_valid_and_lists_what_is_missing(converted, tmp_path, command, ask):
    path, *_ = converted
    code, *_ = command("check", path)

    assert code == 1
    reasons = {reason for (reason,) in ask(path, "SELECT reason FROM loss")}
    assert {"a cluster dump is not a recording", "settings not imported"} <= reasons
    assert not reasons & {"changed content", "records missing", "incomplete records"}
    page = tmp_path / "report.html"
    assert command(path, "--html", page)[0] == 0
    text = page.read_text()
    for reason in reasons:
        assert reason.replace("'", "&#39;") in text


@pytest.mark.cluster
def test_the_trace_contains_no_secret_of_the_dump(dumps, converted, tmp_path, command, ask):
    path, *_ = converted
    folder, _ = dumps
    raw = gzip.decompress((folder / "dump.msgpack.gz").read_bytes())
    assert raw.count(CANARY.encode()) > 5  # the dump contains them

    plain, again = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    for target in (plain, again):
        command("import", "dump", folder / "dump.msgpack.gz", "-o", target)
    assert plain.read_bytes() == again.read_bytes()

    assert CANARY not in plain.read_text()
    assert ask(path, "SELECT max(redacted_values) > 0 FROM trace_info") == [(True,)]
    names = {
        name for (name,) in ask(path, "SELECT name FROM environment WHERE section = 'config'")
    }
    assert "distributed.worker.memory.target" in names
    assert not [name for name in names if name.startswith("my-service")]


# -- synthetic dumps -------------------------------------------------------------------------

T = 1_700_000_000.0


def state_of(**scheduler):
    """Return a dump of a scheduler without workers and tasks."""
    about = {"type": "Scheduler", "id": "S", "address": "tcp://s:1", "started": T}
    return {"scheduler": {**about, **scheduler}, "workers": {}, "versions": {}}


@pytest.fixture
def convert(tmp_path, command):
    """Convert a state, written as msgpack; return the path of the trace."""

    def convert(state):
        dump, path = tmp_path / "dump.msgpack.gz", tmp_path / "crash.jsonl"
        with gzip.open(dump, "wb") as file:
            msgpack.pack(state, file)
        code, _, error = command("import", "dump", dump, "-o", path)
        assert (code, error) == (0, "")
        return path

    return convert


def test_every_line_is_valid_in_the_schema(convert):
    validator = jsonschema.Draft202012Validator(json_schema())
    task = {
        "key": "a-1", "group_key": "a", "prefix": "<a: memory: 1>", "state": "memory",
        "dependencies": ["<TaskState ('x', 0) memory>", "<TaskState 'b' memory>"],
        "priority": [0, 1, 2], "annotations": {"retries": 3, "note": CANARY}, "nbytes": 5,
        "type": "int", "who_has": ["<WorkerState 'tcp://w:1', name: 0>"], "run_id": 7,
    }  # fmt: skip
    worker = {
        "address": "tcp://w:1",
        "server_id": "W",
        "name": 0,
        "nthreads": 1,
        "last_seen": T + 9,
    }
    state = state_of(
        tasks={"a-1": task},
        workers={"tcp://w:1": worker},
        clients={"C": {"last_seen": T}},
        transition_counter=5,
        transition_log=[["a-1", "processing", "memory", {}, "task-finished-1", T + 3]],
        events={"all": [[T + 1, {"action": "add-worker", "worker": "tcp://w:1", "x": b"y"}]]},
    )

    lines = convert(state).read_text().splitlines()

    for line in lines:
        assert not list(validator.iter_errors(json.loads(line))), line
    task = next(json.loads(line) for line in lines if '"kind":"task"' in line)
    assert task["dependencies"] == ["('x', 0)", "b"]
    assert task["annotations"] == {"retries": 3}
    assert task["state"] == "processing"


def test_transitions_that_the_log_dropped_are_a_loss(convert, ask):
    log = [["a", "waiting", "processing", {}, "s", T + 3]]

    path = convert(state_of(transition_log=log, transition_counter=1_001))

    assert ask(path, "SELECT records, detail FROM loss WHERE reason = 'older transitions'") == [
        (1_000, "transition: the scheduler's transition log keeps the last 1")
    ]


def test_workers_that_did_not_answer_are_a_loss(convert, ask):
    state = state_of(workers={"tcp://w:1": {"address": "tcp://w:1", "last_seen": T}})
    state["workers"] = {"tcp://w:1": "OSError('Timed out')"}

    assert ask(
        convert(state), "SELECT detail FROM loss WHERE reason = 'state of a worker'"
    ) == [("tcp://w:1 did not answer when the dump was made",)]


def test_malformed_values_are_skipped(convert, ask):
    worker = {
        "last_seen": "soon",
        "metrics": 7,
        "resources": [1],
        "name": None,
        "memory_limit": 1e400,
    }
    state = state_of(
        tasks={"a": 7, "b": {"key": [1, [2]], "priority": "x", "dependencies": {"y": 1}}},
        workers={"w": worker, "v": "gone"},
        clients=[1],
        events={"t": [[T], ["x", 1], 5]},
        transition_log=[1, [], ["a", "b"], ["a", 1, 2, 3, 4, T]],
        transition_counter="many",
        task_groups={"g": 1},
    )
    state["workers"] = {"w": {"log": [1, [], ["k"] * 7], "logs": [1, ["ERROR"]], "config": [],
                              "transfer_incoming_log": [{"start": 1}]}}  # fmt: skip

    path = convert(state)

    assert ask(path, "SELECT key FROM tasks ORDER BY key") == [("(1, (2,))",), ("a",)]
    assert ask(path, "SELECT count(*) FROM transitions") == [(1,)]


def test_warnings_of_worker_logs_are_imported_without_arguments(convert, ask):
    state = state_of(workers={"tcp://w:1": {"last_seen": T}})
    state["workers"] = {
        "tcp://w:1": {
            "logs": [
                ["INFO", "said nothing"],
                ["WARNING", f"Compute Failed\nKey: a\nargs: ('{CANARY}',)\nkwargs: {{}}\nTB"],
            ]
        }
    }

    [(payload,)] = ask(convert(state), "SELECT payload FROM events WHERE topic = 'worker-log'")

    assert json.loads(payload) == {
        "level": "WARNING",
        "message": "Compute Failed\nKey: a\nargs: (not imported)\nkwargs: (not imported)\nTB",
    }


EVIL = "!!python/object/apply:os.mkdir ['{target}']\n"

WRONG = {
    "nothing": lambda _: b"",
    "an empty archive": lambda _: gzip.compress(b""),
    "another msgpack": lambda _: gzip.compress(msgpack.packb([1, 2])),
    "a msgpack without workers": lambda _: gzip.compress(msgpack.packb({"scheduler": {}})),
    "a msgpack that was cut": lambda _: gzip.compress(msgpack.packb(state_of())[:-9]),
    "an archive that was cut": lambda _: gzip.compress(msgpack.packb(state_of()))[:-20],
    "a deep msgpack": lambda _: gzip.compress(b"\x91" * 100_000),
    "a state without a time": lambda _: msgpack.packb({"scheduler": {}, "workers": {}}),
    "yaml of a text": lambda _: b"hello: world\n",
    "yaml that runs code": lambda target: EVIL.format(target=target).encode(),
    "yaml that runs code within": lambda target: (
        "scheduler:\n  started: " + EVIL.format(target=target) + "workers: {}\n"
    ).encode(),
    "invalid yaml": lambda _: b"a: [1, 2\nb: }\n",
    "noise": lambda _: bytes(range(256)) * 40,
}


def test_other_files_are_refused_in_one_line(tmp_path, command):
    dump, path, target = tmp_path / "dump", tmp_path / "crash.jsonl", tmp_path / "run"
    for name, content in WRONG.items():
        dump.write_bytes(content(target))

        code, said, error = command("import", "dump", dump, "-o", path)

        assert (code, said, error.count("\n")) == (2, "", 1), name
        assert f"{str(dump)!r} is not a Dask cluster dump, or is truncated: " in error
        assert "Traceback" not in error
        assert sorted(tmp_path.iterdir()) == [dump], name


def test_memory_is_limited(tmp_path):
    dump, path = tmp_path / "dump", tmp_path / "crash.jsonl"
    text = b"\xdb\x7f\xff\xff\xff"  # a text of 2 GiB follows
    with gzip.open(dump, "wb") as file:
        file.write(text)
        for _ in range(300):
            file.write(bytes(2**20))
    code = (
        "import sys; from roast_analyze.imports import subprocess_reader as r; "
        "r.MEMORY_BYTES = 2**28; "
        "from roast_analyze.cli import main; sys.exit(main(sys.argv[1:]))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, "import", "dump", dump, "-o", path],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert re.search(r"is not a Dask cluster dump.*; nothing was imported\n\Z", done.stderr)
    assert done.stderr.count("\n") == 1
    assert not path.exists()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["DUMP"], "dump needs --output TRACE"),
        (["DUMP", "-o", "x.txt"], "invalid trace name 'x.txt': use .jsonl"),
        (["DUMP", "--into", "x.jsonl", "-o", "y.jsonl"], "--into is not an option of dump"),
        (["DUMP", "DUMP", "-o", "y.jsonl"], "expected one dump, got 2"),
        (["DUMP", "-o", "missing/y.jsonl"], "cannot be written: No such file or directory"),
        (["missing", "-o", "y.jsonl"], "'missing' cannot be read: No such file"),
    ],
)
def test_invalid_options(tmp_path, command, monkeypatch, words, error):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "DUMP").write_bytes(msgpack.packb(state_of()))

    code, _, said = command("import", "dump", *words)

    assert code == 2
    assert error in said


def test_the_report_of_an_empty_dump(convert, tmp_path, command):
    page, path = tmp_path / "report.html", convert(state_of())

    assert command(path, "--html", page)[0] == 0
    assert "a cluster dump is not a recording" in page.read_text()
    with Trace(path) as trace:
        [(trace_id,)] = trace.sql("SELECT trace_id FROM trace_info").fetchall()
    assert re.fullmatch("[0-9a-f]{32}", trace_id)
