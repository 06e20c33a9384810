"""The examples: programs with their findings, and a test for the duration of a program."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLE = FOLDER / "test_duration.py"

#: What a program needs beside the extra `all`, and why it may be missing.
NEEDED = {
    "batch_jobs.py": ("dask_jobqueue", "pip install dask-jobqueue"),
    "dask_awkward_jets.py": ("dask_awkward", "a Dask before 2025.4: make test-oldest"),
}


def findings_in_readme() -> dict[str, list[str]]:
    """Return the findings that the README states, by program."""
    rows = re.findall(
        r"(?m)^\| \[(\w+\.py)\]\S+ \|.*\| (.*) \|$", (FOLDER / "README.md").read_text()
    )
    return {name: re.findall(r"`([a-z-]+)`", findings) for name, findings in rows}


def test_the_readme_lists_all_programs():
    programs = {path.name for path in FOLDER.glob("*.py")} - {EXAMPLE.name}
    assert {*findings_in_readme()} == programs


@pytest.mark.parametrize("name", findings_in_readme())
def test_a_program_has_the_findings_of_the_readme(tmp_path, name):
    library, reason = NEEDED.get(name, ("dask", ""))
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{name}: {library} is missing: {reason}")
    trace = tmp_path / "trace.jsonl.zst"

    def run(module: str, *words: object) -> str:
        command = [sys.executable, "-m", module, *map(str, words)]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=os.environ.copy()
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    run("roast_recorder", "run", "-o", trace, "--", sys.executable, FOLDER / name)

    run("roast_analyze", "check", trace)
    assert json.loads(run("roast_analyze", trace, "--json"))["run"][0]["task_runs"] > 0
    found = json.loads(run("roast_analyze", "explain", "--json", trace))["findings"]
    assert {*findings_in_readme()[name]} <= {finding["id"] for finding in found}
    run("roast_analyze", trace, "--html", tmp_path / "report.html")


@pytest.mark.parametrize(("seconds", "code"), [("0.1", 0), ("0.3", 1)])
def test_the_second_run_passes_unless_it_is_slower(tmp_path, seconds, code):
    def run(seconds: str) -> subprocess.CompletedProcess:
        program = tmp_path / EXAMPLE.name
        program.write_text(EXAMPLE.read_text().replace("[0.1]", f"[{seconds}]"))
        command = [sys.executable, "-m", "pytest", "--rootdir", tmp_path, program]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert run("0.1").returncode == 0

    second = run(seconds)

    assert second.returncode == code, second.stdout
    assert ("failed: busy_seconds > +30%" in second.stdout) == bool(code)
