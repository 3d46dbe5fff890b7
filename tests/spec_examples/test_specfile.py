"""SPEC files: their statements are checked, and a mistake is one line that names its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from deconv_ir.errors import DeconvError
from deconv_ir.ir.options import Semantics
from deconv_ir.spec_examples.fragments import fragment
from deconv_ir.spec_examples.specfile import parse_spec, read_spec

HEAD = 'operation = "ConvolutionBackpropData"\n'
EXAMPLE = """
[[example]]
name = "a"
attributes = { strides = [2], dilations = [1], pads_begin = [0], pads_end = [0] }
inputs = { data = [1, 2, 4], filter = [2, 2, 3] }
"""


def test_defaults() -> None:
    spec = parse_spec((HEAD + EXAMPLE).encode())
    (example,) = spec.examples
    assert (spec.operation, spec.version, spec.title) == (
        "ConvolutionBackpropData",
        "opset1",
        "ConvolutionBackpropData",
    )
    assert (example.title, example.layer_id, example.layer_name) == ("a", 5, "a")
    assert (str(example.element_type), example.seed, example.arrays) == ("f32", 0, True)
    assert example.profiles == (Semantics.SPEC,)
    assert example.outputs == ((1, 2, 9),)


def test_what_stands_at_the_top_holds_for_all_examples() -> None:
    text = HEAD + 'seed = 3\nelement_type = "f16"\narrays = false\ndiagram = false\n'
    text += 'profiles = ["openvino", "spec"]\n' + EXAMPLE
    text += EXAMPLE.replace('"a"', '"b"') + 'element_type = "i8"\nseed = 4\narrays = true\n'
    first, second = parse_spec(text.encode()).examples
    assert (str(first.element_type), first.seed, first.arrays, first.diagram) == (
        "f16",
        3,
        False,
        False,
    )
    assert (str(second.element_type), second.seed, second.arrays) == ("i8", 4, True)
    assert first.profiles == (Semantics.OPENVINO, Semantics.SPEC)


def test_inputs_come_in_the_operations_order_and_values_have_a_shape() -> None:
    text = change("data = [1, 2, 4], filter = [2, 2, 3]", "filter = [2, 2, 3], data = [1, 2, 4]")
    (example,) = parse_spec((text + "values = { output_shape = [5] }\n").encode()).examples
    assert [(i.name, i.shape, i.value, str(i.element_type)) for i in example.inputs] == [
        ("data", (1, 2, 4), None, "f32"),
        ("filter", (2, 2, 3), None, "f32"),
        ("output_shape", (1,), (5,), "i64"),
    ]


def test_attributes_of_every_kind_are_written_as_the_ir_does() -> None:
    text = """
        operation = "Reshape"
        [[example]]
        name = "a"
        arrays = false
        layer = { id = 7, name = "a \\"b\\" & <c>" }
        attributes = { special_zero = true }
        inputs = { data = [2, 5] }
        values = { shape = [0, -1, 1] }
    """
    spec = parse_spec(text.encode())
    printed = fragment(spec, spec.examples[0])
    assert '<layer id="7" name=\'a "b" &amp; &lt;c&gt;\' type="Reshape">' in printed
    assert '<data special_zero="true"/>' in printed
    assert "<dim>3</dim> <!-- shape value is: [0, -1, 1]-->" in printed
    assert spec.examples[0].outputs == ((2, 5, 1),)


def change(old: str, new: str) -> str:
    assert old in EXAMPLE
    return HEAD + EXAMPLE.replace(old, new)


MISTAKES: list[tuple[str, str]] = [
    ("operation = ", "f:None: invalid TOML: Invalid value"),
    ("x = " + "[" * 5000, "f:None: invalid TOML: it is nested too deeply"),
    ("", "f:None: the file: 'operation' is missing"),
    ("operation = 5", "f:None: the file: 'operation' must be text, found 5"),
    ('operation = "Nothing"', "f:None: the file: operation Nothing is not known"),
    (
        'operation = "MaxPool"\nversion = "opset0"',
        "f:None: the file: operation MaxPool of opset0 is not known",
    ),
    (HEAD, "f:None: the file: 'example' is missing"),
    (HEAD + "example = [5]", "f:None: example 1: an example must be a table, [[example]]"),
    (HEAD + "exampel = 1", "f:None: the file: unknown key 'exampel'; known are operation, "),
    (HEAD + EXAMPLE + EXAMPLE, "f:8: example 'a': the name 'a' is taken"),
    (change('name = "a"', ""), "f:3: example 1: 'name' is missing"),
    (change('"a"', '"../a"'), "f:3: example 1: 'name' must be lower-case letters, digits"),
    (change('"a"', '"A b"'), "f:3: example 1: 'name' must be lower-case letters, digits"),
    (change("attributes", "attribute"), "f:3: example 'a': unknown key 'attribute'"),
    (
        change("strides = [2]", "strides = [0]"),
        "f:3: example 'a': attribute 'strides' must be positive whole numbers separated by commas, "
        "found '0'",
    ),
    (
        change("strides = [2]", "strides = [2, 2]"),
        "f:3: example 'a': strides must have 1 elements, one for each spatial axis, found 2: 2,2",
    ),
    (
        change("strides = [2]", "strides = { a = 1 }"),
        "f:3: example 'a': attribute 'strides' must be text, a number or a list",
    ),
    (
        change("data =", "date ="),
        "f:3: example 'a': unknown input 'date'; the operation has data, filter",
    ),
    (
        change("[1, 2, 4]", "[1, 3, 4]"),
        "f:3: example 'a': channels do not fit: data has 3, filter takes 2",
    ),
    (
        change("[1, 2, 4]", "[1, -2, 4]"),
        "f:3: example 'a': 'inputs.data' must be at most 16 whole numbers from 0",
    ),
    (
        change("[1, 2, 4]", "[1, true, 4]"),
        "f:3: example 'a': 'inputs.data' must be at most 16 whole numbers from 0",
    ),
    (
        change("[1, 2, 4]", "[1, 2, 9999999999]"),
        "f:3: example 'a': 'inputs.data' must be at most 16 whole numbers from 0",
    ),
    (change("inputs = {", "inputs = 5 #"), "f:3: example 'a': 'inputs' must be a table, found 5"),
    (HEAD + EXAMPLE + 'element_type = "f31"', "f:3: example 'a': invalid element type 'f31'"),
    (
        HEAD + EXAMPLE + 'element_type = "u4"',
        "f:3: example 'a': 'element_type' must be one that arrays can have, found 'u4'",
    ),
    (HEAD + EXAMPLE + "arrays = 1", "f:3: example 'a': 'arrays' must be true or false, found 1"),
    (HEAD + EXAMPLE + "seed = true", "f:3: example 'a': 'seed' must be a whole number, found True"),
    (HEAD + EXAMPLE + "profiles = []", "f:3: example 'a': 'profiles' must be of spec, openvino"),
    (
        HEAD + EXAMPLE + 'profiles = ["spec", "spec"]',
        "f:3: example 'a': 'profiles' must be of spec, openvino",
    ),
    (
        HEAD + EXAMPLE + 'profiles = ["spec", ["x"]]',
        "f:3: example 'a': 'profiles' must be of spec, openvino",
    ),
    (
        HEAD + EXAMPLE + "output = [1, 2, 10]",
        "f:3: example 'a': 'output' is [1,2,10], but the inputs give [1,2,9]",
    ),
    (
        change("[2, 2, 3]", "[2, 2, 3], output_shape = [2]"),
        "f:3: example 'a': output_shape must be of an integer type, found f32",
    ),
    (
        change("[2, 2, 3]", "[2, 2, 3], output_shape = [1]") + 'element_type = "i32"',
        "f:3: example 'a': the inputs leave the output's shape open: [1,2,?]",
    ),
    (
        HEAD + EXAMPLE + "values = { output_shape = 5 }",
        "f:3: example 'a': 'values.output_shape' must be at most 16 whole numbers",
    ),
    (
        HEAD + EXAMPLE + "layer = { idd = 5 }",
        "f:3: example 'a': unknown key 'idd'; known are id, name",
    ),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[m[1][:60] for m in MISTAKES])
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(DeconvError) as caught:
        parse_spec(text.encode(), "f")
    error = caught.value
    assert "\n" not in str(error)
    assert f"{error.file}:{error.line}: {error.message}".startswith(message)


def test_unknown_attributes_are_refused() -> None:
    """A misspelt attribute would otherwise keep its default value unnoticed."""
    with pytest.raises(
        DeconvError, match="unknown attribute 'stride'; the operation has strides, "
    ):
        parse_spec(change("strides", "stride").encode())


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DeconvError, match="cannot read the file: No such file"):
        read_spec(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    with pytest.raises(DeconvError, match="invalid TOML"):
        read_spec(tmp_path / "latin.toml")
