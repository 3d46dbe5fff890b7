"""Generation of a golden directory from a SPEC file: XML, networks, arrays, page, manifest."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import DeconvError
from deconv_ir.ir.shapes import element_count
from deconv_ir.spec_examples import pages
from deconv_ir.spec_examples.fragments import fragment, network
from deconv_ir.spec_examples.golden import (
    SIGNED,
    UNSIGNED,
    check_size,
    compute,
    geometry_of,
    make_input,
    sha256,
    tensor_seed,
    to_npy,
)
from deconv_ir.spec_examples.pages import output_name
from deconv_ir.spec_examples.specfile import ExampleSpec, Spec

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

MANIFEST = "manifest.json"
MAX_CONSTANT = 1 << 22
FORMAT = "deconv-spec golden arrays, 1"


class PageFormat(enum.Enum):
    """Formats of the page."""

    MARKDOWN = "md"
    RST = "rst"
    XML = "xml"


_FORMS = {PageFormat.MARKDOWN: pages.Markdown(), PageFormat.RST: pages.Rst()}


def generate(
    spec: Spec, page_format: PageFormat = PageFormat.MARKDOWN, *, diagrams: bool = False
) -> dict[str, bytes]:
    """Make all files of a golden directory, in memory, by their paths within it.

    With `diagrams`, examples that request a picture are drawn.
    """
    files: dict[str, bytes] = {}
    entries = []
    for example in spec.examples:
        own, entry = _example(spec, example, diagrams=diagrams)
        files |= own
        entries.append(entry)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "operation": spec.operation,
        "version": spec.version,
        "source": spec.source,
        "random": {
            "generator": "splitmix64",
            "element": "VALUES[splitmix64(seed)[i] % len(VALUES)], i in C order",
            "values": {"signed": list(SIGNED), "unsigned": list(UNSIGNED)},
        },
        "examples": entries,
    }
    files[MANIFEST] = _json(manifest).encode()
    form = _FORMS.get(page_format)
    page = pages.xml(spec) if form is None else pages.page(spec, files, form)
    files[f"examples.{page_format.value}"] = page.encode()
    return files


def _json(value: Any) -> str:
    """Write readable JSON: a list of numbers is on one line."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    flat = re.compile(r"\[\s+(-?\d+(?:,\s+-?\d+)*)\s+\]")
    return flat.sub(lambda m: f"[{' '.join(m.group(1).split())}]", text) + "\n"


def _example(
    spec: Spec, example: ExampleSpec, *, diagrams: bool
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Make the files of one example, and its entry in the manifest."""
    folder = example.name
    if example.arrays:
        check_size(example)
    _check_constants(example)
    # Only an example with arrays needs generated inputs of its network.
    made = [
        make_input(example, given) if example.arrays or i else None
        for i, given in enumerate(example.inputs)
    ]
    network_xml, weights = network(spec, example, [None, *made[1:]])
    files = {
        f"{folder}/layer.xml": fragment(spec, example).encode(),
        f"{folder}/model.xml": network_xml,
    }
    if weights:
        files[f"{folder}/model.bin"] = weights
    hashes = {path.removeprefix(f"{folder}/"): sha256(data) for path, data in files.items()}
    if diagrams and example.diagram:
        from deconv_ir.spec_examples.diagram import draw

        files[f"{folder}/diagram.svg"] = draw(example)
    inputs = []
    for given, array in zip(example.inputs, made, strict=True):
        entry: dict[str, Any] = {
            "name": given.name,
            "element_type": given.element_type.name,
            "shape": list(given.shape),
        }
        if given.value is not None:
            entry["value"] = list(given.value)
        elif example.arrays:
            entry["seed"] = tensor_seed(example.seed, example.name, given.name)
        if example.arrays and array is not None:
            entry |= _store(files, f"{folder}/{given.name}.npy", array)
        inputs.append(entry)
    arrays = [a for a in made if a is not None]
    return files, {
        "name": example.name,
        "attributes": dict(example.attributes),
        "arrays": example.arrays,
        "inputs": inputs,
        "outputs": _outputs(example, arrays, files),
        "files": hashes,
    }


def _check_constants(example: ExampleSpec) -> None:
    largest = max((element_count(i.shape) for i in example.inputs[1:]), default=0)
    if largest > MAX_CONSTANT:
        raise DeconvError(
            f"example {example.name!r} is too large: a constant of {largest} elements, "
            f"{MAX_CONSTANT} are allowed",
            expected=MAX_CONSTANT,
            actual=largest,
            rule="spec",
        )


def _outputs(
    example: ExampleSpec, inputs: list[Array], files: dict[str, bytes]
) -> list[dict[str, Any]]:
    """Compute the outputs by each profile, and describe them."""
    entries = []
    for semantics in example.profiles:
        for i, shape in enumerate(example.outputs):
            name = output_name(example, semantics, i)
            entry: dict[str, Any] = {
                "name": name,
                "profile": semantics.value,
                "element_type": example.output_types[i].name,
                "shape": list(shape),
            }
            if example.arrays:
                entry["pads_begin"] = [g.pad_begin for g in geometry_of(example, semantics)]
                result = compute(example, inputs, semantics)
                entry |= _store(files, f"{example.name}/{name}.npy", result)
            entries.append(entry)
    return entries


def _store(files: dict[str, bytes], path: str, array: Array) -> Mapping[str, str]:
    files[path] = to_npy(array)
    return {"file": path, "sha256": sha256(files[path])}
