"""Findings of deconv-lint on unbroken models of several releases: docs/lint-precision.md.

    python bench/converted.py out/converted
    python bench/precision.py out/converted --python VENV/bin/python ... --nncf VENV/bin/python

Each network of converted.py is read from its ONNX file, or from the IR that OpenVINO converted from
torch, and saved by each interpreter's OpenVINO in one form in turn: f32, f16, with dynamic, or with
bounded batch and extents.  The last one saves all forms, and one with a state; NNCF quantizes or
compresses files of up to 16 MB, in one form each.  Networks with bodies are among them.

Exit code 1: a rule has a finding, and no word in `TRUE` says why such findings are true.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from deconv_ir.findings import Finding, Severity  # noqa: E402
from deconv_ir.linter.catalogue import RULES  # noqa: E402
from deconv_ir.linter.engine import check_file  # noqa: E402
from deconv_ir.linter.options import choose  # noqa: E402

FORMS = ("f32", "f16", "dynamic", "bounded")
NEWEST = (*FORMS, "state")
COMPRESSED = ("int8", "mixed", "int8_asym", "int4_sym", "int4_asym")
"""Forms; see save_forms.py."""

TRUE: dict[str, str] = {
    "IR202": "NNCF copies a bias under its name, so that two constants have it.",
    "IR419": "A model of dynamic extents that was traced with one size: skip connections and "
    "positions fit at multiples of the strides, or at that size alone.",
    "IR504": "OpenVINO 2024.6 wrote constants of cyclegan over each other, in one of some runs: "
    "the four zeros of a Pad are read as parts of a weight.",
    "IR801": "The kernel is 3, the stride 2, in the published architectures, too.",
    "IR808": "The target shape of a Reshape keeps the batch of the traced model.",
    "IR901": "The BatchNormalization was exported as such; OpenVINO folds it when it compiles.",
    "IR902": "The network applies LeakyReLU twice.",
    "IR903": "The conversion of an LSTM, a GRU or an RNN leaves two Transposes that cancel.",
}
"""Code -> why its findings are true."""


class Checked(NamedTuple):
    """One saved model, and its findings."""

    name: str
    form: str
    release: str
    layers: int
    findings: tuple[Finding, ...]


def saved(python: str, folder: Path, forms: Sequence[str], *, turn: bool) -> Iterator[Checked]:
    """Let an interpreter save models one after the other, and check each."""
    options = choose(severity="info")
    with tempfile.TemporaryDirectory() as out:
        command = [python, str(ROOT / "bench/save_forms.py"), str(folder), out, ",".join(forms)]
        with subprocess.Popen(
            [*command, "turn" if turn else "all"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            for line in child.stdout:
                said = json.loads(line)
                release = ".".join(said["release"].split("-")[0].split(".")[:3])
                path = Path(out, f"{said['name']}.xml")
                if said["why"]:
                    print(f"{release} {said['form']} {said['name']}: {said['why']}", flush=True)
                else:
                    result = check_file(path, options)
                    found = tuple(result.findings)
                    name = said["name"].removesuffix("-onnx")
                    yield Checked(name, said["form"], release, result.layers, found)
                for written in Path(out).iterdir():
                    written.unlink()
                with contextlib.suppress(BrokenPipeError):
                    child.stdin.write("\n")
                    child.stdin.flush()
        if child.returncode:
            raise SystemExit(f"{python}: save_forms.py ended with exit code {child.returncode}")


def page(checked: Sequence[Checked], command: str) -> str:
    """Return the page of the documentation."""
    names = {one.name for one in checked}
    lines = [
        "# Precision of deconv-lint",
        "",
        "Findings on models that are not broken: "
        f"{len(names)} networks that torch, ONNX and OpenVINO converted, {len(checked)} files,",
        f"{sum(one.layers for one in checked):,} layers; with `--severity info`.  Written by",
        "",
        f"    {command}",
        "",
        "| release that saved | form | files | layers | errors | warnings | infos |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str], list[Checked]] = {}
    for one in checked:
        groups.setdefault((one.release, one.form), []).append(one)
    for (release, form), ones in sorted(groups.items()):
        counts = Counter(f.severity for one in ones for f in one.findings)
        cells: list[Any] = [release, form, len(ones), sum(one.layers for one in ones)]
        cells += [
            counts[severity] for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO)
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += [
        "",
        "Every finding is true:",
        "",
        "| rule | severity | findings | networks | why it is true |",
        "|---|---|---|---|---|",
    ]
    findings = Counter(f.code for one in checked for f in one.findings)
    for code, count in sorted(findings.items()):
        networks = {one.name for one in checked if any(f.code == code for f in one.findings)}
        rule = RULES[code]
        lines.append(
            f"| {code} {rule.name} | {rule.severity.value} | {count} | {len(networks)} | "
            f"{TRUE.get(code, '?')} |"
        )
    warned = {one.name for one in checked if any(map(_is_warned, one.findings))}
    lines += [
        "",
        f"{len(names - warned)} of the {len(names)} networks have neither warnings nor errors.",
    ]
    return "\n".join(lines) + "\n"


def _is_warned(found: Finding) -> bool:
    return found.severity is not Severity.INFO


def main() -> int:
    """Save, check, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", action="append", default=[], help="with an OpenVINO")
    parser.add_argument("--nncf", help="with OpenVINO and NNCF")
    parser.add_argument("--table", type=Path, help="write the page")
    arguments = parser.parse_args()
    runs = [(python, FORMS, True) for python in arguments.python[:-1]]
    runs += [(python, NEWEST, False) for python in arguments.python[-1:]]
    runs += [(arguments.nncf, COMPRESSED, True)] if arguments.nncf else []
    checked: list[Checked] = []
    for python, forms, turn in runs:
        for one in saved(python, arguments.folder, forms, turn=turn):
            checked.append(one)
            for found in one.findings:
                if found.code not in TRUE:
                    print(one.release, one.form, one.name, found.code, found.layer, found.message)
    text = page(
        checked,
        "python bench/precision.py out/converted --python VENV/bin/python ... --nncf "
        "VENV/bin/python --table docs/lint-precision.md",
    )
    if arguments.table is None:
        print(text)
    else:
        arguments.table.write_text(text)
    return int(any(f.code not in TRUE for one in checked for f in one.findings))


if __name__ == "__main__":
    sys.exit(main())
