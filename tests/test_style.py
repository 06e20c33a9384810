"""The repository passes ruff and mypy."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["ruff", "format", "--check", "."], id="format"),
        pytest.param(["ruff", "check", "."], id="lint"),
        # Slow without mypy's cache; `make lint` and pre-commit run it, too.
        pytest.param(["mypy"], id="types", marks=pytest.mark.exhaustive),
    ],
)
def test_clean(command):
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
