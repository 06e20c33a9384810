"""Fixtures of the browser tests, for the tests of pages here."""

from browser.conftest import coffea_trace, open_page, report

__all__ = ["coffea_trace", "open_page", "report"]
