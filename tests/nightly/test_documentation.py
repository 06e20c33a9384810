"""Every code block in ``docs/`` runs: those of a page in order, in a folder with traces.

A block whose first line is a comment ``# Not run in the tests: …`` is only compiled, and its
calls are compared with the signatures of what it imports. A block with a file name after its
language is written to that file. A block ``sql raw`` runs in DuckDB without roast. The lines of
a ``text`` block must be in the output of the command above it, if that was run. Seconds in the
prose of a tutorial must be in the output of its commands.
"""

import ast
import importlib
import inspect
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
import yaml

from roast_analyze import Trace
from roast_analyze.algorithms.work_kinds import load_kinds

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Trace names in the pages, and the samples that they stand for.
TRACES = {
    "trace": "coffea",
    "trace.jsonl": "coffea",
    "before": "coffea",
    "after": "coffea_failures",
    "monday": "shuffle_reduce",
    "tuesday": "image_pipeline",
    "wednesday": "coffea",
    "new": "coffea_failures",
    "runs/1": "coffea",
    "runs/2": "coffea_failures",
}
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)
MARK = "# Not run in the tests: "
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if BLOCK.search(page.read_text("utf-8"))]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_blocks_work(page, tmp_path):
    # In a separate process, because a LocalCluster there redefines the recorder's classes.
    process = multiprocessing.get_context("spawn").Process(target=run, args=(page, tmp_path))
    process.start()
    process.join(380)
    process.kill()

    assert process.exitcode == 0


def run(page: Path, folder: Path) -> None:
    """Run the blocks of a page."""
    os.chdir(folder)
    for name, sample in TRACES.items():
        path = folder / (name if "." in name else f"{name}.jsonl.zst")
        path.parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "sample_traces" / f"{sample}.jsonl.zst", path)
    shutil.copytree(ROOT / "sample_traces" / "tutorial", folder / "sample_traces" / "tutorial")
    blocks = BLOCK.findall(page.read_text("utf-8"))
    with ExitStack() as stack:
        names = {"__name__": "__main__", **provided(blocks, stack)}
        output: str | None = None
        printed_by_page = ""
        for language, file, text in blocks:
            print(f"--- {page.name}: {language}\n{text}", flush=True)
            if file.endswith((".py", ".sql")):
                Path(file).parent.mkdir(exist_ok=True)
                Path(file).write_text(text)
            elif file == "raw":
                duckdb.sql(text).fetchall()
            elif language == "sh":
                output = run_shell(text)
            elif language == "text" and output is not None:
                shown = " ".join(output.split())
                lines = [" ".join(line.split()) for line in text.splitlines()]
                assert [line for line in lines if line not in shown] == []
            elif language != "text":
                with redirect_stdout(StringIO()) as printed:
                    RUNNERS[language](text, names)
                output = printed.getvalue()
            printed_by_page += output or ""
            if text.startswith(MARK):
                output = None
    if page.parent.name == "tutorial":
        seconds = re.findall(r"\b(\d+\.\d+) s\b", BLOCK.sub("", page.read_text("utf-8")))
        assert [figure for figure in seconds if not is_printed(figure, printed_by_page)] == []


def is_printed(figure: str, output: str) -> bool:
    """Return whether a number of the prose is one of the output, rounded to its digits."""
    digits = len(figure.partition(".")[2])
    printed = map(float, re.findall(r"\d+\.\d+", output))
    return any(round(number, digits) == float(figure) for number in printed)


def provided(blocks: list, stack: ExitStack) -> dict:
    """Return the variables that the blocks assume: a client, and a coffea analysis."""
    text = "".join(
        text for language, _, text in blocks if language == "python" and MARK not in text
    )
    names = {}
    if re.search(r"\b(client|runner)\b", text):
        from distributed import Client, LocalCluster

        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        names["client"] = stack.enter_context(Client(stack.enter_context(cluster)))
    if "fileset" in text:
        from coffea.nanoevents import NanoAODSchema
        from coffea.processor import DaskExecutor, Runner

        from roast_recorder.demo import dijet, files

        datasets = (files.Dataset("DY", files=1, events=500, jets=2.0, resonance_mass=91.0),)
        list(files.write_files(Path(), datasets))
        names["fileset"] = files.fileset(Path.cwd(), datasets)
        names["processor"] = dijet.DijetProcessor()
        if "client" in names:
            executor = DaskExecutor(client=names["client"])
            names["runner"] = Runner(executor, schema=NanoAODSchema, savemetrics=True)
    return names


def run_python(text: str, names: dict) -> None:
    if text.startswith(MARK):
        check_calls(ast.parse(text), names)
    else:
        exec(compile(text, "<documentation>", "exec"), names)


def check_calls(tree: ast.AST, names: dict) -> None:
    """Compare calls with the signatures of installed classes, functions and methods."""
    known = dict(names)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and importlib.util.find_spec(
            node.module.partition(".")[0]
        ):
            module = importlib.import_module(node.module)
            known |= {alias.name: getattr(module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            known |= {a.name: importlib.import_module(a.name) for a in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = called(node.value.func, known)
            if inspect.isclass(made):
                known[node.targets[0].id] = SimpleNamespace(made=made)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (function := called(node.func, known)) is not None:
            keywords = {keyword.arg: None for keyword in node.keywords}
            is_method = inspect.isfunction(function) and isinstance(node.func, ast.Attribute)
            owner = known.get(getattr(getattr(node.func, "value", None), "id", None))
            first = [None] if is_method and isinstance(owner, SimpleNamespace) else []
            inspect.signature(function).bind(*first, *node.args, **keywords)


def called(node: ast.expr, known: dict) -> object:
    """Return what an expression such as `name` or `name.attribute` refers to, if known."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = known.get(node.value.id)
        return getattr(getattr(owner, "made", owner), node.attr) if owner is not None else None
    return None


def run_shell(text: str) -> str:
    """Run a command, or only parse it; return its output."""
    shell = Path(importlib.util.find_spec("duckdb_cli").origin).parent
    path = os.pathsep.join([str(Path(sys.executable).parent), str(shell), os.environ["PATH"]])
    options = ["-n"] if text.startswith(MARK) else []
    done = subprocess.run(
        ["bash", *options, "-euo", "pipefail", "-c", text],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "PATH": path, "BROWSER": "true"},
    )
    print(done.stdout, flush=True)
    return done.stdout


def run_sql(text: str, _names: dict) -> None:
    with Trace("trace.jsonl.zst") as trace:
        trace.sql(text).fetchall()


def load_yaml(text: str, _names: dict) -> None:
    """Load YAML as configuration of Dask, and validate the recorder's settings in it."""
    import dask

    from roast_recorder.settings import Settings

    with dask.config.set(yaml.safe_load(text)):
        Settings.from_keywords({})


def run_cell(text: str, names: dict) -> None:
    """Run a cell of a notebook."""
    from IPython.core.interactiveshell import InteractiveShell

    module = sys.modules["__main__"]
    shell = InteractiveShell.instance(user_ns=names)
    # A shell replaces this module; worker processes are started from the original.
    sys.modules["__main__"] = module
    shell.run_cell(text, store_history=True).raise_error()


def load_kinds_of_work(text: str, _: dict) -> None:
    """Read a file of the user's kinds of work."""
    path = Path("kinds.toml")
    path.write_text(text, "utf-8")
    load_kinds(path)


RUNNERS = {
    "python": run_python,
    "ipython": run_cell,
    "sql": run_sql,
    "toml": load_kinds_of_work,
    "yaml": load_yaml,
}
