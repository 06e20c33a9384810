"""Messages that the command line prints."""

import warnings

import pytest

from roast_analyze.commands.messages import warning_lines
from roast_analyze.open import derived_tables


def test_a_warning_is_printed_once_as_a_line(
    analyze, monkeypatch, own_cache, write_trace, task
):
    def keep_tables(draft, _database):
        raise OSError(f"{draft}: No space left on device")

    monkeypatch.setattr(derived_tables, "keep_tables", keep_tables)
    paths = [write_trace(task("a"), name=f"{n}.jsonl", trace_id=n) for n in ("A", "B")]

    code, _, err = analyze("each", *paths, "SELECT key FROM tasks")

    [line] = err.splitlines()
    assert code == 0
    assert line.startswith(f"roast-analyze: cannot write to '{own_cache}/")
    assert line.endswith("No space left on device); the tables are computed again next time")


def test_warnings_of_libraries_are_not_changed():
    with pytest.warns(DeprecationWarning, match="old"), warning_lines():
        warnings.warn("old", DeprecationWarning, stacklevel=1)
