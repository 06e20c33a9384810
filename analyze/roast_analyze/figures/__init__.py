"""Shared parts of figures, and figures that several topics use: frames in, plotly figures out.

A figure takes frames with the columns of the views that ``docs/reference/views.md`` lists and
does not depend on files, SQL or HTML. All figures follow these rules:

* Text from a trace goes through :func:`.labels.label`, because plotly interprets ``<b>``,
  ``<a href=…>`` and entities in every label.
* The number of drawn points does not grow with the run; a figure that omits points states how
  many.
* Each plotly trace with data names its columns in ``meta["columns"]``, so that the page can
  offer the data as a download (see :func:`.layout.columns`).
* The page sets the colors of background and grid, because it has a light and a dark mode.
* Nothing is drawn with WebGL: its shaders are compiled with ``eval``, which the content
  security policy of the report forbids.
"""
