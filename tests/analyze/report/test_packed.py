from roast_analyze.report.packed import deltas, pack, pack_text


def test_packed_values_can_be_unpacked(unpack):
    value = {"names": ["<script>", "ä", "\u2028"], "numbers": [1, 2.5, None]}

    assert unpack(pack(value)) == value


def test_packed_text_contains_no_markup_and_is_reproducible():
    text = "</script><!-- & \"'" * 50

    assert set("<>&\"'").isdisjoint(pack_text(text))
    assert pack_text(text) == pack_text(text)


def test_deltas():
    assert deltas([100, 101, 103]) == [100, 1, 2]
    assert deltas([]) == []
