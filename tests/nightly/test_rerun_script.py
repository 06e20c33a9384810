"""The rerun script of a report runs as it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from analyze.report.reading import plain
from roast_analyze import Trace
from roast_analyze.report.run import query_run
from roast_analyze.report.topics.environment import query
from roast_analyze.report.topics.environment.rerun_script import script

pytestmark = pytest.mark.cluster

PROGRAM = """
import sys, dask
from distributed import Client

if __name__ == "__main__":
    with Client(processes=False, n_workers=1, dashboard_address=None) as client:
        assert client.submit(abs, -2).result() == 2
    print(sys.argv[1:], dask.config.get("distributed.scheduler.worker-saturation"))
"""
#: Arguments that a shell would change without quotes.
ARGUMENTS = ["--cut", 'it\'s "one" $HOME `id` \\\\ ;#', "", "*", "\N{GREEK SMALL LETTER MU}"]


@pytest.mark.parametrize(
    "start", [["my fits/fit.py"], ["-m", "package.fit"]], ids=["path", "module"]
)
def test_the_script_repeats_the_run(tmp_path, start):
    for folder in ("my fits", "package"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "fit.py").write_text(PROGRAM)
    programs = str(Path(sys.executable).parent)
    environ = {
        **os.environ,
        "PATH": os.pathsep.join([programs, os.environ["PATH"]]),
        "PIP_NO_INDEX": "1",  # all packages are installed
    }

    def run(*command, **variables):
        return subprocess.run(
            command, cwd=tmp_path, env={**environ, **variables}, text=True,
            capture_output=True, check=True,
        ).stdout  # fmt: skip

    printed = run(
        "roast-record", "run", "-o", "first.jsonl.zst", "--", "python3", *start, *ARGUMENTS,
        DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION="2.5",
    )  # fmt: skip
    assert printed == f"{ARGUMENTS} 2.5\n"

    with Trace(tmp_path / "first.jsonl.zst") as trace:
        text = plain(script(query(trace).rerun, query_run(trace)))

    assert run("sh", "-euc", text).endswith(printed)
    assert (tmp_path / "rerun.jsonl.zst").exists()
