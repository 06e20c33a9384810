"""Keep many runs in a store.

A store is a folder or a URL with Delta Lake tables.

    add TRACE… --to STORE   add traces; longer versions of a trace replace shorter ones
    list STORE              list the runs
    remove STORE TRACE_ID…  remove traces, also by age (--before) or size (--most)
    compact STORE           merge small files and remove what is not used
    check STORE             compare the rows of all tables with those that were added

`roast-analyze sql STORE QUERY` queries a store. Traces that cannot be read are listed at the
end of add, and the exit code is 1; all others are added. If add was interrupted, repeat it.

For example:

    roast-analyze store add 'runs/*.jsonl.zst' --to store --workers 4
    roast-analyze store add runs/ --to s3://bucket/store --scheduler tcp://host:8786
    roast-analyze sql store "SELECT program, sum(core_hours) FROM runs GROUP BY ALL"
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Final

from roast_analyze.commands.cluster_args import add_cluster, connected
from roast_analyze.commands.messages import print_note, print_result
from roast_analyze.commands.progress import progress
from roast_analyze.commands.whole_numbers import whole_number
from roast_analyze.errors import TraceError

if TYPE_CHECKING:
    from roast_analyze.store.store import Store

#: What follows each action.
ACTIONS: Final = {
    "add": "TRACE…",
    "list": "STORE",
    "remove": "STORE TRACE_ID…",
    "compact": "STORE",
    "check": "STORE",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", metavar="ACTION", help=", ".join(ACTIONS))
    parser.add_argument(
        "names", metavar="NAME", nargs="+", help="traces to add, or the store and trace_ids"
    )
    parser.set_defaults(reads_many=True)
    parser.add_argument("--to", metavar="STORE", help="store to add to; created if missing")
    parser.add_argument(
        "--before",
        metavar="DATE",
        type=_date,
        help="remove all runs that began before DATE (2026-08-31, or with a time; UTC)",
    )
    parser.add_argument(
        "--most",
        metavar="SIZE",
        help="remove the oldest runs until the files of the others fit in SIZE, such as 500GB",
    )
    parser.add_argument(
        "--grace",
        metavar="HOURS",
        type=partial(whole_number, what="number of hours", hint="0 or 24", least=0),
        help="age from which compact removes unused rows and files (default: 24); with 0 no "
        "other process may use the store",
    )
    add_cluster(parser)


def run(options: argparse.Namespace) -> bool:
    """Perform the action; return whether all traces were added, or the store is consistent."""
    action = options.action
    if action not in ACTIONS:
        raise TraceError(f"unknown action {action!r}: choose from {', '.join(ACTIONS)}")
    if (options.to is None) == (action == "add"):
        hint = "--to STORE" if action == "add" else ACTIONS[action]
        raise TraceError(f"store {action} needs {hint}")
    if action in ("list", "compact", "check") and len(options.names) > 1:
        raise TraceError(f"expected one store, got {len(options.names)}")
    for name, own in {"before": "remove", "most": "remove", "grace": "compact"}.items():
        if action != own and getattr(options, name) is not None:
            raise TraceError(f"--{name} is an option of store {own}, not of store {action}")
    # Imported here, because importing the libraries of a store takes long.
    from roast_analyze.open.memory_limit import size_bytes
    from roast_analyze.report.quantities import counted
    from roast_analyze.store.store import Store

    store = Store(options.to or options.names[0])
    match action:
        case "add":
            return _add(store, options)
        case "list":
            _list(store)
        case "remove":
            removed = options.names[1:]
            if options.before is not None or options.most is not None:
                most_bytes = None if options.most is None else size_bytes(options.most)
                removed += store.expired(before_t=options.before, most_bytes=most_bytes)
            elif not removed:
                raise TraceError("store remove needs STORE TRACE_ID…, --before or --most")
            # A named trace can also be expired.
            removed = list(dict.fromkeys(removed))
            store.remove(removed)
            print_result(f"{counted(len(removed), 'trace')} removed")
        case "compact":
            grace = {} if options.grace is None else {"grace_hours": options.grace}
            with progress(store.path, "compacting") as listener:
                store.compact(**grace, listener=listener)
        case "check":
            from roast_analyze.commands.terminal import print_out, table

            problems = store.check()
            wrong = [problem for problem in problems if not problem.is_harmless]
            verdict = counted(len(wrong), "difference") if wrong else "all rows are present"
            print_result(f"{store.path}: {verdict}")
            if problems:
                rows = [(p.table, p.trace_id or "", p.detail) for p in problems]
                print_out("", table(["table", "trace_id", "detail"], rows))
                if len(wrong) < len(problems):
                    print("roast-analyze store compact removes rows that are not used")
            return not wrong
    return True


def _date(text: str) -> float:
    from datetime import UTC, datetime

    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"invalid date {text!r}: use 2026-08-31 or 2026-08-31T14:05"
        ) from None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _add(store: Store, options: argparse.Namespace) -> bool:
    from roast_analyze.report.quantities import counted

    with (
        progress(store.path, "converting") as listener,
        connected(options) as client,
    ):
        result = store.add(options.names, client=client, listener=listener)
    for failure in result.failures:
        print_note(f"{failure.path}: {failure.reason}")
    texts = [f"{counted(result.added, 'trace')} added"]
    if result.unchanged:
        texts.append(f"{result.unchanged} unchanged")
    if result.failures:
        texts.append(f"{len(result.failures)} not read")
    print_result(", ".join(texts))
    return not result.failures


def _list(store: Store) -> None:
    from roast_analyze.commands.terminal import print_out, table
    from roast_analyze.report.quantities import minute, seconds

    rows = []
    for run in store.runs().iter_rows(named=True):
        start = minute(run["start_t"]).removesuffix(" UTC")
        wall = seconds(run["wall_seconds"])
        rows.append(
            (run["trace_id"], start, run["label"] or run["program"], run["owner"], wall)
        )
    # More columns would wrap trace_ids, which are copied, in a terminal of 80 columns.
    columns = [">trace_id", ">start (UTC)", "label or program", "owner", ">wall time"]
    print_out(table(columns, rows))
