"""View task_roles: roles derived from the graph."""

import pytest


@pytest.fixture
def analysis(task, chunk):
    """Return the graph of a Runner with metadata of two files and four chunks."""
    files = ["automatic_retries-f1", "automatic_retries-f2"]
    chunks = [f"Proc-{i}" for i in range(4)]
    return [
        *(chunk(key, dataset="DY", filename=key) for key in files),
        *(task(key) for key in files),
        task("reduce-f", dependencies=files),
        task("lambda-p", dependencies=[]),
        *(chunk(key, entry_start=0, entry_stop=10) for key in chunks),
        *(task(key, dependencies=["lambda-p"]) for key in chunks),
        task("reduce-1", dependencies=chunks[:2]),
        task("reduce-2", dependencies=chunks[2:]),
        task("reduce-12", dependencies=["reduce-1", "reduce-2"]),
        # Other tasks with the same prefixes, unrelated to chunks.
        task("lambda-x"),
        task("reduce-x", dependencies=["lambda-x"]),
        task("sum-x", dependencies=["reduce-12"]),
    ]


def test_roles_of_tasks_and_prefixes(ask, analysis):
    found = ask(*analysis)

    assert dict(found("SELECT key, role FROM tasks")) == {
        **dict.fromkeys(["automatic_retries-f1", "automatic_retries-f2"], "file metadata"),
        "reduce-f": "file metadata",
        "lambda-p": "processor broadcast",
        **dict.fromkeys(["Proc-0", "Proc-1", "Proc-2", "Proc-3"], "chunk"),
        **dict.fromkeys(["reduce-1", "reduce-2", "reduce-12"], "merge"),
        **dict.fromkeys(["lambda-x", "reduce-x", "sum-x"]),
    }
    assert dict(found("SELECT prefix, roles FROM prefixes")) == {
        "Proc": "chunk",
        "automatic_retries": "file metadata",
        "lambda": "processor broadcast",
        "reduce": "file metadata, merge",
        "sum": None,
    }


def test_totals_by_role(ask, analysis, run):
    found = ask(
        *analysis,
        *(move for i in range(4) for move in run(f"Proc-{i}", 1.0, 2.0)),
        *(move for key in ("1", "2", "12") for move in run(f"reduce-{key}", 2.0, 4.0)),
        *run("reduce-f", 2.0, 5.0),
        *run("sum-x", 5.0, 6.0, outcome="erred"),
    )

    assert found(
        "SELECT role, prefixes, tasks, task_runs, failed_attempts, compute_seconds, "
        "compute_share, mean_compute_seconds, max_compute_seconds, output_bytes, first_t, "
        "last_t FROM task_roles"
    ) == [
        ("merge", "reduce", 3, 3, 0, 6.0, 6 / 13, 2.0, 2.0, 24, 2.0, 4.0),
        ("chunk", "Proc", 4, 4, 0, 4.0, 4 / 13, 1.0, 1.0, 32, 1.0, 2.0),
        (
            "file metadata", "automatic_retries, reduce", 3, 1, 0, 3.0, 3 / 13, 3.0, 3.0, 8,
            2.0, 5.0,
        ),
        ("processor broadcast", "lambda", 1, 0, 0, *[None] * 7),
        (None, None, 3, 1, 1, *[None] * 5, 5.0, 6.0),
    ]  # fmt: skip
    assert found("SELECT chunk_seconds, merge_seconds FROM run") == [(4.0, 6.0)]


def test_chunks_and_file_metadata_share_a_prefix(rows, task, chunk):
    """Tasks of dask-awkward, such as `hist-1`, have no processor broadcast."""
    assert rows(
        "SELECT key, role FROM tasks ORDER BY key",
        chunk("automatic_retries-1"),
        task("automatic_retries-1"),
        chunk("automatic_retries-2", entry_start=0, entry_stop=10),
        task("automatic_retries-2"),
        task("constant"),
        task("hist-1", dependencies=["constant"]),
        chunk("hist-1", run_id=1, entry_start=0, entry_stop=10, until="read"),
    ) == [
        ("automatic_retries-1", "file metadata"),
        ("automatic_retries-2", "chunk"),
        ("constant", None),
        ("hist-1", "chunk"),
    ]
