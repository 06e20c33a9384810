"""Generated files match the declarations."""

import subprocess
import sys
from pathlib import Path

GENERATE = Path(__file__).parents[2] / "schemas" / "generate.py"


def generate(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True
    )


def test_the_generated_files_are_fresh():
    done = generate(GENERATE, "--check")

    assert done.returncode == 0, done.stderr


def test_a_stale_file_is_reported_and_rewritten(tmp_path):
    script = tmp_path / "generate.py"
    script.write_text(GENERATE.read_text())
    generate(script)
    (tmp_path / "README.md").write_text("stale")

    found = generate(script, "--check")
    assert (found.returncode, found.stderr) == (
        1,
        "README.md is stale: run python schemas/generate.py\n",
    )
    assert generate(script).stdout == "wrote README.md\n"
    assert generate(script, "--check").returncode == 0
