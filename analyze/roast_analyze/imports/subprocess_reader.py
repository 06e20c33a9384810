"""Read files of other programs in a subprocess with limited time and memory.

A truncated or malicious file can crash its reader or fill the memory. Then only the
subprocess ends, and the error is one line.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from roast_analyze.errors import TraceError

#: Limits of the subprocess.
SECONDS: Final = 600
MEMORY_BYTES: Final = 8 * 2**30


@contextmanager
def read_lines(path: Path, module: str, expected: str) -> Iterator[IO[bytes]]:
    """Convert a file to JSON lines in a subprocess.

    The module of this package is run with the path. It writes lines to stdout, and errors to
    stderr in a line with the word Error. Then TraceError is raised, which describes the
    `expected` files.
    """
    with TemporaryFile() as lines:
        try:
            done = subprocess.run(  # noqa: S603 - this interpreter and package
                # Modules in the working directory must not replace those of Python.
                [sys.executable, "-P", "-m", f"roast_analyze.imports.{module}", str(path)],
                # A reader must not wait for input, and threads would count against the memory
                # limit.
                stdin=subprocess.DEVNULL,
                stdout=lines,
                stderr=subprocess.PIPE,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                timeout=SECONDS,
                check=False,
                preexec_fn=_limit_resources,
            )
        except subprocess.TimeoutExpired:
            raise TraceError(
                f"{str(path)!r} could not be read in {SECONDS} s: check that it is {expected}"
            ) from None
        stderr = done.stderr.decode(errors="replace").splitlines()
        # Darshan's library reports errors on stderr and continues.
        errors = [line for line in stderr if "error" in line.lower()]
        if done.returncode or errors:
            if any("MemoryError" in line for line in errors):
                reason = f"reading it needs more than {MEMORY_BYTES // 2**30} GiB of memory"
            elif errors:
                reason = errors[0].strip().removeprefix("Error:").strip().rstrip(".")[:300]
            elif done.returncode < 0:
                reason = f"its reader died of signal {-done.returncode}"
            else:
                reason = f"its reader ended ({done.returncode})"
            raise TraceError(
                f"{str(path)!r} is not {expected}, or is truncated: {reason}; "
                "it was not imported"
            )
        lines.seek(0)
        yield lines


def _limit_resources() -> None:
    """Limit the memory of this process, and write no core dump."""
    import resource

    for limit, value in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(limit)
        soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # Some systems define limits that cannot be set.
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (soft, hard))
