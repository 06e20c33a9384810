from roast_analyze.figures import palette


def test_colours_go_by_rank_and_end():
    colours = palette.by_rank([f"p{i}" for i in range(50)])

    assert colours["p0"] == palette.RANKED[0]
    assert len(colours) == len(palette.RANKED) == len(set(palette.RANKED))


def test_no_rank_has_the_colour_of_failure():
    assert palette.FAILURE not in palette.RANKED
