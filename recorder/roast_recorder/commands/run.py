"""``roast-record run``: run an unchanged program and record its Dask clients."""

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
SHIM_MODULE = "roast_client_preload"


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "run",
        help="run an unchanged program and record it",
        description="Run a program and record the scheduler that its Dask client connects "
        "to. Further schedulers get traces of their own: trace-2, and so on. The exit code "
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
        traces = [trace for trace in plan.traces() if Path(trace).exists()]
    for trace in traces:
        print(f"roast-record: {trace}", file=sys.stderr)
    if not traces:
        print(
            "roast-record: nothing was recorded: the program created no Dask client",
            file=sys.stderr,
        )
    return code


def _run_program(command: list[str], plan: Plan) -> int:
    environment = {**os.environ, **_dask_variables(), **plan.as_variable()}
    paths = [str(SHIM), os.environ.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    try:
        program = subprocess.Popen(command, env=environment)  # noqa: S603 - the user's own
    except OSError as error:
        raise CallError(f"cannot run {command[0]!r}: {error.strerror}") from None
    # The terminal sends Ctrl-C to the program as well, which decides how to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: program.send_signal(number))
    code = program.wait()
    return code if code >= 0 else 128 - code


def _dask_variables() -> dict[str, str]:
    """Return variables that add the recorder to the configured client preloads."""
    import dask
    import distributed  # noqa: F401 - loads its defaults

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
