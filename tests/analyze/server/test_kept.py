"""Facts and reports that are kept until a trace changes."""

import roast_analyze
from roast_analyze.server import kept as kept_module
from roast_analyze.server.facts import Facts
from roast_analyze.server.kept import Kept

OLD, NEW = "0" * 16, "1" * 16


def test_facts_are_kept_until_the_trace_changes(tmp_path):
    facts = Facts(label="a\ud800", tasks=3, clean_end=True, finding="x")
    old = Kept.of(tmp_path, "trace", OLD)
    assert old.read_facts() is None
    old.write_facts(facts)
    old.report.touch()
    assert old.read_facts() == Kept.of(tmp_path, "trace", OLD).read_facts() == facts
    assert old.at(NEW).read_facts() is None
    assert Kept.of(tmp_path, "another", OLD).read_facts() is None

    old.at(NEW).write_facts(facts)
    assert (old.read_facts(), old.report.exists()) == (None, False)


def test_damaged_facts_are_read_again(tmp_path):
    kept = Kept.of(tmp_path, "trace", OLD)
    kept.write_facts(Facts())
    [file] = kept.folder.iterdir()
    for text in ("", "{", "[]", '{"unknown": 1}'):
        file.write_text(text)
        assert kept.read_facts() is None


def test_only_this_user_can_read_them(tmp_path):
    kept = Kept.of(tmp_path / "cache", "trace", OLD)
    kept.write_facts(Facts())
    assert kept.folder.stat().st_mode & 0o077 == 0


def test_facts_are_kept_until_the_code_changes(tmp_path, monkeypatch):
    package = tmp_path / "roast_analyze"
    (package / "sql" / "__pycache__").mkdir(parents=True)
    for name in ("__init__.py", "sql/a.sql"):
        (package / name).write_text("")
    monkeypatch.setattr(roast_analyze, "__file__", str(package / "__init__.py"))

    def folder():
        kept_module._code_digest.cache_clear()
        return Kept.of(tmp_path, "trace", OLD).folder

    before = folder()
    # A module is imported for the first time.
    (package / "sql" / "__pycache__" / "a.cpython-311.pyc").write_text("")
    (package / "__pycache__").mkdir()
    assert folder() == before
    (package / "sql" / "b.sql").write_text("")
    assert folder() != before
    kept_module._code_digest.cache_clear()
