"""The demo: a small real coffea analysis on this machine, recorded."""
