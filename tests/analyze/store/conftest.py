import pytest

from roast_analyze import Store


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def write_run(write_trace, task, run, worker):
    """Write a trace with tasks, each with one attempt of 1 s."""

    def write_run(trace_id: str, tasks: int = 2, start: float = 0.0, **options):
        records = [worker("w1", start)]
        for i in range(tasks):
            records += [task(f"x-{i}", start), *run(f"x-{i}", start + i, start + i + 1.0)]
        options = {"stop_t": start + 100.0, "name": f"{trace_id}.jsonl"} | options
        path = write_trace(*records, trace_id=trace_id, **options)
        header = b'{"kind": "header", "t": %f'
        path.write_bytes(path.read_bytes().replace(header[:-2] + b"0.0", header % start, 1))
        return path

    return write_run
