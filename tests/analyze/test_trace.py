"""The public views, and the class ``Trace``."""

import re
from pathlib import Path

import polars as pl
import pytest

import roast_analyze
from roast_analyze import Trace
from roast_analyze.errors import TraceError, UnknownView
from roast_analyze.open.database import documented_views
from roast_analyze.open.views import view_names

ROOT = Path(__file__).parents[2]
SQL = ROOT / "analyze" / "roast_analyze" / "sql"

#: All public views and their columns, in order.
PUBLIC = {
    "trace_info": "segment schema_version start_t stop_t clean_end dask_version "
    "distributed_version python_version recorder_version scheduler utc_offset_seconds "
    "clock_offset_seconds settings records redacted_values path trace_id",
    "loss": "reason records detail t trace_id",
    "run": "start_t stop_t wall_seconds busy_seconds workers peak_workers peak_nthreads "
    "core_seconds compute_seconds core_efficiency tasks task_runs memory erred retried lost "
    "rescheduled cancelled unfinished failures chunks chunk_attempts events events_per_second "
    "chunk_wall_seconds bytes_read output_bytes transfer_seconds peak_memory_bytes "
    "lost_records failed_chunks skipped checkpointed_chunks chunk_seconds merge_seconds "
    "process_seconds mean_process_seconds open_seconds read_seconds cpu_seconds wait_seconds "
    "events_per_process_second events_per_core_second bytes_per_second compressed_bytes "
    "uncompressed_bytes compression_ratio speedup mean_workers mean_nthreads "
    "peak_worker_memory_bytes mean_worker_memory_bytes trace_id",
    "transitions": "t key start finish stimulus_id worker run_id thread nbytes typename "
    "startstops cause exception traceback seq trace_id",
    "tasks": "key prefix task_group span_id dependencies n_dependencies priority annotations "
    "submitted_t client submissions role trace_id",
    "task_runs": "key prefix attempt worker thread outcome processing_t compute_start_t "
    "compute_stop_t compute_seconds transfer_seconds deserialize_seconds disk_seconds "
    "queued_seconds nbytes typename span_id exception traceback run_id end_t role trace_id",
    "prefixes": "prefix tasks task_runs memory erred retried lost rescheduled cancelled "
    "unfinished compute_seconds mean_compute_seconds median_compute_seconds "
    "max_compute_seconds transfer_seconds deserialize_seconds disk_seconds output_bytes "
    "roles trace_id",
    "task_groups": "task_group prefix tasks task_runs memory erred retried lost "
    "rescheduled cancelled unfinished compute_seconds mean_compute_seconds "
    "median_compute_seconds max_compute_seconds transfer_seconds deserialize_seconds "
    "disk_seconds output_bytes workers submitted_t first_t last_t wall_seconds trace_id",
    "latencies": "key prefix attempt worker outcome processing_t dependency_seconds "
    "slot_seconds dispatch_seconds fetch_seconds thread_wait_seconds execute_seconds "
    "report_seconds processing_seconds run_id trace_id",
    "task_phases": "key prefix attempt worker thread outcome action start_t stop_t seconds "
    "source trace_id",
    "stragglers": "key prefix attempt worker thread outcome compute_seconds median_seconds "
    "relative_duration excess_seconds prefix_runs compute_start_t compute_stop_t dataset filename "
    "entry_start entry_stop run_id trace_id",
    "dependencies": "key dependency prefix dependency_prefix bytes worker "
    "dependency_worker is_moved has_transfer task_group dependency_group stimulus_id trace_id",
    "task_roles": "role prefixes tasks task_runs failed_attempts compute_seconds "
    "compute_share mean_compute_seconds max_compute_seconds transfer_seconds "
    "deserialize_seconds disk_seconds output_bytes first_t last_t trace_id",
    "workers": "worker name host nthreads memory_limit_bytes added_t removed_t "
    "removal_reason task_runs compute_seconds output_bytes peak_memory_bytes chunks events "
    "bytes_read server_id failed_chunks chunk_seconds chunk_share events_per_second "
    "bytes_per_second median_chunk_seconds max_chunk_seconds relative_iqr slowest_file relative_duration "
    "is_slow trace_id",
    "worker_samples": "t worker cpu_percent memory_bytes memory_limit_bytes managed_bytes "
    "spilled_bytes nthreads processing executing ready occupancy_seconds stored_bytes "
    "last_seen_t event_loop_interval_seconds num_fds incoming_bytes outgoing_bytes "
    "host_net_read_bps host_net_write_bps host_disk_read_bps host_disk_write_bps server_id "
    "trace_id",
    "cluster_samples": "t workers nthreads cpu_percent memory_bytes memory_limit_bytes "
    "managed_bytes spilled_bytes processing executing ready occupancy_seconds stored_bytes "
    "trace_id",
    "concurrency": "t seconds executing transferring processing queued no_worker waiting "
    "workers nthreads compute_seconds thread_seconds trace_id",
    "utilisation": "t seconds worker name compute_seconds failed_seconds transfer_seconds "
    "thread_seconds idle_seconds utilisation server_id trace_id",
    "chunks": "key attempt dataset filename treename entry_start entry_stop events "
    "bytes_read columns_read branches_read process_seconds open_seconds cpu_seconds worker "
    "outcome output_bytes events_per_second exception compute_seconds processing_t end_t "
    "file_uuid usermeta run_id read_seconds wait_seconds queued_seconds transfer_seconds "
    "start_t stop_t thread bytes_per_second requests source columns file_branches "
    "branch_share file_bytes compressed_bytes uncompressed_bytes compression_ratio "
    "memory_before_bytes memory_after_bytes memory_peak_bytes from_checkpoint measured_until "
    "chunks_in_task trace_id",
    "chunk_branches": "key attempt branch compressed_bytes uncompressed_bytes read_seconds "
    "dataset filename treename entry_start entry_stop worker outcome run_id trace_id",
    "branches": "dataset branch chunk_attempts files compressed_bytes uncompressed_bytes "
    "compression_ratio read_seconds byte_share read_share trace_id",
    "chunk_costs": "dataset chunks outliers sizes median_events largest_file_events method "
    "fixed_seconds fixed_error_seconds seconds_per_event r2 relative_error fixed_share "
    "min_events max_events recommended_events note trace_id",
    "datasets": "dataset files chunks chunk_attempts events bytes_read compute_seconds "
    "events_per_second output_bytes failed_attempts bytes_per_second compute_share "
    "median_compute_seconds max_compute_seconds relative_iqr slowest_file process_seconds "
    "open_seconds read_seconds cpu_seconds wait_seconds requests compressed_bytes "
    "uncompressed_bytes compression_ratio branch_share file_read_ratio checkpointed_chunks "
    "trace_id",
    "files": "dataset filename treename chunks chunk_attempts events bytes_read "
    "compute_seconds events_per_second workers failed_attempts bytes_per_second compute_share "
    "median_compute_seconds max_compute_seconds relative_iqr slowest_worker process_seconds "
    "open_seconds read_seconds cpu_seconds wait_seconds requests source file_bytes file_read_ratio "
    "file_branches branches_read branch_share compressed_bytes uncompressed_bytes "
    "compression_ratio checkpointed_chunks relative_duration is_slow trace_id",
    "sections": "key name seconds cpu_seconds memory_delta_bytes bytes_read start_t stop_t "
    "worker thread run_id attempt outcome dataset filename exception trace_id",
    "section_totals": "dataset name executions attempts failures seconds mean_seconds "
    "median_seconds max_seconds cpu_seconds bytes_read mean_memory_delta_bytes "
    "min_memory_delta_bytes max_memory_delta_bytes compute_share trace_id",
    "spans": "span_id name path parent_id t trace_id",
    "span_totals": "span_id name path parent_id tasks task_runs failed_attempts "
    "compute_seconds transfer_seconds output_bytes metric_seconds cpu_seconds "
    "noncpu_seconds first_t last_t wall_seconds descendants total_tasks total_task_runs "
    "total_failed_attempts total_compute_seconds total_transfer_seconds "
    "total_output_bytes total_metric_seconds total_cpu_seconds total_noncpu_seconds "
    "total_first_t total_last_t total_wall_seconds trace_id",
    "activities": "worker server_id context span_id prefix seconds cpu_seconds noncpu_seconds "
    "serialize_seconds deserialize_seconds compress_seconds decompress_seconds disk_seconds "
    "network_seconds failed_seconds other_seconds memory_read_bytes disk_read_bytes "
    "disk_write_bytes trace_id",
    "fine_metric_deltas": "t worker server_id context span_id prefix activity unit delta "
    "trace_id",
    "fine_metrics": "worker server_id context span_id prefix activity unit value trace_id",
    "profile_stacks": "worker prefix start_t stop_t stack samples seconds ambiguous_samples "
    "counted_samples frames lines server_id interval_seconds profiler log trace_id",
    "yappi_functions": "function name filename line_number calls actual_calls "
    "self_seconds total_seconds mean_seconds clock thread thread_name tag builtin worker log "
    "source trace_id",
    "yappi_calls": "caller callee calls actual_calls self_seconds total_seconds log source "
    "trace_id",
    "imports": "tool filename records imported_t start_t stop_t worker pid versions facts "
    "source segment trace_id",
    "io_jobs": "job_id executable processes start_t stop_t run_seconds within_run modules "
    "partial_modules skipped_modules host pid worker candidate_workers darshan_version log source trace_id",
    "io_files": "filename module rank opens reads writes bytes_read bytes_written "
    "read_seconds write_seconds metadata_seconds start_t stop_t host pid worker counters log "
    "source trace_id",
    "io_segments": "filename module operation offset_bytes bytes start_t stop_t host rank pid "
    "worker key attempt candidate_keys log source trace_id",
    "config": "name value process default_value differs varies is_declared "
    "is_run_specific processes workers trace_id",
    "differences": "category name first_value value processes trace_id",
    "jobs": "process worker system job_id queue node cores memory_limit_bytes "
    "array_id array_index name cluster namespace slot nodes start_t "
    "end_t host trace_id",
    "machines": "host process processes cores usable_cores cgroup_cores "
    "memory_bytes cgroup_memory_bytes cpu_model architecture system "
    "kernel platform python open_files_limit workers trace_id",
    "metadata_map": "step step_name level metadata is_recorded records view hint trace_id",
    "packages": "package version process processes workers differs trace_id",
    "computations": "computation t client stimulus_id graphs tasks filename line_number "
    "line code trace_id",
    "graph_layers": "stimulus_id stage layer layer_type tasks fused client t trace_id",
    "graph_updates": "stimulus_id client t start_t status tasks new_tasks key_collisions "
    "groups edges update_seconds materialization_seconds "
    "ordering_seconds state_seconds layers_sent sent_t collections "
    "trace_id",
    "dispatch_latency": "key prefix attempt worker outcome processing_t arrived_t ready_t "
    "executing_t compute_start_t dispatch_seconds transfer_wait_seconds "
    "queue_seconds deserialize_seconds disk_seconds other_seconds "
    "dispatch_latency_seconds is_stolen clocks_disagree stimulus_id "
    "worker_stimulus_id run_id trace_id",
    "restrictions": "key prefix task_group workers resources allow_other_workers "
    "retries priority trace_id",
    "worker_transitions": "t worker key start finish state stimulus_id server_id seq trace_id",
    "pauses": "worker start_t stop_t seconds trace_id",
    "spills": "t worker key start finish bytes disk_bytes trace_id",
    "transfers": "start_t stop_t source destination bytes keys seconds bytes_per_second "
    "sent_bytes reported_by sizes_agree source_start_t source_stop_t source_bytes trace_id",
    "failures": "t what key worker exception attempt prefix traceback detail trace_id",
    "events": "t topic worker payload trace_id",
    "environment": "section name value t trace_id",
}


@pytest.fixture(scope="module")
def views():
    return {view.name: view for view in documented_views()}


# -- the views as a whole ----------------------------------------------------------------


def test_public_views():
    assert set(view_names()) == set(PUBLIC)


def test_columns(views):
    found = {view.name: [column.name for column in view.columns] for view in views.values()}

    assert found == {name: columns.split() for name, columns in PUBLIC.items()}


def test_every_view_and_column_has_a_comment(views):
    comments = {(view.name, ""): view.comment for view in views.values()} | {
        (view.name, column.name): column.comment
        for view in views.values()
        for column in view.columns
    }

    assert {k: c for k, c in comments.items() if not re.fullmatch(r"\S.{5,}\.", c)} == {}


def test_units_in_names_determine_types(views):
    double = re.compile(r".*(_seconds|_percent|_bps|_efficiency|_t)|t")
    wrong = [
        (view.name, column.name, column.type)
        for view in views.values()
        for column in view.columns
        if (double.fullmatch(column.name) and column.type != "DOUBLE")
        or (column.name.endswith("bytes") and column.type != "BIGINT")
    ]
    assert wrong == []


@pytest.mark.parametrize("path", sorted(SQL.rglob("*.sql")), ids=lambda path: path.stem)
def test_the_declared_needs_of_a_file(path):
    needs, _, sql = path.read_text().partition("\n")
    code = re.sub(r"--.*|'[^']*'|COMMENT ON.*", "", sql)
    others = {other.stem for other in SQL.rglob("*.sql")} - {path.stem}
    read = set(re.findall(r"(?:FROM|JOIN)\s+(\w+)(?![.\w(])", code)) & others
    read |= {name for name in others if re.search(rf"\b{name}\(", code)}
    read -= set(re.findall(r"(\w+) AS \(", code))

    assert needs.startswith("-- Needs: ")
    assert set(needs.removeprefix("-- Needs: ").split(", ")) == (read or {"nothing"})


# -- queries ------------------------------------------------------------------------------


def test_sql_binds_parameters(open_trace, task):
    trace = open_trace(task("a"), task("b'; DROP TABLE raw.task; --"))

    query = "SELECT key FROM tasks WHERE key = $key"
    assert trace.sql(query, {"key": "a"}).fetchall() == [("a",)]
    hostile = "b'; DROP TABLE raw.task; --"
    assert trace.sql("SELECT key FROM tasks WHERE key = ?", [hostile]).fetchall() == [
        (hostile,)
    ]


def test_frame(open_trace, run):
    frame = open_trace(*run("a", 1.0, 3.0)).frame("task_runs")

    assert frame.select("key", "outcome", "compute_seconds").rows() == [("a", "memory", 2.0)]
    assert frame.schema["compute_seconds"] == pl.Float64


def test_every_view_of_an_empty_trace_is_a_frame(empty):
    for name, columns in PUBLIC.items():
        assert empty.frame(name).columns == columns.split()


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    path = tmp_path_factory.mktemp("empty") / "t.jsonl"
    path.write_text('{"kind":"event","t":1.0,"topic":"x"}\n')
    with Trace(path) as trace:
        yield trace


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("task_run", "did you mean 'task_runs'?"),
        ("chunk", "did you mean 'chunks'?"),
        ("zzz", "choose from environment, events"),
        ('tasks"; DROP TABLE x', "unknown view"),
        ("_tasks", "did you mean 'tasks'?"),
        ("", "unknown view ''"),
    ],
)
def test_an_unknown_view_has_a_suggestion(empty, name, message):
    with pytest.raises(UnknownView, match=re.escape(message)):
        empty.frame(name)


# -- flame graphs ------------------------------------------------------------------------


def profile(worker, prefix, start_t, **times):
    """A slice in which `f` called nothing but functions with so many samples."""
    names = ["f", *times]
    frames = [{"name": name, "filename": "a.py", "line_number": 1} for name in names]
    slices = [
        {"start_t": start_t + i, "stop_t": start_t + i + 1, "nodes": [0, 1, i + 2],
         "counts": [n, n, 0]}
        for i, n in enumerate(times.values())
    ]  # fmt: skip
    tree = {
        "frames": frames,
        "parents": [None, 0, *([1] * len(times))],
        "node_frames": [None, *range(len(names))],
        "line_numbers": [None] * (len(names) + 1),
        "slices": slices,
    }
    record = {"kind": "profile", "t": start_t + len(times), "worker": worker, "prefix": prefix}
    times_of = {"start_t": start_t, "stop_t": start_t + len(times), "interval_seconds": 0.01}
    return {**record, **times_of, "tree": tree}


@pytest.fixture
def profiled(open_trace, worker, task):
    return open_trace(
        worker("w1"),
        worker("w2"),
        task("load-1"),
        task("sum-1"),
        profile("w1", "load", 10.0, a=100, b=50),
        profile("w2", "load", 10.0, a=20),
        profile("w1", "sum", 12.0, c=30),
        profile(None, None, 10.0, loop=1),
    )


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({}, {"a": 120, "b": 50, "c": 30}),
        ({"worker": "w1"}, {"a": 100, "b": 50, "c": 30}),
        ({"prefix": "load"}, {"a": 120, "b": 50}),
        ({"worker": "w1", "prefix": "sum"}, {"c": 30}),
        ({"start": 10.0, "stop": 11.0}, {"a": 120}),
        ({"start": 10.4, "stop": 11.4}, {"a": 120}),
        ({"start": 10.6, "stop": 12.0}, {"b": 50}),
        ({"start": 11.0}, {"b": 50, "c": 30}),
        ({"stop": 1.0}, {}),
        ({"worker": "scheduler"}, {"f": 1}),
    ],
    ids=str,
)
def test_a_flame_graph_of_a_part(profiled, part, expected):
    flamegraph = profiled.flamegraph(**part)

    certain = flamegraph.stacks.filter(pl.col("samples") > 0)
    found = {
        stack[-1].split()[0]: samples
        for stack, samples in zip(certain["stack"], certain["samples"], strict=True)
    }
    assert found == expected
    assert len(flamegraph.figure.data) == bool(expected)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"worker": "w3"}, "no worker is 'w3'"),
        ({"prefix": "laod"}, "did you mean 'load'?"),
        ({"start": 5.0, "stop": 4.0}, "empty time range from 5 s to 4 s"),
    ],
    ids=str,
)
def test_a_flame_graph_of_an_unknown_part(profiled, part, message):
    with pytest.raises(TraceError, match=re.escape(message)) as caught:
        profiled.flamegraph(**part)

    assert "\n" not in str(caught.value)


def test_flame_graphs_are_compared(profiled):
    compared = profiled.flamegraph("w1", baseline=profiled.flamegraph("w2"))

    found = compared.difference().select("function", "share", "baseline_share").rows()
    assert [(name.split()[0], *shares) for name, *shares in found] == [
        ("b", pytest.approx(50 / 180), 0.0),
        ("c", pytest.approx(30 / 180), 0.0),
        ("f", 1.0, 1.0),
        ("a", pytest.approx(100 / 180), 1.0),
    ]
    assert compared.figure.data[0].marker.showscale
    with pytest.raises(TraceError, match="there is no baseline"):
        profiled.flamegraph().difference()


# -- the rest ----------------------------------------------------------------------------


def test_views(empty, views):
    assert empty.views() == list(views.values())


def test_every_error_is_a_trace_error():
    for name, value in vars(roast_analyze.errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, TraceError | UserWarning), name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Traec'"):
        roast_analyze.Traec  # noqa: B018
