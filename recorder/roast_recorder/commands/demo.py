"""``roast-record demo``: a small coffea analysis on this machine, recorded."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

from roast_recorder.commands import FAILED, SUCCESS, CallError, positive


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "demo",
        help="run and record a small coffea analysis on this machine",
        description="Run a dijet analysis on a local cluster, record it, and print a summary "
        "of the trace. Without --files, input files are generated.",
    )
    add = parser.add_argument
    add("--files", nargs="+", type=Path, metavar="FILE", help="NanoAOD files to analyze")
    add("--tree", default="Events", help="tree of the files (default: %(default)s)")
    add(
        "-o",
        "--output",
        type=Path,
        default=Path("roast-demo"),
        metavar="DIR",
        help="folder for input, trace and report (default: %(default)s)",
    )
    count = positive(int, "number", "1 or more")
    add(
        "--chunksize",
        type=count,
        default=30_000,
        help="events per chunk (default: %(default)s)",
    )
    add("--workers", type=count, default=2, help="worker processes (default: %(default)s)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if importlib.util.find_spec("coffea") is None:
        raise CallError("the demo needs coffea: pip install '.[all]' in a clone of roast")
    folder: Path = options.output
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CallError(f"cannot create folder {str(folder)!r}: {error.strerror}") from None
    fileset = _fileset(options.files, folder)
    from distributed import Client, LocalCluster

    from roast_recorder.api import record
    from roast_recorder.demo.dijet import run_analysis  # imports coffea, which takes seconds

    trace, page = folder / "demo.jsonl.zst", folder / "demo.html"
    code, is_recording = SUCCESS, False
    try:
        with (
            LocalCluster(
                n_workers=options.workers,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.ERROR,
            ) as cluster,
            Client(cluster) as client,
            record(client, trace),
        ):
            is_recording = True
            _, report = run_analysis(
                client, fileset, treename=options.tree, chunksize=options.chunksize
            )
    except Exception as error:  # noqa: BLE001 - the analysis may fail in any way
        failure = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}"
        if not is_recording:
            raise CallError(f"cannot record to {str(trace)!r}: {failure}") from None
        code = FAILED
        print(f"\nThe analysis failed: {failure}\n")
    else:
        events, chunks = report["entries"], report["chunks"]
        print(f"coffea processed {events:,} events in {chunks} chunks.\n")
    analyzed = None
    if importlib.util.find_spec("duckdb") is None:
        print("To analyze the trace: pip install '.[analyze]' in a clone of roast")
    else:
        analyzed = _analyze(trace) or _analyze(trace, "--html", page)
    print(f"Trace:   {trace.resolve()}")
    if analyzed == SUCCESS:
        print(f"Report:  {page.resolve()}")
    return analyzed or code


def _fileset(users_files: list[Path] | None, folder: Path) -> dict[str, list[str]]:
    """Return files by dataset: the user's by their folder's name, or generated ones."""
    if not users_files:
        from rich.progress import track

        from roast_recorder.demo import files

        total = sum(dataset.files for dataset in files.DATASETS)
        try:
            for _ in track(files.write_files(folder), "Writing input files", total):
                pass
        except OSError as error:
            reason = error.strerror or error
            raise CallError(f"cannot write files to {str(folder)!r}: {reason}") from None
        return files.fileset(folder)
    fileset: dict[str, list[str]] = {}
    for file in users_files:
        if not file.is_file():
            raise CallError(f"no file {str(file)!r}: use ROOT files on this machine")
        fileset.setdefault(file.resolve().parent.name or "files", []).append(str(file))
    return fileset


def _analyze(*arguments: str | Path) -> int:
    """Run ``roast-analyze`` in another process, which prints to the terminal."""
    sys.stdout.flush()
    command = [sys.executable, "-P", "-m", "roast_analyze", *arguments]
    code = subprocess.run(command, check=False).returncode  # noqa: S603 - our own command
    print(flush=True)
    return code
