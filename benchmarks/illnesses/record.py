"""Record runs with and without illnesses: ``make illnesses``, or this script with a folder.

Each recording is made in a separate process, on a cluster of worker processes. It writes
``NAME.jsonl``, and ``NAME.json`` with the injected causes and the wall time of the program.
``INDEX.md`` lists all illnesses. These are the programs with which the rules were developed.
With ``--corpus``, the rows of the tables in the folder ``corpus`` are recorded instead: all
combinations of a problem and a program that examinations of the rules had.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

TIMEOUT_SECONDS = 240


#: Modules of the programs.
MODULES = ("plain_programs", "coffea_programs", "several_programs")

#: Folder and modules of the tables, which have another module ``illness``.
CORPUS = Path(__file__).parent / "corpus"
TABLES = ("plain_table", "coffea_table")


def register(modules: tuple[str, ...]) -> dict:
    """Import modules; return their illnesses by name."""
    from illness import ILLNESSES

    for module in modules:
        importlib.import_module(module)
    return {name: ill for name, ill in ILLNESSES.items() if ill.module in modules}


def record(folder: Path, module: str, form: str) -> None:
    """Record one program in this process."""
    from illness import Run

    ill = next(ill for ill in register((module,)).values() if form in ill.forms)
    run = Run(folder / f"{form}.jsonl", ill.forms[form], folder / "data")
    ill.record(run)
    facts = {
        "name": ill.name,
        "ill": run.ill,
        "causes": [asdict(cause) for cause in ill.causes],
        "saves": ill.saves,
        "text": ill.text,
        "wall_seconds": round(run.wall_seconds, 2),
    }
    (folder / f"{form}.json").write_text(json.dumps(facts, indent=2) + "\n")


def record_apart(folder: Path, module: str, form: str) -> str | None:
    """Record one program in a new process and an empty folder; return its error."""
    begin = time.perf_counter()
    (folder / f"{form}.json").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="roast-illness-") as scratch:
        # The fork server imports the modules with programs, too.
        code = CORPUS if module in TABLES else CORPUS.parent
        path = os.pathsep.join([str(code), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, __file__, str(folder), "--here", module, form]
        command += ["--corpus"] if module in TABLES else []
        try:
            done = subprocess.run(
                command,
                cwd=scratch,
                timeout=TIMEOUT_SECONDS,
                capture_output=True,
                env={**os.environ, "TMPDIR": scratch, "PYTHONPATH": path},
            )
            error = done.stderr.decode(errors="replace") if done.returncode else None
        except subprocess.TimeoutExpired:
            error = f"no end after {TIMEOUT_SECONDS} s"
    print(f"{form}: {error or 'recorded'} [{time.perf_counter() - begin:.0f} s]", flush=True)
    return error


def write_index(folder: Path, illnesses: dict) -> None:
    """Write ``INDEX.md``: the list of illnesses with the wall times of their recordings."""
    lines = [
        "# Illnesses",
        "",
        "`NAME.jsonl` has the illness, `NAME_healthy.jsonl` is the same program without it.",
        "Controls are healthy and have no twin.",
        "",
        "| recording | expected id | entity | wall (s) | without (s) | saves | program |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for ill in illnesses.values():
        ids = "<br>".join(" or ".join(cause.ids) for cause in ill.causes) or "none"
        entities = "<br>".join(" or ".join(cause.entities) or "any" for cause in ill.causes)
        walls = [wall_seconds(folder / f"{form}.json") for form in ill.forms]
        cells = [ill.name, ids, entities, *walls, *[""] * (2 - len(walls))]
        saves = (ill.saves or "nothing") if ill.causes else ""
        lines.append(f"| {' | '.join(cells)} | {saves} | {ill.text} |")
    (folder / "INDEX.md").write_text("\n".join(lines) + "\n")


def wall_seconds(path: Path) -> str:
    """Return the wall time of a recording as text."""
    return str(json.loads(path.read_text())["wall_seconds"]) if path.exists() else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0].replace("``", "`"))
    parser.add_argument("folder", type=Path, help="where the recordings are written")
    parser.add_argument("names", nargs="*", metavar="NAME", help="all illnesses, if none")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time")
    parser.add_argument("--corpus", action="store_true", help="record the rows of tables")
    parser.add_argument("--index", action="store_true", help="write INDEX.md only")
    parser.add_argument("--here", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if arguments.corpus:
        sys.path.insert(0, str(CORPUS))
    if arguments.here:
        record(folder, *arguments.here)
        return 0
    (folder / "data").mkdir(parents=True, exist_ok=True)
    illnesses = register(TABLES if arguments.corpus else MODULES)
    write_index(folder, illnesses)
    if arguments.index:
        return 0
    begin = time.perf_counter()
    recordings = [
        (illnesses[name].module, form)
        for name in arguments.names or illnesses
        for form in illnesses[name].forms
    ]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        errors = list(pool.map(lambda recording: record_apart(folder, *recording), recordings))
    write_index(folder, illnesses)
    print(f"{len(recordings)} recordings in {time.perf_counter() - begin:.0f} s")
    return 1 if any(errors) else 0


if __name__ == "__main__":
    sys.exit(main())
