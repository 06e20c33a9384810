"""Run the tests against mutants of the code, and report how many are killed.

    python benchmarks/mutation.py [--ids 7 9] [--write]

:data:`SAMPLE` holds 200 mutants of version 0.6 (commit 250976a), drawn with cosmic-ray's
operators: one operator at each of 200 random positions that any operator can mutate, without
annotations, the demo and ``TYPE_CHECKING`` blocks. Most of that code has moved or changed, so
each mutant was mapped by hand to the line that has its logic now, except those that the
tests of 0.6 did not kill. Fields of a mutant:

id, operator
    Number in the sample, and the operator of cosmic-ray.
path, function, lines
    Place, and number, text and mutated text of each line. The number is only used to choose
    between equal lines.
old
    Whether the tests of 0.6 killed it; null: not run.
gone, invalid, equivalent
    Why it does not count: today's code has no such line (place and lines are those of 0.6),
    it is not valid Python, or it cannot change what the product does.
tests, nightly
    Tests to run, of ``make test`` and beyond it: those that kill the mutant or, if it
    survives, all that test its code.
new, new_all
    Whether ``tests`` killed it, and whether ``tests`` or ``nightly`` did with exhaustive tests.

A file is mutated only while the tests run. ``--write`` records the results in the sample.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = Path(__file__).with_name("mutants.json")

#: Mutants that do not count have one of these fields.
EXCLUDED = ("gone", "invalid", "equivalent")

#: Options of ``make test-all``.
EXHAUSTIVE = ("-o", "norecursedirs=.git", "-m", "")

#: Exit code of pytest if all tests are deselected.
NO_TESTS = 5

#: Most time for the tests of one mutant.
LIMIT_SECONDS = 900

Mutant = dict[str, Any]


def mutated(text: str, lines: list[list[Any]]) -> str:
    """Return the text with its lines replaced."""
    rows = text.split("\n")
    for number, before, after in lines:
        places = [place for place, row in enumerate(rows, 1) if row == before]
        if not places:
            raise ValueError(f"there is no line {before!r}: map the mutant to its successor")
        rows[min(places, key=lambda place: abs(place - number)) - 1] = after
    return "\n".join(rows)


def is_killed(mutant: Mutant, tests: Iterable[str], *options: str) -> bool:
    """Run tests on mutated code; a test that hangs counts as a kill, too."""
    path = ROOT / mutant["path"]
    original = path.read_text(encoding="utf-8")
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "--timeout", "120", *options, *tests]
    packages = [str(ROOT / name) for name in ("recorder", "analyze", "schemas")]
    path.write_text(mutated(original, mutant["lines"]), encoding="utf-8")
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=ROOT,
            # Cached bytecode of a mutant could be used after the file is restored.
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(packages),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(LIMIT_SECONDS) not in (0, NO_TESTS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True
    finally:
        path.write_text(original, encoding="utf-8")


def write(mutants: list[Mutant]) -> None:
    """Write the sample, one line per mutant."""
    lines = ",\n".join(json.dumps(mutant, ensure_ascii=False) for mutant in mutants)
    SAMPLE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def report(name: str, mutants: list[Mutant]) -> None:
    """Print how many of some mutants are killed."""
    for field, command in (("new", "make test"), ("new_all", "make test-all")):
        killed = sum(mutant[field] for mutant in mutants)
        share = killed / max(len(mutants), 1)
        print(f"{name}: {command} kills {killed} of {len(mutants)} ({share:.1%})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ids", type=int, nargs="+", help="only these mutants")
    parser.add_argument("--write", action="store_true", help="record the results")
    options = parser.parse_args()
    mutants = json.loads(SAMPLE.read_text(encoding="utf-8"))

    for mutant in mutants:
        is_chosen = not options.ids or mutant["id"] in options.ids
        if "tests" not in mutant or not is_chosen:
            continue
        tests = [*mutant["tests"], *mutant.get("nightly", [])]
        for test in tests:
            # Otherwise pytest would fail without running a test.
            if not (ROOT / test.partition("::")[0]).exists():
                raise FileNotFoundError(test)
        started = time.monotonic()
        before = mutant.get("new"), mutant.get("new_all")
        new = is_killed(mutant, mutant["tests"])
        new_all = new or is_killed(mutant, tests, *EXHAUSTIVE)
        mutant.update(new=new, new_all=new_all)
        result = "killed" if new else "killed by make test-all" if new_all else "survived"
        changed = "" if before == (new, new_all) else ", not as recorded"
        print(
            f"{mutant['id']:3} {result}{changed}, {time.monotonic() - started:.0f} s, "
            f"{mutant['path']} {mutant['function']}",
            flush=True,
        )
        if options.write:
            write(mutants)
    counted = [
        mutant
        for mutant in mutants
        if "new" in mutant and not any(field in mutant for field in EXCLUDED)
    ]
    report("killed by the tests of 0.6", [mutant for mutant in counted if mutant["old"]])
    report("not run with them", [mutant for mutant in counted if mutant["old"] is None])


if __name__ == "__main__":
    main()
