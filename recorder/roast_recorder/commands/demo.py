"""``roast-record demo``: a small real coffea run on this machine, recorded."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

from roast_recorder.commands import FAILED, WELL, CallError


def add_to(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "demo",
        help="a small real coffea run on this machine, recorded",
        description="Run a dijet analysis on a local cluster under the recorder, and show "
        "what the trace says. Without --files it writes its own input.",
    )
    parser.add_argument(
        "--files", nargs="+", type=Path, metavar="FILE", help="NanoAOD files to run on instead"
    )
    parser.add_argument(
        "--tree", default="Events", help="tree of the files (default: %(default)s)"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("roast-demo"),
        metavar="DIR",
        help="folder for input, trace and report (default: %(default)s)",
    )
    parser.add_argument(
        "--chunksize",
        type=_positive,
        default=30_000,
        help="events of a chunk (default: %(default)s)",
    )
    parser.add_argument(
        "--workers", type=_positive, default=2, help="worker processes (default: %(default)s)"
    )
    parser.set_defaults(run=_demo)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return number


def _demo(options: argparse.Namespace) -> int:
    if importlib.util.find_spec("coffea") is None:
        raise CallError("the demo needs coffea: pip install 'roast-trace[all]'")
    folder: Path = options.output
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CallError(f"no folder can be made at {str(folder)!r}: {error.strerror}") from None
    fileset = _own_fileset(options.files) if options.files else _generated_fileset(folder)
    trace = folder / "demo.jsonl.zst"
    failure = _run_demo(trace, fileset, options)
    if failure:
        print(f"\nThe analysis failed, and its trace says why: {failure}\n")
    return _show(trace) or (FAILED if failure else WELL)


def _own_fileset(files: list[Path]) -> dict[str, list[str]]:
    """Give each of the user's files to the dataset named like its folder."""
    fileset: dict[str, list[str]] = {}
    for file in files:
        if not file.is_file():
            raise CallError(f"no file {str(file)!r}; --files takes ROOT files of this machine")
        fileset.setdefault(file.resolve().parent.name or "files", []).append(str(file))
    return fileset


def _generated_fileset(folder: Path) -> dict[str, list[str]]:
    from rich.progress import track

    from roast_recorder.demo import files

    total = sum(dataset.files for dataset in files.DATASETS)
    for _ in track(files.write_files(folder), description="Writing input files", total=total):
        pass
    return files.fileset(folder)


def _run_demo(trace: Path, fileset: dict[str, list[str]], options: argparse.Namespace) -> str:
    """Run the analysis; give the text of its failure, or nothing."""
    from roast_recorder.demo.run import record_demo

    keywords: dict[str, Any] = {
        "treename": options.tree,
        "chunksize": options.chunksize,
        "workers": options.workers,
    }
    try:
        outcome = record_demo(trace, fileset, **keywords)
    except Exception as error:  # noqa: BLE001 - the analysis may fail in any way
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}"
    events, chunks = outcome.report["entries"], outcome.report["chunks"]
    print(f"coffea processed {events:,} events in {chunks} chunks.\n")
    return ""


def _show(trace: Path) -> int:
    """Print the summary, make the report, and say where both lie."""
    report = trace.with_name("demo.html")
    code = WELL
    if importlib.util.find_spec("duckdb") is None:
        print("To look into the trace: pip install 'roast-trace[analyze]'")
    else:
        code = _analyze(str(trace)) or _analyze(str(trace), "--html", str(report))
    print(f"Trace:   {trace.resolve()}")
    if report.exists():
        print(f"Report:  {report.resolve()}")
    return code


def _analyze(*arguments: str) -> int:
    """Run ``roast-analyze`` in a process of its own: the recorder never loads it."""
    sys.stdout.flush()
    command = [sys.executable, "-m", "roast_analyze", *arguments]
    code = subprocess.run(command, check=False).returncode  # noqa: S603 - our own command
    print(flush=True)
    return code
