"""Secrets of a cluster dump stay out of the trace that is made of it.

A dump holds whatever Dask held: nobody has looked through it. What is taken over is chosen by
name; of texts among that, such as those of exceptions, what a name or its own shape gives away
as a secret is replaced. In doubt more is replaced rather than less.
"""

from __future__ import annotations

import re
from typing import Any, Final

#: What stands in the place of a secret, as in recordings.
MARK: Final = "<redacted>"

#: What is nested deeper than this is left out.
MAX_DEPTH: Final = 50

_WORD: Final = (
    r"(?<![\w.-])[\w.-]{0,200}(?:passw|passphrase|passcode|pwd|secret|token|credential|cookie"
    r"|signature|authori[sz]ation|bearer|private|proxy|macaroon|jwt|session[_-]?id"
    r"|(?:api|access|auth|account|encryption|ssh|storage|master|signing|license)[_-]?key)"
    r"[\w.-]{0,60}"
)

#: A name is a secret's by these words in it.
_NAME: Final = re.compile(rf"(?i){_WORD}|(?:.*[_-])?(?:auth|pass|cred|creds)")

#: A value behind such a name, in running text: to the end of its quotes, or of its line. What
#: went wrong, a ProxyError, is no name.
_NAMED: Final = re.compile(
    rf"(?i)(?P<name>{_WORD}|\b(?:auth|pass|creds?))(?<!error)"
    r"(?P<sign>\\?[\"']?[\])]?\s{0,3}(?:=>|[:=]|\s(?=\S)|,\s{0,2}(?=\\?[\"']))\s{0,3}"
    r"(?:[bruf]{0,2}(?=[\"']))?)"
    r"(?P<value>\"[^\"\n]*\"?|'[^'\n]*'?|\\\"[^\n]*?\\\"|\\'[^\n]*?\\'|[^\n]*)"
)

#: What a secret looks like, whatever stands around it.
_SHAPES: Final = (
    re.compile(r"(?P<keep>[a-zA-Z][\w+.-]{0,30}://)[^\s/@'\"]{1,500}@"),
    re.compile(r"(?i)(?P<keep>\b(?:bearer|basic|digest)\s{1,4})[\w.~+/=%-]{6,}"),
    re.compile(r"(?P<keep>)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[\s\S]*"),
    re.compile(r"(?P<keep>)\beyJ[\w-]{8,}\.[\w.-]{5,}"),
    re.compile(r"(?P<keep>)\b(?:A[KS]IA[A-Z0-9]{16}|gh[pousr]_\w{20,}|github_pat_\w{20,})"),
    re.compile(
        r"(?P<keep>)\b(?:glpat-|xox[a-z]-|xapp-|hf_|pypi-|AIza|ya29\.|[rs]k_(?:live|test)_)"
        r"[\w.-]{10,}"
    ),
    re.compile(r"(?P<keep>)\bsk-(?![0-9a-f]{32}\b)[\w-]{20,}"),
)


#: The one cheap question, asked of a text in lower case: without any of these it has none.
_SUSPECT: Final = re.compile(
    "pass|pwd|secret|token|cred|cookie|signature|auth|bearer|private|proxy|macaroon|jwt|session"
    r"|[_-]?key|@|basic|digest|eyj|akia|asia|gh[pousr]_|github_pat_|glpat-|xox|xapp-|hf_|pypi-"
    "|aiza|ya29|[rs]k_|sk-"
)


class Cleaner:
    """Replaces secrets in texts, and in what holds texts.

    Attributes
    ----------
    replaced : int
        How many were replaced so far.
    """

    def __init__(self) -> None:
        self.replaced = 0

    def text(self, text: str) -> str:
        """Give a text without its secrets."""
        if not _SUSPECT.search(text.lower()):
            return text.encode(errors="replace").decode()
        for shape in _SHAPES:
            text, n = shape.subn(rf"\g<keep>{MARK}", text)
            self.replaced += n
        text, n = _NAMED.subn(rf"\g<name>\g<sign>{MARK}", text)
        self.replaced += n
        return text.encode(errors="replace").decode()

    def value(self, value: Any, depth: int = 0) -> Any:
        """Give a value without the secrets in it; bytes become their number."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, (bool, float)):
            return value
        if isinstance(value, int):
            return value if abs(value) < 2**62 else str(value)
        if isinstance(value, (bytes, bytearray)):
            return f"<{len(value)} bytes>"
        if depth >= MAX_DEPTH:
            return MARK
        if isinstance(value, dict):
            return {
                self.text(str(name)): self._named(str(name), item, depth + 1)
                for name, item in value.items()
            }
        if isinstance(value, (list, tuple, set)):
            return [self.value(item, depth + 1) for item in value]
        return self.text(str(value))

    def _named(self, name: str, value: Any, depth: int) -> Any:
        if names_a_secret(name) and value not in (None, "", True, False):
            self.replaced += 1
            return MARK
        return self.value(value, depth)


def names_a_secret(name: str) -> bool:
    """Tell from a name whether its value may be a secret."""
    return _NAME.fullmatch(name[:500]) is not None
