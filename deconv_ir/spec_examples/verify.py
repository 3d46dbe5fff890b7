"""Verification of a golden directory, and of other outputs against it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deconv_ir.errors import DeconvError
from deconv_ir.findings import Finding
from deconv_ir.formats import npy
from deconv_ir.formats.files import read_input
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import format_shape
from deconv_ir.spec_examples.generate import FORMAT, MANIFEST
from deconv_ir.spec_examples.golden import check_size, compute, make_array, sha256
from deconv_ir.spec_examples.pages import output_name
from deconv_ir.spec_examples.specfile import ExampleSpec, Spec, spec_of

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array, ElementType

MAX_MANIFEST = 16 << 20
MAX_FILE = 64 << 20

_FIELDS: dict[str, dict[str, type]] = {
    "example": {
        "name": str,
        "attributes": dict,
        "arrays": bool,
        "inputs": list,
        "outputs": list,
        "files": dict,
    },
    "input": {"name": str, "element_type": str, "shape": list},
    "output": {"name": str, "profile": str, "element_type": str, "shape": list},
}
_JSON_NAMES = {str: "a string", bool: "a boolean", list: "a list", dict: "an object"}


class Verification(NamedTuple):
    """The differences among `compared` outputs."""

    compared: int
    findings: tuple[Finding, ...]


def verify(
    root: str | os.PathLike[str],
    actual: str | os.PathLike[str] | None = None,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> Verification:
    """Recompute a golden directory made by `generate`, and compare.

    Then compare the outputs in `actual`, at the same paths (``EXAMPLE/output.npy``), within a
    tolerance; 0 by default, since golden sums are exact in any order.
    """
    spec, entries = _read_manifest(Path(root))
    verifier = _Verifier(Path(root), None if actual is None else Path(actual), rtol, atol)
    for example, entry in zip(spec.examples, entries, strict=True):
        try:
            verifier.example(example, entry)
        except DeconvError as error:
            raise error.locate(file=spec.file) from error
    return Verification(verifier.compared, tuple(verifier.findings))


def _read_manifest(root: Path) -> tuple[Spec, list[Mapping[str, Any]]]:
    """Read the manifest of a directory: as a SPEC file, and the entries of its examples."""
    path = str(root / MANIFEST)

    def error(message: str) -> DeconvError:
        return DeconvError(f"invalid manifest: {message}", file=path, rule="manifest")

    try:
        table = json.loads(read_input(path, MAX_MANIFEST))
    except (ValueError, RecursionError) as reason:
        raise error(str(reason)) from reason
    if not isinstance(table, dict) or table.get("format") != FORMAT:
        raise error(f"its 'format' is not {FORMAT!r}")
    entries = table.get("examples")
    if not isinstance(entries, list):
        raise error("'examples' must be a list")
    for entry in entries:
        _check_fields(entry, "example", error)
        for role in ("input", "output"):
            for tensor in entry[f"{role}s"]:
                _check_fields(tensor, role, error)
        if not entry["outputs"]:
            raise error(f"example {entry['name']!r} has no outputs")
    stated: dict[str, Any] = {k: table.get(k, "") for k in ("operation", "version")}
    spec = spec_of(stated | {"example": [_as_spec(entry) for entry in entries]}, path)
    for example, entry in zip(spec.examples, entries, strict=True):
        if [i.name for i in example.inputs] != [i["name"] for i in entry["inputs"]]:
            raise error(f"the inputs of example {example.name!r} are not in order")
        if [s.value for s in example.profiles] != [o["profile"] for o in entry["outputs"]]:
            raise error(f"example {example.name!r} must have one output per profile")
    return spec, entries


def _check_fields(value: Any, role: str, error: Callable[[str], DeconvError]) -> None:
    fields = _FIELDS[role]
    if not isinstance(value, dict):
        raise error(f"each {role} must be an object")
    for name, wanted in fields.items():
        if not isinstance(value.get(name), wanted):
            raise error(f"{name!r} of an {role} is missing or not {_JSON_NAMES[wanted]}")


def _as_spec(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry in the form of a SPEC file, so that the same checks apply."""
    plain = [i for i in entry["inputs"] if "value" not in i]
    types = [i["element_type"] for i in plain]
    return {
        "name": entry["name"],
        "attributes": entry["attributes"],
        "inputs": {i["name"]: i["shape"] for i in plain},
        "values": {i["name"]: i["value"] for i in entry["inputs"] if "value" in i},
        "element_type": types[0] if types else "f32",
        "profiles": list(dict.fromkeys(o["profile"] for o in entry["outputs"])),
        "output": entry["outputs"][0]["shape"],
        "arrays": entry["arrays"],
    }


class _Verifier:
    """Collects the differences."""

    def __init__(self, root: Path, actual: Path | None, rtol: float, atol: float) -> None:
        self.root = root
        self.actual = actual
        self.rtol = rtol
        self.atol = atol
        self.findings: list[Finding] = []
        self.compared = 0

    def add(self, rule: str, path: Path, message: str, expected: Any, actual: Any) -> None:
        self.findings.append(
            Finding(message, expected=expected, actual=actual, file=str(path), rule=rule)
        )

    def example(self, example: ExampleSpec, entry: Mapping[str, Any]) -> None:
        for name, digest in entry["files"].items():
            # A manifest may name only files in its directory.
            if "/" not in name and name not in ("", ".", ".."):
                self.hash(self.root / example.name / name, digest)
        if not example.arrays:
            return
        check_size(example)
        inputs = [
            self.input(example, given.name, given.element_type, stated)
            for given, stated in zip(example.inputs, entry["inputs"], strict=True)
        ]
        known = [i for i in inputs if i is not None]
        for semantics, stated in zip(example.profiles, entry["outputs"], strict=True):
            expected = None
            if len(known) == len(inputs):
                expected = compute(example, known, semantics)
            self.output(example, semantics, expected, stated)

    def hash(self, path: Path, digest: Any) -> bool:
        try:
            found = sha256(read_input(path, MAX_FILE))
        except DeconvError as error:
            self.add("golden-file", path, error.message, digest, None)
            return False
        if found != digest:
            self.add("golden-hash", path, "SHA-256 is not the manifest's", digest, found)
        return True

    def array(self, path: Path, element_type: ElementType, shape: Any, rule: str) -> Array | None:
        """Read an array, and require its type and shape."""
        try:
            found = npy.read(str(path))
        except DeconvError as error:
            self.add(rule, path, error.message, None, None)
            return None
        wanted = element_type.numpy()
        if found.dtype.kind == "V" and found.dtype.itemsize == wanted.itemsize:
            found = found.view(wanted)
        if found.dtype.newbyteorder("=") != wanted:
            message = f"element type is {found.dtype}, expected {element_type}"
            self.add(rule, path, message, str(element_type), str(found.dtype))
            return None
        if list(found.shape) != shape:
            message = f"shape is {format_shape(found.shape)}, expected {format_shape(tuple(shape))}"
            self.add(rule, path, message, list(shape), list(found.shape))
            return None
        return found.astype(wanted)

    def input(
        self, example: ExampleSpec, name: str, element_type: ElementType, stated: Mapping[str, Any]
    ) -> Array | None:
        """Verify an input, and return the array that its seed, or its value, defines."""
        path = self.root / example.name / f"{name}.npy"
        made = None
        if "value" in stated:
            made = np.array(stated["value"], element_type.numpy())
        elif type(stated.get("seed")) is int:
            made = make_array(stated["shape"], element_type, stated["seed"])
        else:
            message = "the manifest has no seed for it"
            self.add("golden-values", path, message, "a seed", stated.get("seed"))
        if self.hash(path, stated.get("sha256")):
            found = self.array(path, element_type, stated["shape"], "golden-file")
            if found is not None and made is not None:
                self.compare(path, found, made, "golden-values")
        return made

    def output(
        self,
        example: ExampleSpec,
        semantics: Semantics,
        expected: Array | None,
        stated: Mapping[str, Any],
    ) -> None:
        """Verify an output, then that of the other directory."""
        name = f"{output_name(example, semantics)}.npy"
        path = self.root / example.name / name
        element_type, shape = example.output_types[0], list(example.outputs[0])
        if self.hash(path, stated.get("sha256")) and expected is not None:
            found = self.array(path, element_type, shape, "golden-file")
            if found is not None:
                self.compared += self.actual is None
                self.compare(path, found, expected, "golden-values")
        if self.actual is None or expected is None:
            return
        path = self.actual / example.name / name
        found = self.array(path, element_type, shape, "actual-file")
        if found is not None:
            self.compared += 1
            self.compare(path, found, expected, "actual-values", self.rtol, self.atol)

    def compare(
        self,
        path: Path,
        found: Array,
        expected: Array,
        rule: str,
        rtol: float = 0.0,
        atol: float = 0.0,
    ) -> None:
        """Require ``|found - expected| <= atol + rtol * |expected|``."""
        if np.array_equal(found, expected):
            return
        # float64 represents every golden value exactly.
        a, b = found.astype(np.float64), expected.astype(np.float64)
        with np.errstate(invalid="ignore"):
            off = np.abs(a - b)
            wrong = ~(off <= atol + rtol * np.abs(b))
        count = int(wrong.sum())
        if not count:
            return
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        self.add(
            rule,
            path,
            f"{count} of {found.size} elements differ, by up to {np.nanmax(off):g}; the first at "
            f"{format_shape(where)}: {a[where]:g}, expected {b[where]:g}",
            float(b[where]),
            float(a[where]),
        )
