"""Record runs with and without illnesses: ``make illnesses``, or this script with a folder.

Each recording is made in a separate process, on a cluster of worker processes. It writes
``NAME.jsonl``, and ``NAME.json`` with the injected causes and the wall time of the program.
``INDEX.md`` lists all illnesses. With an option such as ``--short``, another set of programs is
recorded. These sets were written after the rules, one after the other; after each set, the
rules were corrected for the errors that it showed.
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


#: Modules with programs. Those of coffea take seconds to import.
MODULES = ("plain_programs", "coffea_programs", "several_programs")

#: Modules with programs, each of which is recorded with its own option.
OTHER_MODULES = (
    "validation_programs",
    "examination_programs",
    "recheck_programs",
    "blind_programs",
    "blind_more_programs",
    "plain_exam_programs",
    "coffea_exam_programs",
    "final_plain_programs",
    "final_coffea_programs",
    "closing_plain_programs",
    "closing_coffea_programs",
    "independent_plain_programs",
    "independent_coffea_programs",
    "outside_plain_programs",
    "outside_coffea_programs",
    "short_programs",
)


def register(form: str | None = None) -> dict:
    """Return illnesses by name; with `form`, import modules only until one contains it."""
    from illness import ILLNESSES

    for module in (*MODULES, *OTHER_MODULES):
        importlib.import_module(module)
        if any(form in ill.forms for ill in ILLNESSES.values()):
            break
    return ILLNESSES


def select(illnesses: dict, modules: tuple[str, ...]) -> dict:
    """Return the illnesses of some modules."""
    return {name: ill for name, ill in illnesses.items() if ill.program.__module__ in modules}


def record(folder: Path, form: str) -> None:
    """Make one recording in this process."""
    from illness import Run

    ill = next(ill for ill in register(form).values() if form in ill.forms)
    run = Run(folder / f"{form}.jsonl", ill.forms[form], folder / "data")
    ill.program(run)
    facts = {
        "name": ill.name,
        "ill": run.ill,
        "causes": [asdict(cause) for cause in ill.causes],
        "saves": ill.saves,
        "text": ill.text,
        "wall_seconds": round(run.wall_seconds, 2),
    }
    (folder / f"{form}.json").write_text(json.dumps(facts, indent=2) + "\n")


def record_apart(folder: Path, form: str) -> str | None:
    """Make one recording in a new process and an empty folder; return its error."""
    begin = time.perf_counter()
    (folder / f"{form}.json").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="roast-illness-") as scratch:
        # The fork server imports the modules with programs, too.
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, __file__, str(folder), "--here", form]
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
    for module in OTHER_MODULES:
        name = module.removesuffix("_programs").replace("_", "-")
        parser.add_argument(
            f"--{name}",
            action="store_const",
            dest="modules",
            const=(module,),
            default=MODULES,
            help=f"record the {name} programs instead",
        )
    parser.add_argument("--index", action="store_true", help="write INDEX.md only")
    parser.add_argument("--here", metavar="FORM", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if arguments.here:
        record(folder, arguments.here)
        return 0
    (folder / "data").mkdir(parents=True, exist_ok=True)
    illnesses = select(register(), arguments.modules)
    write_index(folder, illnesses)
    if arguments.index:
        return 0
    begin = time.perf_counter()
    forms = [form for name in arguments.names or illnesses for form in illnesses[name].forms]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        errors = list(pool.map(lambda form: record_apart(folder, form), forms))
    write_index(folder, illnesses)
    print(f"{len(forms)} recordings in {time.perf_counter() - begin:.0f} s")
    return 1 if any(errors) else 0


if __name__ == "__main__":
    sys.exit(main())
