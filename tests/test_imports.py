"""Import rules of the packages; function-level imports count."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "roast_schemas": ROOT / "schemas",
    "roast_recorder": ROOT / "recorder",
    "roast_analyze": ROOT / "analyze",
}

#: Third-party libraries that a package may import.
LIBRARIES = {
    "roast_schemas": set(),
    "roast_recorder": {
        "distributed", "dask", "orjson", "zstandard", "cloudpickle", "psutil",
    },
    "roast_analyze": {
        "duckdb", "polars", "pyarrow", "plotly", "jinja2", "rich", "zstandard", "markupsafe",
        "numpy", "orjson", "platformdirs", "psutil", "xxhash", "darshan", "msgpack", "yaml",
    },
}  # fmt: skip

#: Modules that a part of the analysis must not import.
FORBIDDEN = {
    "roast_analyze.open": [
        "plotly", "rich", "jinja2", "roast_analyze.trace", "roast_analyze.report",
        "roast_analyze.figures", "roast_analyze.export", "roast_analyze.imports",
        "roast_analyze.algorithms", "roast_analyze.commands", "roast_analyze.cli",
    ],
    "roast_analyze.algorithms": ["duckdb", "roast_analyze.open", "roast_analyze.report"],
    "roast_analyze.figures": [
        "duckdb", "rich", "roast_analyze.open", "roast_analyze.report", "roast_analyze.trace",
        "roast_analyze.commands", "roast_analyze.cli",
    ],
    "roast_analyze.report": [
        "duckdb", "rich", "roast_analyze.trace", "roast_analyze.commands", "roast_analyze.cli",
    ],
    "roast_analyze.export": [
        "rich", "roast_analyze.trace", "roast_analyze.commands", "roast_analyze.cli",
    ],
    "roast_analyze.imports": [
        "plotly", "rich", "roast_analyze.trace", "roast_analyze.commands", "roast_analyze.cli",
    ],
    "roast_analyze.commands": ["roast_analyze.trace", "roast_analyze.cli"],
    "roast_analyze.trace": ["plotly", "rich", "roast_analyze.commands", "roast_analyze.cli"],
}  # fmt: skip


def modules(package: str) -> dict[str, Path]:
    paths = sorted((FOLDERS[package] / package).rglob("*.py"))
    assert paths, package
    dotted = [
        ".".join(path.relative_to(FOLDERS[package]).with_suffix("").parts) for path in paths
    ]
    return {
        name.removesuffix(".__init__"): path for name, path in zip(dotted, paths, strict=True)
    }


@cache
def imported(path: Path, *, at_run_time: bool = True) -> frozenset[str]:
    """Return the dotted names that a module imports; without TYPE_CHECKING if at run time."""
    tree = ast.parse(path.read_text())
    if at_run_time:
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
    return frozenset(names)


def import_circle(package: str) -> list[str] | None:
    known = modules(package)
    graph = {}
    for name, path in known.items():
        targets = {n if n in known else n.rpartition(".")[0] for n in imported(path)}
        graph[name] = {target for target in targets if target in known and target != name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


@pytest.mark.parametrize("package", FOLDERS)
def test_no_import_circle(package):
    assert import_circle(package) is None


@pytest.mark.parametrize("package", FOLDERS)
def test_third_party_imports(package):
    """The recorder imports coffea only in its own module, and the analysis only in the demo."""
    own = {"roast_schemas", package}
    found = []
    for name, path in modules(package).items():
        if name.startswith(("roast_recorder.demo", "roast_recorder.commands")):
            continue
        top_level = {n.partition(".")[0] for n in imported(path, at_run_time=False)}
        unknown = top_level - sys.stdlib_module_names - own - LIBRARIES[package]
        if name.startswith("roast_recorder.coffea"):
            unknown -= {"coffea", "uproot", "awkward", "fsspec_xrootd", "numpy"}
        found += [(name, library) for library in unknown]
    assert not found


@pytest.mark.parametrize("part", FORBIDDEN)
def test_layers_of_the_analysis(part):
    own = {
        module: path
        for module, path in modules("roast_analyze").items()
        if f"{module}.".startswith(f"{part}.")
    }
    assert own
    found = [
        (module, name)
        for module, path in own.items()
        for name in imported(path)
        for forbidden in FORBIDDEN[part]
        if f"{name}.".startswith(f"{forbidden}.")
    ]
    assert not found


@pytest.mark.parametrize(
    ("package", "unwanted"),
    [
        (
            "roast_recorder",
            {"duckdb", "polars", "plotly", "pyarrow", "rich", "coffea", "uproot", "awkward"},
        ),
        ("roast_recorder.api", {"distributed"}),
        ("roast_analyze", {"distributed", "dask", "coffea", "duckdb", "polars", "plotly"}),
    ],
)
def test_libraries_loaded_by_importing_a_package(package, unwanted):
    assert unwanted & loaded_by(package) == set()


def test_schemas_load_only_the_standard_library():
    loaded = loaded_by("roast_schemas.describe")
    assert loaded - sys.stdlib_module_names == {"roast_schemas"}


def loaded_by(module: str) -> set[str]:
    """Return the top-level names of the modules that an import adds to a fresh process."""
    code = (
        f"import sys; old = {{*sys.modules}}; import {module}; print(*({{*sys.modules}} - old))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}
