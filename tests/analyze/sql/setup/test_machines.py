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
