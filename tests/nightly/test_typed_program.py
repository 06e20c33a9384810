"""mypy and pyright check a user's program against the types of the packages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = [str(ROOT / folder) for folder in ("recorder", "analyze", "schemas")]

PROGRAM = """
from pathlib import Path

import polars as pl
from distributed import Client

import roast_recorder
from roast_analyze import Store, Trace


def analyze(client: Client, path: Path, store: Store) -> pl.DataFrame:
    with roast_recorder.record(client) as unnamed:
        name: str = unnamed.path
    with roast_recorder.record(client, path, label="mine") as recording:
        records: int = recording.records_by_kind.total()
    with roast_recorder.record(path=path), roast_recorder.section("selection"):
        wrong: int = unnamed.path
    with Trace(path, start="5m") as trace:
        report: Path = trace.report(path.with_suffix(".html"))
        rows: list[tuple[object, ...]] = trace.sql("SELECT 1").fetchall()
        print(name, records, wrong, report, trace.timeline(), rows, store)
        print([view.name for view in trace.views()], trace.findings().height)
        trace.what_if(workers="two")  # wrong
        return trace.what_if(workers=[2, 4]).vstack(trace.why(trace))
"""
CHECKERS = {
    "mypy": ["mypy", "--strict", "--no-incremental"],
    "pyright": ["pyright", "--pythonpath", sys.executable],
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_only_wrong_lines_are_reported(tmp_path, checker):
    name, *options = CHECKERS[checker]
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": FOLDERS}))
    command = [Path(sys.executable).with_name(name), *options, "program.py"]

    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "MYPYPATH": os.pathsep.join(FOLDERS)},
    )  # fmt: skip

    lines = PROGRAM.splitlines()
    reported = {
        int(line.split("program.py:")[1].split(":")[0])
        for line in done.stdout.splitlines()
        if "program.py:" in line and "error" in line
    }
    wrong = {
        number
        for number, line in enumerate(lines, 1)
        if "wrong" in line and "print" not in line
    }
    assert reported == wrong, done.stdout
