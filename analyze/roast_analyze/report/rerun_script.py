"""How to run it again: a script for a shell, made of what was recorded.

A reader copies it and lets a shell run it. What a trace says can be anybody's work, so
nothing of it gets in that a shell could take for more than a word.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from roast_analyze.report.data import ReportData
    from roast_analyze.report.gathered.recipe import Recipe

#: Longest line of a comment, and longest value.
MOST_CHARACTERS: Final = 200

_PACKAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_OPTION: Final = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
_PROGRAM: Final = re.compile(r"[A-Za-z0-9_][\w .+-]*\.py")
#: Programs that run another one: a notebook's kernel, the recorder.
_NOT_THE_USERS: Final = frozenset({"ipykernel_launcher.py", "__main__.py"})


def script(data: ReportData) -> str:
    """Write the script; empty if nothing is known that could go into it."""
    recipe = data.recipe
    parts = [_install(recipe), _configure(recipe), _run(recipe)]
    if not any(parts):
        return ""
    return "\n\n".join(filter(None, [_about(data), *parts])) + "\n"


def _about(data: ReportData) -> str:
    """Say in comments what cannot be made by a command."""
    recipe, run = data.recipe, data.run
    said = []
    if recipe.python:
        platform = f" on {recipe.platform}" if recipe.platform else ""
        said.append(f"Python {recipe.python}{platform}")
    if run.peak_workers:
        cluster = f" ({recipe.cluster})" if recipe.cluster else ""
        said.append(
            f"{q.counted(run.peak_workers, 'worker')} at once with "
            f"{q.counted(run.peak_nthreads, 'thread')} together{cluster}"
        )
    if recipe.commit:
        said.append(recipe.commit)
    return "\n".join(f"# {one_line(line, MOST_CHARACTERS)}" for line in said)


def _install(recipe: Recipe) -> str:
    wanted = [
        shlex.quote(f"{name}=={version}")
        for name, version in recipe.packages.items()
        if _PACKAGE.fullmatch(name) and _VERSION.fullmatch(version)
    ]
    return " ".join(["pip install", *wanted]) if wanted else ""


def _configure(recipe: Recipe) -> str:
    """Set Dask's configuration by the environment, which every process reads as it starts."""
    named = {n: v for n, v in recipe.configuration.items() if _OPTION.fullmatch(n)}
    if not named:
        return ""
    # Another value than the one that was recorded would be a wrong one.
    whole = {n: v for n, v in named.items() if v == one_line(v, MOST_CHARACTERS)}
    lines = ["# Dask's configuration, as the scheduler had it"]
    lines += [f"export DASK_{_variable(n)}={shlex.quote(v)}" for n, v in whole.items()]
    lines += [f"# {n}: not one short line" for n in named if n not in whole]
    return "\n".join(lines)


def _variable(name: str) -> str:
    return name.replace(".", "__").replace("-", "_").upper()


def _run(recipe: Recipe) -> str:
    program = recipe.program or ""
    if not _PROGRAM.fullmatch(program) or program in _NOT_THE_USERS:
        return ""
    words = [program, *(one_line(text, MOST_CHARACTERS) for text in recipe.arguments)]
    return f"roast-record run -o trace.jsonl.zst -- python {shlex.join(words)}"
