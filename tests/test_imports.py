"""Import rules of the packages; function-level imports count."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"roast_schemas": "schemas", "roast_recorder": "recorder", "roast_analyze": "analyze"}

#: Third-party libraries that a package may import.
LIBRARIES = {
    "roast_schemas": set(),
    "roast_recorder": {
        "distributed", "dask", "orjson", "zstandard", "cloudpickle", "psutil", "argcomplete",
    },
    "roast_analyze": {
        "duckdb", "polars", "pyarrow", "plotly", "jinja2", "rich", "zstandard", "markupsafe",
        "numpy", "orjson", "platformdirs", "psutil", "xxhash", "darshan", "msgpack", "yaml",
        "deltalake", "fsspec", "argcomplete",
    },
}  # fmt: skip

#: Further libraries, of single modules and folders. The recorder imports coffea only in its own
#: folder, and the analysis only to show a run below its cell.
FURTHER = {
    "roast_analyze.dask_cluster": {"distributed"},
    "roast_analyze.batch_query": {"dask", "pandas"},
    "roast_analyze.open.drivers": {"aiohttp", "XRootD"},
    "roast_analyze.notebook": {"IPython"},
    "roast_analyze.commands.mcp_server": {"mcp", "pydantic"},
    "roast_analyze.commands.serve": {"tornado"},
    "roast_analyze.server.application": {"tornado"},
    "roast_recorder.notebook": {"IPython", "roast_analyze"},
    "roast_recorder.scheduler.health": {"prometheus_client"},
    "roast_recorder.coffea": {"coffea", "uproot", "awkward", "fsspec_xrootd", "numpy"},
}

#: Libraries, and modules of roast_analyze, that a part of roast_analyze must not import.
FORBIDDEN = {
    "open": [
        "plotly", "rich", "jinja2", ".trace", ".report", ".figures", ".export", ".imports",
        ".algorithms", ".commands", ".cli",
    ],
    "algorithms": ["duckdb", ".open", ".report"],
    "figures": ["duckdb", "rich", ".open", ".report", ".trace", ".commands", ".cli"],
    "report": ["duckdb", "rich", ".trace", ".commands", ".cli"],
    "export": ["rich", ".trace", ".commands", ".cli"],
    "imports": ["plotly", "rich", ".trace", ".commands", ".cli"],
    "server": ["plotly", "rich", ".trace", ".commands", ".cli"],
    "commands": [".trace", ".cli"],
    "trace": ["plotly", "rich", ".commands", ".cli"],
}  # fmt: skip


@cache
def modules(package: str) -> dict[str, Path]:
    """Return the files of a package by the dotted names of their modules."""
    top = ROOT / FOLDERS[package]
    paths = sorted((top / package).rglob("*.py"))
    assert paths, package
    dotted = (".".join(path.relative_to(top).with_suffix("").parts) for path in paths)
    names = (name.removesuffix(".__init__") for name in dotted)
    return dict(zip(names, paths, strict=True))


@cache
def imported(path: Path, *, at_run_time: bool = True) -> frozenset[str]:
    """Return the dotted names that a module imports, at run time or also for type checking."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree) if at_run_time else ():
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


def is_within(name: str, parent: str) -> bool:
    return f"{name}.".startswith(f"{parent}.")


@pytest.mark.parametrize("package", FOLDERS)
def test_no_import_cycle(package):
    known = modules(package)
    graph = {}
    for name, path in known.items():
        targets = {n if n in known else n.rpartition(".")[0] for n in imported(path)}
        graph[name] = (targets & known.keys()) - {name}

    TopologicalSorter(graph).prepare()  # raises CycleError


@pytest.mark.parametrize("package", FOLDERS)
def test_third_party_imports(package):
    known = {"roast_schemas", package} | sys.stdlib_module_names | LIBRARIES[package]
    found = []
    for name, path in modules(package).items():
        if name.startswith(("roast_recorder.demo", "roast_recorder.commands")):
            continue
        further = [names for module, names in FURTHER.items() if is_within(name, module)]
        top_level = {n.partition(".")[0] for n in imported(path, at_run_time=False)}
        found += [(name, library) for library in top_level - known.union(*further)]
    assert not found


@pytest.mark.parametrize("part", FORBIDDEN)
def test_layers_of_the_analysis(part):
    top = "roast_analyze"
    own = {m: path for m, path in modules(top).items() if is_within(m, f"{top}.{part}")}
    forbidden = [top + name if name.startswith(".") else name for name in FORBIDDEN[part]]
    assert own
    assert not [
        (module, name)
        for module, path in own.items()
        for name in imported(path)
        if any(is_within(name, parent) for parent in forbidden)
    ]


HEAVY = {"duckdb", "polars", "plotly", "coffea"}
UNWANTED = {
    "roast_recorder": HEAVY | {"pyarrow", "rich", "uproot", "awkward"},
    "roast_recorder.api": {"distributed"},
    "roast_analyze": HEAVY | {"distributed", "dask"},
    # A query and a summary of a cached trace need none of them.
    "roast_analyze.open.session": {"numpy", "polars", "pyarrow"},
    "roast_analyze.commands.summary_tables": {"numpy", "polars", "pyarrow"},
    "roast_analyze.server.application": {"distributed", "dask", "roast_recorder"},
    "roast_analyze.server.jupyter": HEAVY | {"tornado"},
}


@pytest.mark.parametrize("module", UNWANTED)
def test_libraries_loaded_by_importing_a_package(module):
    code = (
        f"import sys; old = {{*sys.modules}}; import {module}; print(*({{*sys.modules}} - old))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert UNWANTED[module] & loaded == set()


def test_the_recorder_imports_no_probe_by_name():
    """Any probe can be removed: one function imports them, and none imports another."""
    known = modules("roast_recorder")
    probes = [name for name in known if name.startswith("roast_recorder.probes.")]
    found = {
        (name, probe)
        for name, path in known.items()
        for imports in imported(path, at_run_time=False)
        for probe in probes
        if is_within(imports, probe)
    }
    assert found == set()
