"""The memory limit of the database."""

import psutil
import pytest

from roast_analyze.errors import TraceError
from roast_analyze.open import memory_limit
from roast_analyze.open.memory_limit import limit_bytes


def test_sizes():
    sizes = {
        "1GiB": 2**30,
        "1 gib": 2**30,
        "500MB": 500_000_000,
        "0.5GiB": 2**29,
        "1073741824": 2**30,
        2**30: 2**30,
    }

    assert {text: limit_bytes(text) for text in sizes} == sizes


def test_invalid_sizes():
    for text in ("much", "1 GiBs", "-1GiB", "", "1e9", "60%"):
        with pytest.raises(
            TraceError, match=r"invalid memory limit .*: use a size such as 1GiB"
        ):
            limit_bytes(text)
    with pytest.raises(TraceError, match=r"'1MiB' is too small: use 128MiB or more"):
        limit_bytes("1MiB")


@pytest.fixture
def cgroup(monkeypatch, tmp_path):
    """Set the limit and the usage of a container."""

    def cgroup(limit: str, usage: str = "0") -> None:
        files = (tmp_path / "max", tmp_path / "current")
        files[0].write_text(limit)
        files[1].write_text(usage)
        monkeypatch.setattr(memory_limit, "_CGROUP_FILES", [files])

    return cgroup


def test_the_default_is_a_share_of_the_free_memory_up_to_4_gib(cgroup):
    cgroup("max\n")
    free = psutil.virtual_memory().available
    assert limit_bytes(None) == pytest.approx(min(0.6 * free, 2**32), rel=0.2)

    cgroup(f"{3 * 2**30}\n", f"{2**30}\n")
    assert limit_bytes(None) == int(0.6 * 2 * 2**30)

    cgroup("1000\n", "5000\n")
    assert limit_bytes(None) == memory_limit.LEAST_BYTES
