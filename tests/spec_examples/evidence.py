"""One number of a document changed, and what `deconv-spec fix` makes of it.

Documents are those of `documents/`, those of samples/spec with and without the text between the
examples, and the examples of OpenVINO's public pages in the tests.  A changed output dim should be
put right; if an attribute, an input or a comment was changed, the dims that follow from it must not
be written.

    python tests/spec_examples/evidence.py            # exit 1: a dim was written wrongly
    python tests/spec_examples/evidence.py --unsafe   # the same with --unsafe-fixes
    python tests/spec_examples/evidence.py --every 8  # one mutant of 8
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from spec_examples.test_other_operations import RIGHT, layer, page  # noqa: E402
from spec_examples.test_public_forms import PUBLIC  # noqa: E402

from deconv_ir.spec_examples.fix import fix_document  # noqa: E402
from deconv_ir.spec_examples.text import Document  # noqa: E402

_LAYER = re.compile(r"<layer\b.*?</layer>", re.DOTALL)
_OUTPUT = re.compile(r"<output>.*?</output>", re.DOTALL)
_NUMBER = re.compile(
    r"(?P<dim>(?<=<dim>)\d+(?=</dim>))"
    r"|(?P<comment>(?<=[\[,: ])\d+(?=[\],]|, | ?-->)(?=[^<\n]*-->))"
    r'|(?P<attribute>(?<=[",])\d+(?=[",])(?=[^<>]*/>))'
)


class Mutant(NamedTuple):
    """A document with one other number."""

    source: str
    kind: str
    """``output``, ``input``, ``comment`` or ``attribute``."""
    text: str
    change: str


def documents() -> Iterator[tuple[str, str]]:
    """Iterate over the names and texts of right documents."""
    here = Path(__file__).parent / "documents"
    for path in (*sorted(here.glob("*.txt")), *sorted(ROOT.glob("samples/spec/*/examples.md"))):
        text = path.read_text()
        yield str(path.relative_to(ROOT)), text
        if path.suffix == ".md":
            yield f"{path.parent.name}, examples alone", "\n".join(_LAYER.findall(text))
    for name, data, inputs, output in (*RIGHT, *PUBLIC):
        yield name, page(name, layer(name.partition("-")[0], data, inputs, output))


def mutants(name: str, text: str) -> Iterator[Mutant]:
    """Iterate over the mutants of a document: each number near, doubled, and as its neighbours."""
    for found in _LAYER.finditer(text):
        output = _OUTPUT.search(found.group())
        numbers = list(_NUMBER.finditer(found.group()))
        for i, number in enumerate(numbers):
            is_output = output is not None and output.start() < number.start() < output.end()
            kind = number.lastgroup or ""
            if is_output:
                if kind != "dim":
                    continue
                kind = "output"
            now = int(number.group())
            near = [int(other.group()) for other in numbers[max(0, i - 1) : i + 2]]
            for new in dict.fromkeys((now + 1, now - 1, 2 * now, now + 10, *near)):
                if new == now or new < 0:
                    continue
                start, end = found.start() + number.start(), found.start() + number.end()
                line = text.count("\n", 0, start) + 1
                yield Mutant(
                    name,
                    "input" if kind == "dim" else kind,
                    f"{text[:start]}{new}{text[end:]}",
                    f"line {line}: {now} -> {new}",
                )


def outcome(mutant: Mutant, original: str, *, unsafe: bool = False) -> str:
    """Return what becomes of a mutant."""
    fixed = fix_document(Document(mutant.text.encode(), "page.rst"), unsafe=unsafe)
    if fixed.data.decode() == original:
        return "put right"
    if fixed.edits:
        return "written wrongly"
    return "left" if fixed.left else "not found"


def main() -> int:
    """Print a table, and each dim that was written wrongly."""
    counts: dict[str, Counter[str]] = {}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unsafe", action="store_true", help="with --unsafe-fixes")
    parser.add_argument("--every", type=int, default=1, help="take one mutant of this number")
    chosen = parser.parse_args()
    unsafe: bool = chosen.unsafe
    for name, text in documents():
        for mutant in list(mutants(name, text))[:: chosen.every]:
            found = outcome(mutant, text, unsafe=unsafe)
            counts.setdefault(mutant.kind, Counter())[found] += 1
            if found == "written wrongly" and not unsafe:
                print(f"{name}: {mutant.kind}: {mutant.change}")
    for kind, found in counts.items():
        print(f"{kind:10} {found.total():6} {dict(sorted(found.items()))}")
    return int(not unsafe and any(found["written wrongly"] for found in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
