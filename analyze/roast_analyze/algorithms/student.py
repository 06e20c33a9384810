"""Bounds of confidence intervals for small samples."""

from __future__ import annotations

from typing import Final

#: By degrees of freedom, from 1.
_STUDENT: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
_NORMAL: Final = 1.960


def student(degrees_of_freedom: int) -> float:
    """Return the bound of a 95 % confidence interval, in standard errors (Student's t).

    Beyond 9 degrees of freedom it is Fisher's expansion around the normal distribution, which
    is exact to 0.01.
    """
    if degrees_of_freedom <= len(_STUDENT):
        return _STUDENT[degrees_of_freedom - 1]
    z, n = _NORMAL, degrees_of_freedom
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
