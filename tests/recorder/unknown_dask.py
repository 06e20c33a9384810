"""Record a small program while a name of Dask's is hidden from the recorder.

Dask itself still finds the name: only code of the recorder does not. Each case runs in a
process of its own, forked from one that has imported Dask.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import io
import json
import logging
import multiprocessing
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster, Scheduler, Worker, profile, span
from distributed.scheduler import ClientState, TaskGroup, TaskPrefix, TaskState, WorkerState
from distributed.spans import Span, SpansSchedulerExtension

import roast_recorder
from roast_recorder import client_preload, client_recording
from roast_recorder.process_state import here

#: Classes whose attributes the recorder reads, by name.
CLASSES = {
    owner.__name__: owner
    for owner in (
        Scheduler, Worker, Client, TaskState, TaskGroup, TaskPrefix, WorkerState, ClientState,
        Span, SpansSchedulerExtension,
    )
}  # fmt: skip

#: Attributes that are dicts with names of Dask's.
DICTS = {"handlers", "stream_handlers", "periodic_callbacks", "extensions"}

#: Most seconds of a case, on a very busy machine.
CASE_SECONDS = 120

#: All kinds of records, often.
SETTINGS = {
    "flush_interval_seconds": 0.05,
    "sample_interval_seconds": 0.1,
    "profile_interval_seconds": 0.5,
    "transfers": True,
    "worker_transitions": True,
}


def is_recorder(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("roast_recorder")


class Hiding(MutableMapping):
    """A dict of Dask's as the recorder sees it."""

    def __init__(self, owner: str, entries: dict, seen: set, hidden: str, how: str) -> None:
        self._of = owner, entries, seen, hidden, how

    def __getitem__(self, key: str) -> Any:
        owner, entries, seen, hidden, how = self._of
        name = f"{owner}[{key}]"
        if key in entries and not key.startswith("roast_"):
            seen.add(name)
        if name == hidden:
            raise KeyError(key) if how == "missing" else RuntimeError(f"hidden {key}")
        return entries[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._of[1][key] = value

    def __delitem__(self, key: str) -> None:
        del self._of[1][key]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._of[1]))

    def __len__(self) -> int:
        return len(self._of[1])


def hide(hidden: str, how: str) -> set[str]:
    """Hide a name from the recorder; return the set of all names that it reads."""
    seen: set[str] = set()
    for class_name, owner in CLASSES.items():
        read = owner.__getattribute__

        def spy(self: Any, name: str, read: Any = read, class_name: str = class_name) -> Any:
            if name.startswith("__") or not is_recorder(sys._getframe(1)):
                return read(self, name)
            full = f"{class_name}.{name}"
            if full == hidden:
                if how == "missing":
                    raise AttributeError(f"hidden {name}", name=name, obj=self)
                raise RuntimeError(f"hidden {name}")
            value = read(self, name)
            seen.add(full)
            return Hiding(full, value, seen, hidden, how) if name in DICTS else value

        owner.__getattribute__ = spy
    if hidden == "Scheduler._instances":
        client_recording.Scheduler = type("Scheduler", (), {})
    return seen


def inc(number: int) -> int:
    return number + 1


def fail_once(folder: str) -> str:
    flag = Path(folder) / "failed"
    if not flag.exists():
        flag.touch()
        raise ValueError("once")
    return "right"


def program(client: Client, folder: str) -> None:
    """Compute with all that is recorded; raise AssertionError if a result is wrong."""
    with span("outer"):
        numbers = client.map(inc, range(10), pure=False)
        total = client.submit(sum, numbers, pure=False)
        assert total.result(60) == 55
    assert client.submit(fail_once, folder, retries=1, pure=False).result(60) == "right"
    assert client.gather(client.scatter({"data": 7}))["data"] == 7
    delayed = dask.delayed(sum)([dask.delayed(inc)(1), dask.delayed(inc)(2)])
    assert client.compute(delayed).result(60) == 5
    error = client.submit(int, "x", pure=False)
    assert isinstance(error.exception(60), ValueError)
    assert client.submit(time.sleep, 0.8, pure=False).result(60) is None


def state_of(cluster: LocalCluster, client: Client) -> dict[str, str]:
    """Return what recorders can change."""
    scheduler, [worker] = cluster.scheduler, cluster.workers.values()
    spans = scheduler.extensions.get("spans")

    def names(values: Any) -> str:
        return str(sorted(map(str, values)))

    def functions(handlers: dict) -> str:
        return str(
            {name: id(getattr(call, "__func__", call)) for name, call in handlers.items()}
        )

    return {
        "plugins": names(scheduler.plugins),
        "worker plugins": names(scheduler.worker_plugins),
        "plugins of the worker": names(worker.plugins),
        "handlers": functions(scheduler.handlers),
        "stream handlers": functions(scheduler.stream_handlers),
        "handlers of the worker": functions(worker.handlers),
        "methods of the scheduler": names(n for n, v in vars(scheduler).items() if callable(v)),
        "methods of spans": names(vars(spans) if spans else ()),
        "methods of the client": names(n for n, v in vars(client).items() if callable(v)),
        "preloads": str(len(client.preloads._preloads)),
        "callbacks": str(
            [
                (name, getattr(callback.callback, "__qualname__", ""), type(callback.callback))
                for server in (scheduler, worker)
                for name, callback in server.periodic_callbacks.items()
            ]
        ),
        "logs": str([type(worker.state.log), type(worker.transfer_incoming_log)]),
        "profile": str(profile.process),
        "process": str((here().listeners, here().patched, here().profiled_for)),
    }


def tasks_left() -> list[str]:
    """Return the recorder's coroutines that still run."""
    return [
        str(task)
        for task in gc.get_objects()
        if isinstance(task, asyncio.Task) and not task.done() and "roast_recorder" in str(task)
    ]


def lines_of(trace: Path) -> list[dict]:
    """Return the records of a trace, which can be a folder of segments."""
    import zstandard

    found = []
    for path in sorted(trace.rglob("*.jsonl*")) if trace.is_dir() else [trace]:
        data = path.read_bytes()
        if path.suffix == ".zst":
            reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
            data = reader.read()
        found += [json.loads(line) for line in data.splitlines()]
    return found


def case(way: str, hidden: str, how: str, folder: str) -> dict[str, Any]:
    """Run the program in one way of recording; return what is wrong and what was recorded."""
    logs: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: logs.append(record.getMessage())
    logging.getLogger("roast_recorder").addHandler(handler)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    trace = Path(folder) / ("traces" if way == "preload" else "trace.jsonl")
    seen = hide(hidden, how)
    config: dict[str, Any] = {"distributed.admin.tick.interval": "20ms"}
    if way == "preload":
        trace.mkdir()
        config |= {
            "distributed.scheduler.preload": ["roast_recorder.preload"],
            "roast.recorder": {"directory": str(trace), **SETTINGS},
        }
    if way == "run":
        plan = {"target": str(trace), "claims": folder, "settings": SETTINGS}
        os.environ[client_preload.VARIABLE] = json.dumps(plan)
        config["distributed.client.preload"] = ["roast_recorder.client_preload"]
    left: dict[str, Any] = {}
    options = {"protocol": "tcp://"} if way == "attach" else {}
    printed = io.StringIO()
    with (
        contextlib.redirect_stderr(printed),
        dask.config.set(config),
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            **options,
        ) as cluster,
        Client(cluster) as client,
    ):
        if way == "record":
            before = state_of(cluster, client)
            with roast_recorder.record(client, trace, **SETTINGS):
                program(client, folder)
            until = time.monotonic() + 5
            while time.monotonic() < until and (
                tasks_left() or state_of(cluster, client) != before
            ):
                time.sleep(0.02)
            after = state_of(cluster, client)
            left = {n: (before[n], after[n]) for n in before if before[n] != after[n]}
            left |= dict.fromkeys(tasks_left(), "a task")
        elif way == "attach":
            command = [
                sys.executable,
                "-m",
                "roast_recorder",
                "attach",
                cluster.scheduler_address,
            ]
            for name, value in SETTINGS.items():
                os.environ[f"DASK_ROAST__RECORDER__{name.upper()}"] = str(value)
            process = subprocess.Popen(
                [*command, "-o", str(trace)], stderr=subprocess.PIPE, text=True
            )
            logs.append(process.stderr.readline())
            program(client, folder)
            process.send_signal(2)
            logs.append(process.communicate(timeout=30)[1])
        else:
            program(client, folder)
    lines = lines_of(trace) if trace.exists() else []
    return {
        "left": left,
        "seen": sorted(seen),
        "logs": [*logs, printed.getvalue()],
        "counts": Counter(line["kind"] for line in lines),
        "fields": sorted({f"{line['kind']}.{name}" for line in lines for name in line}),
        "losses": [line for line in lines if line["kind"] == "loss"],
        "trailers": [line for line in lines if line["kind"] == "trailer"],
        "transitions": sum(line.get("start") == "processing" for line in lines),
    }


def in_a_process(way: str, hidden: str, how: str, folder: Path) -> dict[str, Any]:
    """Run a case in a forked process; return its result, or its error."""
    folder.mkdir(parents=True)
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def run() -> None:
        faulthandler.dump_traceback_later(CASE_SECONDS - 10)
        # The program's own errors are results.
        try:
            sender.send(case(way, hidden, how, str(folder)))
        except BaseException as error:  # noqa: BLE001
            sender.send({"error": f"{type(error).__name__}: {error}"})
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    found = receiver.recv() if receiver.poll(CASE_SECONDS) else {"error": "no result"}
    process.kill()
    process.join()
    return found


if __name__ == "__main__":
    folder, *cases = sys.argv[1:]
    results = {}
    for number, name in enumerate(cases):
        way, how, hidden = name.split(":", 2)
        results[name] = in_a_process(way, hidden, how, Path(folder) / str(number))
    json.dump(results, sys.stdout)
