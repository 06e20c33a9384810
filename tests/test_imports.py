"""Who may import whom."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

STDLIB = frozenset(sys.stdlib_module_names)

#: What the modules of a package may import at most, besides the standard library and itself.
ALLOWED = {
    "schemas/roast_schemas": set(),
    "recorder/roast_recorder": {
        "roast_schemas", "distributed", "dask", "orjson", "zstandard", "cloudpickle", "fsspec",
        "psutil",
    },
    "analyze/roast_analyze": {
        "roast_schemas", "duckdb", "polars", "pyarrow", "plotly", "jinja2", "rich", "zstandard",
        "markupsafe", "numpy", "orjson", "platformdirs", "psutil", "xxhash",
        "darshan", "msgpack", "yaml",
    },
}  # fmt: skip

#: What a part of the analysis must not import, though its package may.
FORBIDDEN = {
    "figures": ["duckdb", "rich", "roast_analyze.report", "roast_analyze.commands",
                "roast_analyze.trace", "roast_analyze.open.load"],
    "report": ["rich", "roast_analyze.commands", "roast_analyze.cli"],
    "commands": ["roast_analyze.cli"],
    "open/database.py": ["polars", "plotly", "rich", "roast_analyze.trace", "roast_analyze.report",
                    "roast_analyze.commands"],
    "trace.py": ["plotly", "rich", "roast_analyze.commands", "roast_analyze.cli"],
    "open/load.py": ["polars", "plotly", "rich", "roast_analyze.trace", "roast_analyze.report",
                "roast_analyze.commands", "roast_analyze.cli"],
}  # fmt: skip


def imported(path: Path, *, run_time_only: bool = True) -> set[str]:
    """Names of the modules that a file imports, lazily or not."""
    tree = ast.parse(path.read_text())
    if run_time_only:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                node.body = []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def modules(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found, folder
    return found


@pytest.mark.parametrize("folder", ["schemas/roast_schemas", "analyze/roast_analyze"])
def test_a_package_imports_only_what_it_may(folder):
    own = folder.rpartition("/")[2]
    for path in modules(folder):
        top_level = {name.partition(".")[0] for name in imported(path, run_time_only=False)}
        assert top_level - STDLIB - {own} <= ALLOWED[folder], path


def test_the_recorder_imports_only_what_it_may():
    """Coffea and what it needs belong in the module for coffea, and in the demo."""
    folder = "recorder/roast_recorder"
    analysis = {"roast_analyze", "duckdb", "polars", "plotly", "pyarrow", "jinja2", "rich"}
    for path in modules(folder):
        top_level = {name.partition(".")[0] for name in imported(path, run_time_only=False)}
        inside = path.relative_to(ROOT / folder).parts[0]
        if inside in ("demo", "commands"):  # they show what the analysis makes of the trace
            continue
        assert not top_level & analysis, path
        if inside != "coffea":
            assert top_level - STDLIB - {"roast_recorder"} <= ALLOWED[folder], path


@pytest.mark.parametrize("part", FORBIDDEN)
def test_the_layers_of_the_analysis(part):
    where = ROOT / "analyze" / "roast_analyze" / part
    for path in sorted(where.rglob("*.py")) if where.is_dir() else [where]:
        for name in imported(path):
            for forbidden in FORBIDDEN[part]:
                assert name != forbidden, path
                assert not name.startswith(f"{forbidden}."), path


@pytest.mark.parametrize(
    ("package", "unwanted"),
    [
        ("roast_schemas", {"distributed", "dask", "orjson", "duckdb", "polars", "numpy"}),
        (
            "roast_recorder",
            {"duckdb", "polars", "plotly", "pyarrow", "rich", "coffea", "uproot", "awkward"},
        ),
        ("roast_analyze", {"distributed", "dask", "coffea", "duckdb", "polars", "plotly"}),
    ],
)
def test_what_is_loaded_by_importing_a_package(package, unwanted):
    loaded = subprocess.run(
        [sys.executable, "-c", f"import {package}, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert unwanted & {name.partition(".")[0] for name in loaded} == set()


def test_schemas_load_nothing_but_the_standard_library():
    code = (
        "import sys; before = {*sys.modules}; import roast_schemas.describe; "
        "print(*({*sys.modules} - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert {name.partition(".")[0] for name in loaded} - STDLIB == {"roast_schemas"}
