"""Descriptions of code that submits work."""

from roast_recorder.submitting_code import LINES_AROUND, MAX_CODE_CHARACTERS, describe_code


def test_long_code_is_cut_around_the_line_that_submits():
    text = "".join(f"line {n} " + "x" * 50 + "\n" for n in range(1, 2_001))

    code = describe_code(text, "/somewhere/a.py", 1_000, 1)

    assert len(code["text"]) <= MAX_CODE_CHARACTERS
    assert code["text"].startswith(f"line {1_000 - LINES_AROUND} ")
    assert code["text"].splitlines()[1_000 - code["first_line"]].startswith("line 1000 ")
    assert code["filename"] == "a.py"
