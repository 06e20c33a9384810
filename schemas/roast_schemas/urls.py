"""URLs in messages, which are shown without user, password and query.

Messages name what the user has typed: the URL of a trace, also a mistyped one or one in a place
where a path is expected. Each of them can contain a password, a signature or a token.
"""

from __future__ import annotations

import re
from typing import Final

#: Schemes of servers and object stores, which are recognized in mistyped URLs too.
_SCHEMES: Final = (
    r"(?:https?|ftp|wss?|tcp|tls|s3a?|gs|roots?|xroots?|abfss?|adl|az|azure|hdfs|lakefs)"
)

#: What precedes user and host in a URL, in one with too few or too many slashes, and in one
#: without a colon, if it has a user or a query. :class:`pathlib.Path` removes double slashes.
_BEGINNING: Final = (
    rf"(?:{_SCHEMES}:/+|[a-z][a-z0-9+.-]+:/{{1,2}}|{_SCHEMES}(?::(?=\S)|//+)"
    rf"|{_SCHEMES}/(?=[^/?#\s]*@|\S*\?\S*=)|//+(?=[^/?#\s]*@))"
)

#: User and password of a URL after ``://``: all up to the last ``@`` of the host. A password
#: that is not quoted can contain any character: text before the first ``:`` that is not
#: followed by a port is a user.
_USER: Final = re.compile(r"[^/?#]*@|[^/?#:\[]*:(?!\d+(?:[/?#]|$)).*@", re.DOTALL)

#: A URL in a message: in quotes, where it can contain spaces and the scheme can be missing, or
#: up to the next space.
_IN_MESSAGE: Final = re.compile(
    rf"""(?P<quote>['"])(?P<begin>{_BEGINNING}|(?=[^'"/?\s]+:[^'"/\s]*@))"""
    r"""(?P<rest>(?:\\.|(?!(?P=quote)).)*)(?=(?P=quote))"""
    rf"""|(?<![a-z0-9+.-])(?P<bare_begin>{_BEGINNING})(?P<bare_rest>\S*)""",
    re.IGNORECASE,
)

_MISTYPED: Final = re.compile(rf"{_BEGINNING}\S", re.IGNORECASE)


def without_secrets(url: str) -> str:
    """Return a URL without user and password, and without the text of its query.

    Examples
    --------
    >>> without_secrets("https://me:secret@example.org/t.jsonl?token=abc#x")
    'https://example.org/t.jsonl?…'
    """
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{_place(rest)}"


def safe_message(text: str) -> str:
    """Return a message in which every URL, also a mistyped one, is without secrets.

    Examples
    --------
    >>> safe_message("cannot read 'http:/me:secret@h/t.jsonl?token=abc': no such file")
    "cannot read 'http:/h/t.jsonl?…': no such file"
    """

    def shown(found: re.Match[str]) -> str:
        if (quote := found["quote"]) is not None:
            return f"{quote}{found['begin']}{_place(found['rest'])}"
        return f"{found['bare_begin']}{_place(found['bare_rest'])}"

    return _IN_MESSAGE.sub(shown, text)


def is_like_url(text: str) -> bool:
    """Return whether a name is that of a URL, possibly mistyped, rather than of a file."""
    return _MISTYPED.match(text) is not None


def _place(rest: str) -> str:
    """Return host and path, from what follows the beginning of a URL."""
    user = _USER.match(rest)
    place, *query = re.split("[?#]", rest[user.end() :] if user else rest, maxsplit=1)
    return f"{place}{'?…' if query else ''}"
