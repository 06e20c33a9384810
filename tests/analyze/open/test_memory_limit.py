"""The memory limit of the database."""

import re

import psutil
import pytest

from roast_analyze.errors import TraceError
from roast_analyze.open import memory_limit
from roast_analyze.open.memory_limit import limit_bytes


def test_sizes():
    sizes = {
        "1GiB": 2**30, "1 gib": 2**30, "500MB": 500_000_000, "0.5GiB": 2**29,
        "1073741824": 2**30, 2**30: 2**30, "1073741824 B": 2**30, "1048576KiB": 2**30,
        "2 TiB": 2**41, "1000000kB": 10**9, "1 GB": 10**9, "1TB": 10**12,
        "9999999TiB": 2**60,  # the largest that DuckDB accepts
    }  # fmt: skip

    assert {text: limit_bytes(text) for text in sizes} == sizes


@pytest.mark.parametrize("text", ["much", "1 GiBs", "-1GiB", "", "1e9", "60%", "1MiB"])
def test_invalid_sizes(text):
    message = f"invalid memory limit {text!r}: use a size such as 1GiB"
    if text == "1MiB":
        message = "memory limit '1MiB' is too small: use 128MiB or more"

    with pytest.raises(TraceError, match=re.escape(message)):
        limit_bytes(text)


@pytest.mark.parametrize(
    ("group", "limit", "usage", "expected"),
    [
        ("", "max\n", "1000", None),
        # Of the 2 GiB in use, 1 GiB is reclaimable.
        ("", f"{3 * 2**30}\n", f"{2**31}\n", int(0.6 * 2 * 2**30)),
        ("", f"{2**30}\n", f"{2**31}\n", memory_limit.LEAST_BYTES),
        # The limit is that of the job, or of one of its steps.
        ("slurm/job_7", f"{3 * 2**30}\n", f"{2**31}\n", int(0.6 * 2 * 2**30)),
        ("slurm/job_7/step_0", f"{3 * 2**30}\n", f"{2**31}\n", int(0.6 * 2 * 2**30)),
        ("slurm/job_8", f"{2**30}\n", "1000", None),
    ],
)
@pytest.mark.parametrize("controller", ["", "memory"])
def test_the_default_is_a_share_of_the_free_memory_of_the_control_group(
    monkeypatch, tmp_path, controller, group, limit, usage, expected
):
    folder, own = tmp_path / group, tmp_path / "own"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "max").write_text(limit)
    (folder / "current").write_text(usage)
    (folder / "memory.stat").write_text(f"anon 5\ncache {2**30}\n")
    own.write_text(f"5:freezer:/slurm/job_8\n2:{controller}:/slurm/job_7/step_0\n")
    files = (controller, tmp_path, "max", "current", "cache")
    monkeypatch.setattr(memory_limit, "_CGROUPS", [files])
    monkeypatch.setattr(memory_limit, "_OWN_GROUPS", own)
    free = psutil.virtual_memory().available

    expected = min(0.6 * free, 2**32) if expected is None else expected
    assert limit_bytes(None) == pytest.approx(expected, rel=0.2)
