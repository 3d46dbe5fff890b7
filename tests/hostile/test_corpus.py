"""Inputs that once broke a promise, and a slice of the mutations, as ordinary tests.

The figures for many more are in docs/reliability.md.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hostile.targets import CORPUS, TARGETS

MUTATE = Path(__file__).parent / "mutate.py"
FOUND = sorted(CORPUS.glob("*/*"))


@pytest.mark.parametrize("path", FOUND, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_findings_stay_fixed(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_noise(target: str) -> None:
    """Random bytes without structure; atheris covers more, where it is installed."""
    draw = random.Random(target)
    for _ in range(300):
        TARGETS[target](draw.randbytes(draw.choice((0, 1, 7, 60, 400))))


def test_a_slice_of_the_mutated_irs() -> None:
    """The test runs in its own process: modules loaded by other tests would count as memory."""
    command = [sys.executable, "-P", str(MUTATE), "--count", "200"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tried 200, failures 0" in done.stdout
    ran = re.search(r"^ *(\d+) ran$", done.stdout, re.MULTILINE)
    assert ran is not None
    assert int(ran[1]) > 10, "mutations must not keep everything from running"
