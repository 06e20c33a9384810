"""Stacks of Dask's profiler.

Dask counts a sample in every function of a stack except the innermost one. The count of a
function minus those of its callees, its excess, is the number of samples that ended in them.
"""

from collections.abc import Iterator

from nightly import functions
from nightly.recording import Recording, Row
from nightly.totals import grouped


def profile_stacks(recording: Recording) -> list[Row]:
    """Return one row per profile, slice and stack with samples."""
    sampled = [
        row
        for line in recording.of("profile")
        for part in line["tree"]["slices"]
        for row in _stacks(line, part)
    ]
    return [*sampled, *functions.stacks(recording)]


def _stacks(line: dict, part: dict) -> Iterator[Row]:
    tree = line["tree"]
    counts = dict(zip(part["nodes"], part["counts"], strict=True))
    children = _children(tree, part)
    # The count of each node minus those of its callees.
    excess = {
        node: max(count - sum(counts[child] for child in children.get(node, [])), 0)
        for node, count in counts.items()
    }
    samples, undecided = _ends(line, part, excess)
    for node in part["nodes"]:
        if not (samples[node] or undecided[node] or excess[node]):
            continue
        path = [node]
        while tree["parents"][path[0]] is not None:
            path.insert(0, tree["parents"][path[0]])
        del path[0]  # the root
        frames = [tree["frames"][tree["node_frames"][n]] for n in path]
        yield {
            "worker": line.get("worker"),
            "prefix": line.get("prefix"),
            "start_t": part["start_t"],
            "stop_t": part["stop_t"],
            "stack": [f"{f['name']} ({f['filename']}:{f['line_number']})" for f in frames],
            "samples": samples[node],
            "seconds": (samples[node] + undecided[node]) * line["interval_seconds"],
            "ambiguous_samples": undecided[node],
            "counted_samples": excess[node],
            "frames": frames,
            "lines": [tree["line_numbers"][n] for n in path],
            "server_id": line.get("server_id"),
            "interval_seconds": line["interval_seconds"],
            "profiler": "dask",
            "log": None,
        }


def _children(tree: dict, part: dict) -> dict[int | None, list[int]]:
    """Return the callees of each node in a slice."""
    called = [{"node": node, "by": tree["parents"][node]} for node in part["nodes"]]
    by = grouped(called, lambda call: call["by"])
    return {node: [call["node"] for call in calls] for node, calls in by.items()}


def _ends(line: dict, part: dict, excess: dict) -> tuple[dict[int, int], dict[int, int]]:
    """Return the certain samples of each node, and the ambiguous ones of its callees.

    Recorded innermost counts are used. Otherwise an excess belongs to the only callee; of
    several, those without a count have at least one, and the rest is ambiguous. The scheduler's
    counts include the innermost function.
    """
    samples, undecided = dict.fromkeys(excess, 0), dict.fromkeys(excess, 0)
    if part.get("innermost") is not None:
        return dict(zip(part["nodes"], part["innermost"], strict=True)), undecided
    counts = dict(zip(part["nodes"], part["counts"], strict=True))
    children = {} if line.get("worker") is None else _children(line["tree"], part)
    for node, beyond in excess.items():
        called = children.get(node, [])
        if len(called) < 2:
            samples[called[0] if called else node] += beyond
            continue
        silent = [child for child in called if counts[child] == 0]
        certain = silent if len(silent) <= beyond else []
        for child in certain:
            samples[child] += 1
        undecided[node] = beyond - len(certain)
    return samples, undecided
