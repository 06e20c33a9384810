"""Opening a trace: files to tables to views."""
