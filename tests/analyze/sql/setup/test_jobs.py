"""Jobs of batch systems."""


def test_a_row_for_each_process_in_a_job(rows, told):
    job = {"system": "SLURM", "job_id": "7", "queue": "cms", "cores": 8, "node": "n1"}
    facts = [
        *told("scheduler", jobs=[]),
        *told("worker", jobs=[{**job, "memory_bytes": 100}], worker="w0",
              machine={"host": "n1.site"}),
        *told("worker", jobs=[job, {"system": "Kubernetes", "job_id": "p"}], worker="w1"),
        *told("client"),
    ]  # fmt: skip

    query = 'SELECT process, worker, "system", job_id, queue, node, cores, '
    assert rows(query + "memory_limit_bytes, host FROM jobs", *facts) == [
        ("worker", "w0", "SLURM", "7", "cms", "n1", 8, 100, "n1.site"),
        ("worker", "w1", "SLURM", "7", "cms", "n1", 8, None, None),
        ("worker", "w1", "Kubernetes", "p", None, None, None, None, None),
    ]


def test_of_an_older_trace_there_are_none(rows, worker):
    assert rows("FROM jobs", worker("w0")) == []
