"""Which requests are answered; `test_serve.py` sends them to a server."""

import pytest

from roast_analyze.server.access import Access, Asked

ACCESS = Access("secret")
HOST = {"Host": "127.0.0.1:8899"}


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        (Asked(HOST, token="secret"), ""),
        (Asked(HOST, cookie="secret"), ""),
        (Asked(HOST | {"Authorization": "token secret"}), ""),
        (Asked({"Host": "[::1]:8899"}, token="secret"), ""),
        (Asked({"Host": "hub", "Authorization": "token secret"}), ""),
        (Asked(HOST | {"Origin": "http://127.0.0.1:8899"}, token="secret"), ""),
        (Asked(HOST), "has a token"),
        (Asked(HOST, token="secre", cookie="Secret"), "has a token"),
        (Asked(HOST | {"Authorization": "Bearer secret"}), "has a token"),
        (Asked({}, token="secret"), "name of the server"),
        (Asked({"Host": "evil:8899"}, token="secret"), "name of the server"),
        (Asked({"Host": "["}, token="secret"), "name of the server"),
        (Asked(HOST | {"Origin": "http://127.0.0.1:1"}, token="secret"), "other pages"),
        (Asked(HOST | {"Origin": "null"}, token="secret"), "other pages"),
    ],
)
def test_refusal(asked, refusal):
    found = ACCESS.refusal(asked)
    assert (refusal in found) if refusal else not found


def test_two_servers_have_different_cookies():
    """Cookies are those of a host, whatever the port."""
    assert Access("a").cookie_name != Access("b").cookie_name
    assert "secret" not in ACCESS.cookie_name
