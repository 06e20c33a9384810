"""Darshan logs: totals equal PyDarshan's, and calls are matched to tasks."""

import hashlib
import subprocess
import sys

import darshan
import pytest
from darshan.backend.cffi_backend import accumulate_records

from measured import darshan_log, darshan_logs
from roast_analyze.cli import main
from roast_analyze.imports import darshan as module

LOGS = darshan_logs()


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A trace with all logs."""
    path = tmp_path_factory.mktemp("logs") / "trace.jsonl"
    path.write_text(
        '{"kind":"header","t":1.0,"schema_version":"2.2","trace_id":"T","segment":1}\n'
        '{"kind":"trailer","t":2.0,"segment":1,"records_by_kind":{"header":1},'
        '"dropped_by_kind":{}}\n'
    )
    assert main(["import", "darshan", *map(str, LOGS), "--into", str(path)]) == 0
    return path


def test_totals_are_those_of_pydarshan(trace, ask):
    assert len(LOGS) >= 12
    darshan.enable_experimental()
    wrong, segments = [], 0
    for log in LOGS:
        report = darshan.DarshanReport(str(log), read_all=True)
        report.summarize()
        wrong += differences(ask(trace, FILES.format(source=source_of(log))), report, log.name)
        expected = segments_of(report)
        segments += len(expected)
        if ask(trace, SEGMENTS.format(source=source_of(log))) != expected:
            wrong.append(f"{log.name}: segments")

    assert wrong == []
    assert segments


FILES = (
    "SELECT module, sum(opens), sum(reads), sum(writes), sum(bytes_read), sum(bytes_written), "
    "count(*), sum(read_seconds), sum(write_seconds), sum(metadata_seconds) "
    "FROM io_files WHERE source = '{source}' GROUP BY module"
)
SEGMENTS = (
    "SELECT module, operation, host, rank, filename, offset_bytes, bytes, start_t, stop_t "
    "FROM io_segments WHERE source = '{source}' ORDER BY ALL"
)


def differences(rows, report, log):
    """Compare the totals of each module with PyDarshan's summary and its accumulator."""
    totals = report.summary["agg_ioops"]
    modules = {
        name for name in report.records if f"{name}_simple" in totals or name == "MPI-IO"
    }
    if {row[0] for row in rows} != modules:
        yield f"{log}: modules {rows} instead of {modules}"
    for name, opens, reads, writes, bytes_read, bytes_written, files, *seconds in rows:
        prefix = "MPIIO" if name == "MPI-IO" else name
        ways = ("indep_simple", "coll_simple") if name == "MPI-IO" else ("simple",)
        parts = [totals[f"{name}_{way}"] for way in ways]
        ours = {"Open": opens, "Read": reads, "Write": writes}
        pairs = [
            (operation, ours[operation], sum(part[operation] for part in parts))
            for operation in {n for part in parts for n in part if n in ours}
        ]
        pairs += [
            (field, number, totals[name][f"{prefix}_{field}"])
            for field, number in (("BYTES_READ", bytes_read), ("BYTES_WRITTEN", bytes_written))
            if f"{prefix}_{field}" in totals[name]
        ]
        pairs.append(("files", files, len(report.records[name])))
        if name in ("POSIX", "STDIO", "MPI-IO"):
            frames = report.records[name].to_df()
            total = accumulate_records(frames, name, report.metadata["job"]["nprocs"])
            nbytes = total.derived_metrics.total_bytes
            pairs.append(("bytes", bytes_read + bytes_written, nbytes))
            for field, value in zip(("READ", "WRITE", "META"), seconds, strict=True):
                theirs = frames["fcounters"][f"{prefix}_F_{field}_TIME"].sum()
                pairs.append((f"{field} time", value, pytest.approx(theirs)))
        for what, found, expected in pairs:
            if found != expected:
                yield f"{log}, {name}, {what}: {found} instead of {expected}"


def segments_of(report):
    """Return PyDarshan's segments as rows of ``io_segments``."""
    begin = report.metadata["job"]["start_time_sec"]
    begin += report.metadata["job"]["start_time_nsec"] / 1e9
    return sorted(
        (
            layer, operation, record["hostname"], record["rank"],
            report.name_records[record["id"]], int(row.offset), int(row.length),
            begin + row.start_time, begin + row.end_time,
        )
        for module, layer in (("DXT_POSIX", "POSIX"), ("DXT_MPIIO", "MPI-IO"))
        if module in report.records
        for record in report.records[module].to_df()
        for operation in ("read", "write")
        for row in record[f"{operation}_segments"].itertuples()
    )  # fmt: skip


def test_a_job_has_its_facts_and_no_arguments(trace, ask):
    log = darshan_log("sample-goodost.darshan")
    report = darshan.DarshanReport(str(log), read_all=False)
    job = report.metadata["job"]

    [row] = ask(
        trace,
        "SELECT job_id, processes, run_seconds, start_t, executable, skipped_modules, "
        "within_run "
        f"FROM io_jobs WHERE source = '{source_of(log)}'",
    )

    program, *arguments = report.metadata["exe"].split()
    assert arguments
    assert row == (
        job["jobid"], job["nprocs"], job["run_time"], job["start_time_sec"], program,
        ["LUSTRE"], False,
    )  # fmt: skip
    assert arguments[-1] not in trace.read_text()


# -- matching ------------------------------------------------------------------


def segment(start, stop, **fields):
    return {
        "kind": "io_segment", "t": 9.0, "source": "D", "filename": "/f", "host": "node-1",
        "activity": "read", "start_t": start, "stop_t": stop, "nbytes": 8,
        "measured": {"module": "POSIX", "rank": 0, "offset_bytes": 0}, **fields,
    }  # fmt: skip


def job(pid=None, **fields):
    value = {"job_id": 7, "processes": 1, "run_seconds": 9.0, "modules": {}, "left_out": []}
    return {
        "kind": "import", "t": 9.0, "name": "darshan", "source": "D", "filename": "d.darshan",
        "start_t": 0.5, "stop_t": 8.0, "value": value, "records_by_kind": {}, "pid": pid,
        **fields,
    }  # fmt: skip


def joined(worker, pid, t=0.0, host="node-1", **fields):
    return {
        "kind": "worker_added", "t": t, "worker": worker, "server_id": f"id-{worker}",
        "name": worker, "host": host, "pid": pid, "nthreads": 2, **fields,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        ([joined("w1", 7), joined("w2", 8)], ("w1", 1)),
        ([joined("w1", 8)], (None, 0)),
        # Process ids are those of a host.
        ([joined("w1", 7, host="10.0.0.1"), joined("w2", 7, host="node-1")], ("w2", 2)),
        ([joined("w1", 7, host="10.0.0.1"), joined("w2", 7, host="10.0.0.2")], (None, 2)),
        # It joined after the job had ended.
        ([joined("w1", 7, t=20.0)], (None, 0)),
    ],
)
@pytest.mark.parametrize("pid", [7, None])
def test_a_log_is_matched_to_the_worker_process_by_pid_time_and_host(
    rows, workers, expected, pid
):
    query = "SELECT worker, candidate_workers FROM io_jobs"

    assert rows(query, *workers, job(pid), segment(1.0, 2.0)) == [expected]


def test_a_call_belongs_to_the_only_task_that_ran_at_the_time(rows, task, run):
    runs = [*run("a", 1.0, 3.0), *run("b", 4.0, 6.0), *run("c", 5.0, 7.0)]
    calls = [segment(*times) for times in ((1.5, 2.0), (3.2, 3.4), (5.2, 5.4), (6.2, 6.4))]

    assert rows(
        "SELECT key, candidate_keys FROM io_segments",
        joined("w1", 7), *map(task, "abc"), *runs, job(7), *calls,
    ) == [("a", ["a"]), (None, []), (None, ["b", "c"]), ("c", ["c"])]  # fmt: skip


def test_a_call_of_an_unknown_process_belongs_to_no_task(rows, task, run):
    assert rows(
        "SELECT worker, key, candidate_keys FROM io_segments",
        joined("w1", 8), task("a"), *run("a", 1.0, 3.0), job(7), segment(1.5, 2.0),
    ) == [(None, None, None)]  # fmt: skip


# -- damaged logs ------------------------------------------------------------------------


def test_truncated_and_damaged_logs_leave_the_trace_intact(stored, log, command, tmp_path):
    trace = stored("trace.jsonl")
    before, whole = trace.read_bytes(), log.read_bytes()
    for nbytes in (0, 10, 3000, 6630):
        log.write_bytes(whole[:nbytes])
        code, said, error = command("import", "darshan", log, "--into", trace)
        assert (code, said, error.count("\n")) == (2, "", 1), nbytes
        assert f"{str(log)!r} is not a Darshan log, or is truncated: " in error
        assert trace.read_bytes() == before
    for path in (tmp_path / "missing", tmp_path):
        code, _, error = command("import", "darshan", path, "--into", trace)
        assert (code, error.count("\n")) == (2, 1)
    for place in (0, 3200, 6400):
        data = bytearray(whole)
        data[place : place + 16] = bytes(255 - byte for byte in data[place : place + 16])
        log.write_bytes(data)
        before = trace.read_bytes()
        code, _, error = command("import", "darshan", log, "--into", trace)
        assert code in (0, 2)
        if code == 2:
            assert (error.count("\n"), trace.read_bytes()) == (1, before)
        assert command("check", trace)[0] == 0


def test_without_pydarshan_the_extra_is_named(stored, log):
    trace = stored("trace.jsonl")
    code = (
        "import sys; sys.modules['darshan'] = None; import importlib.util as u; "
        "old = u.find_spec; "
        "u.find_spec = lambda n, *a: None if n == 'darshan' else old(n, *a); "
        "from roast_analyze.cli import main; sys.exit(main(sys.argv[1:]))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, "import", "darshan", log, "--into", trace],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert done.stderr == (
        "roast-analyze: reading Darshan logs needs darshan: "
        "pip install -U 'roast-trace[analyze,darshan]'\n"
    )


@pytest.mark.parametrize(
    ("name", "pid"),
    [
        ("me_python_id4233209-12345_4-22-1-123_1.darshan", 12345),
        ("me_python_id4233209_4-22-1-123_1.darshan", None),
        ("log.darshan", None),
    ],
)
def test_the_process_id_is_in_the_name_of_a_log(tmp_path, name, pid):
    path = tmp_path / name
    path.write_bytes(darshan_log("dxt.darshan").read_bytes())

    with module.read(path) as data:
        assert data.facts["pid"] == pid


def source_of(log):
    return hashlib.sha256(log.read_bytes()).hexdigest()[:16]
