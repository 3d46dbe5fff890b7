"""The text of drawings: dims, numbers, shortened names."""

from __future__ import annotations

import math
from collections.abc import Iterable

TIMES = "\N{MULTIPLICATION SIGN}"


def by(numbers: Iterable[object]) -> str:
    """Write extents: ``64×3×7×7``."""
    return TIMES.join(map(str, numbers))


def cut(text: str, limit: int) -> str:
    """Shorten a text in the middle: names differ mostly at their ends."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    head = limit // 3
    return f"{text[:head]}\N{HORIZONTAL ELLIPSIS}{text[head + 1 - limit :]}"


def number(value: float) -> float | str:
    """Round a number for people; values that JSON does not support become text."""
    return float(f"{value:.5g}") if math.isfinite(value) else str(value)
