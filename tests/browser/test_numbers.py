"""Every number of the verdict and every cell of every table, against plain Python.

What a reader sees must be right within the precision in which it is printed, and what the
page sorts by and lets one download must be right to a part in 10⁹.
"""

import csv
import io
import json
from pathlib import Path

import pytest

from browser.expected import TABLES, Between, Expected, traceback
from browser.reading import amount, differences, is_printed, is_same, read, units_of
from nightly import oddities
from nightly.chunks import chunk_attempts
from nightly.recording import Recording
from nightly.tasks import task_runs
from nightly.totals import column, total
from nightly.trace import loss, run
from sealing import sealed

pytestmark = pytest.mark.browser

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.jsonl.zst"))
[FAILURES] = [path for path in SAMPLES if path.name.startswith("coffea_failures.")]

#: Odd recordings made of a sample; those that are damaged are not sealed.
ODD = (
    oddities.without_cluster, oddities.swallowed_or_saved, oddities.slow_in_part,
    oddities.of_many_sizes, oddities.clocks_went_back_in_tasks, oddities.some_was_dropped,
    oddities.cut,
)  # fmt: skip


def name_of(trace: object) -> str:
    return trace.name.split(".")[0] if isinstance(trace, Path) else trace.__name__


@pytest.fixture(scope="module")
def trace_of(tmp_path_factory):
    """The file of a sample, or one of the records that a function gives or makes odd."""
    folder = tmp_path_factory.mktemp("odd")

    def trace_of(source) -> Path:
        if isinstance(source, Path):
            return source
        path = folder / f"{source.__name__}.jsonl"
        if source in ODD:
            lines = oddities.odd(source, Recording.read(FAILURES).lines)
        else:
            lines = source()
        made_of = "".join(json.dumps(line) + "\n" for line in lines).encode()
        is_whole = lines[-1]["kind"] == "trailer"
        path.write_bytes(sealed(made_of) if is_whole else made_of)
        return path

    return trace_of


def many_of_everything() -> list[dict]:
    """More of everything than any table shows."""
    header = {
        "kind": "header",
        "t": 0.0,
        "schema_version": "2.2",
        "trace_id": "M",
        "segment": 1,
    }
    lines = [header]
    for n in range(1, 521):
        t, key, worker = float(n), f"p{n % 310:03}-{n:03}", f"w{n % 310}"
        moved = {"kind": "transition", "key": key, "worker": worker, "run_id": n, "t": t}
        about = {"kind": "chunk", "t": t, "key": key, "dataset": f"D{n % 301}"}
        about |= {"filename": f"f{n}.root", "entry_start": 0, "entry_stop": 10 * n}
        computed = [{"action": "compute", "start": t, "stop": t + 0.001 * n}]
        sent = {"action": "transfer", "start": t - 0.5, "stop": t - 0.5 + 1e-4 * n}
        computed.append({**sent, "source": f"w{7 * n % 310}"})
        read = [{"branch": f"b{n % 101}", "compressed_bytes": n, "read_seconds": 1e-7 * n}]
        measured = {"run_id": n, "worker": worker, "measured": {"branches": read}}
        named = {"kind": "section", "t": t, "key": key, "run_id": n, "name": f"part {n % 101}"}
        failed = {"finish": "erred", "stimulus_id": "task-erred-1", "exception": f"E({n})"}
        ended = {"finish": "memory", "stimulus_id": "task-finished-1", "nbytes": n}
        lines += [
            {"kind": "environment", "t": t, "section": "s", "name": f"n{n}", "value": "v" * n},
            {
                "kind": "event",
                "t": t,
                "topic": f"t{n % 301}",
                "payload": {"n": n, "v": "v" * n},
            },
            {"kind": "loss", "t": t, "reason": "r", "detail": f"d{n}", "records": n % 7},
            {
                "kind": "task",
                "t": t,
                "key": key,
                "prefix": f"p{n % 310:03}",
                "group": f"g{n:03}",
            },
            about,
            {**moved, "start": "waiting", "finish": "processing", "stimulus_id": "s"},
            {**about, **measured, "start_t": t, "stop_t": t + 0.001 * n},
            {**named, "start_t": t, "stop_t": t + 1e-6 * n},
            {**moved, "t": t + 1, "start": "processing", "startstops": computed}
            # Of every dataset one chunk at least ends well.
            | (failed if 301 < n <= 461 else ended),
        ]
        if n <= 310:
            lines.append(
                {
                    "kind": "worker_added",
                    "t": t,
                    "worker": worker,
                    "name": str(n),
                    "nthreads": 2,
                }
            )
            lines += a_process_like_no_other(n, t, worker)
    return lines


def a_process_like_no_other(n: int, t: float, worker: str) -> list[dict]:
    """A worker whose machine, job, packages and configuration no other one has."""
    process = {
        "role": "worker",
        "python": "3.12.1",
        "packages": f"packages {n}",
        "configuration": f"configuration {n}",
        "defaults": "defaults",
        "machine": {"host": f"h{n:03}", "cores": 2, "kernel": f"6.{n}"},
        "jobs": [{"system": "slurm", "job_id": f"{n:03}", "queue": f"q{n}", "node": f"h{n}"}],
    }
    told = {
        "process": (f"id {n}", process),
        "packages": (f"packages {n}", [["numpy", f"2.{n}"]]),
        "configuration": (f"configuration {n}", {"distributed.scheduler.bandwidth": n}),
        "defaults": ("defaults", {"distributed.scheduler.bandwidth": 0}),
    }
    return [
        {"kind": "environment", "t": t, "section": section, "name": name, "value": value}
        | ({"worker": worker, "server_id": name} if section == "process" else {})
        for section, (name, value) in told.items()
    ]


SOURCES = (*SAMPLES, *ODD, many_of_everything)


@pytest.fixture(scope="module", params=SOURCES, ids=name_of)
def shown(request, trace_of, report, chromium) -> tuple[dict, Recording]:
    """What a page shows, and the recording that it shows.

    Without scripts: of numbers they change nothing, and drawing figures takes its time.
    """
    path = trace_of(request.param)
    page = chromium.new_context(offline=True, java_script_enabled=False).new_page()
    page.goto(report(path, name_of(request.param)).as_uri())
    shown = read(page)
    page.context.close()
    return shown, Recording.read(path)


# -- the verdict -------------------------------------------------------------------------


def failure_counts(headline: dict) -> str:
    """Say how attempts ended badly, with a place for each number."""
    kinds = {
        "erred": ("task failed for good", "tasks failed for good"),
        "retried": (
            "attempt failed and was tried again", "attempts failed and were tried again",
        ),
        "lost": (
            "attempt was lost with its worker", "attempts were lost with their workers",
        ),
        "unfinished": ("attempt was not finished", "attempts were not finished"),
        "skipped": ("chunk was skipped", "chunks were skipped"),
    }  # fmt: skip
    told = [
        f"{{{name}}} {many if headline[name] > 1 else one}"
        for name, (one, many) in kinds.items()
        if headline[name]
    ]
    if not told:
        return "{failures} failure(s)" if headline["failures"] else "Nothing failed"
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"


def what_was_done(headline: dict) -> str:
    threads = " ({peak_nthreads} thread(s))" if headline["peak_nthreads"] else ""
    on = f" on {{peak_workers}} worker(s){threads}" if headline["workers"] else ""
    if headline["chunks"]:
        rate = ": {events_per_second} events/s" if headline["events_per_second"] else ""
        events = ", {events} event(s)" if headline["events"] is not None else ""
        return f"{{chunks}} chunk(s){events}, in {{chunk_wall_seconds}}{on}{rate}."
    if headline["tasks"] == headline["task_runs"]:
        return f"{{task_runs}} task(s) in {{busy_seconds}}{on}."
    return f"{{tasks}} task(s), {{task_runs}} attempt(s), in {{busy_seconds}}{on}."


def test_the_lead(shown):
    page, recording = shown
    [headline] = run(recording)

    busy = ""
    if headline["core_efficiency"] is not None:
        busy = "The cores computed for {core_efficiency} of the time that they were there. "
    said = f"{what_was_done(headline)} {busy}{failure_counts(headline)}."
    assert differences(page["lead"], said, **headline) == []
    lasted = page["lasted"].partition(", for ")[2].partition(". Times")[0]
    assert is_printed(lasted, headline["wall_seconds"])


def test_the_tiles(shown):
    page, recording = shown
    [headline] = run(recording)
    headline["records"] = len(recording.lines)
    more = "; {workers} seen in all" * (headline["workers"] > headline["peak_workers"])
    ended = {
        "memory": "well", "erred": "failed", "retried": "retried", "lost": "lost",
        "rescheduled": "rescheduled", "cancelled": "cancelled", "unfinished": "unfinished",
    }  # fmt: skip
    told = ", ".join(f"{{{name}}} {word}" for name, word in ended.items() if headline[name])
    chunks = {
        "Chunks": ("{chunks}", "of {chunk_attempts} attempt(s)"),
        "Events": (
            "{events}",
            "in finished chunks" + "; {bytes_read} read" * (headline["bytes_read"] is not None),
        ),
        "Events per second": ("{events_per_second}", "of the whole cluster"),
    }
    is_whole = not loss(recording)
    expected = {
        "Wall time": ("{wall_seconds}", "busy for {busy_seconds}"),
        "Workers": ("{peak_workers}", f"at once, with {{peak_nthreads}} thread(s){more}"),
        "Core": ("{core_seconds}", "{core_efficiency} of them computing"),
        "Tasks": ("{tasks}", f"attempts: {told}" if told else "no attempts"),
        **(chunks if headline["chunk_attempts"] else {}),
        "Results": ("{output_bytes}", "size of all task results"),
        "Peak memory": ("{peak_memory_bytes}", "all workers together"),
        "Failures": ("{failures}", "listed below" if headline["failures"] else "none"),
        "Trace": ("whole" if is_whole else "not whole", "{records} record(s)"),
    }
    if not headline["peak_nthreads"]:
        expected["Workers"] = ("{peak_workers}", f"at once{more}")
        expected["Core"] = ("–", "threads are not known")

    found = {}
    for label, value, hint in page["tiles"]:
        name, _, unit = label.partition("-")
        if unit and value != "–":
            value = f"{value} core-{unit}"  # noqa: PLW2901 - the unit stands in the label
        found[name] = (value, hint)
    assert list(found) == list(expected)
    assert [
        wrong
        for label, texts in expected.items()
        for text, said in zip(found[label], texts, strict=True)
        for wrong in differences(text, said, **headline)
    ] == []


def spent(recording: Recording) -> dict[str, float]:
    """Sum up the seconds of all attempts by what they were spent on."""
    runs = task_runs(recording)
    tried = runs or chunk_attempts(recording)
    computing = {
        well: total(
            row["compute_seconds"] for row in tried if (row["outcome"] == "memory") == well
        )
        or 0.0
        for well in (True, False)
    }
    beside = {
        name: total(column(runs, f"{field}_seconds")) or 0.0
        for name, field in (
            ("transfer", "transfer"), ("deserialising", "deserialize"), ("disk", "disk"),
        )
    }  # fmt: skip
    [headline] = run(recording)
    idle = max((headline["core_seconds"] or 0.0) - sum(computing.values()), 0.0)
    parts = {
        "computing, result kept": computing[True],
        "computing, result not kept": computing[False],
        "idle, waiting and other": idle,
        **{f"beside computing: {name}": seconds for name, seconds in beside.items()},
    }
    return {name: seconds for name, seconds in parts.items() if seconds > 0}


def test_the_bar_of_the_time_spent(shown):
    page, recording = shown
    parts = spent(recording)
    inside = {n: seconds for n, seconds in parts.items() if not n.startswith("beside")}
    whole = sum(inside.values())

    assert [part["name"] for part in page["spent"]] == list(parts)
    for part in page["spent"]:
        seconds = parts[part["name"]]
        assert is_same(part["raw"], seconds)
        assert is_printed(part["seconds"], seconds)
        if part["name"] in inside:
            assert is_printed(part["percent"], seconds / whole)
        else:
            assert part["percent"] == ""
    assert [width for width, _ in page["bar"]] == pytest.approx(
        [seconds / whole for seconds in inside.values()], abs=1e-5
    )
    percents = {part["name"]: part["percent"] for part in page["spent"]}
    assert [title for _, title in page["bar"]] == [f"{n}: {percents[n]}" for n in inside]
    assert page["spoken"] == ", ".join(f"{name} {percents[name]}" for name in inside)


def test_the_sentence_below_the_bar(shown):
    page, recording = shown
    parts = spent(recording)
    [headline] = run(recording)
    if headline["core_seconds"] is None:
        assert page["caption"].startswith("No worker was seen to come")
        return
    said = "The cluster offered {core_seconds}; {kept} of them computed results that were kept."
    if "computing, result not kept" in parts:
        said += " {wasted} of computing went into attempts whose result was not kept."
    if "beside computing: transfer" in parts:
        said += (
            " Transfers need no core and run beside computing: they are a part of the idle "
            "time only where a thread had to wait for them."
        )

    assert (
        differences(
            page["caption"],
            said,
            core_seconds=headline["core_seconds"],
            kept=parts.get("computing, result kept", 0.0) / headline["core_seconds"],
            wasted=parts.get("computing, result not kept"),
        )
        == []
    )


def test_whether_the_trace_is_whole(shown):
    page, recording = shown
    [headline] = run(recording)
    lost = TABLES["loss"].rows(recording)
    said = (
        "The trace is whole: all {records} record(s) were read and nothing is known to be "
        "missing."
    )
    if lost:
        reasons = "; ".join(dict.fromkeys(row["reason"] for row in lost[:3]))
        said = f"The trace is not whole: {reasons}{'; and more' * (len(lost) > 3)}."
        said += " At least {lost_records} record(s) missing." * (headline["lost_records"] > 0)
        said += " What is lost"

    numbers = headline | {"records": len(recording.lines)}
    assert differences(page["wholeness"], said, **numbers) == []


# -- the tables --------------------------------------------------------------------------


def test_the_tables_are_those_that_have_rows(shown):
    page, recording = shown

    assert {table["name"] for table in page["tables"]} == {
        name for name, expected in TABLES.items() if expected.shown(recording)
    }


def test_every_cell(shown):
    page, recording = shown
    [headline] = run(recording)

    wrong = [
        f"{table['name']}: {told}"
        for table in page["tables"]
        for told in _table(table, TABLES[table["name"]], recording, headline["start_t"])
    ]

    assert wrong[:20] == []


def _table(table: dict, expected: Expected, recording: Recording, start_t: float) -> list[str]:
    """Say what is wrong with a table: its columns, its rows, or a cell."""
    rows = expected.shown(recording)
    names = [name for name, _ in table["columns"]]
    if names != expected.columns_of(rows):
        return [f"columns are {names}, not {expected.columns_of(rows)}"]
    if wrong := [pair for pair in table["columns"] if pair[1] not in units_of(pair[0])]:
        return [f"units of columns are {wrong}"]
    if (len(table["rows"]), table["count"]) != (len(rows), f"{len(rows):,}"):
        return [f"{len(table['rows'])} rows, said to be {table['count']}, not {len(rows)}"]
    return [
        f"row {n}: {name} is {cell['text']!r} ({cell['raw']}) {unit}, not {row[name]!r}"
        for n, (cells, row) in enumerate(zip(table["rows"], rows, strict=True))
        for cell, (name, unit) in zip(cells, table["columns"], strict=True)
        if not _is_right(cell, row, name, unit, start_t)
    ]


def _is_right(cell: dict, row: dict, name: str, unit: str, start_t: float) -> bool:
    value = row[name]
    more = traceback(row) if name == "exception" else ""
    if cell["more"] != more:
        return False
    if value is None:
        return (cell["text"], cell["raw"]) == ("", None)
    if isinstance(value, str):
        return cell["raw"] is None and _is_told(cell["text"], value)
    since = start_t if name == "t" or name.endswith("_t") else 0.0
    printed = amount(cell["text"], unit)
    if isinstance(value, Between):
        raw = float(cell["raw"])
        return value.least <= raw <= value.most and printed.fits(raw)
    return is_same(float(cell["raw"]), value) and printed.fits(value - since)


def _is_told(text: str, value: str) -> bool:
    """Compare texts, of which long ones lack their middle."""
    if len(value) <= 240:
        return text == value.strip()
    head, _, tail = text.partition("…")
    return len(text) == 240 and len(head) > 100 and value.startswith(head) and (
        value.endswith(tail)
    )  # fmt: skip


def test_what_is_left_out_is_said(shown):
    page, recording = shown

    for table in page["tables"]:
        expected = TABLES[table["name"]]
        in_all = len(expected.rows(recording))
        if in_all > expected.limit:
            assert table["note"].startswith(f"{expected.limit:,} of {in_all:,} rows: ")
        else:
            assert table["note"] == ""


def test_many_of_everything_is_more_than_any_table_shows(trace_of):
    recording = Recording.read(trace_of(many_of_everything))

    shorter = {n for n, e in TABLES.items() if len(e.rows(recording)) <= e.limit}
    # Roles are five at most, functions are those of samples, and it takes many attempts of a
    # prefix to tell that one is a straggler.
    assert shorter == {"roles", "functions", "stragglers"}


# -- what can be taken away --------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_downloads_hold_the_raw_numbers(open_page, report, sample):
    page = open_page(report(sample, name_of(sample)), accept_downloads=True)
    tables = read(page)["tables"]

    for number, table in enumerate(tables):
        if number % 8 == 7:
            # Chromium gives a page ten downloads in a row.
            page.reload()
        header, *rows = downloaded(page, f"#table-{table['name']}")
        assert header == [name for name, _ in table["columns"]]
        assert rows == [[cell["raw"] or cell["text"] for cell in row] for row in table["rows"]]
    header, *rows = downloaded(page, "#spent")
    assert header == ["part", "seconds"]
    assert {part: float(seconds) for part, seconds in rows} == pytest.approx(
        spent(Recording.read(sample)), rel=1e-9
    )


def downloaded(page, block: str) -> list[list[str]]:
    with page.expect_download() as download:
        page.locator(f"{block} [data-do=csv]").click()
    return list(csv.reader(io.StringIO(Path(download.value.path()).read_text(), newline="")))
