import pytest
from roast_analyze.figures.worker_count import headcount

from roast_analyze.figures.layout import TimeAxis
from roast_analyze.figures.samples import POINT_LIMIT

AXIS = TimeAxis(100.0, 110.0)


def named(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


def test_the_number_of_workers_goes_up_and_down_in_steps(workers):
    figure = headcount(
        workers(
            ("w1", 2, 100.0, None, False),
            ("w2", 2, 104.0, 108.0, False),
            ("w3", 2, 100.0, 106.0, True),
        ),
        AXIS,
        began_t=100.1,
    )

    steps = named(figure, "workers")
    assert (steps.x, steps.y) == ((0, 4, 6, 8, 10), (2, 3, 2, 1, 1))
    assert steps.line.shape == "hv"


def test_who_came_and_went_is_marked_but_for_who_was_there(workers):
    figure = headcount(
        workers(
            ("w1", 2, 100.0, None, False),
            ("w2", 2, 104.0, 108.0, False),
            ("w3", 2, 104.0, 106.0, True),
        ),
        AXIS,
        began_t=100.1,
    )

    came, left = named(figure, "came"), named(figure, "left")
    lost = named(figure, "went away unexpectedly")
    assert (came.x, came.customdata) == ((4,), ([2, "w2, w3"],))
    assert (left.x, left.customdata) == ((8,), ([1, "w2"],))
    assert (lost.x, lost.y, lost.customdata) == ((6,), (2,), ([1, "w3"],))


def test_threads_have_a_curve_where_workers_differ(workers):
    alike = headcount(workers(("w1", 2, 100.0, None, False)), AXIS, began_t=100.0)
    unlike = headcount(
        workers(("w1", 2, 100.0, None, False), ("w2", 8, 105.0, None, False)),
        AXIS,
        began_t=100.0,
    )

    assert [trace.name for trace in alike.data] == ["workers"]
    assert named(unlike, "threads").y == (2, 10, 10)


def test_of_many_that_come_at_once_a_few_are_named(workers):
    figure = headcount(
        workers(*((f"w{i}", 1, 105.0, None, False) for i in range(9))), AXIS, began_t=100.0
    )

    assert named(figure, "came").customdata == ([9, "w0, w1, w2 and 6 more"],)


def test_however_often_workers_come_and_go_the_figure_is_small(workers):
    coming = [(f"w{i}", 1, 100.0 + i / 500, 100.5 + i / 500, False) for i in range(3000)]

    figure = headcount(workers(*coming), AXIS, began_t=100.0)

    assert all(len(trace.x) <= POINT_LIMIT + 2 for trace in figure.data)
    assert sum(n for n, _ in named(figure, "left").customdata) == 3000


def test_a_worker_of_which_nothing_is_known_counts_from_the_start(workers):
    figure = headcount(workers(("w1", None, None, None, None)), AXIS, began_t=100.0)

    assert named(figure, "workers").x == pytest.approx((0, 10))
    assert named(figure, "workers").y == (1, 1)


def test_names_are_no_markup(workers):
    figure = headcount(workers(("<b>x", 1, 105.0, None, False)), AXIS, began_t=100.0)

    assert named(figure, "came").customdata == ([1, "&lt;b&gt;x"],)
