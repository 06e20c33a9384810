"""Compare the size of task results with the bytes that the tasks read: ``make experiment``.

Dask's ``TaskState`` contains the size of a result (``nbytes``), but not the bytes read for
it. Processors that read 1, 2, 3, 5 and 10 branches process the same files, and both sizes
are queried from the trace. The script writes a table, a figure and the conclusions to
``branches.md`` and ``branches.png`` beside it. ``--files`` selects other ROOT files with
NanoAOD branches, ``--name`` another name.
"""

import argparse
import contextlib
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import awkward as ak
import matplotlib as mpl
import polars as pl
from coffea.nanoevents import NanoAODSchema
from coffea.processor import DaskExecutor, ProcessorABC, Runner
from distributed import Client, LocalCluster

from roast_analyze import Trace
from roast_recorder import record
from roast_recorder.demo import files as demo_files

HERE = Path(__file__).resolve().parent

#: Numbers of branches read, and the branches in order.
COUNTS = (1, 2, 3, 5, 10)
COLUMNS = (
    ("Jet", "pt"),
    ("Jet", "eta"),
    ("Jet", "phi"),
    ("Jet", "mass"),
    ("Electron", "pt"),
    ("Electron", "eta"),
    ("Muon", "pt"),
    ("Muon", "eta"),
    ("MET", "pt"),
    ("MET", "phi"),
)

GENERATED = (
    demo_files.Dataset("ttbar", files=2, events=200_000, jets=5.5, resonance_mass=173.0),
)


class Quiet(NanoAODSchema):
    """NanoAOD without a warning for each missing branch."""

    warn_missing_crossrefs = False


class ReadsBranches(ProcessorABC):
    """Reads some branches and returns their sums."""

    def __init__(self, count: int) -> None:
        self.count = count

    def process(self, events: Any) -> dict[str, Any]:
        results: dict[str, Any] = {"entries": len(events)}
        for collection, field in COLUMNS[: self.count]:
            results[f"{collection}_{field}"] = float(ak.sum(events[collection][field]))
        return results

    def postprocess(self, accumulator: Any) -> Any:
        return accumulator


def run(paths: list[str], chunksize: int, trace: Path) -> list[dict[str, Any]]:
    """Record all processors into one trace and return coffea's reports."""
    reports = []
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        record(client, trace),
    ):
        for count in COUNTS:
            runner = Runner(
                executor=DaskExecutor(client=client, status=False),
                schema=Quiet,
                chunksize=chunksize,
                savemetrics=True,
            )
            _, report = runner(
                {f"{count} branches": paths},
                treename="Events",
                processor_instance=ReadsBranches(count),
            )
            reports.append(report)
    return reports


QUERY = """
WITH read AS (
    SELECT key, attempt, sum(compressed_bytes) AS branch_bytes
    FROM chunk_branches
    GROUP BY key, attempt
)
SELECT
    split_part(dataset, ' ', 1)::INT AS branches,
    count(*) AS chunks,
    sum(events)::BIGINT AS events,
    max(columns_read) AS columns_read,
    sum(bytes_read)::BIGINT AS bytes_read,
    sum(branch_bytes)::BIGINT AS branch_bytes,
    sum(output_bytes)::BIGINT AS output_bytes,
    avg(output_bytes) AS mean_output_bytes,
    corr(bytes_read, output_bytes) AS chunk_correlation
FROM chunks LEFT JOIN read USING (key, attempt)
WHERE outcome = 'memory'
GROUP BY dataset
ORDER BY branches
"""


def analyze(trace: Path, reports: list[dict[str, Any]]) -> pl.DataFrame:
    """Query the trace and check the result against coffea's reports."""
    with Trace(trace) as opened:
        table = opened.sql(QUERY).pl()
    assert table["bytes_read"].to_list() == [report["bytesread"] for report in reports]
    assert table["chunks"].to_list() == [report["chunks"] for report in reports]
    return table.with_columns(
        (pl.col(name) / pl.col(name).first()).alias(f"{name}_ratio")
        for name in ("bytes_read", "branch_bytes", "output_bytes")
    )


def conclusion(table: pl.DataFrame) -> Iterator[str]:
    """Yield the conclusions that the numbers support."""
    first, last = table.row(0, named=True), table.row(-1, named=True)
    read, branch, output = (
        last[f"{name}_ratio"] for name in ("bytes_read", "branch_bytes", "output_bytes")
    )
    between = table.select(pl.corr("bytes_read", "output_bytes")).item()
    yield (
        f"From {first['branches']} to {last['branches']} branches, the bytes read grew "
        f"{read:.2f}-fold and the results {output:.2f}-fold."
    )
    if _is_known(branch):
        overhead = last["bytes_read"] - last["branch_bytes"]
        yield (
            f"Of the bytes read with {last['branches']} branches, {overhead / 1e3:,.0f} kB "
            f"({overhead / last['bytes_read']:.0%}) was not branch data: every chunk opens "
            "its file again and reads its metadata. The bytes of the branches grew "
            f"{branch:.2f}-fold."
        )
    else:
        yield (
            "The branches are stored in the file metadata, which every chunk reads completely, "
            "so that the bytes of the branches themselves are 0."
        )
    if _is_known(between):
        yield (
            f"Over the five runs the two are correlated ({between:.2f}), because this "
            "processor returns a number for each branch. That is a property of the processor."
        )
    within = [
        value for value in table["chunk_correlation"] if value is not None and value == value
    ]
    if within:
        yield (
            f"Among the chunks of one run, which process different events identically, the "
            f"correlation was {min(within):.2f} to {max(within):.2f}."
        )
    ratio = last["output_bytes"] / last["bytes_read"]
    yield (
        f"The results are {ratio:.2%} of the bytes read. **The size of a result does not "
        "indicate the bytes read for it; these must be measured where they are read.**"
    )


def _is_known(value: float | None) -> bool:
    """Return whether a value is a finite number: a division by 0 is not."""
    return value is not None and math.isfinite(value)


def write(table: pl.DataFrame, name: str, what: str) -> None:
    """Write the table, the figure and the conclusions."""
    draw(table, HERE / f"{name}.png")
    header = (
        "branches", "columns", "chunks", "events", "bytes read", "ratio",
        "branch bytes", "ratio", "result bytes", "ratio", "mean result bytes",
        "correlation between chunks",
    )  # fmt: skip
    lines = [
        "# Size of results and bytes read",
        "",
        f"Processors that read 1, 2, 3, 5 and 10 branches of {what}, recorded by",
        f"[{Path(__file__).name}]({Path(__file__).name}).",
        "",
        "| " + " | ".join(header) + " |",
        "| " + " | ".join("---:" for _ in header) + " |",
        *map(_row, table.iter_rows(named=True)),
        "",
        f"![Bytes read and size of results by number of branches]({name}.png)",
        "",
        *(f"- {sentence}" for sentence in conclusion(table)),
    ]
    (HERE / f"{name}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines[5:]))


def _row(row: dict[str, Any]) -> str:
    def number(value: float | None, form: str) -> str:
        return format(value, form) if _is_known(value) else ""

    cells = (
        number(row["branches"], "d"), number(row["columns_read"], "d"),
        number(row["chunks"], "d"), number(row["events"], ",d"),
        number(row["bytes_read"], ",d"), number(row["bytes_read_ratio"], ".2f"),
        number(row["branch_bytes"], ",d"), number(row["branch_bytes_ratio"], ".2f"),
        number(row["output_bytes"], ",d"), number(row["output_bytes_ratio"], ".2f"),
        number(row["mean_output_bytes"], ",.0f"), number(row["chunk_correlation"], ".2f"),
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def draw(table: pl.DataFrame, path: Path) -> None:
    """Draw bytes read and result sizes, absolute and relative to one branch."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    branches = table["branches"].to_list()
    figure, (sizes, ratios) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    series = (
        ("bytes_read", "bytes read", "#0072b2", "o"),
        ("branch_bytes", "branch data", "#56b4e9", "s"),
        ("output_bytes", "size of the results", "#d55e00", "^"),
    )
    for name, label, colour, marker in series:
        sizes.plot(branches, table[name].to_list(), color=colour, marker=marker, label=label)
        ratio = table[f"{name}_ratio"].to_list()
        if all(map(_is_known, ratio)):
            ratios.plot(branches, ratio, color=colour, marker=marker, label=label)
    sizes.set(xlabel="branches", ylabel="bytes, all chunks", yscale="log")
    ratios.set(xlabel="branches", ylabel="relative to one branch")
    for axes in (sizes, ratios):
        axes.grid(alpha=0.3)
        axes.set_xticks(branches)
    sizes.legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", nargs="+", type=Path, help="ROOT files to read instead")
    parser.add_argument("--name", default="branches", help="name of the output files")
    parser.add_argument("--chunksize", type=int, default=20_000)
    options = parser.parse_args()
    given = [path.resolve() for path in options.files or ()]
    with tempfile.TemporaryDirectory(prefix="roast-") as folder, contextlib.chdir(folder):
        trace = Path("branches.jsonl.zst")
        if given:
            paths = [str(path) for path in given]
            what = ", ".join(f"`{path.name}`" for path in given)
        else:
            paths = [str(path) for path in demo_files.write_files(Path(), GENERATED)]
            what = "generated NanoAOD-like files (400,000 events)"
        reports = run(paths, options.chunksize, trace)
        write(analyze(trace, reports), options.name, what)


if __name__ == "__main__":
    main()
