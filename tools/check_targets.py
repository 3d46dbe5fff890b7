"""Measure what releases of OpenVINO read and compile, and check or write the table of --target.

Each Python has a release of OpenVINO, which reads small networks and compiles them for the CPU, in
child processes: a crash counts as refused. A folder keeps the answers, by contents of the files::

    python -m venv ov-2024.6 && ov-2024.6/bin/pip install openvino==2024.6.0 "numpy<2"
    python tools/check_targets.py --python ov-2024.6/bin/python ...          # compare
    python tools/check_targets.py --python ov-2024.6/bin/python ... --write  # write the table

``--between`` asks a release only for plain files, and for those of which the nearest releases
before and after it that were asked for all files give different answers; it is taken to agree with
both on the others.

Without ``--python``, the table is checked against the answers in the folder.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from target_answers import (
    NO_LAYER,
    NO_OPSET,
    Answers,
    File,
    Rows,
    answers_in,
    ask,
    completed,
    disputed,
    version_of,
)
from target_forms import ROOT, Network, literal_network, literals, networks
from target_rules import case_files, rule_files, rule_rows

from deconv_ir.linter.releases import reads_ir, shown
from deconv_ir.linter.targets.reasons import (
    ANY,
    FILES,
    HEADER_BYTES,
    READ,
    RT_INFO,
    SHORT,
    TOGETHER,
)
from deconv_ir.linter.targets.table import FILE, ranges
from deconv_ir.linter.targets.verdict import RULES

FOLDER = ROOT / "out/targets"
COMMON = frozenset({"f32", "f16", "i32", "i64", "boolean"})
"""Element types of networks that are tried with each release."""

HEAD = """\
# What releases of OpenVINO read, and compile for the CPU: written by tools/check_targets.py --write
# from the answers of these releases to small networks; docs/targets.md describes the method.
# RELEASES: KEY ... are ranges of indices of the releases that accept the keys; after '?', those of
# which it is not known; '-': none.
"""

RT_INFO_VALUES = {
    "fused_names_0": 'value="a,b"',
    "fused_names_1": 'value="a,b"',
    "primitives_priority_0": 'value="cpu:jit"',
    "precise_0": "",
    "nms_selected_indices_0": "",
    "old_api_map_order_0": 'value="0,2,3,1"',
    "old_api_map_element_type_0": 'value="f16"',
    "old_api_map_0": 'order="0,2,3,1" element_type="f16"',
    "layout_0": 'layout="[N,C]"',
    "decompression_0": "",
    "strides_0": 'value="1,1"',
    "preprocessing_attribute_0": "",
    "memory_type_0": 'value="opencl::memory"',
    "keep_const_precision_0": "",
    "disable_constant_folding_0": "",
    "unknown_0": 'value="1"',
}
"""Attributes of runtime info with a value, as releases write them, and an unknown one."""


def rt_info_files() -> Iterator[tuple[str, File]]:
    """Iterate over attributes of runtime info, each in a small network."""
    made = literal_network("ReLU", "opset1")
    assert made is not None
    for name, value in RT_INFO_VALUES.items():
        stem, _, version = name.rpartition("_")
        info = f'<rt_info><attribute name="{stem}" version="{version}" {value}/></rt_info>'
        at = made[0].index("</layer>", made[0].index('type="ReLU"'))
        yield name, File(f"{made[0][:at]}{info}{made[0][at:]}", made[1])


SHORT_NETWORK = (
    '<net name="n" version="11"><layers>'
    '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1" element_type="f32"/>'
    '<output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>'
    '<layer id="1" name="y" type="Result" version="opset1">'
    '<input><port id="0" precision="FP32"><dim>1</dim></port></input></layer></layers><edges>'
    '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>'
)


def short_file() -> File:
    """Return a network that ends within the first bytes of its file."""
    assert len(SHORT_NETWORK) < HEADER_BYTES
    return File(SHORT_NETWORK, b"")


def literal_files() -> Iterator[tuple[str, File]]:
    """Iterate over types and opsets, each in a small network."""
    for type_name, version in literals():
        made = literal_network(type_name, version)
        if made is not None:
            yield f"{type_name}-{version.removeprefix('opset')}", File(*made, compiles=False)


def ir_version_files() -> Iterator[tuple[str, File]]:
    """Iterate over versions of the IR."""
    made = literal_network("ReLU", "opset1")
    assert made is not None
    for version in range(1, 14):
        yield (
            str(version),
            File(made[0].replace('version="11"', f'version="{version}"', 1), made[1]),
        )


def table(every: list[Answers], forms: list[Network]) -> dict[str, Rows]:
    """Return the sections of the table."""
    sections: dict[str, Rows] = {FILES: {SHORT: (set(), set())}, READ: {}, RT_INFO: {}}
    for answers in every:
        if answers.of(short_file()) == "accepted":
            sections[FILES][SHORT][0].add(answers.release)
        for name, file in literal_files():
            said = answers.of(file) or ""
            row = sections[READ].setdefault(name, (set(), set()))
            if NO_OPSET not in said:
                row[0].add(answers.release)
        for name, file in rt_info_files():
            row = sections[RT_INFO].setdefault(name, (set(), set()))
            if answers.of(file) == "accepted":
                row[0].add(answers.release)
    by_operation: dict[str, list[Network]] = {}
    for network in forms:
        by_operation.setdefault(network.operation, []).append(network)
    for operation, own in by_operation.items():
        rows: Rows = {ANY: (set(), set())}
        joint: Rows = {}
        for answers in every:
            _add_release(rows, joint, own, answers)
        for key, (refused, unclear) in joint.items():
            rows[key] = ({a.release for a in every} - refused - unclear, unclear)
        sections[operation] = rows
    return sections


def _add_release(rows: Rows, joint: Rows, own: list[Network], answers: Answers) -> None:
    """Add what a release says of the forms of one operation.

    A part that only refused forms have is at fault where all other parts of such a form are
    accepted. `joint` has parts that are refused together though each is accepted: the releases that
    refuse them, and those of which it is not known.
    """
    release = answers.release
    said = [answers.of(File(n.text, n.weights)) or "not asked" for n in own]
    forms = [frozenset(n.parts) for n in own]
    together = {parts for parts, s in zip(forms, said, strict=True) if s == "accepted"}
    refused = {parts for parts, s in zip(forms, said, strict=True) if s != "accepted"}
    accepted = frozenset(part for parts in together for part in parts)
    if together:
        rows[ANY][0].add(release)
    elif not all(NO_OPSET in s or NO_LAYER in s for s in said):
        rows[ANY][1].add(release)
    for part in frozenset(part for parts in (*together, *refused) for part in parts):
        row = rows.setdefault(part, (set(), set()))
        if part in accepted:
            row[0].add(release)
        elif not any(parts - accepted == {part} for parts in refused):
            row[1].add(release)
    for parts in refused:
        if not parts <= accepted:
            continue
        pairs = [
            (a, b)
            for a in sorted(parts)
            for b in sorted(parts)
            if a < b and not any({a, b} <= other for other in together)
        ]
        # One pair that nothing accepts is the fault; otherwise the whole form is in doubt.
        if len(pairs) == 1:
            joint.setdefault(TOGETHER.join(pairs[0]), (set(), set()))[0].add(release)
        else:
            joint.setdefault(TOGETHER.join(sorted(parts)), (set(), set()))[1].add(release)


def write(every: list[Answers], sections: dict[str, Rows]) -> str:
    """Write the table as text."""
    releases = tuple(answers.release for answers in every)
    lines = [HEAD + "releases " + " ".join(f"{a}.{b}" for a, b in releases)]
    for name, rows in sections.items():
        lines.append(f"[{name}]")
        by_releases: dict[str, list[str]] = {}
        for key, (accepted, unclear) in rows.items():
            words = ranges(frozenset(accepted), releases)
            doubt = ranges(frozenset(unclear - accepted), releases)
            by_releases.setdefault(words if doubt == "-" else f"{words}?{doubt}", []).append(key)
        for words, keys in sorted(by_releases.items()):
            lines += textwrap.wrap(
                f"{words}: {' '.join(sorted(keys))}",
                100,
                subsequent_indent=" ",
                break_long_words=False,
                break_on_hyphens=False,
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Ask the releases, and compare or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[], metavar="PATH")
    parser.add_argument("--between", action="append", default=[], metavar="PATH")
    parser.add_argument("--answers", type=Path, default=FOLDER, help="folder of the answers")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    forms = list(networks())
    mutants = [*rule_files(), *case_files()]
    files = [File(n.text, n.weights) for n in forms]
    files += [file for _, file in (*literal_files(), *rt_info_files(), *ir_version_files())]
    files.append(short_file())
    files += [File(m.text, m.weights) for m in mutants]
    files += [File(text, weights) for text, weights in dict.fromkeys(m.base for m in mutants)]
    for python in options.python:
        print(f"{ask(python, files, options.answers)}: {len(files)} files", flush=True)
    plain = [File(n.text, n.weights) for n in forms if is_plain(n, forms[n.base])]
    for python in options.between:
        asked = disputed(version_of(python), answers_in(options.answers), files, plain)
        print(f"{ask(python, asked, options.answers)}: {len(asked)} files", flush=True)
    every = completed(answers_in(options.answers), files, plain)
    if not every:
        sys.exit(f"no answers in {options.answers}: name releases with --python")
    _check_ir_versions(every)
    sections = table(every, forms)
    sections[RULES] = rule_rows(mutants, every)
    text = write(every, sections)
    print(_summary(every, files))
    if options.write:
        FILE.write_text(text, "utf-8")
    elif text != FILE.read_text("utf-8"):
        sys.exit(f"{FILE} differs from the answers: run again with --write")


def is_plain(network: Network, base: Network) -> bool:
    """Whether a network has common element types, and the rank of the example it comes from."""
    kinds = {p for p in network.parts if p.startswith(("rank=", "shape=", "dynamic="))}
    elements = next((p for p in network.parts if p.startswith("elements=")), "elements=f32")
    common = set(elements.removeprefix("elements=").split(",")) <= COMMON
    return common and kinds <= set(base.parts)


def _check_ir_versions(every: list[Answers]) -> None:
    """Require that the releases read the IR versions that the documents say."""
    for answers in every:
        for version, file in ir_version_files():
            said = answers.of(file)
            if said is not None and (said == "accepted") != reads_ir(int(version), answers.release):
                sys.exit(f"{shown(answers.release)} and IR version {version}: {said}")


def _summary(every: list[Answers], files: list[File]) -> str:
    lines = []
    for answers in every:
        counts = Counter((answers.of(file) or "not asked").split()[0] for file in files)
        words = ", ".join(f"{count} {step}" for step, count in sorted(counts.items()))
        lines.append(f"{shown(answers.release)}: {words}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
