"""What other programs measured or kept of a run, made records of.

Darshan's logs and Yappi's statistics are put behind a recording (:mod:`.addition`); a cluster
dump of Dask's becomes a trace of its own. What comes from a file is never trusted: no code in
it runs, and one that cannot be read leaves everything as it was.
"""
