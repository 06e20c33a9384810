"""A version of Dask that lacks a name ends one source of records, and the trace reports it.

The names are those that the recorder reads during a recording of ``unknown_dask.py``, so that
a new access adds a case.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cluster

#: Names that have been missing, or are likely to change.
NAMES = [
    "Scheduler.stream_handlers[task-erred]",
    "Scheduler.stream_handlers[client-desires-keys]",
    "Scheduler.handlers[heartbeat_worker]",
    "Scheduler.periodic_callbacks[tick]",
    "SpansSchedulerExtension.observe_tasks",
    "Scheduler.worker_plugins",
    "Client.preloads",
    "Client._asynchronous",
    "Scheduler._instances",
    "TaskState.run_id",
    "TaskGroup.span_id",
    "Worker.profile_keys_history",
]

#: Without these, which are Dask's public interface, there is no recording: a warning names
#: what is missing, and the program runs.
NEEDED = {
    "Client.id", "Client.loop", "Client.scheduler", "Client.status", "Client.sync",
    "Client.asynchronous", "Scheduler.handlers", "Scheduler.add_plugin",
}  # fmt: skip


def results_of(folder: Path, cases: list[str]) -> dict[str, dict]:
    """Run cases, each in a process of its own, four at a time: they mostly wait."""
    program = str(Path(__file__).with_name("unknown_dask.py"))
    parts = [cases[first::4] for first in range(4)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", program, str(folder / str(number)), *part],
            stdout=subprocess.PIPE,
        )
        for number, part in enumerate(parts)
        if part
    ]
    return {
        name: result
        for process in processes
        for name, result in json.loads(process.communicate()[0]).items()
    }


def fault_of(case: str, result: dict, whole: dict) -> str | None:
    """Return what is wrong with the result of a case; `whole` is that of Dask as it is."""
    if "error" in result:
        return result["error"]
    if result["left"]:
        return f"left behind: {result['left']}"
    hidden = case.split(":", 2)[2]
    if not result["trailers"]:
        named = hidden.partition("[")[0].rpartition(".")[2]
        is_logged = any(named in line for line in result["logs"])
        return None if is_logged and hidden in NEEDED else f"no trace: {result['logs']}"
    lost = {loss["record_kind"] for loss in result["losses"]}
    dropped = set().union(*(trailer["dropped_by_kind"] for trailer in result["trailers"]))
    if lost != dropped:
        return f"losses of {lost}, but the trailer counts {dropped}"
    if result["transitions"] < whole["transitions"] and "transition" not in lost:
        return f"{result['transitions']} of {whole['transitions']} transitions"
    missing = {*whole["fields"]} - {*result["fields"]}
    silent = {name for name in missing if name.partition(".")[0] not in lost}
    return f"missing without a loss: {sorted(silent)}" if silent else None


#: Fields that depend on how long something took.
BY_CHANCE = ("stall.", "event.worker", "transition.start_t", "loss.", "client_activity.")

#: Fields of what workers may not have sent yet when a scheduler closes.
SENT_LATE = ("fine_metric.", "profile.", "worker_transition.", "transfer.", "environment.")


def faults(folder: Path, names: list[str], ways: list[str], hows: list[str]) -> dict[str, str]:
    """Return what is wrong, by case."""
    wholes = {way: f"{way}:missing:" for way in ways}
    cases = [f"{way}:{how}:{name}" for way in ways for how in hows for name in names]
    results = results_of(folder, [*wholes.values(), *cases])
    for way, case in wholes.items():
        whole = results[case]
        assert not whole.get("error"), (way, whole["error"])
        assert not whole["losses"], whole["losses"]
        by_chance = BY_CHANCE if way in ("record", "attach") else (*BY_CHANCE, *SENT_LATE)
        whole["fields"] = [n for n in whole["fields"] if not n.startswith(by_chance)]
    found = {
        case: fault_of(case, result, results[wholes[case.partition(":")[0]]])
        for case, result in results.items()
    }
    return {case: fault for case, fault in found.items() if fault}


def test_a_missing_name_ends_one_source_of_records(tmp_path):
    assert faults(tmp_path, NAMES, ["record"], ["missing"]) == {}


@pytest.mark.exhaustive
def test_last_records_that_a_worker_cannot_send_are_a_loss(tmp_path):
    case = "record:raises:Worker.plugins"
    [result] = results_of(tmp_path, [case]).values()

    lost = {loss["record_kind"] for loss in result["losses"]}
    assert {"profile", "transfer", "worker_transition"} <= lost


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", ["record", "preload", "run", "attach"])
def test_any_name_can_be_missing_or_raise(tmp_path, way):
    [whole] = results_of(tmp_path / "names", [f"{way}:missing:"]).values()
    names = [*whole["seen"], "Scheduler._instances"]

    assert faults(tmp_path, names, [way], ["missing", "raises"]) == {}
