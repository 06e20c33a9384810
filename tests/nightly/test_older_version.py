"""Views of all samples return the same numbers as version 0.6."""

import pytest

from analyze.test_older_version import KEPT, OLD, differences


@pytest.mark.parametrize("name", [name for name in OLD if name not in KEPT])
def test_views_return_the_same_numbers(name):
    assert differences(name) == []
