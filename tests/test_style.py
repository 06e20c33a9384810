"""The repository passes ruff and mypy, and avoids unsafe regular expressions."""

import re
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


def test_no_group_is_repeated_possessively():
    """Python 3.11.0 to 3.11.4 can match these wrongly (gh-106052): redaction would differ."""
    possessive = re.compile(r"[^\\]\)(?:[*+?]|\{[0-9,]*\})\+")
    assert possessive.search(r"(?:a|b)*+")
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for folder in ("recorder", "analyze", "schemas")
        for path in (ROOT / folder).rglob("*.py")
        for match in possessive.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []
