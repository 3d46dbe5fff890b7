"""Compare the verdicts of --target with releases of OpenVINO: files times releases.

Run it with a Python that has OpenVINO, which saves the files, and name those of the releases::

    python bench/targets.py --python ov-2023.0/bin/python --python ov-2024.6/bin/python ...

The files are the cases of the tests of operations as OpenVINO saves them, the fixtures of the
linter, mutants of both, and IRs of other versions. None of them is a network of
tools/check_targets.py, from which the table was made. A release refuses a file if it does not read
it, does not compile it for the CPU, or ends its process. The exit code is 1 if a verdict is
*likely* where the release refuses.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tools")]

from linter.mutations import FORMS, MUTATORS, OPERATIONS  # noqa: E402
from target_answers import File, answers_in, ask  # noqa: E402
from target_rules import rule_files  # noqa: E402

from deconv_ir.linter.engine import check_bytes  # noqa: E402
from deconv_ir.linter.options import choose  # noqa: E402
from deconv_ir.linter.releases import shown  # noqa: E402

SEED = 4747
FOLDER = ROOT / "out/targets-compared"


class Sample(NamedTuple):
    """A file with a name."""

    name: str
    file: File


def saved_cases(every: int) -> Iterator[Sample]:
    """Iterate over the cases of the peers' tests of operations, as OpenVINO saves them."""
    import openvino as ov
    from peers.test_operations import CASES

    with tempfile.TemporaryDirectory() as folder:
        xml = Path(folder) / "m.xml"
        for number, case in enumerate(CASES):
            if number % every == 0:
                ov.save_model(case.model(), xml, compress_to_fp16=number % (2 * every) == 0)
                data = xml.with_suffix(".bin").read_bytes()
                yield Sample(f"case {case}", File(xml.read_text("utf-8"), data))


def fixtures() -> Iterator[Sample]:
    """Iterate over the files of the linter's tests and the samples."""
    for path in sorted((*ROOT.glob("tests/fixtures/*/*.xml"), *ROOT.glob("samples/*/*.xml"))):
        weights = path.with_suffix(".bin")
        data = weights.read_bytes() if weights.exists() else b""
        yield Sample(str(path.relative_to(ROOT)), File(path.read_text("utf-8"), data))


def versions(samples: list[Sample]) -> Iterator[Sample]:
    """Iterate over files with another IR version."""
    for version in (*range(2, 10), 10, 12):
        name, file = samples[version % len(samples)]
        text = file.text.replace('version="11"', f'version="{version}"', 1)
        yield Sample(f"IR version {version} of {name}", file._replace(text=text))


def mutated(samples: list[Sample], count: int, seed: int = SEED) -> Iterator[Sample]:
    """Iterate over files in which one thing is changed at random."""
    choices = random.Random(seed)
    for number in range(count):
        name, file = choices.choice(samples)
        mutate = choices.choice((*MUTATORS, *FORMS, *OPERATIONS))
        try:
            found = mutate(choices, file.text)
        except IndexError:
            continue  # the file has nothing of the kind
        changed = file._replace(text=found.text)
        yield Sample(f"mutant {number} of {name}: {found.was!r} -> {found.now!r}", changed)


def verdicts(sample: Sample) -> dict[str, str]:
    """Return the verdict on a file for each release."""
    options = choose(targets=["openvino>=2020.1"])
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "m.bin"
        if sample.file.weights:
            weights.write_bytes(sample.file.weights)
        result = check_bytes(sample.file.text.encode(), "m.xml", options, weights)
    return dict(result.verdicts[0].words)


def main() -> None:
    """Compare, and print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[], metavar="PATH")
    parser.add_argument("--answers", type=Path, default=FOLDER, help="folder of the answers")
    parser.add_argument("--every", type=int, default=4, help="take each Nth case")
    parser.add_argument("--mutants", type=int, default=400)
    parser.add_argument("--seed", type=int, default=SEED, help="of the mutants")
    options = parser.parse_args()
    samples = [*saved_cases(options.every), *fixtures()]
    samples += [*versions(samples), *mutated(samples, options.mutants, options.seed)]
    samples += [
        Sample(f"mutant {n} of a fixture", File(m.text, m.weights))
        for n, m in enumerate(rule_files(options.seed, options.mutants))
    ]
    samples = list({sample.file.key: sample for sample in samples}.values())
    print(f"{len(samples)} files", flush=True)
    said = [verdicts(sample) for sample in samples]
    for python in options.python:
        print(ask(python, [sample.file for sample in samples], options.answers), flush=True)
    wrong = 0
    total: Counter[tuple[str, str]] = Counter()
    print("| release | verdict | accepted | refused |\n|---|---|---|---|")
    for answers in answers_in(options.answers):
        counts: Counter[tuple[str, str]] = Counter()
        for sample, words in zip(samples, said, strict=True):
            answer = answers.of(sample.file)
            word = words[shown(answers.release)]
            outcome = "accepted" if answer == "accepted" else "refused"
            counts[word, outcome] += 1
            if (word, outcome) in (("likely", "refused"), ("blocked", "accepted")):
                print(f"{word} but {answer} by {shown(answers.release)}: {sample.name}")
            wrong += (word, outcome) == ("likely", "refused")
        for word in ("likely", "unverified", "blocked"):
            row = counts[word, "accepted"], counts[word, "refused"]
            print(f"| {shown(answers.release)} | {word} | {row[0]} | {row[1]} |")
        total += counts
    for word in ("likely", "unverified", "blocked"):
        print(f"| all | {word} | {total[word, 'accepted']} | {total[word, 'refused']} |")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
