"""Pictures of a run: Polars frames in, plotly figures out.

One figure family a module. A figure takes frames with the columns of the views that
``schemas/README.md`` lists and knows nothing of files, SQL or HTML, so that it works as
well in a notebook as in the report. What holds for all of them:

* Text that comes from a trace goes through :func:`labels.label` before plotly sees it,
  because plotly reads ``<b>``, ``<a href=…>`` and entities in every label.
* The number of drawn points does not grow with the run; a figure that draws less than it
  was given says how much less.
* Each trace that carries data names its columns in ``meta["columns"]``, so that a reader
  can take away what is drawn as a table (see :func:`layout.columns`).
* Colours of page and grid are left to the page, which has a light and a dark side.
* Nothing is drawn with WebGL: its shaders are compiled with ``eval``, which the report's
  content security policy forbids.
"""
