"""Every tile and table cell of a page, compared with the views.

Printed numbers must be correct to the last printed digit, and the raw numbers for sorting and
downloads to a part in 10⁹.
"""

import csv
import io
import json
from collections import Counter
from pathlib import Path

import pytest

from browser.pages import unfold
from nightly import odd_traces
from nightly.core_time import core_time
from nightly.loss import loss
from nightly.page_reading import amount, is_printed, is_same, read, units_of
from nightly.page_tables import TABLES, Between, Expected, rows_of, traceback
from nightly.recording import Recording
from nightly.test_views import all_differences
from roast_analyze import Trace
from roast_analyze.report.core_time_uses import USES
from sealing import sealed

pytestmark = pytest.mark.browser

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.jsonl.zst"))
[FAILURES] = [path for path in SAMPLES if path.name.startswith("coffea_failures.")]

#: Unusual recordings derived from a sample.
ODD = (
    odd_traces.without_cluster, odd_traces.skipped_or_from_checkpoint,
    odd_traces.slow_file_and_worker, odd_traces.chunks_of_many_sizes,
    odd_traces.worker_clocks_set_back, odd_traces.records_dropped, odd_traces.recording_killed,
)  # fmt: skip


def name_of(trace: object) -> str:
    return trace.name.split(".")[0] if isinstance(trace, Path) else trace.__name__


@pytest.fixture(scope="module")
def trace_of(tmp_path_factory):
    """Return the path of a sample, or of a trace with the records of a function."""
    folder = tmp_path_factory.mktemp("odd")

    def trace_of(source) -> Path:
        if isinstance(source, Path):
            return source
        path = folder / f"{source.__name__}.jsonl"
        if source in ODD:
            lines = odd_traces.make_odd(source, Recording.read(FAILURES).lines)
        else:
            lines = source()
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        is_whole = lines[-1]["kind"] == "trailer"
        path.write_bytes(sealed(content) if is_whole else content)
        return path

    return trace_of


def record(kind: str, t: float, **fields) -> dict:
    return {"kind": kind, "t": t, **fields}


def many_of_everything() -> list[dict]:
    """Return a run with more rows than any table shows."""
    lines = [record("header", 0.0, schema_version="2.2", trace_id="M", segment=1)]
    for n in range(1, 521):
        t, key, worker, prefix = (
            float(n),
            f"p{n % 310:03}-{n:03}",
            f"w{n % 310}",
            f"p{n % 310:03}",
        )
        run = {"key": key, "run_id": n}
        moved = {**run, "worker": worker}
        about = {"key": key, "dataset": f"D{n % 301}", "filename": f"f{n}.root"}
        about |= {"entry_start": 0, "entry_stop": 10 * n}
        sent = {"action": "transfer", "start": t - 0.5, "stop": t - 0.5 + 1e-4 * n}
        phases = [{"action": "compute", "start": t, "stop": t + 0.001 * n},
                  {**sent, "source": f"w{7 * n % 310}"}]  # fmt: skip
        read = [{"branch": f"b{n % 101}", "compressed_bytes": n, "read_seconds": 1e-7 * n}]
        # At least one chunk of each dataset succeeds.
        end = {"finish": "memory", "stimulus_id": "task-finished-1", "nbytes": n}
        if 301 < n <= 461:
            end = {"finish": "erred", "stimulus_id": "task-erred-1", "exception": f"E({n})"}
        metric = {"context": "execute", "activity": f"a{n % 101}", "unit": "seconds"}
        lines += [
            record("environment", t, section="s", name=f"n{n}", value="v" * n),
            record("event", t, topic=f"t{n % 301}", payload={"n": n, "v": "v" * n}),
            record("loss", t, reason="r", detail=f"d{n}", records=n % 7),
            record("task", t, key=key, prefix=prefix, group=f"g{n:03}", span_id=f"s{n}"),
            record("span", t, span_id=f"s{n}", span_name=["all", f"n{n}"]),
            record("fine_metric", t, worker=worker, prefix=prefix, span_id=f"s{n}", **metric,
                   delta=1e-4 * n),
            record("chunk", t, **about),
            record("transition", t, **moved, start="waiting", finish="processing",
                   stimulus_id="s"),
            record("chunk", t, **about | moved, measured={"branches": read}, start_t=t,
                   stop_t=t + 0.001 * n),
            record("section", t, **run, name=f"part {n % 101}", start_t=t, stop_t=t + 1e-6 * n),
            record("transition", t + 1, **moved, start="processing", startstops=phases, **end),
        ]  # fmt: skip
        if n <= 310:
            lines.append(record("worker_added", t, worker=worker, name=str(n), nthreads=2))
            lines += unique_process(n, t, worker)
    return lines


def unique_process(n: int, t: float, worker: str) -> list[dict]:
    """Return the records of a worker with unique machine, job, packages and configuration."""
    process = {
        "role": "worker",
        "python": "3.12.1",
        "packages": f"packages {n}",
        "configuration": f"configuration {n}",
        "defaults": "defaults",
        "machine": {"host": f"h{n:03}", "cores": 2, "kernel": f"6.{n}"},
        "jobs": [{"system": "slurm", "job_id": f"{n:03}", "queue": f"q{n}", "node": f"h{n}"}],
    }
    option = "distributed.scheduler.bandwidth"
    sheets = {
        "packages": (f"packages {n}", [["numpy", f"2.{n}"]]),
        "configuration": (f"configuration {n}", {option: n}),
        "defaults": ("defaults", {option: 0}),
    }
    return [
        record("environment", t, section="process", name=f"id {n}", value=process,
               worker=worker, server_id=f"id {n}"),
        *(record("environment", t, section=section, name=name, value=value)
          for section, (name, value) in sheets.items()),
    ]  # fmt: skip


SOURCES = (*SAMPLES, *ODD, many_of_everything)


@pytest.fixture(scope="module", params=SOURCES, ids=name_of)
def shown(request, trace_of, report, chromium) -> tuple[dict, Recording]:
    """Return the contents of a page, and the recording.

    Scripts are disabled: they change no numbers, and drawing figures takes time.
    """
    path = trace_of(request.param)
    page = chromium.new_context(offline=True, java_script_enabled=False).new_page()
    page.goto(report(path, name_of(request.param)).as_uri())
    shown = read(page)
    page.context.close()
    return shown, Recording.read(path)


def test_the_tiles(shown):
    page, recording = shown
    [expected] = rows_of("run", recording)
    units = {"core-seconds": 1, "core-minutes": 60, "core-hours": 3600}

    tiles = {}
    for label, value, _ in page["tiles"]:
        unit = label.lower().removesuffix("s") + "s"
        tiles["Core time" if unit in units else label] = (
            f"{value} {unit}" if unit in units and value != "–" else value
        )
    numbers = {
        "Wall time": "wall_seconds", "Workers": "peak_workers", "Core time": "core_seconds",
        "Failures": "failures",
    }  # fmt: skip
    if expected["task_runs"] or not expected["chunk_attempts"]:
        numbers |= {"Tasks": "tasks", "Results": "output_bytes",
                    "Peak memory": "peak_memory_bytes"}  # fmt: skip
    if expected["chunk_attempts"]:
        numbers |= {"Chunks": "chunks", "Events": "events",
                    "Events per second": "events_per_second"}  # fmt: skip
    assert set(tiles) == {*numbers, "Trace"}
    assert [
        (label, tiles[label], expected[name])
        for label, name in numbers.items()
        if not is_printed(tiles[label], expected[name])
    ] == []
    assert tiles["Trace"] == ("incomplete" if loss(recording) else "complete")


def test_the_use_of_the_core_time(shown):
    page, recording = shown
    seconds = Counter()
    for row in core_time(recording):
        seconds[USES[row["use"]].words] += row["seconds"]

    assert {part["name"]: part["raw"] for part in page["spent"]} == pytest.approx(
        seconds, rel=1e-9
    )
    parts = [part["raw"] for part in page["spent"]]
    for part in page["spent"]:
        assert is_printed(part["seconds"], part["raw"])
        assert is_printed(part["percent"], part["raw"] / sum(parts))
    assert [width for width, _ in page["bar"]] == pytest.approx(
        [seconds / sum(parts) for seconds in parts], abs=1e-5
    )


def test_the_tables_are_those_that_have_rows(shown):
    page, recording = shown

    assert {table["name"] for table in page["tables"]} == {
        name for name, expected in TABLES.items() if expected.shown(recording)
    }


def test_every_cell(shown):
    page, recording = shown
    [headline] = rows_of("run", recording)

    wrong = [
        f"{table['name']}: {difference}"
        for table in page["tables"]
        for difference in _table(table, TABLES[table["name"]], recording, headline["start_t"])
    ]

    assert wrong[:20] == []


def _table(table: dict, expected: Expected, recording: Recording, start_t: float) -> list[str]:
    """Return the errors of a table: in its columns, its number of rows, or its cells."""
    rows = expected.shown(recording)
    names = [name for name, _ in table["columns"]]
    if names != expected.columns_of(rows):
        return [f"columns are {names}, not {expected.columns_of(rows)}"]
    if wrong := [pair for pair in table["columns"] if pair[1] not in units_of(pair[0])]:
        return [f"units of columns are {wrong}"]
    if (len(table["rows"]), table["count"]) != (len(rows), f"{len(rows):,}"):
        return [f"{len(table['rows'])} rows, counted as {table['count']}, not {len(rows)}"]
    if rows and "name" not in rows[0]:
        names = _worker_names(recording)
        rows = [{**row, "worker": names.get(row.get("worker"))} for row in rows]
    return [
        f"row {n}: {name} is {cell['text']!r} ({cell['raw']}) {unit}, not {row[name]!r}"
        for n, (cells, row) in enumerate(zip(table["rows"], rows, strict=True))
        for cell, (name, unit) in zip(cells, table["columns"], strict=True)
        if not _is_right(cell, row, name, unit, start_t)
    ]


def _worker_names(recording: Recording) -> dict[str | None, str | None]:
    """Return what a table without the names of workers shows for their addresses."""
    names = {}
    for row in rows_of("workers", recording):
        address, name = row["worker"], row["name"]
        short = address.rpartition("://")[2] if name in (None, address) else name
        names[address] = f"worker {short}" if short.isdecimal() else short
    return names


def _is_right(cell: dict, row: dict, name: str, unit: str, start_t: float) -> bool:
    value = row[name]
    more = traceback(row) if name == "cause" else ""
    if cell["more"] != more:
        return False
    if value is None:
        return (cell["text"], cell["raw"]) == ("", None)
    if isinstance(value, str):
        return cell["raw"] is None and _is_text(cell["text"], value)
    since = start_t if name == "t" or name.endswith("_t") else 0.0
    printed = amount(cell["text"], unit)
    if isinstance(value, Between):
        raw = float(cell["raw"])
        return value.least <= raw <= value.most and printed.fits(raw)
    return is_same(float(cell["raw"]), value) and printed.fits(value - since)


def _is_text(text: str, value: str) -> bool:
    """Compare texts; the page omits the middle of long ones."""
    if len(value) <= 240:
        return text == value.strip()
    head, _, tail = text.partition("…")
    return len(text) == 240 and len(head) > 100 and value.startswith(head) and (
        value.endswith(tail)
    )  # fmt: skip


def test_notes_count_the_rows_that_are_left_out(shown):
    page, recording = shown

    for table in page["tables"]:
        expected = TABLES[table["name"]]
        in_all = len(expected.rows(recording))
        if in_all > expected.limit:
            assert table["note"].startswith(f"{expected.limit:,} of {in_all:,} rows: ")
        else:
            assert table["note"] == ""


def test_views_of_many_of_everything(trace_of):
    path = trace_of(many_of_everything)

    with Trace(path) as opened:
        assert all_differences(opened, Recording.read(path)) == {}


def test_many_of_everything_is_more_than_any_table_shows(trace_of):
    recording = Recording.read(trace_of(many_of_everything))

    shorter = {n for n, e in TABLES.items() if len(e.rows(recording)) <= e.limit}
    # At most five roles exist; there are no profiles, and too few attempts for stragglers.
    assert shorter == {"roles", "functions", "lines", "own-code", "stragglers"}


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_downloads_hold_the_raw_numbers(open_page, report, sample):
    page = open_page(report(sample, name_of(sample)))
    tables = read(page)["tables"]

    for number, table in enumerate(tables):
        if number % 8 == 7:
            # Chromium blocks a page after ten downloads in a row.
            page.reload()
            page.locator("html[data-state=drawn]").wait_for(state="attached")
            unfold(page)
        header, *rows = downloaded(page, f"#table-{table['name']}")
        assert header == [name for name, _ in table["columns"]]
        assert rows == [[cell["raw"] or cell["text"] for cell in row] for row in table["rows"]]


def downloaded(page, block: str) -> list[list[str]]:
    with page.expect_download() as download:
        page.locator(f"{block} [data-do=csv]").click()
    return list(csv.reader(io.StringIO(Path(download.value.path()).read_text(), newline="")))
