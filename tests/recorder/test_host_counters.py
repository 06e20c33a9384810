"""What is read from a system about a host, its cores and the control group."""

import os
import threading
from types import SimpleNamespace

import pytest

from roast_recorder import host_counters
from roast_recorder.host_counters import Counters

#: Counters of a host with four cores; a tick is 10 ms.
STAT = """\
cpu  1000 200 300 5000 400 50 60 70 11 22
cpu0 100 20 30 500 40 5 6 7 1 2
cpu1 200 20 30 500 40 5 6 7 1 2
cpu2 300 20 30 500 40 5 6 7 1 2
cpu3 400 140 210 3500 280 35 42 49 8 16
intr 37896746 0 0
"""
PRESSURE = """\
some avg10=12.50 avg60=1.00 avg300=0.50 total=2500000
full avg10=1.25 avg60=0.10 avg300=0.05 total=500000
"""
CPU = {"proc/stat": STAT, "proc/pressure/cpu": PRESSURE, "proc/pressure/io": PRESSURE}
#: Of a system that is not described by files.
ALWAYS = {
    "clock_seconds", "cores", "usable_cores", "load_average", "host_busy_seconds",
    "host_idle_seconds",
}  # fmt: skip


@pytest.fixture
def counters(tmp_path, monkeypatch):
    """Write files of a system and return what is read from them."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(os, "sysconf", lambda _: 100)

    def counters(files: dict[str, str]) -> dict:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Counters(tmp_path).read()

    return counters


def test_counters_of_the_host(counters):
    found = counters(CPU)

    assert found["cores"] == os.cpu_count()
    assert found["usable_cores"] == 4
    measured = {name: value for name, value in found.items() if name not in ALWAYS}
    assert measured == {
        "host_iowait_seconds": 4.0,
        "host_steal_seconds": 0.7,
        "cpu_pressure_seconds": 2.5,
        "cpu_pressure_avg10": 12.5,
        "io_pressure_seconds": 2.5,
        "io_pressure_avg10": 12.5,
        "io_full_pressure_seconds": 0.5,
    }
    # Time of guests is part of that of users.
    assert found["host_busy_seconds"] == pytest.approx(10 + 2 + 3 + 0.5 + 0.6)
    assert found["host_idle_seconds"] == 50.0


def test_threads_that_compute_tasks(counters, monkeypatch):
    monkeypatch.setattr(host_counters, "task_threads", lambda: [7, 8, 9])
    found = counters(
        {
            "proc/self/task/6/schedstat": "9000000000 9000000000 9\n",  # of the event loop
            "proc/self/task/7/schedstat": "1000000000 1500000000 4\n",
            "proc/self/task/8/schedstat": "250000000 500000000 4\n",
        }
    )

    assert found["threads_busy_seconds"] == 1.25
    assert found["threads_waiting_seconds"] == 2.0


def test_threads_that_libraries_started(counters, monkeypatch):
    python = [SimpleNamespace(name="MainThread", native_id=5)]
    monkeypatch.setattr(threading, "enumerate", lambda: python)

    found = counters(
        {
            "proc/self/task/5/schedstat": "9000000000 9000000000 9\n",
            "proc/self/task/6/schedstat": "1000000000 1500000000 4\n",
            "proc/self/task/7/schedstat": "250000000 500000000 4\n",
        }
    )

    assert found["native_threads"] == 2
    assert found["native_busy_seconds"] == 1.25
    assert found["native_waiting_seconds"] == 2.0


def test_cores_that_the_process_may_not_use_are_counted_for_the_host_only(
    counters, monkeypatch
):
    # Core 9 has been switched off.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 9}, raising=False)

    found = counters(CPU)

    assert found["usable_cores"] == 3
    assert found["host_idle_seconds"] == 50.0
    assert found["usable_idle_seconds"] == pytest.approx(2 * (5 + 0.4))
    assert found["usable_busy_seconds"] == pytest.approx(1 + 3 + 2 * (0.2 + 0.3 + 0.05 + 0.06))


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"proc/stat": "", "proc/pressure/cpu": "", "proc/self/cgroup": ""},
        # The controller that is named is not mounted.
        {"proc/self/cgroup": "4:cpu,cpuacct:/a\n0::/a\n"},
    ],
)
def test_what_a_system_lacks_is_absent(counters, files):
    assert counters(files).keys() == ALWAYS


def test_a_system_without_affinity(counters, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")

    assert counters({}).keys() == ALWAYS - {"usable_cores"}


#: Version 2: a container of a job that has a quota of 1.5 cores.
TWO = {
    "proc/self/cgroup": "0::/job/container\n",
    "sys/fs/cgroup/cpu.stat": "usage_usec 900\n",
    "sys/fs/cgroup/job/cpu.stat": (
        "usage_usec 7500000\nnr_periods 40\nnr_throttled 10\nthrottled_usec 2500000\n"
    ),
    "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/job/cpu.pressure": PRESSURE,
    "sys/fs/cgroup/job/container/cpu.stat": (
        "usage_usec 500\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"
    ),
    "sys/fs/cgroup/job/container/cpu.max": "max 100000\n",
}
#: The same in version 1, of which the two controllers are mounted apart.
ONE = {
    "proc/self/cgroup": "5:memory:/m\n4:cpu:/job/container\n3:cpuacct:/job/container\n0::/\n",
    "sys/fs/cgroup/cpu/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
    "sys/fs/cgroup/cpu/job/cpu.stat": (
        "nr_periods 40\nnr_throttled 10\nthrottled_time 2500000000\n"
    ),
    "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "150000\n",
    "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu/job/container/cpu.stat": "nr_periods 0\n",
    "sys/fs/cgroup/cpu/job/container/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpu/job/container/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpuacct/job/cpuacct.usage": "7500000000\n",
    "sys/fs/cgroup/unified/cpu.stat": "usage_usec 900\n",
}
#: In a container, the group is mounted as the root.
MOUNTED = {
    "proc/self/cgroup": "0::/system.slice/outside/job\n",
    **{
        name.replace("/job/cpu", "/cpu"): text
        for name, text in TWO.items()
        if "/job/cpu" in name
    },
}


@pytest.mark.parametrize(
    ("files", "pressure"),
    [(TWO, 2.5), (ONE, None), (MOUNTED, 2.5)],
    ids=["version 2", "version 1", "container"],
)
def test_the_control_group_with_the_quota(counters, files, pressure):
    found = counters(files)

    assert {name: found.get(name) for name in found if name.startswith("cgroup")} == {
        "cgroup_cores": 1.5,
        "cgroup_busy_seconds": 7.5,
        "cgroup_periods": 40,
        "cgroup_throttled_periods": 10,
        "cgroup_throttled_seconds": 2.5,
        **({} if pressure is None else {"cgroup_pressure_seconds": pressure}),
    }


def test_a_control_group_without_a_quota_is_that_of_the_process(counters):
    found = counters({**TWO, "sys/fs/cgroup/job/cpu.max": "max 100000\n"})

    assert "cgroup_cores" not in found
    assert found["cgroup_busy_seconds"] == 0.0005
