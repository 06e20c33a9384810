"""What ``roast-analyze --help`` prints: text that stands ready.

Making it with a parser would take longer than all else that a start needs.
"""

HELP = """\
usage: roast-analyze TRACE [--html [FILE]] [--title TITLE] [--no-cache]
                     [--memory-limit SIZE]
       roast-analyze COMMAND TRACE …

Say what a trace tells of a run: in the terminal, or as a report with --html.

For example:

    roast-analyze trace.jsonl.zst
    roast-analyze trace.jsonl.zst --html report.html

TRACE is a trace file, a folder of segments, or - for stdin.

options:
  -h, --help     print this help and exit
  --version      print the version and exit
  --html [FILE]  write the report instead: one page that needs no network; if
                 FILE is not given, next to the trace
  --title TITLE  heading of the report
  --no-cache     parse the trace anew, and keep nothing of it
  --memory-limit SIZE
                 what the database may take of the memory, such as 1GiB; more
                 goes to the disk (default: 60 % of what is free, at most 4GiB)

other commands:
  sql     Ask a question in SQL.
  view    Print a named view, or the list of them with what they mean.
  export  Write a trace, or a part of it, for other programs.
  check   Tell whether a trace is whole, and what is lost if not.

`roast-analyze COMMAND --help` explains them.
"""
