"""The wheel, and the metadata of the distribution."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import yaml

import roast_recorder
from roast_analyze.cli import COMMANDS

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
    code = "".join(f"import {name}; print({name}.__file__)\n" for name in PACKAGES.values())
    files = python("-c", code, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(site)})
    assert all(file.startswith(str(site)) for file in files.splitlines())


def test_there_is_one_version():
    [newest] = re.findall(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text())[:1]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())

    versions = {roast_recorder.__version__, citation["version"], recipe["context"]["version"]}
    assert versions == {newest}


def test_the_recipe_has_the_requirements_of_the_recorder_and_the_analysis():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    names = {"python-duckdb": "duckdb", "python-xxhash": "xxhash"}  # names on conda-forge

    # The later of two requirements of one package is the stricter one.
    wanted = dict(
        re.fullmatch(r"([\w-]+)(.*)", requirement).groups()
        for requirement in (
            *project["dependencies"], *project["optional-dependencies"]["analyze"],
        )
    )  # fmt: skip
    _, *listed = recipe["requirements"]["run"]
    written = dict(f"{line} ".split(" ", 1) for line in listed)
    assert {names.get(name, name): bound.strip() for name, bound in written.items()} == wanted
    assert recipe["build"]["python"]["entry_points"] == [
        f"{name} = {target}" for name, target in project["scripts"].items()
    ]


def test_one_extra_installs_all_that_a_store_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert "roast-trace[analyze]" in project["optional-dependencies"]["store"]


def test_github_files_are_valid_and_call_targets_that_exist():
    files = [*(ROOT / ".github").rglob("*.yml")]
    loaded = {path.name: yaml.safe_load(path.read_text()) for path in files}

    for name in ("recording.yml", "analysis.yml", "proposal.yml"):
        labels = [item["attributes"]["label"] for item in loaded[name]["body"]]
        assert any("roast-analyze check" in label for label in labels), name
    makefile = (ROOT / "Makefile").read_text()
    steps = [step for job in loaded["tests.yml"]["jobs"].values() for step in job["steps"]]
    targets = [step["run"].removeprefix("make ") for step in steps if "run" in step]
    assert len(targets) == 4
    assert all(f"\n{target}:" in makefile for target in targets)

    example = yaml.safe_load((ROOT / "examples" / "github-actions.yml").read_text())
    [job] = example["jobs"].values()
    script = "\n".join(step.get("run", "") for step in job["steps"])
    assert set(re.findall(r"roast-analyze (\w+)", script)) == {"gate", "metrics"} <= {*COMMANDS}
