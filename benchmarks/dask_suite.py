"""Run distributed's own tests with and without the recorder, and compare their outcomes.

    python benchmarks/dask_suite.py SOURCE [tests …]        # default: the whole suite

SOURCE is a source tree of distributed, near the installed version, because its wheel has no
tests. The tests run against that tree; in the second pass, every scheduler loads
``roast_recorder.preload``. A test whose outcome differs is repeated both ways, because some
are flaky. Every trace is then opened with summary, check and report.

Exits with 1 if a test changed its outcome in all repetitions, or a trace did not open.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

#: Tests of what the recorder observes.
TESTS = [
    f"distributed/{name}"
    for name in (
        "tests/test_scheduler.py", "tests/test_client.py", "tests/test_worker.py",
        "tests/test_worker_metrics.py", "tests/test_steal.py", "tests/test_spill.py",
        "tests/test_spans.py", "tests/test_events.py", "tests/test_nanny.py",
        "tests/test_preload.py", "tests/test_profile.py", "tests/test_failed_workers.py",
        "shuffle/tests", "deploy/tests/test_local.py", "deploy/tests/test_adaptive.py",
        "deploy/tests/test_cluster.py", "deploy/tests/test_spec_cluster.py",
        "deploy/tests/test_subprocess.py", "diagnostics/tests",
    )
]  # fmt: skip


def run(source: Path, tests: list[str], traces: Path | None, seconds: float) -> dict[str, str]:
    """Run tests, recorded into a folder if there is one; return the outcome of each."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    if traces is not None:
        ours = [path for path in sys.path if (Path(path) / "roast_recorder").is_dir()]
        environment |= {
            "PYTHONPATH": os.pathsep.join([str(source), *map(os.path.abspath, ours)]),
            "DASK_DISTRIBUTED__SCHEDULER__PRELOAD": json.dumps(["roast_recorder.preload"]),
            "DASK_ROAST__RECORDER__DIRECTORY": str(traces),
        }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            f"--timeout={seconds}",
            f"--junitxml={report}",
        ]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        done = subprocess.run(
            command, cwd=source, env=environment, stdout=subprocess.PIPE, text=True
        )
        # 0 and 1: all tests ran. Errors of the collection would be the same in both passes.
        if done.returncode not in (0, 1):
            sys.exit(f"{done.stdout}\npytest ended with code {done.returncode}")
        cases = ET.parse(report).iter("testcase")
        return {f"{case.get('classname')}::{case.get('name')}": outcome(case) for case in cases}


def outcome(case: ET.Element) -> str:
    """Return passed, failed or skipped; an expected failure counts as skipped."""
    kinds = {child.tag for child in case}
    return "failed" if kinds & {"failure", "error"} else "skipped" if kinds else "passed"


def node_of(source: Path, name: str) -> str:
    """Return the node id of a test from its name in the report."""
    module, _, test = name.partition("::")
    parts = module.split(".")
    while not (source / Path(*parts)).with_suffix(".py").exists():
        test = f"{parts.pop()}::{test}"
    return f"{Path(*parts)}.py::{test}"


def failures_to_open(traces: Path) -> list[str]:
    """Open every trace with summary, check and report; return what failed."""
    from roast_analyze import cli

    wrong = []
    for trace in sorted(path for path in traces.iterdir() if any(path.iterdir())):
        page = traces / "report.html"
        for arguments in (
            [str(trace)],
            [str(trace), "--html", str(page)],
            ["check", str(trace)],
        ):
            errors = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
                try:
                    code = cli.main(arguments)
                except Exception as error:  # noqa: BLE001 - any exception counts
                    code, errors = 3, io.StringIO(repr(error))
            if code > (arguments[0] == "check"):
                wrong.append(
                    f"{trace.name}: {' '.join(arguments)}: {errors.getvalue().strip()}"
                )
    return wrong


def main() -> int:
    """Compare the outcomes, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--repeat", type=int, default=3, help="runs of a test that differs")
    parser.add_argument("--timeout", type=float, default=120, help="seconds of a test")
    options = parser.parse_args()
    source, tests = options.source.resolve(), options.tests or TESTS
    with tempfile.TemporaryDirectory(prefix="roast-suite-") as folder:
        traces = Path(folder) / "traces"
        traces.mkdir()
        plain = run(source, tests, None, options.timeout)
        recorded = run(source, tests, traces, options.timeout)
        for name, outcomes in (("without", plain), ("with the recorder", recorded)):
            print(f"{name}: {dict(Counter(outcomes.values()))}", flush=True)
        changed = []
        for name in sorted(plain.keys() | recorded.keys()):
            if plain.get(name) == recorded.get(name):
                continue
            node = [node_of(source, name)]
            pairs = [
                [
                    run(source, node, where, options.timeout).get(name)
                    for where in (None, traces)
                ]
                for _ in range(options.repeat)
            ]
            is_changed = all(before != after for before, after in pairs)
            changed += [name] * is_changed
            print(f"{'CHANGED' if is_changed else 'flaky'}: {node[0]}: {pairs}", flush=True)
        folders = list(traces.iterdir())
        empty = sum(not any(path.iterdir()) for path in folders)
        wrong = failures_to_open(traces)
        print(f"{len(folders)} traces, {empty} of them empty, {len(wrong)} failures to open")
        print(*wrong, sep="\n")
    return 1 if changed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
