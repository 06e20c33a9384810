"""What ``roast-analyze --help`` prints: text that stands ready.

Making it with a parser would take longer than all else that a start needs.
"""

HELP = """\
usage: roast-analyze TRACE… [--html [FILE]] [--open] [--title TITLE]
                     [--from WHEN] [--to WHEN] [--no-cache]
                     [--memory-limit SIZE]
       roast-analyze COMMAND TRACE …

Say what a trace tells of a run: in the terminal, or as a report with --html.

Several traces are set side by side. For example:

    roast-analyze trace.jsonl.zst
    roast-analyze trace.jsonl.zst --html report.html
    roast-analyze trace.jsonl.zst --html --from 5m --to -90s
    roast-analyze before.jsonl.zst after.jsonl.zst --open

TRACE is a trace file, a folder of segments, or - for stdin; several are set
side by side.

options:
  -h, --help     print this help and exit
  --version      print the version and exit
  --html [FILE]  write the report instead: one page that needs no network; if
                 FILE is not given, next to the trace
  --open         write the report, and open it in the browser
  --title TITLE  heading of the report
  --from WHEN    tell only of what came after this: seconds after the start of the
                 run (90), 5m, 1h30m, 1:30:00, the same before its end (-10m), or a
                 date (2026-08-31T14:05); attempts that cross it are cut off
  --to WHEN      tell only of what came before this
  --no-cache     parse the trace anew, and keep nothing of it
  --memory-limit SIZE
                 what the database may take of the memory, such as 1GiB; more
                 goes to the disk (default: 60 % of what is free, at most 4GiB)

other commands:
  sql     Ask a question in SQL.
  view    Print a named view, or the list of them with what they mean.
  export  Write a trace, or a part of it, for other programs.
  import  Take what others measured into a trace: Darshan, Yappi, cluster dumps.
  check   Tell whether a trace is whole, and what is lost if not.

`roast-analyze COMMAND --help` explains them.
"""
