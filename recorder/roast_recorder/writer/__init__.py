"""The trace file, and the process that writes it."""
