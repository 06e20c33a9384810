"""The sections of the page, one module each.

Each has a function ``build``: gathered data in, a :class:`~.section.Section` out.
"""
