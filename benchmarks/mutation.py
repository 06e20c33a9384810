"""Measure how many mutants of product code a test suite kills.

    python -m coverage run --branch --context … -m pytest …     # contexts: test functions
    python benchmarks/mutation.py --coverage .coverage --durations durations.json

:data:`SAMPLE` holds 200 mutants of version 0.6 (commit 250976a), drawn with cosmic-ray's
operators: one operator at each of 200 random positions that any operator can mutate,
without annotations, the demo and ``TYPE_CHECKING`` blocks. Each has the path, the function,
the lines before and after, and ``old``: whether the tests of 0.6 killed it (null: not run).

A mutant is applied where its line is found in the file; the file is restored afterwards.
Tests are those whose coverage context contains the line, fastest first, within
``--seconds``. A mutant whose line is gone is reported as such, so that it can be mapped to
its successor by hand: change ``path`` and ``lines`` of the sample.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = Path(__file__).with_name("mutants.json")

#: Most tests of one mutant.
MAX_TESTS = 80


def tests_by_function(durations: dict[str, float]) -> dict[tuple[str, str], list[str]]:
    """Return the node ids of each (module, test function)."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node in durations:
        file, _, name = node.partition("::")
        found[Path(file).stem, re.sub(r"\[.*", "", name)].append(node)
    return found


def chosen(contexts: Iterable[str], durations: dict[str, float], seconds: float) -> list[str]:
    """Return the node ids of the tests to run, fastest first."""
    functions = tests_by_function(durations)
    nodes: set[str] = set()
    for context in contexts:
        for name in context.split("|"):
            module, _, function = name.rpartition(".")
            nodes.update(functions.get((module.rpartition(".")[2], function), ()))
    picked, total = [], 0.0
    for node in sorted(nodes, key=durations.__getitem__)[:MAX_TESTS]:
        total += durations[node]
        if total > seconds:
            break
        picked.append(node)
    return picked


def mutated(text: str, lines: list[list]) -> str | None:
    """Return the text with its lines replaced; None if one is gone."""
    rows = text.split("\n")
    for number, before, after in lines:
        places = [place for place, row in enumerate(rows, 1) if row == before]
        if not places:
            return None
        rows[min(places, key=lambda place: abs(place - number)) - 1] = after
    return "\n".join(rows)


def is_killed(tests: list[str], seconds: float) -> bool:
    """Run tests until one fails; a suite that hangs has noticed the mutant, too."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    process = subprocess.Popen(
        [*command, "--timeout", "120", *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(4 * seconds + 120) != 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True


def main() -> None:
    import coverage

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--coverage", type=Path, required=True, help="data with contexts")
    parser.add_argument(
        "--durations", type=Path, required=True, help="JSON: node id to seconds"
    )
    parser.add_argument("--sample", type=Path, default=SAMPLE)
    parser.add_argument("--seconds", type=float, default=120, help="of tests for one mutant")
    parser.add_argument("--ids", type=int, nargs="+", help="only these mutants")
    options = parser.parse_args()
    data = coverage.CoverageData(str(options.coverage))
    data.read()
    durations = json.loads(options.durations.read_text())
    mutants = json.loads(options.sample.read_text())

    counts: Counter[str] = Counter()
    for mutant in mutants:
        if options.ids and mutant["id"] not in options.ids:
            continue
        path = ROOT / mutant["path"]
        original = path.read_text() if path.exists() else ""
        text = mutated(original, mutant["lines"])
        started = time.monotonic()
        if text is None:
            result = "line is gone"
        else:
            lines = data.contexts_by_lineno(str(path))
            rows = original.split("\n")
            contexts = {
                context
                for _, before, _ in mutant["lines"]
                for number, row in enumerate(rows, 1)
                if row == before
                for context in lines.get(number, ())
            }
            # A line that runs on import has no context: take all tests of the module.
            tests = chosen(contexts, durations, options.seconds) or chosen(
                {context for some in lines.values() for context in some},
                durations,
                options.seconds,
            )
            if tests:
                path.write_text(text)
                try:
                    result = "killed" if is_killed(tests, options.seconds) else "survived"
                finally:
                    path.write_text(original)
            else:
                result = "not covered"
        counts[result] += 1
        before = {True: "killed", False: "survived", None: "not run"}[mutant["old"]]
        print(
            f"{mutant['id']:3} {result} (0.6: {before}), {time.monotonic() - started:.0f} s, "
            f"{mutant['path']} {mutant['function']}",
            flush=True,
        )
    print(", ".join(f"{number} {result}" for result, number in counts.most_common()))


if __name__ == "__main__":
    main()
