"""Recall of the linter by kind of mutation: `make mutate-lint`.

One thing in an IR that OpenVINO saved (tests/fixtures/ir, tests/fixtures/bodies) is changed at
random, seeded. The mutants that are mistakes are listed in study.json. Those of
`mutations.MUTATORS` were judged by oracle.py, those of `mutations.FORMS` by `ov.Core().read_model`
of the OpenVINO that is named there: a mutant that it refuses is a mistake. If, Loop and
TensorIterator with those of `mutations.BODIES`, and the newer operations
(tests/fixtures/operations) with those of `mutations.OPERATIONS`, were judged by OpenVINO too: a
mutant that declares other dims than OpenVINO saves is a mistake as well.

    python tests/linter/study.py            # compare with study.json; exit 1: recall is too low
    python tests/linter/study.py --write    # judge anew (needs openvino), write study.json
    python tests/linter/study.py --table docs/lint-recall.md
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from lxml import etree

try:
    import openvino
except ImportError:  # only --write needs it
    openvino = None

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from deconv_ir.linter.engine import check_bytes  # noqa: E402
from deconv_ir.linter.options import choose  # noqa: E402
from linter.mutations import BODIES, FORMS, MUTATORS, OPERATIONS, Mutation  # noqa: E402
from linter.oracle import judge  # noqa: E402

FIXTURES = sorted((ROOT / "tests/fixtures/ir").glob("*.xml"))
WITH_BODIES = sorted((ROOT / "tests/fixtures/bodies").glob("*.xml"))
SINGLE = sorted((ROOT / "tests/fixtures/operations").glob("*.xml"))
GROUPS = (
    ("content", MUTATORS, FIXTURES),
    ("form", FORMS, FIXTURES),
    ("body", BODIES, WITH_BODIES),
    ("operation", OPERATIONS, SINGLE),
)
FROZEN = Path(__file__).with_name("study.json")
SEED = 50_000
COUNT = 400
"""Mutants of each group; of each file of one operation, `EACH`."""
EACH = 24
WANTED = 0.99


def mutants() -> Iterator[tuple[str, Path, Mutation]]:
    """Iterate over the mutants and their names, the same ones each time."""
    for group, mutators, fixtures in GROUPS:
        choices = random.Random(SEED)
        single = group == "operation"
        for number in range(EACH * len(fixtures) if single else COUNT):
            path = fixtures[number // EACH] if single else choices.choice(fixtures)
            mutate = choices.choice(mutators)
            yield f"{group} {number}", path, mutate(choices, path.read_text())


def mistakes(drawn: Iterable[tuple[str, Path, Mutation]]) -> list[str]:
    """Return the names of the mutants that are mistakes."""
    core = openvino.Core()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        xml = Path(folder) / "m.xml"
        for name, path, mutation in drawn:
            weights = path.with_suffix(".bin").read_bytes()
            if name.startswith("content"):
                wrong = judge(mutation.text.encode(), weights) is not None
            else:
                xml.write_text(mutation.text)
                xml.with_suffix(".bin").write_bytes(weights)
                wrong = _refuses(core, xml, compare=not name.startswith("form"))
            if wrong:
                found.append(name)
    return found


def _refuses(core: openvino.Core, xml: Path, *, compare: bool) -> bool:
    """Ask OpenVINO in a process of its own: some mutants end it.

    With `compare`, it must also save the dims and precisions that the file declares.
    """
    child = os.fork()
    if child == 0:
        try:
            model = core.read_model(str(xml))
            saved = xml.with_name("saved.xml")
            if compare:
                openvino.save_model(model, str(saved), compress_to_fp16=False)
            same = not compare or _declared(xml) == _declared(saved)
        except RuntimeError:
            same = False
        os._exit(not same)
    return os.waitpid(child, 0)[1] != 0


def _declared(xml: Path) -> list[tuple[object, ...]]:
    """Return the declarations of all ports of a file, by the names of layers and bodies."""

    def walk(net: etree._Element, path: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
        for layer in net.iterfind("layers/layer"):
            at = (*path, layer.get("name", ""))
            for port in layer.iterfind("*/port"):
                side = port.getparent().tag  # type: ignore[union-attr]
                yield at, side, port.get("precision"), [dim.text for dim in port]
            for tag in ("body", "then_body", "else_body"):
                for body in layer.iterfind(tag):
                    yield from walk(body, (*at, tag))

    return sorted(walk(etree.parse(xml).getroot(), ()), key=repr)


def recall(wrong: set[str]) -> dict[tuple[str, str], list[int]]:
    """Count mistakes, and mistakes with a finding, for each judge and kind of mutation."""
    options = choose()
    counts: dict[tuple[str, str], list[int]] = {}
    for name, path, mutation in mutants():
        if name not in wrong:
            continue
        weights = path.with_suffix(".bin")
        result = check_bytes(mutation.text.encode(), path.name, options, weights)
        group = name.split()[0]
        kind = path.stem if group == "operation" else mutation.kind
        row = counts.setdefault((group, kind), [0, 0])
        row[0] += 1
        row[1] += bool(result.findings)
        if not result.findings:
            print(f"missed: {path.name}:{mutation.line} {mutation.was!r} -> {mutation.now!r}")
    return counts


def table(counts: dict[tuple[str, str], list[int]], version: str) -> str:
    """Write the page of the documentation."""
    judges = {"content": "oracle of the tests"}
    places = {"body": " (If, Loop, TensorIterator)"}
    rows = [
        f"| {kind}{places.get(group, '')} | {judges.get(group, f'OpenVINO {version}')} "
        f"| {total} | {found} | {found / total:.1%} |"
        for (group, kind), (total, found) in sorted(counts.items())
    ]
    return (
        "# Recall of deconv-lint\n\n"
        "Written by `make mutate-lint`. One thing in an IR that OpenVINO saved is changed at\n"
        "random, seeded; the table has the mutants that are mistakes, and how many of them have a\n"
        "finding of severity `warning` or `error`. The oracle of the tests runs the network on\n"
        "sample shapes without the code under test; OpenVINO judges the others: it refuses to\n"
        "read them or, for models with bodies and single operations, saves other dims than the\n"
        "file declares.\n\n"
        "| kind of mutation | judged by | mistakes | found | recall |\n|---|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def main() -> int:
    """Compare recall with the required minimum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.write:
        version = openvino.__version__.split("-")[0]
        content = {"seed": SEED, "openvino": version, "mistakes": mistakes(mutants())}
        FROZEN.write_text(json.dumps(content) + "\n")
    frozen = json.loads(FROZEN.read_text())
    assert frozen["seed"] == SEED
    counts = recall(set(frozen["mistakes"]))
    for group, _, _ in GROUPS:
        total, found = map(
            sum, zip(*(row for (of, _), row in counts.items() if of == group), strict=True)
        )
        print(f"{group}: {found} of {total} mistakes found")
        if found < WANTED * total:
            return 1
    if given.table:
        given.table.write_text(table(counts, frozen["openvino"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
