"""References from messages to pages of the documentation."""


def docs(page: str) -> str:
    """Return a reference to a page, for the end of a message.

    Parameters
    ----------
    page : str
        Path of the page in ``docs`` and on the site, without a suffix: ``reference/views``.
    """
    return f"(docs: {page})"
