"""What the database may take of the memory."""

import psutil
import pytest

from roast_analyze.errors import TraceError
from roast_analyze.open import memory_limit as memory
from roast_analyze.open.memory_limit import limit_bytes


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("1GiB", 2**30),
        ("1 gib", 2**30),
        ("500MB", 500_000_000),
        ("0.5GiB", 2**29),
        ("1073741824", 2**30),
        (2**30, 2**30),
    ],
)
def test_sizes_in_words(text, nbytes):
    assert limit_bytes(text) == nbytes


@pytest.mark.parametrize("text", ["much", "1 GiBs", "-1GiB", "", "1e9", "60%"])
def test_what_is_no_size(text):
    with pytest.raises(TraceError, match="is no size of memory; give one such as 1GiB"):
        limit_bytes(text)


def test_what_is_too_little():
    with pytest.raises(TraceError, match="'1MiB' is too little memory; give 128MiB or more"):
        limit_bytes("1MiB")


@pytest.fixture
def cgroup(monkeypatch, tmp_path):
    """Let a container limit the memory."""

    def cgroup(limit: str, usage: str = "0") -> None:
        (tmp_path / "max").write_text(limit)
        (tmp_path / "current").write_text(usage)
        monkeypatch.setattr(memory, "_CGROUP_FILES", [(tmp_path / "max", tmp_path / "current")])

    return cgroup


def test_by_default_it_is_a_share_of_what_is_free_and_never_more_than_4_gib(cgroup):
    cgroup("max\n")

    free = psutil.virtual_memory().available

    assert limit_bytes(None) == pytest.approx(min(0.6 * free, 2**32), rel=0.2)


def test_what_a_container_allows_counts(cgroup):
    cgroup(f"{3 * 2**30}\n", f"{2**30}\n")

    assert limit_bytes(None) == int(0.6 * 2 * 2**30)


def test_there_is_always_enough_to_begin(cgroup):
    cgroup("1000\n", "5000\n")

    assert limit_bytes(None) == memory.LEAST_BYTES
