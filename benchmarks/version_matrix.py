"""Record with eight versions of distributed: ``make test-versions``.

Each version has an environment with distributed and the recorder's own requirements only. The
recorder's core tests run in it, and a small program is recorded in all four ways. Prints a
table of the versions: tests, records by kind, and losses.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".venv-versions"

#: From the oldest supported one to the newest: where Dask changed what the recorder reads.
VERSIONS = (
    "2024.3.0",  # the oldest
    "2024.8.2",
    "2024.12.1",  # tasks are objects
    "2025.3.1",
    "2025.5.1",  # `update_graph` passes no dependencies
    "2025.9.3",
    "2026.1.3",
    "2026.8.0",
)

#: Tests that need no further packages.
TESTS = (
    "test_endings.py", "test_fine_metrics.py", "test_preload.py", "test_spans.py",
    "test_transitions.py", "test_unknown_dask.py", "test_wanted_keys.py",
    "scheduler/test_tap.py",
)  # fmt: skip

WAYS = ("record", "preload", "run", "attach")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION")
    parser.add_argument("--keep", action="store_true", help="keep the environments")
    options = parser.parse_args()
    print("| distributed | tests | records by kind | losses |\n| --- | --- | --- | --- |")
    failed = False
    for version in options.versions:
        python = environment(version)
        tests, succeeded = run_tests(python)
        records, losses = record(python)
        print(f"| {version} | {tests} | {records} | {losses} |", flush=True)
        failed = failed or not succeeded or losses != "none"
        if not options.keep:
            shutil.rmtree(FOLDER / version)
    sys.exit(failed)


def environment(version: str) -> str:
    """Return the interpreter of an environment with a version of distributed."""
    folder = FOLDER / version
    python = str(folder / "bin" / "python")
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        needed = [f"distributed=={version}", "pytest>=8.2", "pytest-timeout>=2.3"]
        install = [python, "-m", "pip", "install", "--quiet", "--editable", str(ROOT), *needed]
        subprocess.run(install, check=True)
        (folder / "installed").touch()
    return python


def run_tests(python: str) -> tuple[str, bool]:
    """Return pytest's summary, and whether all tests have passed."""
    files = [str(ROOT / "tests" / "recorder" / name) for name in TESTS]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not exhaustive"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, cwd=ROOT)
    summary = done.stdout.strip().splitlines() or [done.stderr]
    if done.returncode:
        print(done.stdout[-20_000:], done.stderr[-5_000:], file=sys.stderr)
    unimportant = r",? \d+ (?:deselected|warnings?)| in .*"
    return re.sub(unimportant, "", summary[-1]).strip("= "), not done.returncode


def record(python: str) -> tuple[str, str]:
    """Return the records by kind of ``record()``, and the losses of all ways of recording."""
    program = str(ROOT / "tests" / "recorder" / "unknown_dask.py")
    with tempfile.TemporaryDirectory() as folder:
        cases = [f"{way}:missing:" for way in WAYS]
        command = [python, "-W", "ignore", program, folder, *cases]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=folder)
    results = json.loads(done.stdout)
    problems = []
    for way, case in zip(WAYS, cases, strict=True):
        result = results[case]
        if "error" in result:
            problems.append(f"{way}: {result['error']}")
            continue
        problems += [
            f"{way}: {loss['record_kind']}: {loss['reason']}" for loss in result["losses"]
        ]
        problems += [f"{way}: left behind: {name}" for name in result["left"]]
        problems += [] if result["trailers"] else [f"{way}: no trailer"]
    counts = results[cases[0]].get("counts", {})
    counted = ", ".join(f"{kind} {number}" for kind, number in sorted(counts.items()))
    return counted, "; ".join(dict.fromkeys(problems)) or "none"


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    main()
