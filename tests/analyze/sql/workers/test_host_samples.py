"""View host_samples."""

import pytest


def sample(t, clock=None, server_id="w", host="h", worker="w1", **metrics):
    metrics = {"clock_seconds": t if clock is None else clock, "cores": 4, **metrics}
    about = {"host": host, "worker": worker, "server_id": server_id}
    return {"kind": "host_sample", "t": t, **about, "metrics": metrics}


COUNTERS = {
    "usable_cores": 4,
    "cgroup_cores": 1.5,
    "load_average": 2.5,
    "host_busy_seconds": 1000.0,
    "host_idle_seconds": 500.0,
    "host_iowait_seconds": 50.0,
    "host_steal_seconds": 5.0,
    "cpu_pressure_seconds": 10.0,
    "io_pressure_seconds": 20.0,
    "io_full_pressure_seconds": 5.0,
    "cgroup_busy_seconds": 100.0,
    "cgroup_periods": 10,
    "cgroup_throttled_periods": 5,
    "cgroup_throttled_seconds": 3.0,
    "cgroup_pressure_seconds": 7.0,
    "threads_busy_seconds": 30.0,
    "threads_waiting_seconds": 60.0,
    "native_threads": 7,
    "native_busy_seconds": 5.0,
    "native_waiting_seconds": 2.0,
}
GROWN = {
    **COUNTERS,
    "host_busy_seconds": 1006.0,
    "host_idle_seconds": 501.0,
    "host_iowait_seconds": 50.5,
    "host_steal_seconds": 5.5,
    "cpu_pressure_seconds": 11.0,
    "io_pressure_seconds": 20.5,
    "io_full_pressure_seconds": 5.25,
    "cgroup_busy_seconds": 103.0,
    "cgroup_periods": 30,
    "cgroup_throttled_periods": 15,
    "cgroup_throttled_seconds": 4.0,
    "cgroup_pressure_seconds": 8.5,
    "threads_busy_seconds": 31.0,
    "threads_waiting_seconds": 63.0,
    "native_threads": 7,
    "native_busy_seconds": 6.0,
    "native_waiting_seconds": 7.0,
}


def test_rates_are_those_since_the_previous_sample(rows):
    # The clock of the host counts, of which that of the scheduler is an estimate.
    samples = [sample(1.0, clock=50.0, **COUNTERS), sample(2.7, clock=52.0, **GROWN)]

    assert rows("SELECT * FROM host_samples", *samples) == [
        (1.0, "h", "w1", 4, 1.5, 2.5, *[None] * 13, 7, None, None, "w", "T"),
        (
            2.7, "h", "w1", 4, 1.5, 2.5, 2.0,
            300.0, 75.0, 25.0,  # busy; free with what awaits I/O; used by other machines
            150.0, 50.0, 1.0,  # control group
            50.0, 75.0, 75.0,  # waiting for cores
            25.0, 12.5, 25.0,  # waiting for I/O
            7, 50.0, 250.0,  # threads of libraries
            "w", "T",
        ),
    ]  # fmt: skip


def rates(rows, *samples, columns="seconds, cpu_percent, free_percent, throttled_percent"):
    return rows(f"SELECT {columns} FROM host_samples", *samples)


def test_threads_for_tasks_that_start_after_the_first_sample(rows):
    spent = [{}, (1.0, 3.0), {}, (2.0, 4.0), (4.0, 6.0)]
    names = ("threads_busy_seconds", "threads_waiting_seconds")
    samples = [
        sample(2.0 * number, **dict(zip(names, counters, strict=False)))
        for number, counters in enumerate(spent)
    ]
    # At the third one they could not be read.
    assert rates(rows, *samples, columns="waiting_percent") == [
        (None,), (75.0,), (None,), (None,), (50.0,),
    ]  # fmt: skip


def test_processes_and_hosts_are_apart(rows):
    columns = "host, worker, seconds"
    assert rates(
        rows,
        sample(1.0),
        sample(1.5, host="other", server_id="o", worker="w2"),
        sample(2.0, server_id="s", worker=None),
        sample(3.0),
        sample(4.0, host="other", server_id="o", worker="w2"),
        columns=columns,
    ) == [
        ("h", "w1", None),
        ("other", "w2", None),
        ("h", None, None),
        ("h", "w1", 2.0),
        ("other", "w2", 2.5),
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # Too close for a resolution of 10 ms.
        (sample(1.0, **COUNTERS), sample(1.1, **GROWN), (None,) * 4),
        # What the system does not count.
        (sample(1.0), sample(3.0), (2.0, None, None, None)),
        # Without a quota, there are no periods.
        (
            sample(1.0, **COUNTERS),
            sample(3.0, **{**GROWN, "cgroup_cores": None}),
            (2.0, 300.0, 75.0, None),
        ),
        # Counters that went back.
        (sample(1.0, **GROWN), sample(3.0, **COUNTERS), (2.0, None, None, None)),
        # The process may use two of four cores.
        (
            sample(1.0, **COUNTERS, usable_busy_seconds=1.0, usable_idle_seconds=2.0),
            sample(3.0, **GROWN, usable_busy_seconds=4.0, usable_idle_seconds=3.0),
            (2.0, 300.0, 50.0, 50.0),
        ),
        # It may use other cores than before.
        (
            sample(1.0, **COUNTERS),
            sample(3.0, **{**GROWN, "usable_cores": 2}),
            (None,) * 4,
        ),
    ],
)
def test_what_cannot_be_known_is_null(rows, before, after, expected):
    assert rates(rows, before, after)[1] == expected


def test_a_time_range(write_trace):
    from roast_analyze import Trace

    path = write_trace(*(sample(float(t), **COUNTERS) for t in range(5)))
    with Trace(path, start=1.0, stop=3.0) as trace:
        assert len(trace.rows("FROM host_samples")) == 2
