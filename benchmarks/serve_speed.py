"""Measure ``roast-analyze serve`` with many runs: ``make benchmark-serve``.

The folder has copies of the sample traces with identities of their own, and one run that is
being recorded: a process appends its records. Measured are

- the time from the start of the server until the list is complete, and until all runs are read,
- the answer with the whole list, and with what changed in a second,
- in Chromium: the time until the list is drawn, and from an input into the search or a click
  on a heading until the list is painted,
- a report: from the request until its page is there, first, and when it is kept,
- the answer with the list while a report is written,
- CPU time of the server process with one live run, when all is read.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import zstandard

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from chromium import launched
from served import Server

ROOT = Path(__file__).parents[1]

TASKS_PER_SECOND = 100

#: Waits until the list has its number of rows and is painted; returns the time since the start.
PAINTED = """(rows) => new Promise((done) => {
  const wait = () => (document.querySelectorAll("tbody tr").length === rows
    ? requestAnimationFrame(() => setTimeout(() => done(performance.now())))
    : requestAnimationFrame(wait));
  wait();
})"""

#: Does something in the page; returns the time until the next frame is painted.
TIMED = """(text) => new Promise((done) => {
  const begin = performance.now();
  const search = document.getElementById("search");
  if (text === null) document.querySelector("th[data-column=wall] button").click();
  else { search.value = text; search.dispatchEvent(new Event("input", { bubbles: true })); }
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin)));
})"""


def write_runs(folder: Path, number: int) -> None:
    """Write copies of the sample traces."""
    samples = sorted((ROOT / "sample_traces").rglob("*.jsonl.zst"))
    contents = [
        zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True)
        for path in samples
    ]
    lines = [content.read() for content in contents]
    for place, (path, text) in zip(
        range(number), itertools.cycle(zip(samples, lines, strict=True)), strict=False
    ):
        header, _, rest = text.partition(b"\n")
        record = json.loads(header) | {"trace_id": f"copy{place:04}"}
        data = json.dumps(record, separators=(",", ":")).encode() + b"\n" + rest
        target = folder / f"{place:04}-{path.name}"
        target.write_bytes(zstandard.compress(data))
        os.utime(target, (time.time() - 3600 - place,) * 2)


def append_live(path: Path, ended: threading.Event) -> None:
    """Append the records of tasks until it is ended."""
    with path.open("a") as file:

        def write(**record) -> None:
            file.write(json.dumps(record) + "\n")

        begin = time.time()
        write(kind="header", t=begin, schema_version="2.8", trace_id="live", segment=1)
        for number in itertools.count():
            key, now = f"fit-{number}", time.time()
            write(kind="task", t=now, key=key, prefix="fit")
            states = ["released", "waiting", "processing", "memory", "released", "forgotten"]
            for start, finish in itertools.pairwise(states):
                write(kind="transition", t=now, key=key, start=start, finish=finish, worker="w")
            file.flush()
            if ended.wait(1 / TASKS_PER_SECOND):
                return


def milliseconds(function, times: int = 10) -> str:
    """Return median and maximum of the time of some calls."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        function()
        found.append(1000 * (time.perf_counter() - begin))
    return f"{statistics.median(found):.0f} ms (at most {max(found):.0f})"


def measure_page(server: Server, runs: int) -> None:
    """Measure the list in Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launched(playwright)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        openings = []
        for _ in range(5):
            page.goto(server.address)
            openings.append(page.evaluate(PAINTED, min(runs, 500)))
        print(f"list drawn in Chromium         {statistics.median(openings):.0f} ms")
        times = {
            name: [page.evaluate(TIMED, text) for _ in range(5) for text in texts]
            for name, texts in {"search": ("coffea_failures", ""), "sort": (None,)}.items()
        }
        for name, found in times.items():
            median, most = statistics.median(found), max(found)
            print(f"{name} in Chromium             {median:.0f} ms (at most {most:.0f})")
        browser.close()


def started(folder: Path, runs: int, cache: Path, name: str) -> Server:
    """Start a server, and wait until all runs were read."""
    begin = time.perf_counter()
    server = Server(folder, env={**os.environ, "ROAST_CACHE_DIR": str(cache)})
    server.wait_for(lambda rows: len(rows) == runs)
    print(f"{name}: list complete         {time.perf_counter() - begin:.1f} s", flush=True)
    while any("read" in row["state"] for row in server.rows().values()):
        time.sleep(1)
    print(f"{name}: all runs read         {time.perf_counter() - begin:.1f} s", flush=True)
    return server


def measure(server: Server, runs: int) -> None:
    """Measure a server that has read all runs."""
    whole = milliseconds(lambda: server.ask("/runs.json?since=0"))
    size = len(server.ask("/runs.json?since=0")[2]) / 1000
    print(f"answer with the list           {whole}, {size:.0f} kB")
    version = server.json("/runs.json")["version"]
    changes = milliseconds(lambda: server.ask(f"/runs.json?since={version}"))
    print(f"answer with changes            {changes}")
    measure_page(server, runs)

    process = psutil.Process(server.process.pid)
    before, begin = process.cpu_times(), time.perf_counter()
    time.sleep(20)
    after = process.cpu_times()
    used = after.user + after.system - before.user - before.system
    share = 100 * used / (time.perf_counter() - begin)
    print(f"server with a live run         {share:.1f} % of a core")

    pages = [row["page"] for place, row in sorted(server.rows().items()) if "coffea" in place]
    for page, name in zip(pages, ("first", "next ", "next "), strict=False):
        begin = time.perf_counter()
        server.report(page)
        print(f"report, {name}                  {time.perf_counter() - begin:.2f} s")
    kept = milliseconds(lambda: server.ask(f"/{pages[0]}"))
    print(f"report, kept                   {kept}")
    server.ask(f"/{pages[3]}")
    meanwhile = milliseconds(lambda: server.ask("/runs.json?since=0"))
    print(f"list while a report is written {meanwhile}")


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, metavar="N")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name) / "runs", Path(name) / "cache"
        folder.mkdir()
        write_runs(folder, runs - 1)
        ended = threading.Event()
        live = threading.Thread(target=append_live, args=(folder / "live.jsonl", ended))
        live.start()
        try:
            started(folder, runs, cache, "first start ").end()
            server = started(folder, runs, cache, "second start")
            measure(server, runs)
            print("exit code {}{}".format(*server.end()))
        finally:
            ended.set()
            live.join()


if __name__ == "__main__":
    main()
