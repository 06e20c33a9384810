"""The user's program: its name, its arguments, and the commit that it was run from."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from roast_recorder.configuration import WITHHELD

#: Arguments that are told, and characters of each.
MAX_ARGUMENTS: Final = 100
MAX_LENGTH: Final = 300

#: How long git may take to compare a working folder with its last commit.
GIT_TIMEOUT_SECONDS: Final = 3.0

_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_OPTION: Final = re.compile(r"--?[A-Za-z][\w.-]*")
_MIN_RANDOM_LENGTH: Final = 16
_FILE_BYTES: Final = 1_000_000


def arguments(argv: Sequence[str]) -> list[str]:
    """Give a program's arguments, without those that look like secrets by themselves.

    What stands behind a name that says secret, ``--token …``, is the redactor's to find.
    """
    return [_argument(text) for text in list(argv)[:MAX_ARGUMENTS]]


def _argument(text: str) -> str:
    name, sign, value = text.partition("=")
    if sign and _OPTION.fullmatch(name):
        return f"{name}={_argument(value)}"
    return WITHHELD if looks_random(text) or "\n" in text else text[:MAX_LENGTH]


def looks_random(text: str) -> bool:
    """Tell whether a text looks as if nobody had made it up: a token, a hash.

    In such a text many a character is of another sort than the one before it: a small
    letter, a capital, a digit. Names of data sets are like that too, but they consist of
    words with few digits.
    """
    if len(text) < _MIN_RANDOM_LENGTH or "/" in text or "." in text or " " in text:
        return False
    if any(_is_mixed(word) for word in re.split(r"[^A-Za-z0-9]+", text)):
        return True
    return _digits(text) >= 0.3 and _changes(text) >= 0.4


def _is_mixed(word: str) -> bool:
    has_all = word != word.lower() and word != word.upper() and _digits(word) > 0
    return len(word) >= _MIN_RANDOM_LENGTH and has_all and _changes(word) >= 0.25


def _digits(text: str) -> float:
    """Give the share of digits."""
    return sum(c.isdecimal() for c in text) / len(text)


def _changes(text: str) -> float:
    """Give the share of characters that are of another sort than the one before."""
    sorts = ["a" if c.islower() else "A" if c.isupper() else "0" for c in text if c.isalnum()]
    return sum(one != other for one, other in pairwise(sorts)) / max(len(sorts) - 1, 1)


def describe() -> Iterator[tuple[str, Any]]:
    """Describe the program of this process: names and values."""
    yield "program", os.path.basename(sys.argv[0] or "python")  # noqa: PTH119
    yield "arguments", arguments(sys.argv[1:])
    try:
        yield from commit(Path.cwd()).items()
    except OSError:
        return  # the folder has been removed


def commit(folder: Path) -> dict[str, Any]:
    """Describe the git commit of a working folder; empty if it is in none.

    The commit is read from git's own files. Only whether there is anything that is not
    committed is asked of git, which may take :data:`GIT_TIMEOUT_SECONDS`.

    Returns
    -------
    dict
        git commit, git branch, git remote (host and path of ``origin``, nothing else),
        and git dirty: whether files that git knows differ from the commit.
    """
    for top in (folder, *folder.parents):
        if (git := _git_folder(top / ".git")) is not None:
            break
    else:
        return {}
    shared = _shared(git)
    head = (_read(git / "HEAD") or "").strip()
    branch = head.removeprefix("ref: ") if head.startswith("ref: ") else None
    found = _commit_of(branch, git, shared) if branch else head
    if not found or not _COMMIT.fullmatch(found):
        return {}
    return {
        "git commit": found,
        "git branch": branch and branch.removeprefix("refs/heads/")[:MAX_LENGTH],
        "git remote": _remote(shared),
        "git dirty": _is_dirty(top),
    }


def _git_folder(path: Path) -> Path | None:
    if path.is_dir():
        return path
    # Of a worktree or a submodule it is a file that says where.
    told = _read(path) or ""
    if not told.startswith("gitdir: "):
        return None
    return path.parent / told.removeprefix("gitdir: ").strip()


def _shared(git: Path) -> Path:
    """Give the folder that worktrees have in common."""
    told = (_read(git / "commondir") or "").strip()
    return git / told if told else git


def _commit_of(branch: str, git: Path, shared: Path) -> str | None:
    for folder in (git, shared):
        if found := _read(folder / branch):
            return found.strip()
    for line in (_read(shared / "packed-refs") or "").splitlines():
        found, _, name = line.partition(" ")
        if name == branch:
            return found
    return None


def _remote(shared: Path) -> str | None:
    """Give host and path of ``origin``: whatever else a URL holds may be a secret."""
    section = ""
    for line in (_read(shared / "config") or "").splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text
        elif section == '[remote "origin"]' and text.startswith("url"):
            return _place(text.partition("=")[2].strip())
    return None


def _place(url: str) -> str | None:
    if "://" in url:
        try:
            parts = urlsplit(url)
            place = f"{parts.hostname or ''}{parts.path}"
        except ValueError:
            return None
    else:
        # git@host:path, or a folder of this machine, which is nobody's business.
        _, _, place = url.rpartition("@")
        if ":" not in place:
            return None
        place = place.replace(":", "/", 1)
    pieces = [WITHHELD if looks_random(piece) else piece for piece in place.split("/")]
    return "/".join(pieces)[:MAX_LENGTH] if "@" not in place else None


def _is_dirty(top: Path) -> bool | None:
    """Ask git; None if it does not answer, or not in time."""
    try:
        answer = subprocess.run(
            # Nothing that the folder's own configuration names may be run, or written.
            ["git", "-c", "core.fsmonitor=false", "--no-optional-locks", "status",  # noqa: S607
             "--porcelain", "--untracked-files=no", "--ignore-submodules"],
            cwd=top,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=GIT_TIMEOUT_SECONDS,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return bool(answer.stdout) if answer.returncode == 0 else None


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
