import base64
import gzip
import json

from roast_analyze.report.packed import differences, packed, packed_text


def unpacked(markup):
    return json.loads(gzip.decompress(base64.b64decode(markup)))


def test_what_is_packed_comes_back():
    value = {"names": ["<script>", "ä", "\u2028"], "numbers": [1, 2.5, None]}

    assert unpacked(packed(value)) == value


def test_nothing_in_it_is_markup():
    assert set("<>&\"'").isdisjoint(packed_text("</script><!-- & \"'" * 50))


def test_the_same_text_is_packed_the_same_way():
    assert packed_text("abc") == packed_text("abc")


def test_differences_are_small_where_numbers_are_in_order():
    assert differences([100, 101, 103]) == [100, 1, 2]
    assert differences([]) == []
