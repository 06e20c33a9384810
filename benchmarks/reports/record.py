"""Record situations that people reported: ``make reports``, or this script with a folder.

Each recording is made in a separate process. It writes ``NAME.jsonl``, and ``NAME.json`` with
the right answer and what the program measured.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from situation import SITUATIONS, Run

TIMEOUT_SECONDS = 150

#: Modules of the programs.
MODULES = (
    "waiting_tasks",
    "lost_workers",
    "client_work",
    "task_work",
    "cluster_load",
    "coffea_runs",
)


def record(folder: Path, name: str) -> None:
    """Record one program in this process, with the working directory as scratch."""
    situation = SITUATIONS[name]
    run = Run(folder / f"{name}.jsonl", Path.cwd(), situation.program.__module__)
    situation.program(run)
    seconds = run.clock_seconds if run.true_seconds is None else run.true_seconds
    facts = {
        "name": name,
        "text": situation.text,
        "link": situation.link,
        "answer": asdict(situation.answer),
        "true_seconds": None if seconds is None else round(seconds, 2),
        "wall_seconds": round(run.wall_seconds, 2),
    }
    (folder / f"{name}.json").write_text(json.dumps(facts, indent=2) + "\n")


def record_apart(folder: Path, name: str, module: str) -> bool:
    """Record one program in a new process and an empty folder; return its success."""
    begin = time.perf_counter()
    for suffix in (".json", ".jsonl"):
        (folder / f"{name}{suffix}").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="roast-report-") as scratch:
        # Workers import the programs.
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        try:
            done = subprocess.run(
                [sys.executable, __file__, str(folder), "--here", module, name],
                cwd=scratch,
                timeout=TIMEOUT_SECONDS,
                capture_output=True,
                env={**os.environ, "PYTHONPATH": path},
            )
            error = done.stderr.decode(errors="replace")[-2000:] if done.returncode else ""
        except subprocess.TimeoutExpired:
            error = f"no end after {TIMEOUT_SECONDS} s"
    print(f"{name}: {error or 'recorded'} [{time.perf_counter() - begin:.0f} s]", flush=True)
    return not error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0].replace("``", "`"))
    parser.add_argument("folder", type=Path, help="where the recordings are written")
    parser.add_argument("names", nargs="*", metavar="NAME", help="all situations, if none")
    parser.add_argument("--here", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if arguments.here:
        # Other modules would import coffea into a client without it.
        module, name = arguments.here
        importlib.import_module(module)
        record(folder, name)
        return 0
    for module in MODULES:
        importlib.import_module(module)
    folder.mkdir(parents=True, exist_ok=True)
    recorded = [
        record_apart(folder, name, SITUATIONS[name].program.__module__)
        for name in arguments.names or SITUATIONS
    ]
    return 0 if all(recorded) else 1


if __name__ == "__main__":
    sys.exit(main())
