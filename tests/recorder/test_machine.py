"""What is said of a machine, and of what a process may use of it."""

import os
import socket

import pytest

from roast_recorder.machine import cgroup_limits, describe


@pytest.fixture
def root(tmp_path):
    """A file system of some files, given by path and text."""

    def root(files):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return tmp_path

    return root


def test_this_machine():
    facts = describe()

    assert facts["host"] == socket.gethostname()
    assert facts["cores"] == os.cpu_count()
    assert 1 <= facts["usable_cores"] <= facts["cores"]
    assert facts["memory_bytes"] > 2**28
    assert None not in facts.values()


def test_the_model_of_the_cpu(root):
    at = root({"proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n"})

    assert describe(at)["cpu_model"] == "Some CPU @ 2 GHz"


@pytest.mark.parametrize(
    ("files", "limits"),
    [
        # version 2: the tightest of the groups around counts
        (
            {
                "proc/self/cgroup": "0::/slurm/job_1/step_0\n",
                "sys/fs/cgroup/slurm/job_1/step_0/cpu.max": "max 100000\n",
                "sys/fs/cgroup/slurm/job_1/step_0/memory.max": "max\n",
                "sys/fs/cgroup/slurm/job_1/cpu.max": "400000 100000\n",
                "sys/fs/cgroup/slurm/job_1/memory.max": "8589934592\n",
                "sys/fs/cgroup/slurm/cpu.max": "1600000 100000\n",
            },
            (4.0, 8 * 2**30),
        ),
        # a container: its own group is the root
        (
            {
                "proc/self/cgroup": "0::/../../kubepods/pod1\n",
                "sys/fs/cgroup/cpu.max": "150000 100000",
                "sys/fs/cgroup/memory.max": "1073741824",
            },
            (1.5, 2**30),
        ),
        # version 1
        (
            {
                "proc/self/cgroup": "5:memory:/job\n4:cpu,cpuacct:/job\n3:freezer:/\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "2147483648\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            (2.0, 2 * 2**30),
        ),
        (
            {
                "proc/self/cgroup": "4:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            (None, None),
        ),
        ({"proc/self/cgroup": "nonsense\n::\n"}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_limits_of_control_groups(root, files, limits):
    assert cgroup_limits(root(files)) == limits
