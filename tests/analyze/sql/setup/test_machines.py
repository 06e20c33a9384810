"""Machines, and what processes may use of them."""

QUERY = "SELECT host, process, processes, cores, cgroup_cores, python, workers FROM machines"


def test_workers_of_one_host_and_limit_are_one_row(rows, told):
    machine = {"host": "n1", "cores": 64, "cgroup_cores": 8.0}
    facts = [
        *told("worker", machine=machine, python="3.12.1", worker="w0"),
        *told("worker", machine=machine, python="3.12.1", worker="w1"),
        *told("worker", machine={"host": "n1", "cores": 64}, python="3.12.1", worker="w2"),
    ]

    assert sorted(rows(QUERY, *facts), key=str) == [
        ("n1", "worker", 1, 64, None, "3.12.1", ["w2"]),
        ("n1", "worker", 2, 64, 8.0, "3.12.1", ["w0", "w1"]),
    ]


def test_recorders_before_told_host_platform_and_cores(rows):
    fact = {"kind": "environment", "t": 0.0, "section": "scheduler machine"}
    facts = [
        {**fact, "name": name, "value": value}
        for name, value in (("host", "n1"), ("platform", "Linux"), ("cores", 4))
    ]

    assert rows(QUERY, *facts) == [("n1", "scheduler", 1, 4, None, None, None)]


def test_limits_of_control_groups_are_derived_from_their_files(rows, told):
    def limits(**files):
        texts = [{"path": path, "text": text} for path, text in files["files"].items()]
        facts = told("client", machine={"host": "n1"}, files=texts)
        query = "SELECT cgroup_cores, cgroup_memory_bytes, cpu_model FROM machines"
        return rows(query, *facts)[0]

    v2, v1 = "/sys/fs/cgroup/a/", "/sys/fs/cgroup/cpu/a/"
    assert limits(files={}) == (None, None, None)
    # The smallest limit of the group and those around it applies.
    assert limits(
        files={
            "/proc/cpuinfo": "model name\t: Xeon: 5",
            v2 + "cpu.max": "200000 100000",
            "/sys/fs/cgroup/cpu.max": "max 100000",
            "/sys/fs/cgroup/b/cpu.max": "150000 100000",
            v2 + "memory.max": "max",
            "/sys/fs/cgroup/memory.max": "5000",
        }
    ) == (1.5, 5000, "Xeon: 5")
    # Version 1: -1 and a number near 2^63 are no limit.
    assert limits(
        files={
            v1 + "cpu.cfs_quota_us": "400000",
            v1 + "cpu.cfs_period_us": "100000",
            "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096",
        }
    ) == (4.0, 4096, None)
    assert limits(files={v2 + "cpu.max": "1 0", v2 + "memory.max": "x"}) == (None, None, None)
