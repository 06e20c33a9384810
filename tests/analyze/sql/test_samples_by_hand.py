"""Views of recorded runs, against plain Python over the raw lines: nothing of ours."""

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from roast_analyze import Trace

OUTCOMES = ("memory", "erred", "retried", "lost", "rescheduled", "cancelled", "unfinished")
SAMPLES = Path(__file__).parents[3] / "sample_traces"


@pytest.fixture(
    scope="module", params=["coffea", "coffea_failures", "image_pipeline", "shuffle_reduce"]
)
def path(request):
    return SAMPLES / f"{request.param}.jsonl.zst"


@pytest.fixture(scope="module")
def lines(path, read_lines):
    """Lines of the trace by kind."""
    by_kind = defaultdict(list)
    for line in read_lines(path):
        by_kind[line["kind"]].append(line)
        by_kind["all"].append(line)
    return by_kind


@pytest.fixture(scope="module")
def view(path):
    """Rows of a view as dicts."""
    with Trace(path) as trace:
        yield lambda name: trace.frame(name).to_dicts()


@pytest.fixture(scope="module")
def attempts(lines):
    """Attempts in the order in which they began: what went before, begin, end, outcome."""
    history, open_, found, numbers = defaultdict(list), {}, [], Counter()
    gone = {line["stimulus_id"] for line in lines["worker_removed"]}
    for line in lines["transition"]:
        key = line["key"]
        if line["start"] == "processing" and key in open_:
            open_.pop(key).update(end=line, outcome=outcome_of(line, gone))
        if line["finish"] == "processing":
            numbers[key] += 1
            open_[key] = {
                "key": key, "attempt": numbers[key], "begin": line, "end": None,
                "outcome": "unfinished", "before": list(history[key]),
            }  # fmt: skip
            found.append(open_[key])
        history[key].append(line)
    return found


def outcome_of(end, gone):
    if end["finish"] in ("memory", "erred"):
        return end["finish"]
    if end["stimulus_id"].startswith("task-erred"):
        return "retried" if end.get("worker") or end.get("exception") else "cancelled"
    if end["stimulus_id"].startswith("reschedule"):
        return "rescheduled"
    if end["stimulus_id"] in gone or end["stimulus_id"].startswith("handle-worker-cleanup"):
        return "lost"
    return "cancelled"


def parts(attempt, *actions):
    """Parts of an attempt of some actions; without any named, all."""
    told = (attempt["end"] or {}).get("startstops") or []
    return [part for part in told if not actions or part["action"] in actions]


def seconds(attempt, *actions):
    """Their time; None if the worker reported no parts at all."""
    if not parts(attempt):
        return None
    return sum(part["stop"] - part["start"] for part in parts(attempt, *actions))


def worker_of(attempt):
    return (attempt["end"] or {}).get("worker") or attempt["begin"]["worker"]


def total(values):
    """The sum of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def approx(value):
    return pytest.approx(value, rel=1e-9, abs=1e-6) if isinstance(value, float) else value


def lasting(stretches, start, stop):
    """Time that some stretches have between two instants."""
    return sum(max(0.0, min(end, stop) - max(begin, start)) for begin, end in stretches)


def extent(lines):
    times = [line["t"] for line in lines["all"]]
    return min(times), max(times)


# -- over time ---------------------------------------------------------------------------


def stretches_of_states(lines, last_t):
    """From when to when each task was in each state."""
    found = defaultdict(list)
    by_key = defaultdict(list)
    for line in lines["transition"]:
        by_key[line["key"]].append(line)
    for steps in by_key.values():
        for here, after in pairwise([*steps, {"t": last_t}]):
            found[here["finish"]].append((here["t"], after["t"]))
    return found


def presence(lines):
    """Each process with when it was there and its threads."""
    _, last_t = extent(lines)
    removed = {line["worker"]: line["t"] for line in lines["worker_removed"]}
    for line in lines["worker_added"]:
        yield line, (line["t"], removed.get(line["worker"], last_t))


def test_concurrency(view, lines, attempts):
    first_t, last_t = extent(lines)
    states = stretches_of_states(lines, last_t)
    there = list(presence(lines))
    computing, moving = (
        [(part["start"], part["stop"]) for a in attempts for part in parts(a, action)]
        for action in ("compute", "transfer")
    )
    found = view("concurrency")

    assert 150 < len(found) <= 400
    assert found[0]["t"] == first_t
    assert found[-1]["t"] + found[-1]["seconds"] == approx(last_t)
    for row in found:
        start, stop = row["t"], row["t"] + row["seconds"]
        expected = {
            "executing": lasting(computing, start, stop),
            "transferring": lasting(moving, start, stop),
            "processing": lasting(states["processing"], start, stop),
            "queued": lasting(states["queued"], start, stop),
            "no_worker": lasting(states["no-worker"], start, stop),
            "waiting": lasting(states["waiting"], start, stop),
            "workers": lasting([when for _, when in there], start, stop),
            "nthreads": sum(
                line["nthreads"] * lasting([when], start, stop) for line, when in there
            ),
        }
        # Instants of this size are known to some 1e-7 s.
        assert {name: row[name] * row["seconds"] for name in expected} == {
            name: pytest.approx(value, abs=1e-4) for name, value in expected.items()
        }


def test_utilisation(view, lines, attempts):
    found = view("utilisation")
    for line, when in presence(lines):
        mine = [attempt for attempt in attempts if worker_of(attempt) == line["worker"]]
        rows = [row for row in found if row["server_id"] == line["server_id"]]
        measures = {
            "compute_seconds": [p for a in mine for p in parts(a, "compute")],
            "failed_seconds": [
                p for a in mine if a["outcome"] != "memory" for p in parts(a, "compute")
            ],
            "transfer_seconds": [p for a in mine for p in parts(a, "transfer")],
        }
        for row in rows:
            start, stop = row["t"], row["t"] + row["seconds"]
            for name, some in measures.items():
                expected = lasting([(p["start"], p["stop"]) for p in some], start, stop)
                assert row[name] == pytest.approx(expected, abs=1e-5)
            threads = line["nthreads"] * lasting([when], start, stop)
            assert row["thread_seconds"] == pytest.approx(threads, abs=1e-5)
        # No bucket in which anything was is missing.
        for name, some in measures.items():
            whole = sum(part["stop"] - part["start"] for part in some)
            assert sum(row[name] for row in rows) == pytest.approx(whole, abs=1e-5)
        whole = line["nthreads"] * (when[1] - when[0])
        assert sum(row["thread_seconds"] for row in rows) == pytest.approx(whole, abs=1e-5)


def test_sums_over_time_are_those_of_the_attempts(view):
    [run] = view("run")
    for name in ("concurrency", "utilisation"):
        rows = view(name)
        for theirs, ours in (
            ("compute_seconds", "compute_seconds"), ("core_seconds", "thread_seconds"),
        ):  # fmt: skip
            assert sum(row[ours] for row in rows) == pytest.approx(run[theirs])


# -- attempts ----------------------------------------------------------------------------


def test_latencies(view, attempts):
    found = view("latencies")

    assert len(found) == len(attempts)
    for row, attempt in zip(found, attempts, strict=True):
        begin, end = attempt["begin"], attempt["end"]
        waiting = [line for line in attempt["before"] if line["finish"] == "waiting"][-1]
        entered = attempt["before"][-1]
        held = begin["t"] - entered["t"] if begin["start"] in ("queued", "no-worker") else 0.0
        expected = {
            "key": attempt["key"],
            "attempt": attempt["attempt"],
            "worker": worker_of(attempt),
            "outcome": attempt["outcome"],
            "processing_t": begin["t"],
            "dependency_seconds": begin["t"] - waiting["t"] - held,
            "slot_seconds": held,
            "processing_seconds": end and end["t"] - begin["t"],
            **dict.fromkeys(
                ("dispatch_seconds", "fetch_seconds", "thread_wait_seconds",
                 "execute_seconds", "report_seconds")
            ),
        }  # fmt: skip
        if parts(attempt):
            moves = parts(attempt, "transfer")
            execute_t = min(p["start"] for p in parts(attempt) if p["action"] != "transfer")
            last_t = max(p["stop"] for p in parts(attempt))
            first_t = min(p["start"] for p in parts(attempt))
            expected["dispatch_seconds"] = first_t - begin["t"]
            expected["execute_seconds"] = last_t - execute_t
            expected["report_seconds"] = end["t"] - last_t
            if moves:
                fetched_t = max(p["stop"] for p in moves)
                expected["fetch_seconds"] = fetched_t - min(p["start"] for p in moves)
                expected["thread_wait_seconds"] = execute_t - fetched_t
        assert {name: row[name] for name in expected} == {
            name: approx(value) for name, value in expected.items()
        }


def test_stragglers(view, lines, attempts):
    prefixes = {line["key"]: line["prefix"] for line in lines["task"]}
    usual = defaultdict(list)
    for attempt in attempts:
        if attempt["outcome"] == "memory" and seconds(attempt, "compute") is not None:
            usual[prefixes[attempt["key"]]].append(seconds(attempt, "compute"))
    expected = {}
    for attempt in attempts:
        some, took = usual[prefixes[attempt["key"]]], seconds(attempt, "compute")
        if len(some) >= 10 and took is not None and took >= 2 * median(some):
            factor = took / median(some)
            expected[attempt["key"], attempt["attempt"]] = (
                approx(factor), approx(took - median(some)), len(some), worker_of(attempt),
            )  # fmt: skip

    found = view("stragglers")

    assert {
        (row["key"], row["attempt"]): (
            row["factor"], row["excess_seconds"], row["prefix_runs"], row["worker"],
        )
        for row in found
    } == expected  # fmt: skip
    excess = [row["excess_seconds"] for row in found]
    assert excess == sorted(excess, reverse=True)


# -- graphs ------------------------------------------------------------------------------


def test_dependencies(view, lines, attempts):
    by_key = defaultdict(list)
    for attempt in attempts:
        by_key[attempt["key"]].append(attempt)
    places = {id(line): place for place, line in enumerate(lines["transition"])}
    expected = {}
    for task in lines["task"]:
        for dependency in task.get("dependencies") or ():
            mine = sorted(
                by_key[task["key"]], key=lambda a: (a["outcome"] == "memory", a["attempt"])
            )
            taker = mine[-1] if mine else None
            until = places[id(taker["begin"])] if taker else float("inf")
            results = [
                attempt
                for attempt in by_key[dependency]
                if attempt["outcome"] == "memory" and places[id(attempt["end"])] < until
            ]
            nbytes = there = moved = fetched = None
            if results:
                nbytes, there = results[-1]["end"]["nbytes"], worker_of(results[-1])
            if results and taker:
                moved = worker_of(taker) != there
                if parts(taker):
                    sources = {part["source"] for part in parts(taker, "transfer")}
                    fetched = there in sources
            here = worker_of(taker) if taker else None
            expected[task["key"], dependency] = (nbytes, here, there, moved, fetched)

    assert {
        (row["key"], row["dependency"]): (
            row["bytes"], row["worker"], row["dependency_worker"], row["is_moved"],
            row["has_transfer"],
        )
        for row in view("dependencies")
    } == expected  # fmt: skip


def totals(tasks, some):
    """What task_groups and span_totals have in common."""
    times = [attempt["begin"]["t"] for attempt in some]
    ends = [attempt["end"]["t"] for attempt in some if attempt["end"]]
    return {
        "tasks": len(tasks),
        "task_runs": len(some),
        "compute_seconds": approx(total(seconds(a, "compute") for a in some)),
        "transfer_seconds": approx(total(seconds(a, "transfer") for a in some)),
        "output_bytes": total((a["end"] or {}).get("nbytes") for a in some),
        "first_t": min(times, default=None),
        "last_t": max(ends, default=None),
    }


def test_task_groups(view, lines, attempts):
    group_of = {line["key"]: line["group"] for line in lines["task"]}
    found = {row["task_group"]: row for row in view("task_groups")}

    assert set(found) == set(group_of.values())
    for group, row in found.items():
        keys = {key for key, of in group_of.items() if of == group}
        some = [attempt for attempt in attempts if attempt["key"] in keys]
        outcomes = Counter(attempt["outcome"] for attempt in some)
        computed = [s for a in some if (s := seconds(a, "compute")) is not None]
        expected = {
            **totals(keys, some),
            **{name: outcomes[name] for name in OUTCOMES},
            "max_compute_seconds": approx(max(computed, default=None)),
            "median_compute_seconds": approx(median(computed) if computed else None),
            "workers": len({worker_of(attempt) for attempt in some}),
        }
        assert {name: row[name] for name in expected} == expected


def test_span_totals(view, lines, attempts):
    parents = {line["span_id"]: line.get("parent_id") for line in lines["span"]}
    span_of = {line["key"]: line["span_id"] for line in lines["task"]}
    found = {row["span_id"]: row for row in view("span_totals")}
    assert set(found) >= set(span_of.values())

    def within(span, outer):
        while span is not None and span != outer:
            span = parents.get(span)
        return span == outer

    for span, row in found.items():
        if span is None:
            continue
        for prefix, spans in (
            ("", {span}),
            ("total_", {s for s in parents if within(s, span)}),
        ):
            keys = {key for key, of in span_of.items() if of in spans}
            expected = totals(keys, [a for a in attempts if a["key"] in keys])
            cpu = [
                line["delta"]
                for line in lines["fine_metric"]
                if line.get("span_id") in spans
                and (line["activity"], line["unit"]) == ("thread-cpu", "seconds")
            ]
            expected["cpu_seconds"] = approx(total(cpu))
            assert {name: row[prefix + name] for name in expected} == expected
