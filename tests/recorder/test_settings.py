"""Settings that cannot be used are refused by name and value."""

import pytest

from roast_recorder.settings import Settings


@pytest.mark.parametrize("value", [0, -1, 2**64, float("inf"), float("nan"), "1s", None, True])
def test_a_value_that_is_no_positive_number(value):
    with pytest.raises(ValueError, match="sample_interval_seconds="):
        Settings.from_keywords({"sample_interval_seconds": value})


def test_a_name_that_is_no_setting():
    with pytest.raises(TypeError, match=r"'interval' is not a setting; there are: flush"):
        Settings.from_keywords({"interval": 1})
