"""Text of ``roast-analyze --help``.

It is a constant because creating it with argparse would dominate the start-up time.
"""

HELP = """\
usage: roast-analyze TRACE… [--html [FILE]] [--open] [--title TITLE]
                     [--from TIME] [--to TIME] [--no-cache]
                     [--memory-limit SIZE]
       roast-analyze COMMAND TRACE… …

Summarize a trace in the terminal, or write its report with --html.

Several traces are compared with each other. For example:

    roast-analyze trace.jsonl.zst
    roast-analyze trace.jsonl.zst --html report.html
    roast-analyze trace.jsonl.zst --html --from 5m --to -90s
    roast-analyze before.jsonl.zst after.jsonl.zst --open

TRACE is a trace file, a folder of segments, a quoted pattern for either, or -
for stdin.

options:
  -h, --help     print this help and exit
  --version      print the version and exit
  --html [FILE]  write the report, a self-contained page; the default FILE is
                 next to the trace
  --open         write the report and open it in the browser
  --title TITLE  heading of the report
  --from TIME    start of the time range: seconds after the start of the run (90),
                 5m, 1h30m, 1:30:00, -10m (before the end of the run), or a date
                 (2026-08-31T14:05); attempts are cut at the ends of the range
  --to TIME      end of the time range
  --no-cache     parse the trace again and do not cache its tables
  --memory-limit SIZE
                 memory limit of the database, such as 1GiB; it spills to disk
                 beyond it (default: 60 % of the free memory, at most 4GiB)

other commands:
  sql     Query traces in SQL.
  view    Print a view, the list of views, or the description of a view.
  export  Write traces for other programs.
  import  Import data from Darshan, Yappi or a cluster dump.
  check   Check whether traces are complete.

Run `roast-analyze COMMAND --help` for the options of a command.
"""
