"""The queries of the how-to guides return the recorded answers.

The views that they use are computed independently in tests/nightly. After a query is added
or changed, check its rows by hand and renew the answers with
``python tests/analyze/test_documented_queries.py``.
"""

import json
import re
from pathlib import Path

import duckdb
import pytest

from roast_analyze import Trace

ROOT = Path(__file__).parents[2]
ANSWERS = Path(__file__).parent / "data" / "documented_queries.json"
SAMPLES = ["coffea", "coffea_failures"]
#: Rows of a query that are recorded.
ROWS = 8


def documented_queries() -> dict[str, str]:
    """Return queries by the line above them."""
    pages = sorted((ROOT / "docs" / "how-to").glob("*.md"))
    text = "\n".join(page.read_text("utf-8") for page in pages)
    found = re.findall(r"^([^\n`|]+):\n\n```sql\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return dict(found)


def answers(sample: str) -> dict[str, list]:
    """Return the number of rows and the first rows of each query."""
    with Trace(ROOT / "sample_traces" / f"{sample}.jsonl.zst") as trace:
        found = {title: trace.rows(query) for title, query in documented_queries().items()}
    return {title: [len(rows), *map(list, rows[:ROWS])] for title, rows in found.items()}


@pytest.mark.parametrize("sample", SAMPLES)
def test_queries_return_the_recorded_answers(sample):
    recorded = json.loads(ANSWERS.read_text("utf-8"))[sample]
    found = answers(sample)

    assert found.keys() == recorded.keys()
    differing = {
        title: (rows, recorded[title])
        for title, rows in found.items()
        if not equal(rows, recorded[title])
    }
    assert differing == {}


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_query_for_plain_duckdb_returns_the_rows_of_a_view(sample):
    page = (ROOT / "docs" / "how-to" / "export.md").read_text("utf-8")
    [query] = re.findall(r"^```sql raw\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    path = ROOT / "sample_traces" / f"{sample}.jsonl.zst"
    with Trace(path) as trace:
        rows = trace.rows(
            "SELECT worker, count(*), sum(nbytes) FROM task_runs WHERE outcome = 'memory' "
            "GROUP BY worker ORDER BY worker"
        )

    assert duckdb.sql(query.replace("trace.jsonl.zst", str(path))).fetchall() == rows


def equal(found: object, recorded: object) -> bool:
    """Compare nested lists, floats up to the error of adding them in another order."""
    if isinstance(found, list) and isinstance(recorded, list):
        return len(found) == len(recorded) and all(map(equal, found, recorded))
    if isinstance(found, float):
        return found == pytest.approx(recorded)
    return found == recorded


if __name__ == "__main__":
    texts = {sample: answers(sample) for sample in SAMPLES}
    ANSWERS.write_text(json.dumps(texts, indent=None) + "\n", "utf-8")
