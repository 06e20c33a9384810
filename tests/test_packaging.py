"""The wheel contains the three packages with all of their files, and works when installed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "roast_recorder": ROOT / "recorder",
    "roast_analyze": ROOT / "analyze",
    "roast_schemas": ROOT / "schemas",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [wheel] = folder.glob("roast_trace-*.whl")
    return wheel


def test_it_contains_exactly_the_files_of_the_packages(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {
        str(path.relative_to(top))
        for package, top in PACKAGES.items()
        for path in (top / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert names == expected


def test_it_is_imported_outside_the_repository(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = (
        "import roast_recorder, roast_schemas, roast_analyze;"
        "print(roast_recorder.__file__, roast_schemas.__file__, roast_analyze.__file__)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert all(path.startswith(str(tmp_path / "site")) for path in done.stdout.split())
