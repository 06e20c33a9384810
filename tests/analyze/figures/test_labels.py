import pytest

from roast_analyze.figures.labels import label, worker_name
from roast_analyze.safe_text import shortened, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sum-1", "sum-1"),
        (None, ""),
        (7, "7"),
        ("<b>bold</b>", "&lt;b&gt;bold&lt;/b&gt;"),
        ("a &lt; b", "a &amp;lt; b"),
        ("two\nlines\tand  tabs", "two lines and tabs"),
        ("x\x00y", "x␀y"),
        ("abc\u202egpj.exe", "abc⟨U+202E⟩gpj.exe"),
        ("lone \ud800 surrogate", "lone ⟨U+D800⟩ surrogate"),
        ("{brace %{y}", "{brace %{y}"),
    ],
)
def test_a_label_has_no_markup_and_nothing_invisible(text, shown):
    assert label(text) == shown


def test_a_long_label_keeps_both_of_its_ends():
    assert shortened("('from-array', 17)" * 3, 11) == "('fro…, 17)"


def test_a_label_is_shortened_before_it_is_escaped():
    assert label("<" * 500, 9) == "&lt;" * 4 + "…" + "&lt;" * 4


def test_newlines_stay_in_visible_text():
    assert visible("a\n\tb") == "a\n\tb"


@pytest.mark.parametrize(
    ("worker", "name", "shown"),
    [
        ("tcp://10.0.0.1:40001", "0", "worker 0"),
        ("tcp://10.0.0.1:40001", 7, "worker 7"),
        ("tcp://10.0.0.1:40001", "gpu node", "gpu node"),
        ("tcp://10.0.0.1:40001", None, "10.0.0.1:40001"),
        ("tcp://10.0.0.1:40001", "", "10.0.0.1:40001"),
        ("tcp://10.0.0.1:40001", "tcp://10.0.0.1:40001", "10.0.0.1:40001"),
        (None, None, "?"),
        ("w1", "<b>\ntwo", "<b> two"),
        ("w1", "SLURMCluster-job-1234567-worker-12", "SLURMCluste…67-worker-12"),
    ],
)
def test_a_worker_has_a_short_name_of_one_line(worker, name, shown):
    assert worker_name({"worker": worker, "name": name}) == shown
