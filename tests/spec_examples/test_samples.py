"""samples/spec/: generated files are up to date, correct and complete; their networks are run."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import deconv_ir
from deconv_ir.ir.geometry import PadMode
from deconv_ir.ir.options import Semantics
from deconv_ir.ops.base import attributes_of
from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.fragments import fragment
from deconv_ir.spec_examples.generate import PageFormat, generate
from deconv_ir.spec_examples.rules import Verdict
from deconv_ir.spec_examples.specfile import ExampleSpec, Spec, read_spec
from deconv_ir.spec_examples.text import Document

SAMPLES = Path(__file__).parents[2] / "samples" / "spec"
DOCUMENTS = Path(__file__).parent / "documents"
SPECS = {path.stem: read_spec(path) for path in sorted(SAMPLES.glob("*.toml"))}
OPERATIONS = {
    "ConvolutionBackpropData",
    "GroupConvolutionBackpropData",
    "ConvTranspose",
    "ConvolutionBackwardData",
}


def every() -> Iterator[object]:
    for name, spec in SPECS.items():
        for example in spec.examples:
            yield pytest.param(name, example, id=f"{name}-{example.name}")


def named(name: str, example: str) -> str:
    spec = SPECS[name]
    return fragment(spec, next(e for e in spec.examples if e.name == example))


def test_one_file_an_operation() -> None:
    assert {spec.operation for spec in SPECS.values()} == OPERATIONS
    assert len(SPECS) == len(OPERATIONS)


@pytest.mark.parametrize("name", SPECS)
def test_up_to_date(name: str) -> None:
    made = generate(SPECS[name], diagrams=True)
    there = {
        str(path.relative_to(SAMPLES / name)): path.read_bytes()
        for path in (SAMPLES / name).rglob("*")
        if path.is_file()
    }
    assert sorted(made) == sorted(there)
    assert [file for file in made if made[file] != there[file]] == []


def test_small() -> None:
    assert sum(p.stat().st_size for p in SAMPLES.rglob("*") if p.is_file()) < 2 << 20


@pytest.mark.parametrize("page_format", PageFormat)
@pytest.mark.parametrize("name", SPECS)
def test_every_example_of_a_page_is_right(name: str, page_format: PageFormat) -> None:
    files = generate(SPECS[name], page_format)
    page = files[f"examples.{page_format.value}"]
    judgements = check_document(Document(page))
    assert [j.computed[0] for j in judgements] == [e.outputs[0] for e in SPECS[name].examples]
    assert {j.verdict for j in judgements} == {Verdict.RIGHT}


# The documents' own examples


@pytest.mark.parametrize("example", ["document-1", "document-2", "document-3"])
def test_generated_to_the_letter_of_the_newer_document(example: str) -> None:
    """S2, section 'Examples'; the last line of the document lacks its end."""
    text = (DOCUMENTS / "convolution_backprop_data_1.txt").read_text() + "\n"
    assert named("convolution_backprop_data", example) in text


@pytest.mark.parametrize(
    ("name", "example", "document"),
    [
        ("convolution_backprop_data", "document-older", "convolution_backprop_data_1_older"),
        ("group_convolution_backprop_data", "document", "group_convolution_backprop_data_1"),
    ],
)
def test_generated_as_the_damaged_documents_were(name: str, example: str, document: str) -> None:
    """S0 and S1, section 'Example', where indentation was lost and blank lines were added."""
    text = (DOCUMENTS / f"{document}.txt").read_text()
    printed = text[text.index("<layer") :].split("\n\n")
    generated = textwrap.dedent(named(name, example)).splitlines()
    assert [line.strip() for line in generated] == printed


# Each attribute, by itself


def neutral(example: ExampleSpec, field: str) -> bool:
    """Return whether an attribute has a value without effect."""
    value = getattr(example.operation, field)
    if field in ("strides", "dilations"):
        return value is None or set(value) == {1}
    if field in ("pads_begin", "pads_end", "output_padding"):
        return not value or set(value) == {0}
    defaults = {s.field: s.default for s in attributes_of(type(example.operation))}
    return bool(value == defaults[field])


def required(spec: Spec) -> set[str]:
    """Return attributes that always have an effect: every example requires dst_shape."""
    return {"dst_shape"} if spec.operation == "ConvolutionBackwardData" else set()


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_each_attribute_is_isolated(spec: Spec) -> None:
    fields = [s.field for s in attributes_of(type(spec.examples[0].operation))]
    isolated = set()
    for example in spec.examples:
        changed = {f for f in fields if not neutral(example, f)} - required(spec)
        if len(changed) == 1:
            isolated |= changed
        # Pads without effect show that auto_pad ignores them; output_padding and auto_pad only have
        # an effect if positions are not dense.
        for rest in (
            {"pads_begin", "pads_end"},
            {"strides"},
            {"strides", "pads_begin", "pads_end"},
        ):
            if len(changed - rest) == 1:
                isolated |= (changed - rest) & {"auto_pad", "output_padding", "dst_shape"}
    if spec.operation == "ConvolutionBackwardData":
        ways = {("dst_shape" in dict(e.attributes), len(e.inputs) > 2) for e in spec.examples}
        assert ways == {(True, False), (False, True), (True, True)}
        isolated.add("dst_shape")
    layouts = {"data_format", "filter_format", "weights_format"}
    assert isolated | layouts >= set(fields)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_axes_pads_and_groups(spec: Spec) -> None:
    ranks = {len(e.outputs[0]) - 2 for e in spec.examples}
    assert ranks == {1, 2, 3}
    assert any(
        e.operation.pads_begin and e.operation.pads_begin != e.operation.pads_end
        for e in spec.examples
    )
    assert {e.operation.auto_pad for e in spec.examples} == set(PadMode)
    written = {dict(e.attributes).get("auto_pad", "absent").lower() for e in spec.examples}
    explicit = (
        "none" if spec.operation in ("ConvTranspose", "ConvolutionBackwardData") else "explicit"
    )
    assert written == {"absent", explicit, "same_upper", "same_lower", "valid"}
    if spec.operation != "ConvolutionBackpropData":
        groups = {e.operation.groups_of(e.inputs[1].shape) for e in spec.examples}
        assert {1, 2, 3} <= groups


@pytest.mark.parametrize("name", ["convolution_backprop_data", "group_convolution_backprop_data"])
def test_output_shape_under_each_auto_pad(name: str) -> None:
    found = {
        dict(e.attributes).get("auto_pad", "absent")
        for e in SPECS[name].examples
        if any(i.name == "output_shape" for i in e.inputs)
    }
    assert found == {"absent", "explicit", "same_upper", "same_lower", "valid"}


@pytest.mark.parametrize("name", ["conv_transpose", "convolution_backward_data"])
def test_every_pair_of_layouts(name: str) -> None:
    filter_format = "filter_format" if name == "conv_transpose" else "weights_format"
    found = {
        (dict(e.attributes).get("data_format"), dict(e.attributes).get(filter_format))
        for e in SPECS[name].examples
    }
    spatial_first, other = ("XOI", "IOX") if name == "conv_transpose" else ("XIO", "OIX")
    assert found >= {(d, f) for d in ("NXC", "NCX") for f in (spatial_first, other)}


def test_bias() -> None:
    assert any(len(e.inputs) == 3 for e in SPECS["conv_transpose"].examples)


def test_where_the_profiles_differ_both_outputs_are_there() -> None:
    for name in ("convolution_backprop_data", "group_convolution_backprop_data"):
        for example in SPECS[name].examples:
            text = fragment(SPECS[name], example)
            (judgement,) = check_document(Document(text.encode()))
            differ = any(f.rule == "profiles-differ" for f in judgement.findings)
            assert not differ or set(example.profiles) == {Semantics.SPEC, Semantics.OPENVINO}, (
                example.name
            )


# Results of the networks


def load_array(path: Path) -> np.ndarray:
    array = np.load(path)
    return array.view(ml_dtypes.bfloat16) if array.dtype.kind == "V" else array


@pytest.mark.parametrize(("name", "example"), list(every()))
def test_the_network_loads_and_gives_the_golden_output(name: str, example: ExampleSpec) -> None:
    folder = SAMPLES / name / example.name
    for semantics in example.profiles:
        model = deconv_ir.load(folder / "model.xml", semantics=semantics, strict=True, warn=False)
        assert [p.shape for p in model.inputs.values()] == [example.inputs[0].shape]
        assert model.infer_shapes() == {"output": example.outputs[0]}
        if example.arrays:
            suffix = "" if semantics is example.profiles[0] else f".{semantics.value}"
            golden = load_array(folder / f"output{suffix}.npy")
            result = model.run([load_array(folder / f"{example.inputs[0].name}.npy")])["output"]
            assert result.dtype == golden.dtype == example.element_type.numpy()
            assert np.array_equal(result, golden)


@pytest.mark.parametrize(("name", "example"), list(every()))
def test_the_bare_layer_loads(name: str, example: ExampleSpec) -> None:
    model = deconv_ir.load(SAMPLES / name / example.name / "layer.xml", strict=True, warn=False)
    assert [p.shape for p in model.inputs.values()] == [i.shape for i in example.inputs]


def test_inputs_have_no_zero_and_are_not_all_alike() -> None:
    for path in SAMPLES.rglob("data.npy"):
        array = load_array(path).astype(np.float64)
        assert np.all(array != 0)
        assert np.unique(array).size > 1


def test_pages_work_each_formula_through() -> None:
    page = (SAMPLES / "convolution_backprop_data" / "examples.md").read_text()
    assert "  = 2*(224 - 1) + ((3 - 1)*1 + 1) - 1 - 1 + 0\n  = 447\n" in page
    assert re.search(r"total_padding = .*\n +=.*\n +=.* -224\npad_begin = ", page)
    assert "| output.openvino | [1,2,5] | f32 | output-shape/output.openvino.npy |" in page
    assert "![output_padding: 1: how input and output line up](output-padding/diagram.svg)" in page
