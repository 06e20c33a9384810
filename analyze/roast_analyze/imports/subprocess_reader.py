"""Files of other programs are read by a process of its own, with bounds.

A file that was cut, or made to do harm, can kill who reads it, or fill the memory: then it is
that process that ends, and what is said of it is one line.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Final

from roast_analyze.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Nobody waits longer, and nothing that is worth it takes more memory.
SECONDS: Final = 600
MEMORY_BYTES: Final = 8 * 2**30


@contextmanager
def lines_of(path: Path, module: str, meant: str) -> Iterator[IO[bytes]]:
    """Let a module write a file as JSON lines.

    Parameters
    ----------
    path : Path
        What is to be read.
    module : str
        Of this package; it is run with the path, writes lines to stdout, and says on stderr,
        in a line with the word Error, what is wrong.
    meant : str
        What the file should be, in words.

    Raises
    ------
    TraceError
        If it could not be read to its end.
    """
    with TemporaryFile() as lines:
        try:
            done = subprocess.run(  # noqa: S603 - Python itself, and modules of ours
                [sys.executable, "-m", f"roast_analyze.imports.{module}", str(path)],
                stdin=subprocess.DEVNULL,
                stdout=lines,
                stderr=subprocess.PIPE,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                timeout=SECONDS,
                check=False,
                preexec_fn=_bound,
            )
        except subprocess.TimeoutExpired:
            raise TraceError(
                f"{str(path)!r} is not read after {SECONDS} s, more than {meant} takes"
            ) from None
        said = done.stderr.decode(errors="replace").splitlines()
        # Darshan's library only complains of what it cannot read, and goes on.
        complaints = [line for line in said if "error" in line.lower()]
        if done.returncode or complaints:
            raise TraceError(
                f"{str(path)!r} is not {meant}, or not whole: "
                f"{_reason(done.returncode, complaints)}; nothing of it was imported"
            )
        lines.seek(0)
        yield lines


def _reason(code: int, complaints: list[str]) -> str:
    """Tell in a few words why a file was not read."""
    if any("MemoryError" in line for line in complaints):
        return f"it takes more than {MEMORY_BYTES // 2**30} GiB of memory to read"
    if complaints:
        first = complaints[0].strip()
        return first.removeprefix("Error:").strip().rstrip(".")[:300]
    return (
        f"it ended its reader by signal {-code}" if code < 0 else f"its reader ended ({code})"
    )


def _bound() -> None:
    """Let the process take no more than a file is worth, and leave no core behind."""
    import resource

    for limit, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(limit)
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # Some systems know a limit and do not let it be set.
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (soft, hard))
