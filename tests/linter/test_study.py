"""The table of docs/lint-recall.md: seeded mutants, judged once by the oracle and by OpenVINO."""

from __future__ import annotations

import json

from . import study


def test_every_fourth_mistake_is_found() -> None:
    """Every fourth mutant is tried here, and all of them by `make mutate-lint`."""
    mistakes = json.loads(study.FROZEN.read_text())["mistakes"]
    assert len(mistakes) > 600
    counts = study.recall(set(mistakes[::4]))
    assert {kind for _, kind in counts} >= {"attribute", "dim", "edge", "form", "value", "offset"}
    total = sum(row[0] for row in counts.values())
    assert sum(row[1] for row in counts.values()) >= study.WANTED * total
