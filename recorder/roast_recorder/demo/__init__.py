"""The demo: a small real coffea analysis on this machine, recorded.

:mod:`~roast_recorder.demo.files` writes the input, :mod:`~roast_recorder.demo.dijet` is the
analysis, and :mod:`~roast_recorder.demo.run` runs it on a LocalCluster under the recorder.
"""
