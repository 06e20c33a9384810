"""``roast-record run``: run an unchanged program and record its Dask clients."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from roast_recorder.client_preload import VARIABLE, Plan
from roast_recorder.commands import (
    CallError,
    add_recording_options,
    settings_of,
    trace_of,
    unwritable,
)
from roast_recorder.settings import Settings
from roast_recorder.writer.client import how_to_open
from roast_recorder.writer.segments import Segments

#: Darshan's own limit of 1,024 files per layer is used up by the imports of coffea alone.
#: Directives as of Darshan 3.4; memory is in MiB per process.
DARSHAN_CONFIG = r"""MAX_RECORDS 65536 POSIX,STDIO,DXT_POSIX
MODMEM 256
NAMEMEM 32
NAME_EXCLUDE \.py$,\.pyc$,\.so$,\.so\.[0-9.]+$,^/proc/,^/sys/,/site-packages/ *
"""

#: The text of the client preload. A module's name would depend on PYTHONPATH, which programs
#: may change or ignore, and Dask's clients fail if a preload cannot be imported.
CLIENT_PRELOAD = Path(__file__).with_name("run_preload.py")


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "run",
        help="run an unchanged program and record it",
        description="Run a program and record the scheduler that its Dask client connects "
        "to. Further schedulers get traces of their own: trace-2, and so on. The exit code "
        "is the program's.",
        usage="%(prog)s [-o TRACE] [options] -- COMMAND …",
    )
    add_recording_options(parser)
    parser.add_argument(
        "--darshan",
        metavar="LIB",
        help="also measure files with Darshan: the path to libdarshan.so; logs are written to "
        "a folder beside the trace",
    )
    parser.add_argument(
        "command",
        nargs="+",
        metavar="COMMAND",
        help="program to run, such as python analysis.py …",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    output = trace_of(options)
    target = os.path.abspath(output)  # noqa: PTH100 - the program may change folder
    target += "/" if output.endswith("/") else ""
    try:
        # An error before the program starts; a trace without records leaves no file.
        Segments(target, {}, Settings.from_keywords(settings).as_dict()).abandon()
    except (OSError, ValueError) as error:
        raise unwritable(error) from None
    darshan = darshan_variables(options.darshan, target) if options.darshan else {}
    with TemporaryDirectory(prefix="roast-run-") as claims:
        plan = Plan(target, claims, settings)
        added = {**dask_variables(), **darshan, VARIABLE: json.dumps(asdict(plan))}
        try:
            program = subprocess.Popen(options.command, env={**os.environ, **added})  # noqa: S603 - the user's own
        except OSError as error:
            name = options.command[0]
            hint = ""
            if name.endswith(".py") and Path(name).is_file():
                hint = f"; use roast-record run -- python {shlex.join(options.command)}"
            elif " " in name and not Path(name).exists():
                hint = "; write the program and its arguments as separate words"
            raise CallError(f"cannot run {name!r}: {error.strerror or error}{hint}") from None
        # The terminal sends Ctrl-C to the program as well, which decides how to end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, _: program.send_signal(number))
        code = program.wait()
        traces = list(plan.traces())
    for trace in traces:
        if not Path(trace).exists():
            print(
                f"roast-record: {trace} is missing: it was removed or replaced while it was "
                "recorded",
                file=sys.stderr,
            )
            continue
        print(f"roast-record: {trace}", file=sys.stderr)
        if not options.output:
            print(f"roast-record: {how_to_open(trace)}", file=sys.stderr)
    if darshan:
        print(f"roast-record: Darshan logs in {darshan['DARSHAN_LOGPATH']}", file=sys.stderr)
    if not traces:
        print(
            "roast-record: nothing was recorded: no Dask client started a recording",
            file=sys.stderr,
        )
    # As a shell does for a program that a signal has ended.
    return code if code >= 0 else 128 - code


def darshan_variables(library: str, target: str) -> dict[str, str]:
    """Return variables that preload Darshan; write its configuration beside its logs.

    Limits and the folder that the user has set already are kept.
    """
    path = Path(library).resolve()
    if not path.is_file():
        raise CallError(f"invalid --darshan {library!r}: use the path to libdarshan.so")
    if {" ", ":"} & {*str(path)}:  # separators of LD_PRELOAD
        raise CallError(f"invalid --darshan {library!r}: the path has a space or a colon")
    trace = Path(target)
    name = trace.name.removesuffix(".zst").removesuffix(".gz").removesuffix(".jsonl")
    logs = Path(os.environ.get("DARSHAN_LOGPATH") or trace.with_name(f"{name}.darshan"))
    configuration = os.environ.get("DARSHAN_CONFIG_PATH")
    try:
        logs.mkdir(exist_ok=True)
        if not configuration:
            configuration = str(logs / "darshan.conf")
            Path(configuration).write_text(DARSHAN_CONFIG)
    except OSError as error:
        raise CallError(f"cannot write {str(logs)!r}: {error.strerror}") from None
    return {
        # A library that is preloaded already stays first.
        "LD_PRELOAD": ":".join(filter(None, [os.environ.get("LD_PRELOAD"), str(path)])),
        "DARSHAN_ENABLE_NONMPI": "1",
        "DXT_ENABLE_IO_TRACE": "1",
        "DARSHAN_LOGPATH": str(logs),
        "DARSHAN_CONFIG_PATH": configuration,
    }


def dask_variables() -> dict[str, str]:
    """Return variables that add the recorder to the configured client preloads."""
    import dask
    import distributed  # noqa: F401 - loads its defaults

    preloads = dask.config.get("distributed.client.preload", None) or []
    preloads = [preloads] if isinstance(preloads, str) else list(preloads)
    arguments = list(dask.config.get("distributed.client.preload-argv", None) or [])
    if arguments and isinstance(arguments[0], str):
        arguments = [arguments] * len(preloads)
    prefix = "DASK_DISTRIBUTED__CLIENT__PRELOAD"
    variables = {prefix: repr([*preloads, CLIENT_PRELOAD.read_text()])}
    if arguments:
        variables[f"{prefix}_ARGV"] = repr([*arguments, []])
    logs = dask.config.get("logging", None) or {}
    if "version" not in logs and not dask.config.get("logging-file-config", None):
        # At INFO, Dask logs the text and the temporary module of each preload. A name with a
        # dot cannot have its own variable.
        name = "DASK_INTERNAL_INHERIT_CONFIG"
        inherited = dask.config.deserialize(os.environ[name]) if name in os.environ else {}
        names = ("distributed.preloading", "distributed.utils")
        quiet = {**dict.fromkeys(names, "warning"), **logs}
        variables[name] = dask.config.serialize({**inherited, "logging": quiet})
    return variables
