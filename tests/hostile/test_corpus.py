"""Every input that once broke a promise, and a slice of the mutations, as ordinary tests.

The figures for many more are in docs/reliability.md.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hostile.mutate import try_many
from hostile.targets import CORPUS, TARGETS

FOUND = sorted(CORPUS.glob("*/*"))


@pytest.mark.parametrize("path", FOUND, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_findings_stay_mended(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_noise(target: str) -> None:
    """Bytes without any structure; atheris does better, where it is installed."""
    draw = random.Random(target)
    for _ in range(300):
        TARGETS[target](draw.randbytes(draw.choice((0, 1, 7, 60, 400))))


def test_a_slice_of_the_mutated_irs() -> None:
    """The IRs of these numbers, of the ones that `tests/hostile/mutate.py` makes."""
    figures = try_many(seed=0, first=0, count=400)
    assert figures.tried == 400
    assert not figures.failures, figures.failures[0]
    assert figures.outcomes["ran"] > 20, "mutations must not keep everything from running"
