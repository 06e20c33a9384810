"""Tables that Python computes, each when a query first refers to it.

A module of this package queries a trace and returns the rows of one table, computed by
:mod:`roast_analyze.algorithms`. ``sql/computed`` declares the tables, and other files below
``sql`` make views of them.
"""
