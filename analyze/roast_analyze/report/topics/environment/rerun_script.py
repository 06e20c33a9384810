"""A shell script that runs the recorded program again.

Users copy it and run it, and anyone can write a trace. So text from the trace is only
inserted where it is a quoted word, a comment of one line, or matches a strict pattern.
"""

from __future__ import annotations

import json
import re
import shlex
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.safe_text import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roast_analyze.report.run import Run

#: Maximum number of characters of a comment and of a value.
LINE_LIMIT: Final = 200
#: What the recorder keeps: characters of an argument, and arguments.
RECORDED_CHARACTERS: Final = 300
RECORDED_ARGUMENTS: Final = 100

_PACKAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_OPTION: Final = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
_PROGRAM: Final = re.compile(r"(?:[A-Za-z0-9_][\w .+-]*/)*[A-Za-z0-9_][\w .+-]*\.py")
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
#: What the recorder writes instead of a secret, and of an object.
_NOT_RECORDED: Final = re.compile(r"<(?:withheld|redacted)[^<>]*>|<[\w.]+>")
#: Programs that run the user's code: the kernel of a notebook, the recorder.
_LAUNCHERS: Final = frozenset({"ipykernel_launcher.py", "__main__.py", "roast_recorder.py"})


@dataclass(frozen=True)
class Rerun:
    """Facts needed to run the program again; of several traces, those of the first."""

    #: Section to name to value.
    facts: dict[str, dict[str, str]]
    #: Dask's configuration on the scheduler.
    configuration: dict[str, str]


def script(rerun: Rerun, run: Run) -> str:
    """Return the script; empty if the trace does not contain the facts for it."""
    facts = rerun.facts
    versions = dict(facts.get("client versions") or facts.get("scheduler versions") or {})
    python = versions.pop("python", None)
    recorder = versions.pop("roast-trace", None)
    client = facts.get("client", {})
    requirements = [
        shlex.quote(f"{name}=={version}")
        for name, version in versions.items()
        if _PACKAGE.fullmatch(name) and _VERSION.fullmatch(version)
    ]
    # Some systems lack `python`, and `pip` can belong to another Python.
    install = " ".join(["python3 -m pip install", *requirements]) if requirements else ""
    command = ""
    program = client.get("path") or client.get("program", "")
    module = client.get("module", "")
    recorded = client.get("arguments", "[]")
    if module:
        if _MODULE.fullmatch(module) and f"{module}.py" not in _LAUNCHERS:
            command = _run(["-m", module], recorded)
    elif _PROGRAM.fullmatch(program) and program not in _LAUNCHERS:
        command = _run([program], recorded)
    parts = [install, _configure(rerun.configuration), command]
    if not any(parts):
        return ""
    # Facts that no command can restore are described in comments.
    comments = []
    if python:
        platform = facts.get("client machine", {}).get("platform")
        comments.append(f"Python {python}{f' on {platform}' if platform else ''}")
    if run.peak_workers:
        cluster = facts.get("cluster", {}).get("type")
        threads = q.counted(run.peak_nthreads, "thread")
        comments.append(
            f"{q.counted(run.peak_workers, 'worker')}, {threads} in total"
            f"{f' ({cluster})' if cluster else ''}"
        )
    if recorder:
        comments.append(f"Recorded by roast-trace {recorder}, which is installed from a clone")
    if "git commit" in client:
        of = [f" of {client[f]}" for f in ("git branch", "git remote") if f in client]
        is_dirty = client.get("git dirty") == "true"
        comments.append(
            f"commit {client['git commit']}{''.join(of)}"
            f"{', with uncommitted changes' if is_dirty else ''}"
        )
    about = "\n".join(f"# {one_line(line, LINE_LIMIT)}" for line in comments)
    return "\n\n".join(filter(None, [about, *parts])) + "\n"


def _run(program: list[str], recorded: str) -> str:
    """Return the command, with comments that name arguments which differ from the run."""
    words, comments = program, []
    try:
        arguments = json.loads(recorded)
    except ValueError:  # cut off at the most characters
        arguments = None
    if not isinstance(arguments, list):
        comments.append("# arguments: omitted, too long")
        arguments = []
    for number, word in enumerate(map(str, arguments), 1):
        words.append(word)
        if _NOT_RECORDED.search(word):
            comments.append(f"# argument {number} was withheld: insert it")
        elif len(word) >= RECORDED_CHARACTERS:
            comments.append(f"# argument {number} can have been cut: complete it")
        elif word != visible(word) or "\n" in word:
            words[-1] = one_line(word, LINE_LIMIT)
            comments.append(f"# argument {number} contains control characters: correct it")
    if len(arguments) >= RECORDED_ARGUMENTS:
        comments.append(f"# arguments after number {len(arguments)} can be missing: add them")
    command = f"roast-record run -o rerun.jsonl.zst -- python3 {shlex.join(words)}"
    return "\n".join([*comments, command])


def _configure(configuration: Mapping[str, str]) -> str:
    """Set Dask's configuration by environment variables, which every process reads."""
    lines, omitted = [], []
    for name, value in configuration.items():
        if not _OPTION.fullmatch(name):
            continue
        if _NOT_RECORDED.search(value):
            omitted.append(f"# {name}: not recorded; set it if the program needs it")
        # A shortened value would be wrong.
        elif value == one_line(value, LINE_LIMIT):
            variable = name.replace(".", "__").replace("-", "_").upper()
            lines.append(f"export DASK_{variable}={shlex.quote(_as_literal(value))}")
        else:
            omitted.append(f"# {name}: omitted, longer than a line")
    if not lines and not omitted:
        return ""
    return "\n".join(["# Dask's configuration of the scheduler", *lines, *omitted])


def _as_literal(value: str) -> str:
    """Return a list or a mapping as Dask parses it: a literal of Python, not JSON."""
    if value[:1] in ("[", "{"):
        with suppress(ValueError):
            return repr(json.loads(value))
    return value
