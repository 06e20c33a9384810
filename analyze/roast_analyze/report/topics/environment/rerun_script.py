"""A shell script that runs the recorded program again.

Users copy it and run it, and anyone can write a trace. So text from the trace is only
inserted where it is a quoted word, a comment of one line, or matches a strict pattern.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from roast_analyze.report.run import Run
    from roast_analyze.report.topics.environment.data import Rerun

#: Most characters of a comment and of a value.
LINE_LIMIT: Final = 200

_PACKAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_OPTION: Final = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
_PROGRAM: Final = re.compile(r"[A-Za-z0-9_][\w .+-]*\.py")
#: Programs that run the user's code: the kernel of a notebook, the recorder.
_LAUNCHERS: Final = frozenset({"ipykernel_launcher.py", "__main__.py"})


def script(rerun: Rerun, run: Run) -> str:
    """Return the script; empty if nothing is known that it could contain."""
    parts = [_install(rerun), _configure(rerun), _run(rerun)]
    if not any(parts):
        return ""
    return "\n\n".join(filter(None, [_comments(rerun, run), *parts])) + "\n"


def _comments(rerun: Rerun, run: Run) -> str:
    """Describe in comments what no command can restore."""
    lines = []
    if rerun.python:
        platform = f" on {rerun.platform}" if rerun.platform else ""
        lines.append(f"Python {rerun.python}{platform}")
    if run.peak_workers:
        cluster = f" ({rerun.cluster})" if rerun.cluster else ""
        threads = q.counted(run.peak_nthreads, "thread")
        lines.append(f"{q.counted(run.peak_workers, 'worker')}, {threads} in total{cluster}")
    if rerun.commit:
        lines.append(rerun.commit)
    return "\n".join(f"# {one_line(line, LINE_LIMIT)}" for line in lines)


def _install(rerun: Rerun) -> str:
    requirements = [
        shlex.quote(f"{name}=={version}")
        for name, version in rerun.packages.items()
        if _PACKAGE.fullmatch(name) and _VERSION.fullmatch(version)
    ]
    return " ".join(["pip install", *requirements]) if requirements else ""


def _configure(rerun: Rerun) -> str:
    """Set Dask's configuration by environment variables, which every process reads."""
    lines, omitted = [], []
    for name, value in rerun.configuration.items():
        if not _OPTION.fullmatch(name):
            continue
        # A shortened value would be a wrong one.
        if value == one_line(value, LINE_LIMIT):
            variable = name.replace(".", "__").replace("-", "_").upper()
            lines.append(f"export DASK_{variable}={shlex.quote(value)}")
        else:
            omitted.append(f"# {name}: omitted, longer than a line")
    if not lines and not omitted:
        return ""
    return "\n".join(["# Dask's configuration of the scheduler", *lines, *omitted])


def _run(rerun: Rerun) -> str:
    program = rerun.program or ""
    if not _PROGRAM.fullmatch(program) or program in _LAUNCHERS:
        return ""
    words = [program, *(one_line(text, LINE_LIMIT) for text in rerun.arguments)]
    return f"roast-record run -o trace.jsonl.zst -- python {shlex.join(words)}"
