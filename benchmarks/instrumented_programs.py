"""Compare what is stated about small programs with independent measurements.

    python instrumented_programs.py [NAME …] [--load N] [--folder FOLDER]

Each program runs on a LocalCluster with worker processes in a process of its own, recorded by
roast and measured by ``instrumented/instruments.py``: clocks in the tasks, a plugin of the
scheduler, and psutil. Then the summary, ``explain`` and the findings are compared with these
measurements, and with what ``instrumented/programs.py`` declares. ``--load`` runs busy loops
beside. The exit code is 1 if a statement is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from busy_loops import busy_loops

INSTRUMENTED: Final = Path(__file__).parent / "instrumented"
sys.path.insert(0, str(INSTRUMENTED))

TIMEOUT_SECONDS: Final = 180

#: Accepted differences of seconds: relative, and for each task or run.
RELATIVE: Final = 0.03
SECONDS_PER_TASK: Final = 0.01
SECONDS_PER_RUN: Final = 1.0
#: Accepted ratio of the ends of a saving.
MAX_RATIO: Final = 4.05
#: Entities of these findings are workers.
WORKER_RULES: Final = ("slow-worker", "killed-workers", "silent-worker", "paused-workers")


def record(name: str, folder: Path) -> None:
    """Run and record a program in this process, and write the measurements."""
    import dask
    import distributed
    from distributed import Client, LocalCluster
    from instruments import FOLDER, Memory, Moves, facts, read_tasks, switch
    from programs import PROGRAMS, Lab

    import roast_recorder

    program = PROGRAMS[name]
    os.environ[FOLDER] = str(folder / "tasks")
    (folder / "tasks").mkdir()
    dask.config.set({"temporary-directory": str(folder / "scratch")})
    memory = Memory()
    with (
        LocalCluster(
            n_workers=program.workers, threads_per_worker=program.threads,
            memory_limit=program.memory, dashboard_address=None,
            resources=program.resources, silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        client.wait_for_workers(program.workers)
        client.register_plugin(Moves())
        # Imports on the workers are not part of the programs.
        client.run(importlib.import_module, "programs")
        memory.start()
        lab = Lab(client, cluster, folder)
        begin = time.perf_counter()
        with roast_recorder.record(client, folder / "trace.jsonl"):
            client.run_on_scheduler(switch, is_on=True)
            start = time.perf_counter()
            program.run(lab)
            inner_seconds = time.perf_counter() - start
            client.run_on_scheduler(switch, is_on=False)
            measured = client.run_on_scheduler(facts)
        outer_seconds = time.perf_counter() - begin
        memory.is_done.set()
    measured |= {
        "tasks": read_tasks(folder / "tasks"),
        "wall_seconds": (inner_seconds, outer_seconds),
        "peak_memory_bytes": memory.peak_bytes,
        "uses": lab.uses,
        "dask": distributed.__version__,
    }
    (folder / "measured.json").write_text(json.dumps(measured, indent=2))


def stated(*words: str) -> str:
    """Return what a command prints."""
    from roast_analyze.cli import main

    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        main(list(words))
    return output.getvalue().replace("\N{NO-BREAK SPACE}", " ")


def examine(name: str, folder: Path) -> Iterator[str]:
    """Yield each statement that disagrees with the measurements or the declaration."""
    from programs import PROGRAMS, RARE

    import roast_analyze

    program = PROGRAMS[name]
    measured = json.loads((folder / "measured.json").read_text())
    trace = str(folder / "trace.jsonl")
    summary = json.loads(stated(trace, "--json"))
    texts = {"summary": stated(trace, "--all"), "explain": stated("explain", trace)}
    [run] = summary["run"]
    with roast_analyze.Trace(trace) as opened:
        uses = dict(
            opened.sql("SELECT use, sum(seconds) FROM core_time GROUP BY use").fetchall()
        )
        [(lowest,)] = opened.sql("SELECT coalesce(min(seconds), 0) FROM core_time").fetchall()
        [(path_seconds,)] = opened.sql("SELECT sum(seconds) FROM critical_path").fetchall()
    yield from _counts(run, measured)
    yield from _times(run, measured, uses, program.is_measured)
    if lowest < 0:
        yield f"core_time: {lowest:.3f} s"
    if path_seconds and abs(path_seconds - run["wall_seconds"]) > 0.01:
        yield f"critical path {path_seconds:.2f} s, wall time {run['wall_seconds']:.2f} s"
    for use, (least, most) in measured["uses"].items():
        if not least <= uses.get(use, 0.0) <= most:
            yield f"{use} {uses.get(use, 0.0):.2f} s, expected {least:.1f} to {most:.1f} s"
    findings = summary["findings"]
    yield from _findings(findings, run, measured)
    named = [found for found in findings if found["id"] in program.names.split()]
    if program.names and not named:
        yield f"not found: {program.names}; instead {[found['id'] for found in findings]}"
    elif (
        named
        and program.entity
        and not any(program.entity in str(found["entity"]) for found in named)
    ):
        yield f"entity {[found['entity'] for found in named]}, expected {program.entity}"
    for found in findings:
        if found["severity"] == "major" and program.is_healthy and not program.names:
            yield f"major in a healthy program: {found['id']}: {found['sentence']}"
    plain = {source: " ".join(text.split()) for source, text in texts.items()}
    for source, text in plain.items():
        for pattern in {*RARE, *program.never} - {*program.may}:
            if match := re.search(pattern, text):
                near = text[max(match.start() - 80, 0) : match.end() + 80]
                yield f"{source} must not state {match[0]!r}: … {near} …"
        for number in re.findall(r"(?<![\d,.])(\d[\d,.]*) %", text):
            if float(number.replace(",", "")) > 100.0:
                yield f"{source}: {number} %"
    for pattern in program.says:
        if not any(re.search(pattern, text) for text in plain.values()):
            yield f"nothing states {pattern!r}"


def _counts(run: dict[str, Any], measured: dict[str, Any]) -> Iterator[str]:
    moves = measured["moves"]
    expected = {
        "task_runs": moves.get("attempts", 0),
        "memory": moves.get("memory", 0),
        "erred": moves.get("erred", 0),
        "retried": moves.get("again after an error", 0),
        "rescheduled": sum(n for how, n in moves.items() if how.startswith("back by resched")),
    }
    for name, number in expected.items():
        if run[name] != number:
            yield f"{name} {run[name]}, counted {number} ({moves})"
    others = sum(n for how, n in moves.items() if how.startswith("back by"))
    ended = sum(run[name] for name in ("retried", "rescheduled", "lost", "cancelled"))
    left = moves.get("attempts", 0) - moves.get("memory", 0) - moves.get("erred", 0) - others
    if ended != others or run["unfinished"] != left:
        yield (
            f"ended without a result {ended}, unfinished {run['unfinished']}; "
            f"counted {others} and {left} ({moves})"
        )


def _times(
    run: dict[str, Any], measured: dict[str, Any], uses: dict[str, float], is_measured: bool
) -> Iterator[str]:
    inner, outer = measured["wall_seconds"]
    if not inner - 0.1 <= run["wall_seconds"] <= outer + 0.1:
        yield f"wall time {run['wall_seconds']:.2f} s, not {inner:.2f} to {outer:.2f} s"
    tasks = measured["tasks"]
    slack = RELATIVE * tasks["seconds"] + SECONDS_PER_TASK * tasks["ended"]
    if is_measured and abs(run["compute_seconds"] - tasks["seconds"]) > slack:
        yield f"compute {run['compute_seconds']:.2f} s, measured {tasks['seconds']:.2f} s"
    # The recording lasts a little longer than the measurement.
    most = measured["core_seconds"] + run["peak_nthreads"] * (outer - inner + SECONDS_PER_RUN)
    if not 0.98 * measured["core_seconds"] - 0.2 <= run["core_seconds"] <= most:
        yield f"core time {run['core_seconds']:.2f} s, not {measured['core_seconds']:.2f} s"
    total = sum(uses.values())
    if abs(total - run["core_seconds"]) > 0.01 * run["core_seconds"] + 0.01:
        yield f"uses of core time add up to {total:.2f} s of {run['core_seconds']:.2f} s"
    busy = sum(
        uses.get(use, 0.0) for use in ("kept result", "failed attempt", "recomputed result")
    )
    if is_measured and abs(busy - tasks["seconds"]) > 0.05 * tasks["seconds"] + slack:
        yield f"computing {busy:.2f} s of the core time, measured {tasks['seconds']:.2f} s"
    peak = run["peak_worker_memory_bytes"]
    if peak and measured["peak_memory_bytes"] and peak > 1.15 * measured["peak_memory_bytes"]:
        yield f"peak memory {peak:,} B, measured {measured['peak_memory_bytes']:,} B"


def _findings(
    findings: list[dict[str, Any]], run: dict[str, Any], measured: dict[str, Any]
) -> Iterator[str]:
    for found in findings:
        name, least, most = (
            found[each] for each in ("id", "wall_seconds_min", "wall_seconds_max")
        )
        for share in ("core_share", "wall_share"):
            if (found[share] or 0.0) > 1.0:
                yield f"{name}: {share} {found[share]:.0%}"
        # Threads that were missing have no core time: then there is no share.
        most_cost = run["peak_nthreads"] * run["wall_seconds"]
        if found["core_share"] is not None:
            most_cost = run["core_seconds"]
        if (found["core_seconds"] or 0.0) > most_cost + 0.01:
            yield f"{name}: costs {found['core_seconds']:.1f} of {most_cost:.1f} s"
        if (most or least or 0.0) > run["wall_seconds"] + 0.01:
            yield f"{name}: saves {least} to {most} of {run['wall_seconds']:.1f} s"
        if most and least is not None and most > MAX_RATIO * least:
            yield f"{name}: saves {least:.2f} to {most:.2f} s"
        for text, unit in re.findall(r"([\d,]+\.?\d*) (core-seconds|s)\b", found["sentence"]):
            limit = (
                most_cost
                if unit == "core-seconds"
                else max(run["wall_seconds"], run["core_seconds"])
            )
            if float(text.replace(",", "")) > 1.02 * limit:
                yield f"{name}: {text} {unit} of {limit:.1f} s: {found['sentence']}"
        if (
            name in WORKER_RULES
            and found["entity"]
            and not any(
                str(found["entity"]) == worker or str(found["entity"]) in worker
                for worker in measured["workers"]
            )
            and not measured["moves"].get("workers left")
        ):
            yield f"{name}: no worker {found['entity']!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all if none")
    parser.add_argument("--load", type=int, default=0, metavar="N", help="busy loops beside")
    parser.add_argument("--folder", type=Path, help="folder of recordings, which are kept")
    parser.add_argument("--here", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        record(options.here[0], Path(options.here[1]))
        return 0
    from programs import PROGRAMS

    if unknown := set(options.names) - PROGRAMS.keys():
        parser.error(f"unknown programs {', '.join(sorted(unknown))}: {', '.join(PROGRAMS)}")
    with tempfile.TemporaryDirectory(prefix="roast-") as temporary:
        wrong = failed = 0
        names = options.names or list(PROGRAMS)
        for name in names:
            folder = (options.folder or Path(temporary)).resolve() / name
            error = ""
            if not (folder / "measured.json").exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                with busy_loops(options.load):
                    error = _record_apart(name, folder)
            if error:
                failed += 1
                print(f"{name}: not recorded: {error}", flush=True)
                continue
            statements = list(examine(name, folder))
            wrong += len(statements)
            print(f"{name}: {len(statements) or 'no'} wrong", flush=True)
            for statement in statements:
                print(f"    {statement}", flush=True)
    print(f"{len(names)} programs, {failed} not recorded, {wrong} wrong statements")
    return 1 if wrong or failed else 0


def _record_apart(name: str, folder: Path) -> str:
    """Record a program in a new process; return its error."""
    path = os.pathsep.join([str(INSTRUMENTED), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, "--here", name, str(folder)]
    try:
        done = subprocess.run(
            command, cwd=folder, timeout=TIMEOUT_SECONDS, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no end after {TIMEOUT_SECONDS} s"
    return done.stderr[-800:] if done.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
