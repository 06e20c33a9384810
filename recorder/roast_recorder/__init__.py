"""A flight recorder for Dask: what happened on a cluster, written down while it happens.

>>> with roast_recorder.record(client, "trace.jsonl.zst"):  # doctest: +SKIP
...     run_the_analysis()

Data flows one way: the hooks of :mod:`~roast_recorder.plugin` append rows to a
:mod:`~roast_recorder.buffer` on the scheduler; the :mod:`~roast_recorder.recording` pulls
them to the client, where :mod:`~roast_recorder.expand` makes records of them and a
:mod:`~roast_recorder.sink` writes the file.
"""

from roast_recorder.recording import Recording, record

__version__ = "0.1.0"

__all__ = ["Recording", "__version__", "record"]
