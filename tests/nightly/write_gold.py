"""Write the gold rows of the sample traces and of the odd traces: `make gold`."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from nightly.comparison import Answer
from nightly.gold import FOLDER, gold_of, sums
from nightly.odd_traces import reduced, write_odd_traces
from nightly.test_odd_traces import SAMPLE, seq_from_zero
from nightly.test_views import COMPUTED, OLDER, SAMPLES, VIEWS, name_of
from roast_analyze import Trace


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    for path in [*SAMPLES, *OLDER]:
        with Trace(path) as trace:
            rows = [
                {view: row} for view in VIEWS for row in gold_of(Answer.of(trace.view(view)))
            ]
        _write(name_of(path), rows)
    with TemporaryDirectory() as folder:
        paths = write_odd_traces(Path(folder), reduced(SAMPLE))
        with Trace(*paths.values()) as trace:
            answers = {
                view: Answer.of(trace.view(view)).by("trace_id")
                for view in VIEWS
                if view not in COMPUTED
            }
    _write("odd_traces", [_table(view, parts) for view, parts in answers.items()])


def _table(view: str, parts: dict[str, Answer]) -> list:
    """Return the sums of a view: its name, the columns, and their values by trace."""
    rows = {trace: sums(seq_from_zero(part).rows) for trace, part in parts.items()}
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    values = {trace: [row.get(name) for name in columns] for trace, row in rows.items()}
    return [view, columns, values]


def _write(name: str, rows: list) -> None:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    (FOLDER / f"{name}.jsonl").write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main()
