"""Reading of damaged traces: ``make campaign-damage``.

A small run is recorded, uncompressed and compressed. Each file is cut at every byte, and
corrupted at random: bits are flipped, bytes overwritten, removed, inserted or repeated. The
analysis of the damaged file must satisfy:

* cut: the file opens and contains exactly the complete lines before the cut, as decoded in
  plain Python, and ``loss`` has exactly the expected reasons;
* corrupted: the file opens or is refused with an error of one line, within a time limit, and
  if a view differs from that of the intact file, ``loss`` is not empty.

The table is written to standard output. The exit code is 1 if a case failed; the files of
failed cases are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard
from distributed import Client, LocalCluster
from tqdm import tqdm

import roast_recorder
from roast_analyze import Trace
from roast_analyze.errors import NotATrace, SchemaTooNew
from roast_schemas.describe import kinds

#: Views that must not change without a loss.
TOTALS = (
    "run", "task_runs", "tasks", "transitions", "workers", "worker_samples", "events",
    "span_totals", "environment", "trace_info",
)  # fmt: skip

#: Errors of a file that cannot be opened. Any other error is a failure.
REFUSALS = (NotATrace, SchemaTooNew)

#: Limit of a case, which normally takes 0.2 s.
TIMEOUT_SECONDS = 30.0

#: Cases that a process runs at a time.
CASES_AT_ONCE = 100

#: Records of a trace by kind, and the reasons of its losses.
Contents = tuple[Counter[str], set[str]]


@dataclass
class Findings:
    """Results of some cases."""

    cases: int = 0
    opened: int = 0
    refused: int = 0
    with_loss: int = 0
    slowest_seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        """Add the results of other cases."""
        slowest = max(self.slowest_seconds, other.slowest_seconds)
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        self.slowest_seconds = slowest


def record_small_run(folder: Path) -> dict[str, bytes]:
    """Record six tasks on two workers; return the content of both files by suffix."""
    paths = {ending: folder / f"small{ending}" for ending in (".jsonl", ".jsonl.zst")}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        roast_recorder.record(client, paths[".jsonl"]),
        roast_recorder.record(client, paths[".jsonl.zst"]),
    ):
        client.gather(client.map(str, range(6)))
    return {ending: path.read_bytes() for ending, path in paths.items()}


# -- cuts --------------------------------------------------------------------------------


def expected_of_cut(content: bytes, ending: str) -> Contents | None:
    """Return what a cut file contains, decoded in plain Python; None if it is empty."""
    if not content:
        return None
    text, ends_in_frame = content, False
    if ending.endswith(".zst"):
        text, rest = b"", content
        while rest:
            frame = zstandard.ZstdDecompressor().decompressobj()
            text += frame.decompress(rest)
            ends_in_frame, rest = not frame.eof, frame.unused_data
    *lines, last = text.split(b"\n")
    counts = Counter(json.loads(line)["kind"] for line in lines)
    reasons = set()
    if last:
        try:
            counts[json.loads(last)["kind"]] += 1
        except ValueError:
            reasons.add("last line unreadable")
    if not counts["header"]:
        reasons.add("no header")
    if not counts["trailer"]:
        reasons.add("no trailer")
    if ends_in_frame:
        reasons.add("damaged compression")
    return counts, reasons


def check_cut(path: Path, place: int, ending: str, whole: bytes) -> tuple[bool, bool, str]:
    """Open the cut file; return whether it opened, whether it has losses, and the failure."""
    content = whole[:place]
    path.write_bytes(content)
    expected = expected_of_cut(content, ending)
    try:
        with Trace(path) as trace:
            found_records = counts_and_reasons(trace)
    except REFUSALS as error:
        if expected is None and "\n" not in str(error):
            return False, False, ""
        return False, False, f"cut at {place}: {error}, expected {expected}"
    if expected is None or found_records != expected:
        return (
            True,
            bool(found_records[1]),
            f"cut at {place}: {found_records} instead of {expected}",
        )
    return True, bool(found_records[1]), ""


def counts_and_reasons(trace: Trace) -> Contents:
    """Return the number of records by kind, and the reasons of losses."""
    counts = " UNION ALL ".join(
        f"SELECT '{kind}', count(*) FROM raw.\"{kind}\"" for kind in kinds()
    )
    reasons = trace.rows("SELECT reason FROM loss")
    return +Counter(dict(trace.rows(counts))), {reason for (reason,) in reasons}


# -- corruptions -------------------------------------------------------------------------


def corrupted(whole: bytes, seed: int) -> bytes:
    """Damage a file in one to five places."""
    rng = random.Random(seed)
    content = bytearray(whole)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        place = rng.randrange(len(content))
        size = rng.choice((1, 1, 4, 40, 400))
        end = place + size
        match rng.randrange(7):
            case 0:
                content[place] ^= 1 << rng.randrange(8)
            case 1:  # still valid JSON
                digits = [
                    i
                    for i in range(place, min(end, len(content)))
                    if content[i] in b"0123456789"
                ]
                for digit in digits[:1]:
                    content[digit] = rng.choice(b"0123456789")
            case 2:
                content[place:end] = bytes(len(content[place:end]))
            case 3:
                del content[place:end]
            case 4:
                content[place:place] = rng.randbytes(size)
            case 5:
                content[place:end] = rng.randbytes(len(content[place:end]))
            case 6:
                content[place:place] = content[max(0, place - size) : place]
        if not content:
            break
    return bytes(content)


def check_corruption(
    path: Path, seed: int, whole: bytes, totals: dict[str, Any]
) -> tuple[bool, bool, str]:
    """Open the corrupted file; return the same as :func:`check_cut`."""
    path.write_bytes(corrupted(whole, seed))
    try:
        with Trace(path) as trace:
            reasons = trace.rows("SELECT reason FROM loss")
            changed = [name for name, rows in totals_of(trace).items() if rows != totals[name]]
    except REFUSALS as error:
        wrong = f"corruption {seed}: {error!r} has several lines" if "\n" in str(error) else ""
        return False, False, wrong
    if changed and not reasons:
        return True, False, f"corruption {seed}: {changed} differ, and loss is empty"
    return True, bool(reasons), ""


def totals_of(trace: Trace) -> dict[str, Any]:
    """Return the rows of some views, without the path of the file."""
    return {
        name: sorted(map(repr, trace.rows(f"FROM {name}")))
        if name != "trace_info"
        else trace.rows("SELECT * EXCLUDE (path) FROM trace_info")
        for name in TOTALS
    }


# -- campaign ----------------------------------------------------------------------------


def check(
    what: str, ending: str, whole: bytes, cases: list[int], totals: dict[str, Any], kept: Path
) -> Findings:
    """Check some cases in this process."""
    found = Findings(cases=len(cases))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"damaged{ending}"
        for case in cases:
            begin = time.perf_counter()
            try:
                if what == "cut":
                    opened, lossy, wrong = check_cut(path, case, ending, whole)
                else:
                    opened, lossy, wrong = check_corruption(path, case, whole, totals)
            except Exception as error:  # noqa: BLE001 - any exception counts
                opened, lossy, wrong = False, False, f"{what} {case}: {error!r}"
            seconds = time.perf_counter() - begin
            if seconds > TIMEOUT_SECONDS:
                wrong = wrong or f"{what} {case}: {seconds:.0f} s"
            if wrong:
                found.wrong.append(wrong)
                (kept / f"{what}-{case}{ending}").write_bytes(path.read_bytes())
            found.opened += opened
            found.refused += not opened
            found.with_loss += lossy
            found.slowest_seconds = max(found.slowest_seconds, seconds)
    return found


def plan(
    contents: dict[str, bytes], every: int, corruptions: int
) -> Iterator[tuple[str, str, list[int]]]:
    """Yield the kind of damage, the file's suffix and the cases."""
    for ending, whole in contents.items():
        yield "cut", ending, [*range(0, len(whole), every), len(whole)]
        yield "corrupted", ending, list(range(corruptions // len(contents)))


def run_all(
    contents: dict[str, bytes], every: int, corruptions: int, kept: Path
) -> dict[str, Findings]:
    """Run all cases on all cores; return the results by damage and file."""
    totals = {}
    for ending, whole in contents.items():
        path = kept / f"whole{ending}"
        path.write_bytes(whole)
        with Trace(path) as trace:
            totals[ending] = totals_of(trace)
            assert trace.sql("FROM loss").fetchall() == []
    found = {}
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        running = {}
        for what, ending, cases in plan(contents, every, corruptions):
            found[f"{what} {ending}"] = Findings()
            for begin in range(0, len(cases), CASES_AT_ONCE):
                some = cases[begin : begin + CASES_AT_ONCE]
                future = processes.submit(
                    check, what, ending, contents[ending], some, totals[ending], kept
                )
                running[future] = f"{what} {ending}"
        with tqdm(
            total=sum(len(cases) for _, _, cases in plan(contents, every, corruptions))
        ) as bar:
            for future in as_completed(running):
                done = future.result()
                found[running[future]].add(done)
                bar.update(done.cases)
                for wrong in done.wrong:
                    bar.write(wrong, file=sys.stderr)
    return found


def main() -> int:
    """Run the campaign and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="cut the files at every Nth byte"
    )
    parser.add_argument(
        "--corruptions",
        type=int,
        default=10_000,
        metavar="N",
        help="number of corrupted files, half of them compressed",
    )
    options = parser.parse_args()
    kept = Path(tempfile.mkdtemp(prefix="roast-damage-"))
    contents = record_small_run(kept)
    found = run_all(contents, options.every, options.corruptions, kept)
    print(
        "| damage and file | size (bytes) | cases | opened | refused | with losses "
        "| slowest (s) | failed |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, some in found.items():
        nbytes = len(contents[name.split()[1]])
        print(
            f"| {name} | {nbytes:,} | {some.cases:,} | {some.opened:,} | {some.refused:,} | "
            f"{some.with_loss:,} | {some.slowest_seconds:.1f} | {len(some.wrong)} |"
        )
    wrong = sum(len(some.wrong) for some in found.values())
    if wrong:
        print(f"{wrong} cases failed; their files are in {kept}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
