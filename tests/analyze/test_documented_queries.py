"""The README's queries of chunks, on recorded runs, against plain Python over raw lines.

Nothing here goes through the views, or DuckDB: attempts are pieced together from the
transitions and chunk records as a reader of the file would do it by hand.
"""

import re
from collections import defaultdict
from pathlib import Path
from statistics import mean, median

import pytest

from roast_analyze import Trace

ROOT = Path(__file__).parents[2]
SAMPLES = ["coffea", "coffea_failures"]


def documented_queries(document: str = "analyze/README.md") -> dict[str, str]:
    """The queries of a README, by the line above them."""
    text = (ROOT / document).read_text()
    return dict(
        re.findall(r"^([^\n`|]+):\n\n```sql\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    )


@pytest.fixture(scope="module", params=SAMPLES)
def path(request):
    return ROOT / "sample_traces" / f"{request.param}.jsonl.zst"


@pytest.fixture(scope="module")
def lines(path, read_lines):
    return read_lines(path)


@pytest.fixture(scope="module")
def answer(path):
    """Ask a query of the README; gives its rows as dicts."""
    with Trace(path) as trace:
        yield lambda title: trace.sql(documented_queries()[title]).pl().to_dicts()


@pytest.fixture(scope="module")
def attempts(lines):
    """Attempts at all tasks, in plain Python."""
    return list(attempts_in(lines))


@pytest.fixture(scope="module")
def chunks(lines, attempts):
    """Attempts at chunks, with what is known and was measured of them."""
    records = [line for line in lines if line["kind"] == "chunk"]
    identity = {
        line["key"]: line
        for line in records
        if line.get("run_id") is None and line.get("entry_start") is not None
    }
    measured = {
        (line["key"], line["run_id"]): {**line, **line["measured"]}
        for line in records
        if line.get("run_id") is not None
    }
    found, done = [], set()
    for attempt in attempts:
        if attempt["key"] not in identity:
            continue
        told = measured.get((attempt["key"], attempt["run_id"]), {})
        chunk = {**identity[attempt["key"]], **told, **attempt}
        if chunk["outcome"] == "memory" and told.get("exception"):
            chunk["outcome"] = "skipped"
        good = chunk["outcome"] == "memory"
        chunk["events"] = chunk["entry_stop"] - chunk["entry_start"] if good else None
        chunk["first"] = good and chunk["key"] not in done
        if good:
            done.add(chunk["key"])
        found.append(chunk)
    return found


def attempts_in(lines):
    """Piece attempts together: from →processing to the next transition from there."""
    gone = {line["stimulus_id"] for line in lines if line["kind"] == "worker_removed"}
    running = {}
    for line in lines:
        if line["kind"] != "transition":
            continue
        key = line["key"]
        if line["start"] == "processing" and key in running:
            began = running.pop(key)
            compute = [
                part["stop"] - part["start"]
                for part in line.get("startstops") or ()
                if part["action"] == "compute"
            ]
            yield {
                "key": key,
                "run_id": began["run_id"],
                "worker": line.get("worker") or began["worker"],
                "outcome": outcome_of(line, gone),
                "compute_seconds": sum(compute) if line.get("startstops") else None,
                "transfer_seconds": sum(
                    part["stop"] - part["start"]
                    for part in line.get("startstops") or ()
                    if part["action"] == "transfer"
                ),
                "nbytes": line.get("nbytes"),
            }
        if line["finish"] == "processing":
            running[key] = line
    for key, began in running.items():
        unknown = {"compute_seconds": None, "transfer_seconds": None, "nbytes": None}
        run = {"key": key, "run_id": began["run_id"], "worker": began["worker"]}
        yield {**run, "outcome": "unfinished", **unknown}


def outcome_of(end, gone):
    if end["finish"] in ("memory", "erred"):
        return end["finish"]
    if end["stimulus_id"].startswith("task-erred") and (
        end.get("worker") or end.get("exception")
    ):
        return "retried"
    if end["stimulus_id"] in gone or end["stimulus_id"].startswith("handle-worker-cleanup"):
        return "lost"
    return "cancelled"


def total(values):
    """The sum of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def ratio(top, bottom):
    return None if top is None or not bottom else top / bottom


def grouped(rows, *names):
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row.get(name) for name in names)].append(row)
    return groups


def approx(value):
    return value if value is None or isinstance(value, str) else pytest.approx(value)


def column(rows, name):
    return [row[name] for row in rows]


def test_the_first_readme_asks_the_same_under_the_same_title():
    here, there = documented_queries("README.md"), documented_queries()

    shared = here.keys() & there.keys()
    assert shared == {
        "Events per second, by worker",
        "The slowest files, and whether they were slow on every worker",
        "Bytes by dataset",
        "Which branches cost most",
        "Merging against processing",
    }
    assert {title: here[title] for title in shared} == {title: there[title] for title in shared}


# -- the queries -------------------------------------------------------------------------


def test_which_worker_did_what_to_which_file(answer, chunks):
    expected = [
        {
            "worker": worker,
            "filename": filename,
            "attempts": len(some),
            "in_vain": sum(chunk["outcome"] != "memory" for chunk in some),
            "events": total(column(some, "events")),
            "megabytes": approx(ratio(total(chunk.get("bytes_read") for chunk in some), 1e6)),
            "seconds": approx(total(column(some, "compute_seconds"))),
        }
        for (worker, filename), some in sorted(grouped(chunks, "worker", "filename").items())
    ]

    assert answer("Which worker did what to which file") == expected


def test_events_per_second_by_worker(answer, chunks):
    found = answer("Events per second, by worker")

    assert column(found, "events_per_second") == sorted(column(found, "events_per_second"))
    for row in found:
        some = [chunk for chunk in chunks if chunk["worker"] == row["worker"]]
        events = total(column(some, "events"))
        seconds = total(column(some, "compute_seconds"))
        assert row["chunks"] == sum(chunk["outcome"] == "memory" for chunk in some)
        assert row["events"] == events
        assert row["chunk_seconds"] == pytest.approx(seconds)
        assert row["events_per_second"] == pytest.approx(events / seconds)
    assert {row["worker"] for row in found} == {
        chunk["worker"] for chunk in chunks if chunk["outcome"] == "memory"
    }


def test_the_slowest_files(answer, chunks):
    rates = {}
    for file, some in grouped(chunks, "dataset", "filename").items():
        events = total(chunk["events"] for chunk in some if chunk["first"])
        seconds = total(column(some, "compute_seconds"))
        rates[file] = (events / seconds, events, seconds, len({c["worker"] for c in some}))

    found = answer("The slowest files, and whether they were slow on every worker")

    slowest = sorted(rates, key=rates.get)[:5]
    assert [(row["dataset"], row["filename"]) for row in found] == slowest
    for row, file in zip(found, slowest, strict=True):
        told = (row["events_per_second"], row["events"], row["compute_seconds"], row["workers"])
        assert told == pytest.approx(rates[file])


def test_bytes_by_dataset(answer, chunks):
    found = {row.pop("dataset"): row for row in answer("Bytes by dataset")}

    assert set(found) == {chunk["dataset"] for chunk in chunks}
    for (dataset,), some in grouped(chunks, "dataset").items():
        measured = [chunk for chunk in some if chunk.get("bytes_read") is not None]
        first = [chunk for chunk in measured if chunk["first"]]
        sizes = {chunk["filename"]: chunk["file_bytes"] for chunk in first}
        read = [branch for chunk in measured for branch in chunk.get("branches") or ()]
        sized = [branch for branch in read if branch.get("uncompressed_bytes") is not None]
        rate = ratio(
            total(column(measured, "bytes_read")), total(column(measured, "compute_seconds"))
        )
        assert found[dataset] == {
            "bytes_read": total(column(measured, "bytes_read")),
            "megabytes_per_second": approx(ratio(rate, 1e6)),
            "of_the_files": approx(
                ratio(total(column(first, "bytes_read")), sum(sizes.values()))
            ),
            "of_the_branches": approx(
                mean(len(c["branches"]) / c["file_branches"] for c in first) if first else None
            ),
            "compression_ratio": approx(
                ratio(
                    total(column(sized, "uncompressed_bytes")),
                    total(column(sized, "compressed_bytes")),
                )
            ),
        }


def test_which_branches_cost_most(answer, chunks):
    read = [branch for chunk in chunks for branch in chunk.get("branches") or ()]
    whole = total(branch.get("read_seconds") for branch in read)
    costs = {
        name: (
            total(branch.get("read_seconds") for branch in some),
            ratio(total(branch.get("compressed_bytes") for branch in some), 1e6),
        )
        for (name,), some in grouped(read, "branch").items()
    }

    found = answer("Which branches cost most")

    costliest = sorted(costs, key=lambda name: (-(costs[name][0] or 0), name))[:10]
    assert column(found, "branch") == costliest
    for row in found:
        seconds, megabytes = costs[row["branch"]]
        assert row["seconds"] == approx(seconds)
        assert row["megabytes"] == approx(megabytes)
        assert row["of_all_reading"] == approx(ratio(seconds, whole))


def test_merging_against_processing(answer, lines, attempts):
    tasks = {line["key"]: line for line in lines if line["kind"] == "task"}
    records = [line for line in lines if line["kind"] == "chunk"]
    chunks = {line["key"] for line in records if line.get("entry_start") is not None}
    files = {line["key"] for line in records} - chunks

    def role(key):
        if key in chunks:
            return "chunk"
        if key in files:
            return "file metadata"
        needs = tasks[key].get("dependencies") or ()
        if tasks[key]["prefix"] == "reduce":
            below = {role(other) for other in needs}
            return "file metadata" if below == {"file metadata"} else "merge"
        is_input = any(key in (tasks[chunk].get("dependencies") or ()) for chunk in chunks)
        return "processor broadcast" if is_input and not needs else None

    runs = grouped([{**attempt, "role": role(attempt["key"])} for attempt in attempts], "role")
    whole = total(column(attempts, "compute_seconds"))

    found = {row.pop("role"): row for row in answer("Merging against processing")}

    assert set(found) == {role(key) for key in tasks}
    for name, row in found.items():
        some = runs[name,]
        seconds = total(column(some, "compute_seconds"))
        prefixes = {task["prefix"] for key, task in tasks.items() if role(key) == name}
        assert row["prefixes"] == ", ".join(sorted(prefixes))
        assert row["task_runs"] == len(some)
        assert row["compute_seconds"] == approx(seconds)
        assert row["compute_share"] == approx(ratio(seconds, whole))
        assert (row["transfer_seconds"] or 0) == pytest.approx(
            total(column(some, "transfer_seconds")) or 0
        )


def test_what_a_chunk_costs(answer, chunks):
    found = {row["dataset"]: row for row in answer(
        "What a chunk costs, and which size to choose"
    )}  # fmt: skip

    assert set(found) == {chunk["dataset"] for chunk in chunks if chunk["first"]}
    for (dataset,), some in grouped([c for c in chunks if c["first"]], "dataset").items():
        row = found[dataset]
        assert row["median_events"] == round(median(column(some, "events")))
        if row["method"] is None:
            assert row["note"].startswith("no model: ")
            continue
        fixed, slope = row["fixed_seconds"], row["seconds_for_1000_events"] / 1000
        off = [
            abs(c["compute_seconds"] - fixed - slope * c["events"]) / c["compute_seconds"]
            for c in some
        ]
        assert row["relative_error"] == pytest.approx(median(off))
        if row["method"] == "opening":
            assert fixed == pytest.approx(median(column(some, "open_seconds")))


def test_what_the_time_of_chunks_went_into(answer, chunks):
    for row in answer("What the time of chunks went into"):
        dataset = row.pop("dataset")
        some = [chunk for chunk in chunks if chunk["dataset"] == dataset]
        waits = [
            max(chunk["stop_t"] - chunk["start_t"] - chunk["cpu_seconds"], 0)
            for chunk in some
            if chunk.get("cpu_seconds") is not None
        ]
        assert row.pop("wait_seconds") == approx(total(waits))
        for name, value in row.items():
            assert value == approx(total(chunk.get(name) for chunk in some)), name


# -- in roastcoffea's terms --------------------------------------------------------------


def test_the_run_in_their_terms(answer, lines, chunks):
    [row] = answer("The run in their terms")

    wall = max(line["t"] for line in lines) - min(line["t"] for line in lines)
    events = total(chunk["events"] for chunk in chunks if chunk["first"])
    read = total(chunk.get("bytes_read") for chunk in chunks)
    process = total(chunk.get("process_seconds") for chunk in chunks)
    left = {line["server_id"]: line["t"] for line in lines if line["kind"] == "worker_removed"}
    stop_t = max(line["t"] for line in lines)
    presence = [
        (left.get(line["server_id"], stop_t) - line["t"], line["nthreads"])
        for line in lines
        if line["kind"] == "worker_added"
    ]
    cores = sum(seconds * nthreads for seconds, nthreads in presence) / wall
    memory = [line["metrics"]["memory"] for line in lines if line["kind"] == "worker_sample"]
    peaks = [chunk["memory_peak"] for chunk in chunks if chunk.get("memory_peak")]
    assert row["wall_seconds"] == pytest.approx(wall)
    assert row["rate_wall_khz"] == pytest.approx(events / wall / 1e3)
    assert row["rate_core_khz"] == pytest.approx(events / wall / cores / 1e3)
    assert row["workers_avg"] == pytest.approx(sum(s for s, _ in presence) / wall)
    assert row["cores_total"] == pytest.approx(cores)
    assert row["memory_peak_bytes"] == max(memory + peaks)
    assert row["memory_avg_bytes"] == round(mean(memory))
    assert row["num_chunks"] == sum(chunk["first"] for chunk in chunks)
    assert row["data_rate_gbps"] == approx(ratio(read and 8 * read, wall * 1e9))
    assert row["cpu_seconds"] == approx(process)
    assert row["speedup"] == approx(ratio(process, wall))
    assert row["core_efficiency"] == approx(ratio(process, wall * cores))
    assert row["avg_chunk_seconds"] == approx(
        mean(c["process_seconds"] for c in chunks if c["first"]) if process else None
    )


def test_seconds_and_bytes_of_fine_metrics(answer, lines):
    records = [line for line in lines if line["kind"] == "chunk"]
    of_chunks = {line["key"] for line in records if line.get("entry_start") is not None}
    prefixes = grouped([line for line in lines if line["kind"] == "task"], "prefix")
    chunk_prefixes = {
        prefix
        for (prefix,), tasks in prefixes.items()
        if all(task["key"] in of_chunks for task in tasks)
    }
    metrics = [line for line in lines if line["kind"] == "fine_metric"]

    def spent(activity, unit, in_chunks=None):
        return approx(
            total(
                line["delta"]
                for line in metrics
                if (line["activity"], line["unit"]) == (activity, unit)
                and in_chunks in (None, line.get("prefix") in chunk_prefixes)
            )
        )

    [seconds] = answer("Seconds of Dask's fine metrics, of chunks and of everything else")
    [sizes] = answer("And their bytes")

    assert seconds == {
        "processor_cpu": spent("thread-cpu", "seconds", True),
        "processor_other": spent("thread-noncpu", "seconds", True),
        "overhead_cpu": spent("thread-cpu", "seconds", False),
        "overhead_other": spent("thread-noncpu", "seconds", False),
        **{
            name: spent(name, "seconds")
            for name in ("compress", "decompress", "serialize", "deserialize")
        },
    }
    assert sizes == {
        f"{name.replace('-', '_')}_bytes": spent(name, "bytes")
        for name in ("memory-read", "disk-read", "disk-write")
    }


def test_statistics_of_chunks(answer, chunks):
    [row] = answer("Statistics of chunks")

    outcomes = column(chunks, "outcome")
    deltas = [
        (chunk["memory_after"] - chunk["memory_before"]) / 1e6
        for chunk in chunks
        if chunk.get("memory_after") is not None
    ]
    times = [c["process_seconds"] for c in chunks if c.get("process_seconds") is not None]
    events = [chunk["events"] for chunk in chunks if chunk["events"] is not None]
    assert row["attempts"] == len(chunks)
    assert row["successful"] == outcomes.count("memory")
    assert row["failed"] == sum(
        outcome in ("erred", "retried", "lost", "skipped") for outcome in outcomes
    )
    for name, values in (
        ("duration", times),
        ("mem_delta", deltas),
        ("events", events),
    ):
        unit = "_mb" if name == "mem_delta" else ""
        for what, of in (("mean", mean), ("min", min), ("max", max)):
            assert row[f"{name}_{what}{unit}"] == approx(of(values) if values else None)


def test_what_was_read_of_the_files(answer, chunks):
    [row] = answer("What was read of the files")

    measured = [chunk for chunk in chunks if chunk.get("branches")]
    shares, parts = [], []
    for some in grouped(measured, "dataset", "filename").values():
        branches = max(len(chunk["branches"]) for chunk in some)
        shares.append(branches / some[0]["file_branches"])
        read = total(chunk["bytes_read"] for chunk in some if chunk["first"])
        parts.append(ratio(read, some[0]["file_bytes"]))
    known = [part for part in parts if part is not None]
    assert row["total_branches_read"] == len(
        {branch["branch"] for chunk in measured for branch in chunk["branches"]}
    )
    assert row["avg_branches_read_percent"] == approx(100 * mean(shares) if shares else None)
    assert row["avg_bytes_read_percent"] == approx(100 * mean(known) if known else None)
