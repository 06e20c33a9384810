"""``roast-record run``: a program as it is, and whatever its clients do on a record."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from roast_recorder.client_preload import Plan
from roast_recorder.commands import CallError
from roast_recorder.commands.options import add_recording_options, check_target, settings_of

SHIM = Path(__file__).parents[1] / "shim"


def add_to(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "run",
        help="record a program, no line of it changed",
        description="Run a program and record the scheduler that its Dask client connects "
        "to. A second scheduler gets a trace of its own: trace-2, and so on. The exit code "
        "is the program's.",
        usage="%(prog)s -o TRACE [options] -- COMMAND …",
    )
    add_recording_options(parser)
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="python analysis.py …")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    target = os.path.abspath(options.output)  # noqa: PTH100 - the program may change folder
    target += "/" if options.output.endswith("/") else ""
    check_target(target, settings)
    with TemporaryDirectory(prefix="roast-run-") as claims:
        plan = Plan(target, claims, settings)
        code = _run_program(options.command, plan)
        _tell(list(plan.traces()))
    return code


def _run_program(command: list[str], plan: Plan) -> int:
    environment = {**os.environ, **_dask_variables(), **plan.as_variable()}
    paths = [str(SHIM), os.environ.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    try:
        program = subprocess.Popen(command, env=environment)  # noqa: S603 - the user's own
    except OSError as error:
        raise CallError(f"{command[0]!r} cannot be run: {error.strerror}") from None
    # Ctrl-C reaches the program by itself; it decides what comes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: program.send_signal(number))
    code = program.wait()
    return code if code >= 0 else 128 - code


def _dask_variables() -> dict[str, str]:
    """Add the recorder to the client preloads that are configured already."""
    import dask
    import distributed  # noqa: F401 - brings its defaults

    preloads = dask.config.get("distributed.client.preload", None) or []
    preloads = [preloads] if isinstance(preloads, str) else list(preloads)
    arguments = list(dask.config.get("distributed.client.preload-argv", None) or [])
    if arguments and isinstance(arguments[0], str):
        arguments = [arguments] * len(preloads)
    prefix = "DASK_DISTRIBUTED__CLIENT__PRELOAD"
    variables = {prefix: repr([*preloads, SHIM_MODULE])}
    if arguments:
        variables[f"{prefix}_ARGV"] = repr([*arguments, []])
    return variables


SHIM_MODULE = "roast_client_preload"


def _tell(traces: list[str]) -> None:
    """Say where the traces are."""
    there = [trace for trace in traces if Path(trace).exists()]
    for trace in there:
        print(f"roast-record: {trace}", file=sys.stderr)
    if not there:
        print(
            "roast-record: nothing was recorded: the program made no Dask client",
            file=sys.stderr,
        )
