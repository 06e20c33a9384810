"""The example of a test for the duration of a program."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "test_duration.py"


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
