"""Instrumentation of coffea and uproot, in the process that reads the data."""
