"""The history server: a list of runs, live and finished, and their reports.

:mod:`.folder` finds the traces, :mod:`.catalog` keeps the list, :mod:`.worker` reads traces and
writes reports in other processes, :mod:`.kept` keeps these on disk, and :mod:`.application`
answers requests that :mod:`.access` allows.
"""
