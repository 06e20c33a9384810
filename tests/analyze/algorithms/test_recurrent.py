"""Members of a group that are slow in many runs."""

from roast_analyze.algorithms.recurrent import recurrent


def test_a_member_that_is_slow_in_most_of_its_runs():
    runs, slow_runs = [20] * 10, [18, 9, 1, 0, 0, 0, 2, 0, 1, 0]

    # The second one is slow more often than others, but in less than half of its runs.
    assert recurrent(runs, slow_runs, significance=0.01) == [True] + [False] * 9


def test_few_runs_are_no_evidence_among_many_members():
    def first_is_slow(members: int, runs: int) -> bool:
        slow_runs = [runs] + [1] * (members - 1)
        return recurrent([runs] * members, slow_runs, significance=0.01)[0]

    assert not first_is_slow(members=10, runs=2)
    assert first_is_slow(members=10, runs=8)
    assert not first_is_slow(members=10_000, runs=5)


def test_without_others_the_test_is_a_sign_test():
    assert recurrent([7], [7], significance=0.01) == [True]
    assert recurrent([6], [6], significance=0.01) == [False]
    assert recurrent([], [], significance=0.01) == []
