"""Conversion of cluster dumps to traces, which list what a dump does not contain."""

import functools
import gzip
import json
import os
import re
import time
from pathlib import Path

import dask
import jsonschema
import msgpack
import pytest
import yaml
from distributed import Client, LocalCluster

from roast_analyze.imports import subprocess_reader
from roast_schemas.describe import json_schema

CANARY = "canary-7f3a91-secret"

#: Settings with secrets, which a dump contains.
CONFIG = {
    "my-service": {"password": CANARY, "endpoint": f"https://me:{CANARY}@host", "note": CANARY},
    "distributed.comm.tls.ca-file": f"/{CANARY}",
}

#: The memory manager may drop the copy of a result on the worker that computed it; only the
#: dump of that worker contains the time of the computation.
WITHOUT_MEMORY_MANAGER = {"distributed.scheduler.active-memory-manager.start": False}

#: A task that kills its worker fails at once; each new worker takes a second to start.
WITHOUT_ATTEMPTS = {"distributed.scheduler.allowed-failures": 0}


def slow(x):
    time.sleep(0.02)
    return x


def bad(x, password):
    raise ValueError(f"bad {x}, password={password!r}, token: {password}")


def die(code):
    os._exit(code)


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    """Run tasks, some of which fail; return a function that dumps the cluster in a format."""
    folder = tmp_path_factory.mktemp("dumps")
    with (
        dask.config.set(CONFIG | WITHOUT_MEMORY_MANAGER | WITHOUT_ATTEMPTS),
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
        client.wait_for_workers(2)
        client.log_event("mine", {"n": 1, "api_key": CANARY})
        for future in (*done, total):
            future.result()

        @functools.cache
        def dump(format_: str) -> Path:
            client.dump_cluster_state(str(folder / "dump"), format=format_)
            return folder / {"msgpack": "dump.msgpack.gz", "yaml": "dump.yaml"}[format_]

        yield dump


@pytest.fixture(params=["msgpack", pytest.param("yaml", marks=pytest.mark.exhaustive)])
def converted(request, dump, tmp_path, analyze):
    file = dump(request.param)
    if request.param == "yaml":
        state = yaml.safe_load(file.read_text())
    else:
        state = msgpack.unpackb(gzip.decompress(file.read_bytes()), strict_map_key=False)
    path = tmp_path / "crash.jsonl.zst"
    code, out, error = analyze("import", "dump", file, "-o", path)
    assert (code, error) == (0, "")
    return path, state, out


def as_key(value):
    return value if isinstance(value, str) else str(tuple(value))


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_a_trace_contains_what_the_dump_does(converted, asked, analyze):
    path, state, out = converted
    rows = asked(path)
    scheduler = state["scheduler"]
    tasks = {as_key(task["key"]): task for task in scheduler["tasks"].values()}
    log = scheduler["transition_log"]
    logged = [e for of in scheduler["events"].values() if isinstance(of, list) for e in of]
    assert f"{len(tasks)} tasks, 2 workers, {len(log)} transitions" in out

    found = rows("SELECT key, task_group, len(dependencies) FROM tasks ORDER BY key")
    assert found == sorted(
        (key, task["group_key"], len(task["dependencies"])) for key, task in tasks.items()
    )
    assert "('tuple', 0)" in tasks
    prefixes = rows("SELECT DISTINCT prefix FROM tasks ORDER BY 1")
    assert prefixes == [("bad",), ("die",), ("slow",), ("sum",), ("tuple",)]
    columns = "worker, name, host, nthreads, memory_limit_bytes, server_id"
    assert rows(f"SELECT {columns} FROM workers ORDER BY worker") == sorted(
        (
            worker["address"], str(worker["name"]), worker["host"], worker["nthreads"],
            worker["memory_limit"], worker["server_id"],
        )
        for worker in scheduler["workers"].values()
    )  # fmt: skip
    columns = "key, start, finish, stimulus_id, t"
    assert rows(f"SELECT {columns} FROM transitions ORDER BY seq") == [
        (as_key(key), start, finish, stimulus, t) for key, start, finish, _, stimulus, t in log
    ]
    events = rows("SELECT count(*) FROM events WHERE topic <> 'worker-log'")
    assert events == [(len(logged),)]

    # Attempts: outcomes, errors and times.
    ends = dict(rows("SELECT key, arg_max(outcome, attempt) FROM task_runs GROUP BY key"))
    for key, task in tasks.items():
        if task["state"] in ("memory", "erred"):
            assert ends[key] == task["state"]
    failed = rows("SELECT key, exception FROM failures WHERE what = 'task erred'")
    assert {key for key, _ in failed} == {k for k, t in tasks.items() if t["state"] == "erred"}
    texts = {key.split("-")[0]: text for key, text in failed}
    assert texts["bad"].startswith("ValueError(")
    assert texts["die"] == "KilledWorker (pickled in the dump, not read)"
    assert rows("SELECT count(*) FROM task_runs WHERE outcome = 'retried'") == [(3,)]
    held = {
        as_key(task["key"]): (part["start"], part["stop"])
        for worker in state["workers"].values()
        for task in worker["tasks"].values()
        for part in task.get("startstops", ())
        if part["action"] == "compute" and task["state"] == "memory"
    }
    columns = "key, compute_start_t, compute_stop_t"
    found = rows(f"SELECT {columns} FROM task_runs WHERE compute_start_t IS NOT NULL")
    assert {key: tuple(ends) for key, *ends in found} == held
    assert "('tuple', 0)" in held
    assert rows("SELECT DISTINCT package FROM packages WHERE differs") == []

    # It is valid, and lists what it lacks.
    assert analyze("check", path)[0] == 1
    reasons = {reason for (reason,) in rows("SELECT reason FROM loss")}
    assert {"a cluster dump is not a recording", "settings not imported"} <= reasons
    assert not reasons & {"changed content", "records missing", "incomplete records"}


@pytest.mark.exhaustive
@pytest.mark.cluster
def test_the_trace_contains_no_secret_of_the_dump(dump, converted, tmp_path, analyze, rows_of):
    path, *_ = converted
    file = dump("msgpack")
    assert gzip.decompress(file.read_bytes()).count(CANARY.encode()) > 5

    plain, again = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    for target in (plain, again):
        analyze("import", "dump", file, "-o", target)
    assert plain.read_bytes() == again.read_bytes()

    assert CANARY not in plain.read_text()
    assert rows_of(path, "SELECT max(redacted_values) > 0 FROM trace_info") == [(True,)]
    settings = rows_of(path, "SELECT name FROM environment WHERE section = 'config'")
    assert ("distributed.worker.memory.target",) in settings
    assert not [name for (name,) in settings if name.startswith("my-service")]


# -- synthetic dumps -------------------------------------------------------------------------

T = 1_700_000_000.0


def state_of(**scheduler):
    """Return a dump of a scheduler without workers and tasks."""
    about = {"type": "Scheduler", "id": "S", "address": "tcp://s:1", "started": T}
    return {"scheduler": {**about, **scheduler}, "workers": {}, "versions": {}}


@pytest.fixture
def convert(tmp_path, analyze):
    """Convert a state, written as msgpack; return the path of the trace."""

    def convert(state):
        dump, path = tmp_path / "dump.msgpack.gz", tmp_path / "crash.jsonl"
        with gzip.open(dump, "wb") as file:
            msgpack.pack(state, file)
        code, _, error = analyze("import", "dump", dump, "-o", path)
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
    pickled = repr(CANARY.encode())  # distributed writes bytes as text
    worker = {"address": "tcp://w:1", "server_id": "W", "name": 0, "nthreads": 1}
    state = state_of(
        tasks={"a-1": task},
        workers={"tcp://w:1": {**worker, "last_seen": T + 9}},
        clients={"C": {"last_seen": T}},
        transition_counter=5,
        transition_log=[["a-1", "processing", "memory", {}, "task-finished-1", T + 3]],
        events={"all": [[T + 1, {"action": "run-function", "function": pickled, "x": b"y"}]]},
    )

    records = [json.loads(line) for line in convert(state).read_text().splitlines()]

    for record in records:
        assert not list(validator.iter_errors(record)), record
    [event] = [record for record in records if record["kind"] == "event"]
    assert event["payload"] == {
        "action": "run-function",
        "function": "<bytes>",
        "x": "<1 bytes>",
    }
    facts = [(r["section"], r["name"], r["value"]) for r in records if "section" in r]
    assert facts == [("scheduler", "address", "tcp://s:1"), ("scheduler", "id", "S")]
    [task] = [record for record in records if record["kind"] == "task"]
    assert task["dependencies"] == ["('x', 0)", "b"]
    assert task["annotations"] == {"retries": 3}
    assert task["state"] == "processing"


@pytest.mark.exhaustive
def test_what_a_dump_lacks_and_logs_of_workers(convert, asked):
    log = [["a", "waiting", "processing", {}, "s", T + 3]]
    workers = {name: {"address": name, "last_seen": T} for name in ("tcp://w:1", "tcp://w:2")}
    state = state_of(workers=workers, transition_log=log, transition_counter=1_001)
    error = "Exception: \"ValueError('no')\"\nTraceback: '…'\n"
    arguments = f"args: (array([1,\n{CANARY}]))\nkwargs: {{}}\n"  # distributed < 2024.12
    logs = [
        ["INFO", "no"],
        ["WARNING", f"Compute Failed\nKey: a\n{arguments}{error}"],
        ["WARNING", f"Compute Failed\nKey: a\nTask:  <Task 'a' f('{CANARY}')>\n{error}"],
        ["WARNING", f"Run Failed\nFunction: f\n{arguments}"],
    ]
    state["workers"] = {"tcp://w:1": "OSError('Timed out')", "tcp://w:2": {"logs": logs}}

    path = convert(state)
    rows = asked(path)

    losses = rows("SELECT reason, records, detail FROM loss")
    for loss in [
        (
            "older transitions",
            1_000,
            "transition: the scheduler's transition log keeps the last 1",
        ),
        ("state of a worker", None, "tcp://w:1 did not answer when the dump was made"),
        (
            "lines of a worker's log not imported",
            None,
            "event: 1 lines of tcp://w:2: only warnings and errors are imported",
        ),
    ]:
        assert loss in losses
    payloads = rows("SELECT payload FROM events WHERE topic = 'worker-log'")
    assert [json.loads(payload) for (payload,) in payloads] == [
        {"level": "WARNING", "message": message}
        for message in (
            f"Compute Failed\nKey: a\nargs: (not imported)\n{error}",
            f"Compute Failed\nKey: a\nTask: (not imported)\n{error}",
            "Run Failed\nFunction: f\nargs: (not imported)\n",
        )
    ]


@pytest.mark.exhaustive
def test_a_trace_begins_with_the_log_of_the_scheduler(convert, asked, analyze):
    """Each log keeps the newest entries: the oldest one is no start of a worker or a task."""
    task = {"key": ["x", 0], "state": "memory", "who_has": ["<WorkerState 'w', name: 0>"]}
    phase = {"action": "compute", "start": T + 50, "stop": T + 59}
    state = state_of(
        tasks={"['x', 0]": task, "y": {"state": "memory"}},
        workers={"w": {"nthreads": 4, "last_seen": T + 60}},
        clients={"C": {}},
        transition_log=[
            [["x", 0], "waiting", "processing", {}, "s", T + 50],
            [["x", 0], "processing", "memory", {}, "task-finished-1", T + 59],
        ],
    )
    moved = {"start": T + 58, "stop": T + 59, "who": "v", "keys": {"['x', 0]": 8, "[y]": 9}}
    state["workers"]["w"] = {
        "transition_counter": 10,
        "log": [["y", "ready", "executing", "executing", {}, "s", T + 57]],
        "tasks": {"['x', 0]": {"key": ["x", 0], "startstops": [phase]}},
        "transfer_incoming_log": [moved],
    }

    path = convert(state)
    rows = asked(path)

    assert rows("SELECT start_t, stop_t FROM run") == [(T + 50, T + 60)]
    assert rows("SELECT added_t FROM workers") == [(T + 50,)]
    assert rows("SELECT DISTINCT t FROM raw.task") == [(T + 50,)]
    assert rows("SELECT key, compute_seconds FROM task_runs") == [("('x', 0)", 9.0)]
    assert rows("SELECT map_keys(keys) FROM transfers") == [(["('x', 0)", "[y]"],)]
    assert rows("SELECT records, detail FROM loss WHERE records > 0") == [
        (9, "worker_transition: the log of w keeps the last 1")
    ]
    _, out, _ = analyze(path)
    assert "joined late" not in out
    assert "The recording ended because the cluster dump was written." in out


def test_a_dump_of_2022_has_transitions_without_a_stimulus(convert, asked):
    done = {"state": "memory", "who_has": ["<WorkerState 'w', name: 0>"], "nbytes": 8}
    state = state_of(
        tasks={"a": done},
        workers={"w": {"nthreads": 4, "last_seen": T + 60}},
        transition_log=[
            ["a", "released", "waiting", {"a": "processing"}, T + 1],
            ["a", "waiting", "processing", {}, T + 2],
            ["a", "processing", "memory", {}, T + 5],
            ["a", "of", "another", "shape"],
        ],
        transition_counter=6,
    )

    rows = asked(convert(state))

    assert rows("SELECT start, finish, stimulus_id FROM transitions ORDER BY t") == [
        ("released", "waiting", None),
        ("waiting", "processing", None),
        ("processing", "memory", None),
    ]
    assert rows("SELECT key, worker, outcome, nbytes FROM task_runs") == [
        ("a", "w", "memory", 8)
    ]
    found = dict(rows("SELECT reason, records FROM loss"))
    assert {
        "older transitions": 2,
        "unreadable transitions": 1,
        "transitions without a stimulus": None,
    }.items() <= found.items()


def test_malformed_values_are_skipped(convert, asked):
    worker = {
        "last_seen": "soon", "metrics": 7, "resources": [1], "name": None,
        "memory_limit": 1e400,
    }  # fmt: skip
    done = {"state": "memory", "who_has": ["<WorkerState 'w', name: 0>"]}
    phases = [{"start": T, "stop": T}, {"action": "compute", "start": "x", "stop": T}, 5,
              {"action": "compute", "start": T, "stop": T + 2}]  # fmt: skip
    state = state_of(
        tasks={"a": 7, "b": {"key": [1, [2]], "priority": "x", "dependencies": {"y": 1}},
               "c": done},
        workers={"w": worker, "v": "gone"},
        clients=[1],
        events={"t": [[T], ["x", 1], 5, [T, 1]]},
        transition_log=[
            1, [], ["a", "b"], ["a", 1, 2, 3, 4, T],
            ["c", "waiting", "processing", {}, "s", T],
            ["c", "processing", "memory", {}, "task-finished-1", T + 3],
        ],
        transition_counter="many",
        task_groups={"g": 1},
    )  # fmt: skip
    state["workers"] = {"w": {"log": [1, [], ["k"] * 7], "logs": [1, ["ERROR"]], "config": [],
                              "transfer_incoming_log": [{"start": 1}],
                              "tasks": {"c": {"startstops": phases}}}}  # fmt: skip

    path = convert(state)
    rows = asked(path)

    assert rows("SELECT key FROM tasks ORDER BY key") == [
        ("(1, (2,))",), ("a",), ("c",),
    ]  # fmt: skip
    assert rows("SELECT count(*) FROM transitions") == [(3,)]
    lost = "SELECT records FROM loss WHERE reason = 'unreadable transitions'"
    assert rows(lost) == [(3,)]
    assert rows("SELECT compute_seconds FROM task_runs WHERE key = 'c'") == [(2.0,)]
    assert rows("SELECT payload FROM events WHERE topic = 't'") == [("1",)]


EVIL = "!!python/object/apply:os.mkdir ['{target}']\n"


@pytest.mark.exhaustive
def test_other_files_are_refused(tmp_path, refused):
    dump, path = tmp_path / "dump", tmp_path / "crash.jsonl"
    evil = EVIL.format(target=tmp_path / "run")
    packed = msgpack.packb(state_of())
    for name, content in {
        "nothing": b"",
        "an empty archive": gzip.compress(b""),
        "another msgpack": gzip.compress(msgpack.packb([1, 2])),
        "a msgpack without workers": gzip.compress(msgpack.packb({"scheduler": {}})),
        "a msgpack that was cut": gzip.compress(packed[:-9]),
        "an archive that was cut": gzip.compress(packed)[:-20],
        "a deep msgpack": gzip.compress(b"\x91" * 100_000),
        "a state without a time": msgpack.packb({"scheduler": {}, "workers": {}}),
        "yaml of a text": b"hello: world\n",
        "yaml that runs code": evil.encode(),
        "yaml that runs code within": f"scheduler:\n  started: {evil}workers: {{}}\n".encode(),
        "invalid yaml": b"a: [1, 2\nb: }\n",
        "noise": bytes(range(256)) * 40,
    }.items():
        dump.write_bytes(content)

        error = refused("dump", dump, "-o", path)

        assert f"{str(dump)!r} is not a Dask cluster dump, or is truncated: " in error, name
        assert sorted(tmp_path.iterdir()) == [dump], name


@pytest.mark.exhaustive
def test_memory_is_limited(tmp_path, refused, monkeypatch):
    monkeypatch.setattr(subprocess_reader, "MEMORY_BYTES", 2**28)
    dump, path = tmp_path / "dump", tmp_path / "crash.jsonl"
    with gzip.open(dump, "wb") as file:
        file.write(b"\xdb\x7f\xff\xff\xff")  # a text of 2 GiB follows
        for _ in range(300):
            file.write(bytes(2**20))

    error = refused("dump", dump, "-o", path)

    assert re.search(r"is not a Dask cluster dump.*; it was not imported\n\Z", error)
    assert not path.exists()


@pytest.mark.exhaustive
def test_an_empty_dump(convert, tmp_path, analyze, rows_of, refused):
    page, path = tmp_path / "report.html", convert(state_of())

    [(trace_id,)] = rows_of(path, "SELECT trace_id FROM trace_info")
    assert re.fullmatch("[0-9a-f]{32}", trace_id)
    assert analyze(path, "--html", page)[0] == 0
    assert "a cluster dump is not a recording" in page.read_text()
    dump = tmp_path / "dump.msgpack.gz"
    target = tmp_path / "missing" / "y.jsonl"
    message = f"cannot write {str(target)!r}: No such file or directory"
    assert message in refused("dump", dump, "-o", target)
