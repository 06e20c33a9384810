"""Real Yappi and Darshan files for the tests of imports."""

import subprocess
import sys
from pathlib import Path

import darshan

#: Program profiled by Yappi: threads, coroutines, direct and mutual recursion.
WORKLOAD = """
import sys, threading, time
import yappi

def leaf(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def even(n):
    return n == 0 or odd(n - 1)

def odd(n):
    return n != 0 and even(n - 1)

async def collect():
    async for _ in values():
        pass

async def values():
    yield leaf(0)

def first():
    leaf(0.02)
    second()

def second():
    leaf(0.03)
    fib(16)
    even(40)

yappi.set_clock_type(sys.argv[2])
yappi.start(builtins=True)
threads = [threading.Thread(target=first) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
# Alone: threads that compete for the interpreter would change the ratio of wall times.
second()
try:
    collect().send(None)
except StopIteration:
    pass
yappi.stop()
functions = yappi.get_func_stats()
functions.save(sys.argv[1] + "/without_flags.ystat")
for function in functions:
    code = yappi._fn_descriptor_dict[function.full_name]
    vars(function)["code_flags"] = getattr(code, "co_flags", None)
for type in ("ystat", "pstat", "callgrind"):
    functions.save(sys.argv[1] + "/work." + type, type=type)
print(sum(function.tsub for function in functions))
for function in functions:
    print(function.name, function.module, function.lineno, function.ncall,
          function.nactualcall, repr(function.tsub), repr(function.ttot), sep="\\t")
"""


def yappi_files(folder: Path, clock: str = "cpu") -> tuple[float, list[tuple]]:
    """Profile a process with Yappi, save each format, and return Yappi's own statistics."""
    done = subprocess.run(
        [sys.executable, "-c", WORKLOAD, str(folder), clock],
        capture_output=True,
        text=True,
        check=True,
    )
    total, *functions = done.stdout.splitlines()
    rows = []
    for function in functions:
        name, module, *numbers = function.split("\t")
        line, calls, actual, own, whole = numbers
        rows.append(
            (name, module, int(line), int(calls), int(actual), float(own), float(whole))
        )
    return float(total), rows


def darshan_log(name: str) -> Path:
    """Return a log that is shipped with PyDarshan."""
    [path, *_] = sorted(Path(darshan.__file__).parent.rglob(name))
    return path


def darshan_logs() -> list[Path]:
    """Return all distinct logs that are shipped with PyDarshan."""
    found = sorted(Path(darshan.__file__).parent.rglob("*.darshan"))
    return list({path.read_bytes(): path for path in found}.values())
