"""Import of data that other programs measured.

Darshan logs and Yappi statistics are appended to a trace (:mod:`.append_import`); a Dask
cluster dump becomes a new trace (:mod:`.dump`). Files are not trusted: code in them
is never run, and a file that cannot be read changes nothing.
"""
