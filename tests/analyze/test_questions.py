"""The commands that the guide names for questions run, and print what was asked for."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "questions.md").read_text("utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("|")]
COMMANDS = dict.fromkeys(re.findall(r"`roast-analyze ([^`]+)`", "".join(ROWS)))
#: Commands that need a server or a terminal: test_remote, test_serve and test_follow run them.
ELSEWHERE = ("URL", "serve FOLDER --open", "TRACE --follow")
SAMPLES = {"TRACE": "coffea", "BEFORE": "coffea", "AFTER": "coffea_failures"}


@pytest.mark.parametrize("column", ["about", "question"])
def test_every_row_has_a_command(column):
    table = PAGE.partition(f"| {column} | command |")[2].partition("\n\n")[0]
    rows = [row.split(" | ") for row in table.splitlines()[2:]]

    assert len(rows) > 8
    assert [row[0] for row in rows if not row[1].startswith("`roast-analyze ")] == []


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_the_commands_of_all_questions_run(analyze, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name, sample in SAMPLES.items():
        path = ROOT / "sample_traces" / f"{sample}.jsonl.zst"
        (tmp_path / f"{name}.jsonl.zst").write_bytes(path.read_bytes())
    assert len(COMMANDS) > 30
    for command in COMMANDS.keys() - ELSEWHERE:
        words = [f"{it}.jsonl.zst" if it in SAMPLES else it for it in shlex.split(command)]

        code, out, err = analyze(*words)

        # A note, such as of the number of rows, is no error.
        assert (code, "roast-analyze: " in err) == (0, False), command
        assert out or "export" in words, command
