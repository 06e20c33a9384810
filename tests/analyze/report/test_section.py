import pytest

from roast_analyze.report.section import Section


@pytest.mark.parametrize(
    ("content", "gist"),
    [
        ({"sentences": ("", "12 chunks.", "No file is slow.")}, "12 chunks."),
        ({"empty": "No worker was lost."}, "No worker was lost."),
        (
            {"empty": "The program named no spans. To name parts:", "hint": "span('a')"},
            "The program named no spans.",
        ),
    ],
)
def test_gist_of_a_folded_section(content, gist):
    assert Section("name", "Title", "Short", **content).gist == gist
