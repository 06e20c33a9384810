"""Rule retries: attempts that failed."""

import pytest


def test_by_exception(apply, worker, task, run):
    """Seven of eight attempts of 2 s fail, five of them with a timeout."""
    records = [worker("w1"), *(task(f"read-{number}") for number in range(8))]
    for number in range(7):
        begin = 2.0 * number
        records += run(
            f"read-{number}", begin, begin + 2.0, outcome="retried" if number < 5 else "erred",
            exception="TimeoutError: 5 s" if number < 5 else "OSError('no such file')",
            phases=[("compute", begin, begin + 2.0)],
        )  # fmt: skip
    found = apply(
        "retries",
        *records,
        *run("read-7", 14.0, 16.0),
        columns="entity, sentence",
    )
    assert dict(found) == {
        "OSError": "2 attempts at 2 tasks (read) failed with OSError: "
        "4.0 s of computing were lost.",
        "TimeoutError": "5 attempts at 5 tasks (read) failed with TimeoutError: "
        "10.0 s of computing were lost.",
    }


@pytest.mark.parametrize("outcome", ["memory", "lost", "cancelled"])
def test_other_outcomes(apply, worker, task, run, outcome):
    assert apply("retries", worker("w1"), task("a"), *run("a", 0.0, 9.0, outcome=outcome)) == []
