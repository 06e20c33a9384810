"""Darshan logs: totals equal PyDarshan's, and calls are matched to tasks."""

import hashlib
import importlib.util
import shutil

import darshan
import pytest
from darshan.backend.cffi_backend import accumulate_records

from measured import darshan_log, darshan_logs
from roast_analyze import Trace
from roast_analyze.cli import main
from roast_analyze.imports import darshan as module

LOGS = darshan_logs()


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Return the path of a trace with all logs imported."""
    path = tmp_path_factory.mktemp("logs") / "trace.jsonl"
    path.write_text(
        '{"kind":"header","t":1.0,"schema_version":"2.2","trace_id":"T","segment":1}\n'
        '{"kind":"trailer","t":2.0,"segment":1,"records_by_kind":{"header":1},'
        '"dropped_by_kind":{}}\n'
    )
    assert main(["import", "darshan", *map(str, LOGS), "--into", str(path)]) == 0
    return path


FILES = (
    "SELECT module, count(*), sum(opens), sum(reads), sum(writes), sum(bytes_read), "
    "sum(bytes_written), sum(read_seconds), sum(write_seconds), sum(metadata_seconds) "
    "FROM io_files WHERE source = $source GROUP BY module"
)
SEGMENTS = (
    "SELECT module, operation, host, rank, filename, offset_bytes, bytes, start_t, stop_t "
    "FROM io_segments WHERE source = $source ORDER BY ALL"
)


@pytest.mark.exhaustive
def test_totals_are_those_of_pydarshan(trace):
    assert len(LOGS) >= 12
    darshan.enable_experimental()
    segments = 0
    with Trace(trace) as opened:
        for log in LOGS:
            report = darshan.DarshanReport(str(log), read_all=True)
            report.summarize()
            source = {"source": source_of(log)}
            assert_totals(opened.rows(FILES, source), report)
            expected = segments_of(report)
            segments += len(expected)
            assert opened.rows(SEGMENTS, source) == expected, log

    assert segments


def assert_totals(rows, report):
    """Compare the totals of each module with PyDarshan's summary and its accumulator."""
    totals = report.summary["agg_ioops"]
    modules = {name for name in report.records if f"{name}_simple" in totals} | (
        {"MPI-IO"} & report.records.keys()
    )
    assert {row[0] for row in rows} == modules
    for name, files, opens, reads, writes, bytes_read, bytes_written, *seconds in rows:
        assert files == len(report.records[name])
        prefix = "MPIIO" if name == "MPI-IO" else name
        ways = ("indep_simple", "coll_simple") if name == "MPI-IO" else ("simple",)
        parts = [totals[f"{name}_{way}"] for way in ways]
        for operation, count in (("Open", opens), ("Read", reads), ("Write", writes)):
            if operation in parts[0]:
                assert count == sum(part[operation] for part in parts), (name, operation)
        for field, nbytes in (("BYTES_READ", bytes_read), ("BYTES_WRITTEN", bytes_written)):
            if f"{prefix}_{field}" in totals[name]:
                assert nbytes == totals[name][f"{prefix}_{field}"], (name, field)
        if name in ("POSIX", "STDIO", "MPI-IO"):
            frames = report.records[name].to_df()
            total = accumulate_records(frames, name, report.metadata["job"]["nprocs"])
            assert bytes_read + bytes_written == total.derived_metrics.total_bytes
            for field, value in zip(("READ", "WRITE", "META"), seconds, strict=True):
                theirs = frames["fcounters"][f"{prefix}_F_{field}_TIME"].sum()
                assert value == pytest.approx(theirs), (name, field)


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


@pytest.mark.exhaustive
def test_a_job_has_its_facts_and_no_arguments(trace, rows_of):
    log = darshan_log("sample-goodost.darshan")
    report = darshan.DarshanReport(str(log), read_all=False)
    job = report.metadata["job"]

    [row] = rows_of(
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


@pytest.mark.exhaustive
def test_a_log_is_matched_to_the_worker_process_by_pid_time_and_host(rows):
    for workers, expected in [
        ([joined("w1", 7), joined("w2", 8)], ("w1", 1)),
        ([joined("w1", 8)], (None, 0)),
        # Process IDs are unique only on a host.
        ([joined("w1", 7, host="10.0.0.1"), joined("w2", 7, host="node-1")], ("w2", 2)),
        ([joined("w1", 7, host="10.0.0.1"), joined("w2", 7, host="10.0.0.2")], (None, 2)),
        # It joined after the job had ended.
        ([joined("w1", 7, t=20.0)], (None, 0)),
    ]:
        for pid in (7, None):
            query = "SELECT worker, candidate_workers FROM io_jobs"
            assert rows(query, *workers, job(pid), segment(1.0, 2.0)) == [expected]


def test_a_call_belongs_to_the_only_task_that_ran_at_the_time(rows, task, run):
    runs = [*run("a", 1.0, 3.0), *run("b", 4.0, 6.0), *run("c", 5.0, 7.0)]
    calls = [segment(*times) for times in ((1.5, 2.0), (3.2, 3.4), (5.2, 5.4), (6.2, 6.4))]
    # At both ends of a task, so that the offset between the clocks is near zero.
    calls += [segment(*times, filename="/edge") for times in ((1.002, 1.01), (2.99, 2.998))]

    assert rows(
        "SELECT key, candidate_keys, confidence FROM io_segments WHERE filename = '/f'",
        joined("w1", 7), *map(task, "abc"), *runs, job(7), *calls,
    ) == [
        ("a", ["a"], 1.0), (None, [], None), (None, ["b", "c"], 0.5), ("c", ["c"], 1.0),
    ]  # fmt: skip
    # A call of an unknown process belongs to no task.
    assert rows(
        "SELECT worker, key, candidate_keys FROM io_segments",
        joined("w1", 8), task("a"), *run("a", 1.0, 3.0), job(7), segment(1.5, 2.0),
    ) == [(None, None, None)]  # fmt: skip


def test_calls_are_matched_though_dask_s_times_are_wrong(rows, task, run, move):
    """Dask's first clock offset is often 0.1 s wrong: results arrive before tasks end."""
    records, calls = [joined("w1", 7)], []
    for n in range(20):
        start, stop = 1 + n * 0.02, 1.018 + n * 0.02
        dispatch, end = run(f"r-{n}", start - 0.001, stop + 0.001)
        phases = [("compute", start + 0.1, stop + 0.1)]
        end = move(
            end["t"], f"r-{n}", "processing>memory", "task-finished-1",
            phases, worker="w1", thread=1, nbytes=8,
        )  # fmt: skip
        records += [task(f"r-{n}"), dispatch, end]
        margin = 0.007 if n % 5 else 0.001
        calls.append(segment(start + margin, stop - margin, filename=f"/f-{n}"))

    query = "SELECT key, filename FROM io_segments WHERE confidence > 0.95"
    found = rows(query, *records, job(7), *calls)

    assert found == [(f"r-{n}", f"/f-{n}") for n in range(20) if n % 5]


def test_the_offset_of_darshan_s_clock_is_estimated(ask, task, run):
    """The clock of the log is 0.3 s behind; the durations of tasks and pauses differ."""
    records, calls, start = [joined("w1", 7)], [], 1.0
    for n in range(20):
        stop = start + 0.02 + n * 0.003
        records += [task(f"r-{n}"), *run(f"r-{n}", start, stop)]
        margin = 0.008 if n % 5 else 0.001
        times = start - 0.3 + margin, stop - 0.3 - margin
        calls.append(segment(*times, filename=f"/f-{n}"))
        start = stop + 0.01 + n % 7 * 0.01
    sql = ask(*records, job(7), *calls)

    keys = sql("SELECT key, filename FROM io_segments WHERE key IS NOT NULL")
    [(offset, error)] = sql(
        "SELECT clock_offset_seconds, clock_offset_error_seconds FROM io_jobs"
    )

    assert offset == pytest.approx(0.3, abs=error)
    assert error < 0.01
    assert len(keys) >= 15
    assert all(key == f"r-{name.removeprefix('/f-')}" for key, name in keys)


# -- partial logs --------------------------------------------------------------


@pytest.mark.exhaustive
def test_a_partial_log_is_a_loss_and_incomplete_metadata(ask):
    modules = {"POSIX": {"partial": True}, "STDIO": {"partial": False}, "DXT_POSIX": {}}
    value = job()["value"] | {"modules": modules}
    file = {
        "kind": "io_file", "t": 9.0, "source": "D", "filename": "/f",
        "measured": {"module": "POSIX", "rank": 0}, "value": {},
    }  # fmt: skip
    counted = {"records_by_kind": {"io_file": 1, "io_segment": 1}}
    sql = ask(job(value=value, **counted), file, segment(1.0, 2.0))

    losses = sql("SELECT reason, detail FROM loss WHERE reason LIKE '%Darshan%'")
    hints = sql(
        "SELECT metadata, hint FROM metadata_map "
        "WHERE metadata LIKE '%Darshan%' AND is_recorded ORDER BY metadata"
    )

    [(reason, detail)] = losses
    assert reason == "partial Darshan log"
    assert detail == (
        "d.darshan: Darshan reached its limit of records or memory in POSIX, so files opened "
        "later are missing"
    )
    assert [(name.split()[0], (hint or "").split(":")[0]) for name, hint in hints] == [
        ("files", "Incomplete"), ("processes,", ""), ("single", ""),
    ]  # fmt: skip


# -- damaged logs ------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_truncated_and_damaged_logs(stored, log, analyze, refused, tmp_path):
    trace, whole = stored(), log.read_bytes()
    for nbytes in (0, 10, 3000, 6630):
        log.write_bytes(whole[:nbytes])
        error = refused("darshan", log, "--into", trace)
        assert f"{str(log)!r} is not a Darshan log, or is truncated: " in error
    for path in (tmp_path / "missing", tmp_path):
        refused("darshan", path, "--into", trace)
    for place in (0, 3200, 6400):
        data = bytearray(whole)
        data[place : place + 16] = bytes(255 - byte for byte in data[place : place + 16])
        log.write_bytes(data)
        before = trace.read_bytes()
        code, _, error = analyze("import", "darshan", log, "--into", trace)
        assert code == 0 or (code, error.count("\n"), trace.read_bytes()) == (2, 1, before)
    assert analyze("check", trace)[0] == 0


def test_without_pydarshan_the_extra_is_named(stored, log, refused, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    assert refused("darshan", log, "--into", stored()) == (
        "roast-analyze: reading Darshan logs needs darshan: "
        "pip install -U '.[analyze,darshan]' in a clone of roast\n"
    )


@pytest.mark.exhaustive
def test_the_process_id_is_in_the_name_of_a_log(tmp_path):
    for name, pid in [
        ("me_python_id4233209-12345_4-22-1-123_1.darshan", 12345),
        ("me_python_id4233209_4-22-1-123_1.darshan", None),
    ]:
        with module.read(shutil.copy(darshan_log("dxt.darshan"), tmp_path / name)) as data:
            assert data.facts["pid"] == pid


def source_of(log):
    return hashlib.sha256(log.read_bytes()).hexdigest()[:16]
