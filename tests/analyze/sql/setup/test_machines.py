"""View machines: hosts, and the limits of the processes on them."""

QUERY = "SELECT host, process, processes, cores, cgroup_cores, python, workers FROM machines"


def test_processes_of_one_host_and_limit_are_one_row(rows, process_facts):
    machine = {"host": "n1", "cores": 64}
    limited = {**machine, "cgroup_cores": 8.0}
    workers = {"w0": limited, "w1": limited, "w2": machine}
    facts = [
        fact
        for worker, machine in workers.items()
        for fact in process_facts("worker", machine=machine, python="3.12.1", worker=worker)
    ]
    # As in older traces.
    fact = {"kind": "environment", "t": 0.0, "section": "scheduler machine"}
    older = {"host": "n1", "platform": "Linux", "cores": 4}
    facts += ({**fact, "name": name, "value": value} for name, value in older.items())

    assert sorted(rows(QUERY, *facts), key=str) == [
        ("n1", "scheduler", 1, 4, None, None, None),
        ("n1", "worker", 1, 64, None, "3.12.1", ["w2"]),
        ("n1", "worker", 2, 64, 8.0, "3.12.1", ["w0", "w1"]),
    ]


#: Files of each host, and its limits of cores and memory.
V2, V1 = "/sys/fs/cgroup", "/sys/fs/cgroup/cpu"
LIMITS = {
    "no files": ({}, (None, None, None)),
    "the smallest limit of the group and those around it": (
        {
            "/proc/cpuinfo": "model name\t: Xeon: 5",
            f"{V2}/a/cpu.max": "200000 100000",
            f"{V2}/cpu.max": "max 100000",
            f"{V2}/b/cpu.max": "150000 100000",
            f"{V2}/a/memory.max": "max",
            f"{V2}/memory.max": "5000",
        },
        (1.5, 5000, "Xeon: 5"),
    ),
    "version 1, where -1 and a number near 2^63 are no limit": (
        {
            f"{V1}/a/cpu.cfs_quota_us": "400000",
            f"{V1}/a/cpu.cfs_period_us": "100000",
            f"{V1}/cpu.cfs_quota_us": "-1",
            f"{V1}/cpu.cfs_period_us": "100000",
            f"{V2}/memory/memory.limit_in_bytes": "9223372036854771712",
            f"{V2}/memory/a/memory.limit_in_bytes": "4096",
        },
        (4.0, 4096, None),
    ),
    "nonsense": ({f"{V2}/a/cpu.max": "1 0", f"{V2}/a/memory.max": "x"}, (None, None, None)),
}


def test_limits_of_control_groups_are_derived_from_their_files(rows, process_facts):
    facts = []
    for host, (files, _) in LIMITS.items():
        texts = [{"path": path, "text": text} for path, text in files.items()]
        facts += process_facts("worker", machine={"host": host}, files=texts, worker=host)

    query = "SELECT host, cgroup_cores, cgroup_memory_bytes, cpu_model FROM machines"
    expected = {host: limits for host, (_, limits) in LIMITS.items()}
    assert {host: tuple(limits) for host, *limits in rows(query, *facts)} == expected
