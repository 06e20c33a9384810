"""The digest that names cached databases includes all code that determines their content."""

import ast
import shutil
from importlib.resources import files
from pathlib import Path

import pytest

from roast_analyze.open import views


@pytest.fixture
def digest(monkeypatch, tmp_path):
    """Return a function that computes the digest of copies of the packages, in a folder."""
    for package in ("roast_analyze", "roast_schemas"):
        ignored = shutil.ignore_patterns("__pycache__", "report", "words.txt")
        shutil.copytree(str(files(package)), tmp_path / package, ignore=ignored)
    monkeypatch.setattr(views, "files", lambda package: tmp_path / package)
    return views.definitions_digest.__wrapped__


def determining(folder: Path) -> list[Path]:
    """Return the files of the packages that determine the content of a database."""
    return [
        file
        for package, names in views.DETERMINING
        for place in (folder / package / name for name in names)
        for file in ([place] if place.is_file() else sorted(place.rglob("*")))
        if file.suffix in (".py", ".sql")
    ]


def test_a_change_of_any_module_or_library_changes_the_digest(digest, tmp_path, monkeypatch):
    original = digest()
    assert digest() == original
    changed = determining(tmp_path)
    names = {str(file.relative_to(tmp_path)) for file in changed}
    assert {
        f"roast_analyze/open/{name}.py" for name in ("discover", "damage", "database")
    } < names
    assert {"roast_schemas/records.py", "roast_analyze/sql/tasks/task_runs.sql"} < names
    # One file of each folder, and all modules that read a trace.
    picked = {file.parent: file for file in changed}.values()
    for file in {*picked, *(tmp_path / "roast_analyze/open").glob("*.py")}:
        text = file.read_bytes()
        file.write_bytes(text + b"\n")
        assert digest() != original, file
        file.write_bytes(text)
    (tmp_path / "roast_analyze/computed/new.py").touch()
    assert digest() != original
    (tmp_path / "roast_analyze/computed/new.py").unlink()
    for library in ("duckdb", "numpy", "polars", "pyarrow"):
        versions = {library: "0.0"}
        with monkeypatch.context() as patch:
            found = views.version
            patch.setattr(views, "version", lambda n, v=versions, f=found: v.get(n) or f(n))
            assert digest() != original, library


def test_no_module_outside_the_digest_takes_part():
    root = Path(str(files("roast_analyze"))).parent
    schemas = Path(str(files("roast_schemas"))).parent
    included = {*determining(root), *determining(schemas)}
    missing = {}
    for file in included:
        if file.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
            elif isinstance(node, ast.Import):
                names = [name.name for name in node.names]
            else:
                continue
            for name in names:
                if name.partition(".")[0] in ("roast_analyze", "roast_schemas"):
                    place = (root if name.startswith("roast_analyze") else schemas).joinpath(
                        *name.split(".")
                    )
                    module = place.with_suffix(".py")
                    if module.is_file() and module not in included:
                        missing[name] = file.name
    assert missing == {}
