"""Marked cases of parametrized tests."""

from functools import partial

import pytest

#: A case that only ``make test-all`` runs.
exhaustive = partial(pytest.param, marks=pytest.mark.exhaustive)
