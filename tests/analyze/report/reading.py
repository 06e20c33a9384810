"""Reading of sections and of the data of figures."""

import base64
import gzip
import json


def plain(text: str) -> str:
    """Replace no-break spaces by plain ones."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def texts(table) -> list[list[str]]:
    """Return the texts of the cells of a table."""
    return [[cell.text for cell in row] for row in table.rows]


def unpack(packed: str) -> object:
    """Decode packed JSON."""
    return json.loads(gzip.decompress(base64.b64decode(packed)))
