"""Generated files match the declarations."""

import functools
import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "schemas" / "generate.py"


@pytest.fixture
def generate():
    """Load the script as a module that generates its texts once."""
    spec = importlib.util.spec_from_file_location("generate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.generated = functools.cache(module.generated)
    return module


def test_the_generated_files_are_fresh(generate, capsys):
    assert generate.main(["--check"]) == 0, capsys.readouterr().err


def test_a_stale_file_is_reported_and_rewritten(generate, tmp_path, monkeypatch, capsys):
    texts = {
        tmp_path / path.relative_to(generate.ROOT): text
        for path, text in generate.generated().items()
    }
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "generated", lambda: texts)
    generate.main([])
    (tmp_path / "schemas" / "trace.schema.json").write_text("stale")
    capsys.readouterr()

    assert generate.main(["--check"]) == 1
    assert capsys.readouterr() == (
        "",
        "schemas/trace.schema.json is stale: run make generate\n",
    )
    assert generate.main([]) == 0
    assert capsys.readouterr().out == "wrote schemas/trace.schema.json\n"
    assert generate.main(["--check"]) == 0
