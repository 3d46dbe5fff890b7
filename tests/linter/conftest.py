"""What the linter's tests share: reading cases, and weights in words."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from deconv_ir.ir.findings import Finding
from deconv_ir.linter.engine import Result, check_bytes, check_file
from deconv_ir.linter.options import Options, choose

CASES = Path(__file__).parent / "cases"
EVERYTHING = choose(select=["ALL"], severity="info", deep=True)
"""All rules, those of severity info and those that read all weights too."""

_EXPECTED = re.compile(r"<!-- expect: ([A-Z0-9 ]+) -->")


def expected_in(data: bytes) -> set[tuple[int, str]]:
    """Return line and code of what the comments in a case say is wrong in their line."""
    text = data.decode("utf-8", "replace")
    return {
        (number, code)
        for number, line in enumerate(text.split("\n"), 1)
        for match in _EXPECTED.finditer(line)
        for code in match[1].split()
    }


def found_in(findings: list[Finding]) -> set[tuple[int | None, str]]:
    return {(f.line, f.code) for f in findings}


def weights_bytes(words: str) -> bytes:
    """Make a .bin from words: ``zeros 16``, ``i64 1 2``, ``f32 1 nan``."""
    kind, *values = words.split()
    if kind == "zeros":
        return bytes(int(values[0]))
    code, number = {"i64": ("q", int), "f32": ("f", float)}[kind]
    return struct.pack(f"<{len(values)}{code}", *map(number, values))


def check_text(
    xml: str | bytes, folder: Path, weights: bytes | None = None, options: Options = EVERYTHING
) -> Result:
    """Check an IR that is given by its text, and the bytes of its .bin."""
    path = folder / "model.xml"
    path.write_bytes(xml if isinstance(xml, bytes) else xml.encode())
    if weights is not None:
        path.with_suffix(".bin").write_bytes(weights)
    return check_file(path, options)


@pytest.fixture
def block() -> str:
    """A clean IR: Parameter, Const, ConvolutionBackpropData, Const, Add, ReLU, Result."""
    return (CASES / "wrong-root/pass/plain.xml").read_text()


@pytest.fixture
def block_weights() -> bytes:
    return (CASES / "wrong-root/pass/plain.bin").read_bytes()


__all__ = ["CASES", "EVERYTHING", "check_bytes", "check_text", "expected_in", "found_in"]
