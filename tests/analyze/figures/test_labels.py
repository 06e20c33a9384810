from roast_analyze.figures.labels import label, worker_name
from roast_analyze.safe_text import shortened, visible


def test_labels_have_no_markup_and_nothing_invisible():
    labels = {
        "sum-1": "sum-1",
        None: "",
        7: "7",
        "<b>bold</b>": "&lt;b&gt;bold&lt;/b&gt;",
        "a &lt; b": "a &amp;lt; b",
        "two\nlines\tand  tabs": "two lines and tabs",
        "x\x00y": "x␀y",
        "abc\u202egpj.exe": "abc⟨U+202E⟩gpj.exe",
        "lone \ud800 surrogate": "lone ⟨U+D800⟩ surrogate",
        "{brace %{y}": "{brace %{y}",
    }

    assert {text: label(text) for text in labels} == labels
    assert visible("a\n\tb") == "a\n\tb"


def test_long_labels_are_shortened_in_the_middle_before_they_are_escaped():
    assert shortened("('from-array', 17)" * 3, 11) == "('fro…, 17)"
    assert label("<" * 500, 9) == "&lt;" * 4 + "…" + "&lt;" * 4


def test_names_of_workers():
    address = "tcp://10.0.0.1:40001"
    names = {
        (address, "0"): "worker 0",
        (address, 7): "worker 7",
        (address, "gpu node"): "gpu node",
        (address, None): "10.0.0.1:40001",
        (address, ""): "10.0.0.1:40001",
        (address, address): "10.0.0.1:40001",
        (None, None): "?",
        ("w1", "<b>\ntwo"): "<b> two",
        ("w1", "SLURMCluster-job-1234567-worker-12"): "SLURMCluste…67-worker-12",
    }

    assert {
        (worker, name): worker_name({"worker": worker, "name": name}) for worker, name in names
    } == names
