"""Queries, commands and links of the documentation work."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb")
from roast_analyze import Trace  # noqa: E402 - needs duckdb

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_traces" / "coffea.jsonl.zst"
DOCUMENTS = [
    "README.md",
    "analyze/README.md",
    "recorder/README.md",
    "sample_traces/README.md",
    "schemas/README.md",
]


def blocks(language: str) -> list:
    """Return the code blocks of a language."""
    fence = re.compile(f"^```{language}\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return [
        pytest.param(block, id=f"{document}-{number}")
        for document in DOCUMENTS
        for number, block in enumerate(fence.findall((ROOT / document).read_text()))
    ]


@pytest.fixture(scope="module")
def trace():
    with Trace(SAMPLE) as trace:
        yield trace


@pytest.mark.parametrize("query", blocks("sql"))
def test_a_query_runs(trace, query):
    rows = trace.sql(query).fetchall()

    # The sample has no failures, no loss and no imports.
    assert rows or any(view in query for view in ("failures", "loss", "io_"))


@pytest.mark.parametrize("query", blocks("sql raw"))
def test_a_query_runs_in_plain_duckdb(query):
    query = query.replace("trace.jsonl.zst", str(SAMPLE))

    assert dict(duckdb.sql(query).fetchall())["header"] == 1


@pytest.mark.parametrize("command", blocks("sh duckdb"))
def test_a_command_of_the_duckdb_shell_runs(command):
    shell = Path(find_spec("duckdb_cli").origin).parent
    done = subprocess.run(
        ["sh", "-ec", command.replace("trace.jsonl.zst", str(SAMPLE))],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": f"{shell}:/usr/bin:/bin"},
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "DijetProcessor" in done.stdout


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_exist(document):
    text = (ROOT / document).read_text()
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)

    missing = [t for t in targets if not (ROOT / document).parent.joinpath(t).exists()]
    assert missing == []


def test_the_query_of_work_by_worker(trace, read_lines):
    """Tasks and result bytes by worker."""
    expected = {}
    for line in read_lines(SAMPLE):
        if line.get("start") == "processing" and line.get("finish") == "memory":
            tasks, chunks, nbytes = expected.get(line["worker"], (0, 0, 0))
            is_chunk = line["key"].startswith("DijetProcessor-")
            expected[line["worker"]] = (tasks + 1, chunks + is_chunk, nbytes + line["nbytes"])
    [query] = [p.values[0] for p in blocks("sql") if "total_result_bytes" in p.values[0]]

    assert {worker: tuple(rest) for worker, *rest in trace.sql(query).fetchall()} == expected


def test_the_query_of_chunks(trace, read_lines):
    """A row for each processor task."""
    expected = {
        (line["key"], line["worker"], "memory", line["nbytes"] / 1e3)
        for line in read_lines(SAMPLE)
        if line.get("finish") == "memory" and line["key"].startswith("DijetProcessor-")
    }
    [query] = [p.values[0] for p in blocks("sql") if "task_key" in p.values[0]]

    assert {row[:4] for row in trace.sql(query).fetchall()} == expected
