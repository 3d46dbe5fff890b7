"""Which findings of the linter mean that a release refuses the file: mutants with one finding.

One thing in a saved IR is changed at random, seeded, by `tests/linter/mutations.py`.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from target_answers import Answers, File, Rows

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from linter.mutations import BODIES, FORMS, MUTATORS, OPERATIONS  # noqa: E402

from deconv_ir.findings import Severity  # noqa: E402
from deconv_ir.linter.catalogue import FALLBACK  # noqa: E402
from deconv_ir.linter.engine import check_bytes  # noqa: E402
from deconv_ir.linter.options import choose  # noqa: E402

SEED = 47_000
COUNT = 1200
ACCEPTED, REFUSED = 3, 8
"""Files without another finding that a rule needs, all of them accepted, or refused."""


class Mutant(NamedTuple):
    """A changed IR."""

    text: str
    weights: bytes
    codes: frozenset[str]
    """Codes of its findings of severity error and warning."""
    base: tuple[str, bytes]
    """The unchanged IR and its weights."""


def rule_files(seed: int = SEED, count: int = COUNT) -> Iterator[Mutant]:
    """Iterate over mutants, the same ones each time."""
    folder = ROOT / "tests/fixtures"
    groups = [
        ((*MUTATORS, *FORMS), sorted(folder.glob("ir/*.xml"))),
        (BODIES, sorted(folder.glob("bodies/*.xml"))),
        (OPERATIONS, sorted(folder.glob("operations/*.xml"))),
    ]
    options = choose(severity=Severity.WARNING)
    choices = random.Random(seed)
    for number in range(count):
        mutators, paths = groups[min(number % 4, 2)]  # half of single operations
        path = choices.choice(paths)
        base, weights = path.read_text("utf-8"), path.with_suffix(".bin").read_bytes()
        try:
            text = choices.choice(mutators)(choices, base).text
        except IndexError:
            continue  # the file has nothing of the kind
        found = check_bytes(text.encode(), "m.xml", options, path.with_suffix(".bin")).findings
        yield Mutant(text, weights, frozenset(f.code for f in found), (base, weights))


def case_files() -> Iterator[Mutant]:
    """Iterate over the cases of the lint rules: networks with one finding."""
    from linter.conftest import ALL_CASES
    from linter.network import NETWORK, WEIGHTS

    options = choose(severity=Severity.WARNING)
    base = NETWORK.read_text("utf-8"), WEIGHTS
    for case in ALL_CASES:
        with tempfile.TemporaryDirectory() as folder:
            path = case.write(Path(folder))
            weights = path.with_suffix(".bin")
            if not weights.exists() or not path.read_bytes().isascii():
                continue
            data = path.read_bytes()
            found = check_bytes(data, "m.xml", options, weights).findings
            codes = frozenset(f.code for f in found)
            yield Mutant(data.decode(), weights.read_bytes(), codes, base)


def rule_rows(mutants: list[Mutant], every: list[Answers]) -> Rows:
    """Return for each rule the releases that accept files with it, and those that may.

    The fallback, with errors of many kinds, is never clear.
    """
    rows: Rows = {}
    for code in sorted({code for mutant in mutants for code in mutant.codes}):
        rows[code] = (set(), set())
        for answers in every:
            own = [
                answers.of(File(m.text, m.weights)) == "accepted"
                for m in mutants
                if m.codes == {code} and answers.of(File(*m.base)) == "accepted"
            ]
            if len(own) >= ACCEPTED and all(own):
                rows[code][0].add(answers.release)
            elif len(own) < REFUSED or any(own) or code == FALLBACK:
                rows[code][1].add(answers.release)
    return rows
