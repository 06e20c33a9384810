"""The command ``import``: combinations of arguments."""


def test_invalid_combinations(tmp_path, monkeypatch, analyze, write_trace, task):
    monkeypatch.chdir(tmp_path)
    write_trace(task("a"), name="t")
    (tmp_path / "d").write_bytes(b"")
    for words, message in {
        "strace x --into t": "unknown tool 'strace': choose from darshan, yappi, dump",
        "darshan x": "darshan needs --into TRACE",
        "darshan x --into t --worker w": "--worker is not an option of darshan: use --into",
        "darshan x --into t --clock cpu": "--clock is not an option of darshan",
        "darshan missing.darshan --into t": "No such file or directory",
        "yappi x --into t -o u": "--output is not an option of yappi: use --into",
        "yappi x --into -": "--into cannot be stdout: name a file",
        "yappi x --into missing": "'missing' does not exist: name a trace file",
        "yappi x --into t --worker w": "unknown worker 'w': the trace has none",
        "dump x --into t": "dump needs --output TRACE",
        "dump x --into t -o u": "--into is not an option of dump: use --output",
        "dump x y -o t": "expected one dump, got 2",
        "dump d -o u.txt": "invalid trace name 'u.txt': use .jsonl",
        "dump missing -o u.jsonl": "'missing' cannot be read: No such file",
    }.items():
        code, out, err = analyze("import", *words.split())
        assert (code, out, err.count("\n")) == (2, "", 1), words
        assert message in err
    assert {path.name for path in tmp_path.iterdir()} == {"t", "d"}
