"""The wheel contains the three packages with all of their files, and works when installed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "recorder": "roast_recorder",
    "analyze": "roast_analyze",
    "schemas": "roast_schemas",
}


def python(*arguments, **options) -> str:
    captured = {"capture_output": True, "text": True, "check": True}
    return subprocess.run([sys.executable, *arguments], **captured, **options).stdout


def test_the_wheel_has_all_files_and_is_imported_outside_the_repository(tmp_path):
    site = tmp_path / "site"
    python("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), cwd=ROOT)
    [wheel] = tmp_path.glob("roast_trace-*.whl")
    zipfile.ZipFile(wheel).extractall(site)

    names = {
        str(path.relative_to(site))
        for path in site.rglob("*")
        if path.is_file() and ".dist-info" not in str(path)
    }
    assert names == {
        str(path.relative_to(ROOT / folder))
        for folder, package in PACKAGES.items()
        for path in (ROOT / folder / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    code = f"import {', '.join(PACKAGES.values())}\n" + "\n".join(
        f"print({package}.__file__)" for package in PACKAGES.values()
    )
    files = python("-c", code, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(site)})
    assert all(file.startswith(str(site)) for file in files.splitlines())
