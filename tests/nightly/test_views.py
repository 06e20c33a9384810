"""All views of the sample traces equal those computed in plain Python."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nightly import (
    chunks,
    core_time,
    costs,
    critical_path,
    datasets,
    dependencies,
    dispatch_latency,
    failures,
    functions,
    graphs,
    imports,
    io,
    latencies,
    loads,
    metadata,
    profiles,
    sections,
    setup,
    spans,
    stragglers,
    tasks,
    timeline,
    trace,
    transfers,
    workers,
)
from nightly.comparison import Answer, differences
from nightly.recording import Recording, Row
from roast_analyze import Trace
from roast_analyze.open.views import view_names

TESTS = Path(__file__).parents[1]
SAMPLES = sorted((TESTS.parent / "sample_traces").glob("*.jsonl.zst"))
#: Traces in older formats, which must remain readable.
OLDER = [TESTS / "analyze" / "data" / "metadata_map.jsonl.zst"]

GOLD: dict[str, Callable[[Recording], list[Row]]] = {
    function.__name__: function
    for function in (
        trace.environment, trace.events, trace.loss, trace.run, trace.trace_info,
        failures.failures, tasks.prefixes, tasks.task_runs, tasks.tasks, tasks.transitions,
        tasks.task_groups, tasks.task_phases, tasks.unattempted, tasks.task_states,
        tasks.wanted_keys, latencies.latencies, stragglers.stragglers,
        dependencies.dependencies,
        dispatch_latency.dispatch_latency, dispatch_latency.worker_transitions,
        transfers.spills, transfers.transfers,
        workers.cluster_samples, workers.pauses, workers.worker_samples, workers.workers,
        chunks.branches, chunks.chunk_branches, costs.chunk_costs, chunks.chunks,
        datasets.datasets, datasets.files, sections.section_totals, sections.sections,
        tasks.task_roles, spans.activities, spans.fine_metric_deltas, spans.fine_metrics,
        spans.spans, spans.span_idle, spans.span_totals, profiles.profile_stacks,
        timeline.concurrency, timeline.utilization, core_time.core_time,
        loads.scheduler_samples, loads.host_samples, loads.stalls, loads.client_activity,
        loads.cluster_sizes,
        critical_path.critical_path, critical_path.task_slack, setup.config,
        setup.differences, setup.jobs, setup.machines,
        setup.packages, graphs.computations, graphs.graph_layers,
        graphs.graph_updates, graphs.restrictions, imports.imports, io.io_jobs, io.io_files,
        io.io_segments, functions.yappi_functions, functions.yappi_calls, metadata.metadata_map,
    )
}  # fmt: skip

#: Views with a documented order.
IN_ORDER = {
    "branches", "chunk_costs", "concurrency", "critical_path", "datasets", "files", "prefixes",
    "section_totals", "span_totals", "stragglers", "task_groups", "task_roles", "utilization",
    "workers",
}  # fmt: skip


#: Each rule of the findings has its own tests.
WITHOUT = {"findings"}


def test_every_view_has_its_function():
    assert set(GOLD) == set(view_names()) - WITHOUT


@pytest.fixture(
    scope="module",
    params=[*SAMPLES, *OLDER],
    ids=lambda path: f"{path.parent.name}-{path.name.split('.')[0]}",
)
def sample(request) -> Iterator[tuple[Trace, Recording]]:
    with Trace(request.param) as opened:
        yield opened, Recording.read(request.param)


@pytest.mark.parametrize("view", GOLD)
def test_view(sample, view):
    opened, recording = sample

    assert differences_of(view, Answer.of(opened.view(view)), recording) == []


@pytest.mark.parametrize("view", ["concurrency", "utilization"])
def test_sums_over_time_are_those_of_the_run(sample, view):
    opened, _ = sample
    [run] = Answer.of(opened.view("run")).rows
    rows = Answer.of(opened.view(view)).rows

    for whole, part in (("compute_seconds",) * 2, ("core_seconds", "thread_seconds")):
        assert sum(row[part] for row in rows) == pytest.approx(run[whole])


def differences_of(view: str, answer: Answer, recording: Recording) -> list[str]:
    """Return the differences, with the trace_id that every row has."""
    expected = [row | {"trace_id": recording.trace_id} for row in GOLD[view](recording)]
    return differences(answer, expected, in_order=view in IN_ORDER)
