"""What the report knows of a run, topic by topic: queries in, frozen dataclasses out.

These modules and :mod:`roast_analyze.report.data`, which puts together what they give, are
the only ones of the report that speak to a :class:`~roast_analyze.open.session.Session`.
"""
