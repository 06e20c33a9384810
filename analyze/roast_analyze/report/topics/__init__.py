"""The topics of the report, one module or package each.

``query`` reads a trace and returns a frozen dataclass, ``section`` turns it into a
:class:`~roast_analyze.report.section.Section` with its sentences, tables and figures. Only
``query`` uses the database. Frames that several topics need are in
:class:`~roast_analyze.report.context.Context`.
"""
