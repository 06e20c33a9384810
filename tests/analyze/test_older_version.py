"""Views return the same numbers as version 0.6 (before views and columns were renamed)."""

import json
from pathlib import Path

import pytest

from analyze.view_digests import digest_trace
from roast_analyze import Trace

SAMPLES = Path(__file__).parents[2] / "sample_traces"
DATA = Path(__file__).parent / "data"
OLD = json.loads((DATA / "views_0.6.json").read_text("utf-8"))
#: The sample that has been recorded anew since.
KEPT = {"metadata_map.jsonl.zst": DATA / "metadata_map.jsonl.zst"}

VIEWS = {
    "handoffs": "dispatch_latency",
    "task_parts": "task_phases",
    "graph_edges": "dependencies",
}
COLUMNS = {
    "config.is_of_the_moment": "is_run_specific",
    "datasets.byte_share": "file_read_ratio",
    "datasets.spread": "relative_iqr",
    "differences.what": "category",
    "dispatch_latency.handoff_seconds": "dispatch_latency_seconds",
    "dispatch_latency.rest_seconds": "other_seconds",
    "dispatch_latency.underway_seconds": "dispatch_seconds",
    "files.byte_share": "file_read_ratio",
    "files.slowness": "relative_duration",
    "files.spread": "relative_iqr",
    "latencies.underway_seconds": "dispatch_seconds",
    "metadata_map.how": "hint",
    "metadata_map.is_there": "is_recorded",
    "metadata_map.what": "metadata",
    "profile_stacks.undecided_samples": "ambiguous_samples",
    "section_totals.passes": "executions",
    "stragglers.factor": "relative_duration",
    "transfers.agree": "sizes_agree",
    "transfers.told_by": "reported_by",
    "workers.slowness": "relative_duration",
    "workers.spread": "relative_iqr",
}
#: Computed in another way: first chunks of a process and similar sizes do not determine the
#: cost, and is_slow considers what ran at the same time and the spread.
#: Yappi's files do not contain which functions are coroutines. Managed memory included
#: spilled results.
RECOMPUTED = {"chunk_costs", "cluster_samples.managed_bytes", "worker_samples.managed_bytes",
              "files.relative_duration", "files.is_slow",
              "workers.relative_duration", "workers.is_slow",
              "metadata_map.is_recorded", "metadata_map.records"}  # fmt: skip
#: Texts that were reworded, and paths, which depend on where the trace is opened from.
REWORDED = {
    "chunk_costs.note", "failures.detail", "loss.detail", "metadata_map.hint",
    "metadata_map.metadata", "metadata_map.step_name", "metadata_map.view",
    "profile_stacks.frames", "profile_stacks.stack", "trace_info.path",
}  # fmt: skip
#: Rows of views that have further ones now.
OLD_ROWS = {"metadata_map": "\"view\" IS DISTINCT FROM 'wanted_keys'"}


@pytest.mark.exhaustive
def test_a_trace_of_an_older_format():
    [name] = KEPT
    assert differences(name) == []


def differences(name: str) -> list[str]:
    """Return how the views of a trace differ from those of version 0.6."""
    with Trace(KEPT.get(name, SAMPLES / name)) as trace:
        new = digest_trace(trace, OLD_ROWS)
    found = []
    for old_view, (rows, columns) in OLD[name].items():
        view = VIEWS.get(old_view, old_view)
        if new[view][0] != rows:
            found.append(f"{view}: {new[view][0]} rows, not {rows}")
        for old_column, digest in columns.items():
            column = COLUMNS.get(f"{view}.{old_column}", old_column)
            value = new[view][1].get(column)
            changed = {view, f"{view}.{column}"} & (REWORDED | RECOMPUTED)
            if not changed and not equal(value, digest):
                found.append(f"{view}.{column}: {value}, not {digest}")
    return found


def equal(found: list | None, digest: list) -> bool:
    """Compare counts, texts and extremes exactly, sums with the error of adding floats."""
    if found is None or isinstance(digest[1], str) or len(digest) == 3:
        return found == digest
    count, total, *extremes = digest
    return found[0] == count and found[1] == pytest.approx(total) and found[2:] == extremes
