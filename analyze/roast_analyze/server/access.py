"""Access to the server: the token, and the origin of requests.

Every user of this machine can connect to a port of it, and so can every page that is open in
a browser there. So a request must have the token that was printed when the server was
started: in the address, in the cookie that the first answer sets, or in the header
``Authorization: token …``, which a proxy adds. Without that header, the request must be
addressed to this machine: another name that resolves to it can be that of another site, whose
pages could read the answers (DNS rebinding). Requests of other pages are refused in any
case.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

#: Names of this machine in its own addresses.
_OWN_NAMES: Final = ("127.0.0.1", "localhost", "::1")

#: Origins of requests, as a browser reports them: a link of this server, or the user.
_OWN_SITES: Final = ("same-origin", "none")


@dataclass(frozen=True)
class Asked:
    """What a request has: header fields, the token in its address, and the cookie."""

    headers: Mapping[str, str]
    token: str = ""
    cookie: str = ""


@dataclass(frozen=True)
class Access:
    """The token of a server."""

    token: str

    @property
    def cookie_name(self) -> str:
        """Return the name of the cookie.

        It depends on the token, because cookies do not depend on the port: two servers of this
        machine would replace each other's.
        """
        return f"roast-{hashlib.sha256(self.token.encode()).hexdigest()[:12]}"

    def refusal(self, asked: Asked) -> str:
        """Return why a request is refused; empty if it is answered."""
        by_proxy = self._is_token(asked.headers.get("Authorization", "").removeprefix("token "))
        host, origin = asked.headers.get("Host", ""), asked.headers.get("Origin")
        if not by_proxy and _name_in(host) not in _OWN_NAMES:
            return "this name of the server is not known: open the address that it printed"
        if origin is not None and origin.partition("://")[2] != host:
            return "requests of other pages are not answered"
        if not by_proxy and not any(map(self._is_token, (asked.token, asked.cookie))):
            return "open the address that roast-analyze serve printed: it has a token"
        # A browser reports a page of another server that opens an address of this one in a
        # window. Its user may have followed a link there, so this alone is not refused.
        site = asked.headers.get("Sec-Fetch-Site", "none")
        is_window = asked.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
        if site not in _OWN_SITES and not is_window:
            return "requests of other pages are not answered"
        return ""

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())


def _name_in(host: str) -> str | None:
    """Return the name in a ``Host`` field, without the port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
