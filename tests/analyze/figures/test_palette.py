from roast_analyze.figures import palette


def test_colors_go_by_rank_and_end():
    colors = palette.by_rank([f"p{i}" for i in range(50)])

    assert colors["p0"] == palette.RANKED[0]
    assert len(colors) == len(palette.RANKED) == len(set(palette.RANKED))


def test_no_rank_has_the_color_of_failure():
    assert palette.FAILURE not in palette.RANKED
