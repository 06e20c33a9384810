"""Install the wheel into empty environments and use it there: ``make wheel-matrix``.

Prints a table of Python versions × {recorder only, all}, with the result of each. The wheel and
the sdist are checked first, by twine, check-wheel-contents and pyroma.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Required pyroma rating of 10: the metadata has no project URL and no author's email yet.
PYROMA_POINTS = 8
CHECKERS = ["check-wheel-contents", "hatchling", "pyroma", "setuptools", "twine"]

#: A user's program, which runs on two worker processes.
PROGRAM = """
from dask.distributed import Client

if __name__ == "__main__":
    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
        assert client.submit(sum, client.map(abs, range(-50, 0))).result() == 1275
"""
RECORD = ["roast-record", "run", "-o", "trace.jsonl.zst", "--", "python", "program.py"]
#: Commands that are run in each environment, by the installed extra.
COMMANDS = {
    "": [RECORD],
    "all": [
        RECORD,
        ["roast-analyze", "check", "trace.jsonl.zst"],
        ["roast-analyze", "trace.jsonl.zst", "--html", "report.html"],
        ["roast-record", "demo", "--chunksize", "400000"],
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "pythons",
        nargs="*",
        default=list(interpreters()),
        metavar="PYTHON",
        help="interpreters (default: python3.11 and newer ones of this machine)",
    )
    with tempfile.TemporaryDirectory(prefix="roast-wheels-") as name:
        folder = Path(name)
        wheel = build_and_check(folder)
        print(
            "| Python | installed | packages | result |\n| --- | --- | ---: | --- |", flush=True
        )
        failed = False
        for python in parser.parse_args().pythons:
            for extra in COMMANDS:
                row, succeeded = use(python, wheel, extra, folder)
                failed |= not succeeded
                print(row, flush=True)
    for extra, commands in COMMANDS.items():
        lines = "; ".join(" ".join(command) for command in commands)
        print(f"\n{extra or 'recorder only'}: `{lines}`")
    sys.exit(failed)


def interpreters() -> Iterator[str]:
    """Yield one interpreter of each version from 3.11 on, from the path or of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    for minor in range(11, 20):
        name = f"python3.{minor}"
        found = [shutil.which(name), *sorted(pyenv.glob(f"versions/3.{minor}.*/bin/{name}"))]
        for python in filter(None, found):
            # A shim of pyenv fails if its version is not selected.
            if not subprocess.run([python, "-c", ""], capture_output=True).returncode:
                yield str(python)
                break


def build_and_check(folder: Path) -> Path:
    """Build wheel and sdist, check them, and return the wheel."""
    bin_folder = environment(Path(sys.executable), folder / "checkers", CHECKERS)
    dist = folder / "dist"
    run(bin_folder, "python", "-m", "hatchling", "build", "-d", str(dist), cwd=ROOT)
    [wheel], [sdist] = dist.glob("*.whl"), dist.glob("*.tar.gz")
    for command in (
        ["twine", "check", "--strict", str(wheel), str(sdist)],
        ["check-wheel-contents", "--config", str(ROOT / "pyproject.toml"), str(wheel)],
        ["pyroma", "--min", str(PYROMA_POINTS), "--file", str(sdist)],
    ):
        run(bin_folder, *command, cwd=folder)
        print(f"{command[0]}: passed", flush=True)
    return wheel


def use(python: str, wheel: Path, extra: str, folder: Path) -> tuple[str, bool]:
    """Return a row of the table, and whether everything succeeded."""
    place = folder / "environment"
    work = folder / "work"
    work.mkdir()
    (work / "program.py").write_text(PROGRAM)
    version = subprocess.check_output(
        [python, "-c", "import platform as p; print(p.python_version())"]
    )
    packages, result = "", "passed"
    try:
        requirement = f"roast-trace[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
        bin_folder = environment(Path(python), place, [requirement])
        packages = str(len(run(bin_folder, "pip", "list", "--format=freeze", cwd=work).split()))
        for command in COMMANDS[extra]:
            run(bin_folder, *command, cwd=work)
    except subprocess.CalledProcessError as error:
        words = (error.stderr or error.stdout).strip().splitlines() or ["no message"]
        result = f"failed: {' '.join(map(str, error.cmd[1:4]))}: {words[-1]}"
    finally:
        shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(work)
    row = f"| {version.decode().strip()} | {extra or 'recorder only'} | {packages} | {result} |"
    return row, result == "passed"


def environment(python: Path, place: Path, requirements: list[str]) -> Path:
    """Create an environment with some packages; return the folder of its programs."""
    subprocess.run([python, "-m", "venv", place], check=True)
    run(place / "bin", "python", "-m", "pip", "install", "--quiet", *requirements, cwd=place)
    return place / "bin"


def run(bin_folder: Path, name: str, *arguments: str, cwd: Path) -> str:
    # Exclude this checkout and the caller's environment.
    variables = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    variables["PATH"] = f"{bin_folder}{os.pathsep}{variables['PATH']}"
    done = subprocess.run(
        [bin_folder / name, *arguments],
        cwd=cwd, env=variables, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    main()
