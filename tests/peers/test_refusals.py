"""Statements of the linter about OpenVINO's reader, compared with the installed OpenVINO.

Each attribute and version of each operation is changed in the IR that OpenVINO saved.  Where the
linter says that the reader refuses the change, it must; where it says that the reader ignores a
value, the operation must have the attributes that it has without.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from deconv_ir.findings import Severity
from deconv_ir.ir.dtypes import ELEMENT_TYPES
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose
from deconv_ir.ops.opsets import LAST_OPSET, OF_OPSET_6

from .runtimes import ov
from .test_operations import CASES

pytestmark = pytest.mark.peers

OPTIONS = choose(severity="info")
ABOUT_OPENVINO = {"IR114", "IR308", "IR312"}
CHUNKS = 22
"""Enough for `--one-in` to leave some out."""
LAYER = re.compile(
    r'<layer id="\d+" name="(?P<name>[^"]*)" type="(?P<type>\w+)" version="(?P<version>\w+)">'
    r"(?:\s*<data (?P<data>[^>]*?)/>)?"
)


class Saved(NamedTuple):
    text: str
    weights: bytes


class Change(NamedTuple):
    kind: str
    version: str
    name: str
    value: str | None
    """None: the attribute is removed."""
    layer: str
    text: str


@functools.cache
def saved() -> list[Saved]:
    """Save the first case of each operation and version."""
    seen: set[tuple[str, str]] = set()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        xml = Path(folder) / "m.xml"
        for case in CASES:
            model = case.model()
            kinds = {(n.get_type_name(), n.get_type_info().version_id) for n in model.get_ops()}
            if kinds <= seen:
                continue
            seen |= kinds
            ov.save_model(model, xml, compress_to_fp16=False)
            found.append(Saved(xml.read_text(), xml.with_suffix(".bin").read_bytes()))
    return found


def values(value: str) -> Iterator[str]:
    yield from {"", " ", f"{value} ", f" {value}", value.upper(), value.capitalize()} - {value}
    yield from ("x", "-1", "-1,-1", "0", "1.5", "FP32", "F32", "I64", "i64", "notset", "None")


def changes(text: str) -> Iterator[Change]:
    for layer in LAYER.finditer(text):
        name, kind, version, data = layer.group("name", "type", "version", "data")
        for at in re.finditer(r'([\w-]+)="([^"]*)"', data or ""):
            if (kind, at[1]) in {("Parameter", "shape"), ("Const", "shape")}:
                continue
            start = layer.start("data")
            for value in values(at[2]):
                new = text[: start + at.start(2)] + value + text[start + at.end(2) :]
                yield Change(kind, version, at[1], value, name, new)
            gone = text[: start + at.start()] + text[start + at.end() :]
            yield Change(kind, version, at[1], None, name, gone)
        if kind in ("Const", "Parameter", "Result"):
            continue
        begin, end = layer.span("version")
        for other in ("", "extension", "experimental", *(f"opset{LAST_OPSET + n}" for n in (0, 1))):
            yield Change(kind, version, "version", other, name, text[:begin] + other + text[end:])


SERVER = """
import json, sys
import numpy, openvino
core = openvino.Core()
for line in sys.stdin:
    text, weights, layer = json.loads(line)
    data = openvino.Tensor(numpy.frombuffer(bytes.fromhex(weights) or bytes(1), numpy.uint8))
    try:
        nodes = core.read_model(text.encode(), data).get_ops()
        node = next((n for n in nodes if n.get_friendly_name() == layer), None)
        answer = "" if node is None else repr(sorted(node.get_attributes().items()))
    except RuntimeError:
        answer = None
    print(json.dumps(answer), flush=True)
"""


class Server:
    """OpenVINO's reader in a process of its own: some files end it, and some are read for ever."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def answer(self, line: str, attempts: int = 2) -> str | None:
        """Return the attributes of a layer, None where OpenVINO refuses the file.

        The process may end because of the file before, so a new one is asked once more.
        """
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line)
            self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], 20)
        printed = self.process.stdout.readline() if ready else ""
        if printed:
            found: str | None = json.loads(printed)
            return found
        self.end()
        return self.answer(line, attempts - 1) if ready and attempts > 1 else None

    def end(self) -> None:
        """End the process and whatever it has started."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()  # type: ignore[union-attr]
            self.process = None


def ask(changes: Sequence[tuple[Change, bytes]]) -> list[str | None]:
    """Return the attributes that OpenVINO reads, None where it refuses."""
    server = Server()
    try:
        return [
            server.answer(json.dumps([c.text, weights.hex(), c.layer]) + "\n")
            for c, weights in changes
        ]
    finally:
        server.end()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_refusals(chunk: int) -> None:
    stated: list[tuple[Change, bytes]] = []
    messages = []
    without: dict[int, tuple[Change, bytes]] = {}
    asked = set()
    for text, weights in saved()[chunk::CHUNKS]:
        for change in changes(text):
            if change[:4] in asked:
                continue
            asked.add(change[:4])
            findings = check_bytes(change.text.encode(), "m.xml", OPTIONS).findings
            found = [f.message for f in findings if f.code in ABOUT_OPENVINO]
            if not found or "crashes" in found[0]:  # read_model returns: it is no refusal
                continue
            stated.append((change, weights))
            messages.append(found[0])
            if "ignores" in found[0]:
                gone = next(c for c in changes(text) if c[:3] == change[:3] and c.value is None)
                without[len(messages) - 1] = (gone, weights)
    alone = dict(zip(without, ask(list(without.values())), strict=True))
    wrong = [
        message
        for i, (message, answer) in enumerate(zip(messages, ask(stated), strict=True))
        if answer not in ("", alone.get(i))  # a layer that it does not need; None: refused
    ]
    assert wrong == []
    assert len(messages) - len(alone) > 20
    assert len(alone) > 0


PORTS = """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1">
<data shape="1,4" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>1</dim><dim>4</dim></port></output></layer>
<layer id="1" name="y" type="Result" version="opset1">
<input><port id="0" precision="FP32"><dim>1</dim><dim>4</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"""
SPELLINGS = {
    spelling
    for known in ELEMENT_TYPES
    for name in (known.name, known.ir_name)
    for spelling in (name, name.upper(), name.lower(), name.capitalize())
} | {"UNSPECIFIED", "undefined", "dynamic", "UNDEFINED", "MIXED", "bool", "float32", "FP32 ", ""}


REPLACED = [
    ('name="x" ', ""),
    ('<output><port id="0" ', "<output><port "),
    ('<output><port id="0" precision="FP32">', '<output><port id="0">'),
    ("<dim>1</dim>", "<dim>?</dim>"),
    ("<dim>1</dim>", "<dim>1..2</dim>"),
    (' version="opset1"', ""),
    *(('precision="FP32"', f'precision="{spelling}"') for spelling in sorted(SPELLINGS)),
    *(('element_type="f32"', f'element_type="{spelling}"') for spelling in sorted(SPELLINGS)),
]


def test_forms() -> None:
    """The first layer is changed in one place."""
    assert all(old in PORTS for old, _ in REPLACED)
    texts = [PORTS.replace(old, new, 1) for old, new in REPLACED]
    answers = ask([(Change("", "", "", None, "", text), b"") for text in texts])
    for new, text, answer in zip(REPLACED, texts, answers, strict=True):
        findings = check_bytes(text.encode(), "m.xml", OPTIONS).findings
        if any(f.code in ABOUT_OPENVINO for f in findings):
            assert answer is None, new
        elif not any(f.severity is Severity.ERROR for f in findings):
            assert answer is not None, new


def test_types_of_opset_6() -> None:
    """The reader takes these types from opset6 though their version names no opset."""
    asked = [
        (change, weights)
        for text, weights in saved()
        for change in changes(text)
        if change.kind in OF_OPSET_6
        and change.name == "version"
        and change.value in ("extension", "experimental")
    ]
    assert {change.kind for change, _ in asked} >= {"Proposal", "RNNCell", "GRUCell"}
    assert all(ask(asked))
