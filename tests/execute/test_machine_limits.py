"""The peak rates of this machine, and the fraction of them that a layer reaches."""

from __future__ import annotations

import pytest

from deconv_ir.execute.machine_limits import MachineLimits, measure_limits


@pytest.mark.parametrize(
    ("operations", "moved", "seconds", "share"),
    [
        (50.0, 1.0, 1.0, 0.5),  # bound by arithmetic
        (1.0, 8.0, 2.0, 0.4),  # bound by memory
        (None, 20.0, 1.0, 2.0),  # from a cache
        (0.0, 5.0, 1.0, 0.5),
        (None, None, 1.0, None),
        (1.0, 1.0, 0.0, None),
    ],
)
def test_share_is_that_of_the_nearer_limit(
    operations: float | None, moved: float | None, seconds: float, share: float | None
) -> None:
    assert MachineLimits(100.0, 10.0).share(operations, moved, seconds) == share


def test_limits_of_this_machine() -> None:
    """Plausible rates are above a megahertz and below a petabyte per second."""
    limits = measure_limits()
    assert 1e6 < limits.operations < 1e15
    assert 1e6 < limits.bytes < 1e15
