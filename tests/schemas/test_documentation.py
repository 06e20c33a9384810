"""Messages refer to existing pages of the documentation."""

import re
from pathlib import Path

from roast_schemas.documentation import docs

ROOT = Path(__file__).parents[2]
FILES = [
    path
    for folder in ("recorder", "analyze", "schemas")
    for ending in ("py", "sql")
    for path in (ROOT / folder).rglob(f"*.{ending}")
]
#: A call of `docs`, or its result, which can span two lines of a comment.
REFERENCE = re.compile(r"""docs\(["']([\w/-]+)|\(docs:(?:\s|--)+([\w/-]+)\)""")


def test_a_reference_is_the_path_of_a_page():
    assert docs("reference/views") == "(docs: reference/views)"


def test_all_pages_exist():
    pages = {
        call or text: path.relative_to(ROOT)
        for path in FILES
        for call, text in REFERENCE.findall(path.read_text("utf-8"))
    }

    assert {"reference/views", "how-to/yappi", "reference/trace-format"} <= pages.keys()
    missing = {page: path for page, path in pages.items() if not page_file(page).is_file()}
    assert missing == {}


def page_file(page: str) -> Path:
    return ROOT / "docs" / f"{page}.md"
