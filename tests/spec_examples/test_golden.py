"""Golden arrays: a simple generator, exact sums, and our own .npy writer."""

from __future__ import annotations

import io

import ml_dtypes
import numpy as np
import pytest

from deconv_ir.errors import DeconvError
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ir.options import Semantics
from deconv_ir.ops.convolution.deconvolution import Deconvolution
from deconv_ir.spec_examples.generate import generate
from deconv_ir.spec_examples.golden import (
    compute,
    make_array,
    make_input,
    splitmix64,
    tensor_seed,
    to_npy,
)
from deconv_ir.spec_examples.specfile import ExampleSpec, parse_spec


def test_splitmix64_gives_the_published_numbers() -> None:
    """The numbers for seed 1234567 are those commonly used to test SplitMix64."""
    assert splitmix64(1234567, 5).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def plain_splitmix64(seed: int, count: int) -> list[int]:
    """Compute SplitMix64 in plain integers, as in the paper."""
    mask = 2**64 - 1
    numbers = []
    state = seed
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        numbers.append(z ^ (z >> 31))
    return numbers


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**64 - 1])
def test_splitmix64_of_any_seed(seed: int) -> None:
    assert splitmix64(seed, 100).tolist() == plain_splitmix64(seed, 100)


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16", "i8", "i64", "u8", "u32"])
def test_arrays_follow_from_the_manifests_sentence(name: str) -> None:
    """``VALUES[splitmix64(seed)[i] % len(VALUES)], i in C order``."""
    values = [1, 2, 3] if name.startswith("u") else [-3, -2, -1, 1, 2, 3]
    expected = [values[n % len(values)] for n in plain_splitmix64(9, 24)]
    array = make_array((2, 3, 4), parse_element_type(name), 9)
    assert array.shape == (2, 3, 4)
    assert array.dtype == parse_element_type(name).numpy()
    assert array.astype(np.int64).ravel().tolist() == expected


def test_each_tensor_has_a_seed_of_its_own() -> None:
    seeds = {tensor_seed(s, e, t) for s in (0, 1) for e in "ab" for t in ("data", "filter")}
    assert len(seeds) == 8
    assert all(0 <= s < 2**32 for s in seeds)


@pytest.mark.parametrize(
    ("dtype", "descr"),
    [
        ("float32", "<f4"),
        ("float64", "<f8"),
        ("float16", "<f2"),
        ("int8", "|i1"),
        ("uint8", "|u1"),
        ("int32", "<i4"),
        ("int64", "<i8"),
        ("bfloat16", "|V2"),
    ],
)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (1, 2, 3, 4), (0, 4)])
def test_npy_round_trip(dtype: str, descr: str, shape: tuple[int, ...]) -> None:
    kind = np.dtype(getattr(np, dtype, None) or getattr(ml_dtypes, dtype))
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(kind)
    data = to_npy(array)
    found = np.load(io.BytesIO(data))
    assert found.shape == shape
    assert np.array_equal(found.view(kind), array)
    length = int.from_bytes(data[8:10], "little")
    assert (10 + length) % 64 == 0
    assert f"'descr': '{descr}'".encode() in data[10 : 10 + length]


def test_npy_to_the_letter() -> None:
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }".ljust(117) + "\n"
    expected = b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + b"\0\0\x80\x3f\0\0\0\xc0"
    array = np.array([[1], [-2]], np.float32)
    assert to_npy(array) == expected
    assert to_npy(np.asfortranarray(array)) == expected


def example(**changes: object) -> ExampleSpec:
    table = {
        "attributes": "strides = [2], dilations = [1], pads_begin = [0], pads_end = [0]",
        "inputs": "data = [1, 2, 4], filter = [2, 2, 3]",
        "element_type": "f32",
    } | changes
    text = (
        'operation = "ConvolutionBackpropData"\n[[example]]\nname = "a"\n'
        f"attributes = {{ {table['attributes']} }}\ninputs = {{ {table['inputs']} }}\n"
        f'element_type = "{table["element_type"]}"\n'
    )
    return parse_spec(text.encode()).examples[0]


def result(spec: ExampleSpec) -> np.ndarray:
    return compute(spec, [make_input(spec, i) for i in spec.inputs], Semantics.SPEC)


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16", "i8", "u8", "i32", "u64"])
def test_outputs_are_whole_numbers_that_a_hand_written_sum_gives(kind: str) -> None:
    spec = example(element_type=kind)
    data, weights = (make_input(spec, i).astype(np.int64) for i in spec.inputs)
    expected = np.zeros((1, 2, 9), np.int64)
    for x in range(4):
        for k in range(3):
            for c in range(2):
                expected[0, :, 2 * x + k] += data[0, c, x] * weights[c, :, k]
    assert np.array_equal(result(spec).astype(np.int64), expected)


@pytest.mark.parametrize(("kind", "channels"), [("bf16", 40), ("f16", 400), ("i8", 20), ("u8", 40)])
def test_sums_that_may_not_be_exact_are_refused(kind: str, channels: int) -> None:
    inputs = f"data = [1, {channels}, 4], filter = [{channels}, 1, 3]"
    with pytest.raises(DeconvError, match=f"example 'a': sums may reach .*, which {kind} does not"):
        result(example(element_type=kind, inputs=inputs))


@pytest.mark.parametrize(
    "inputs",
    [
        "data = [1, 1, 1000], filter = [1, 1, 1001]",
        "data = [2000000000, 2000000000, 4], filter = [2000000000, 2, 3]",
    ],
)
def test_too_large_is_refused_before_anything_is_made(inputs: str) -> None:
    text = f"""
        operation = "ConvolutionBackpropData"
        [[example]]
        name = "a"
        inputs = {{ {inputs} }}
    """
    with pytest.raises(DeconvError, match="example 'a' is too large for golden arrays"):
        generate(parse_spec(text.encode()))
    if "2000" in inputs:
        text += "arrays = false\n"
        with pytest.raises(DeconvError, match="example 'a' is too large: a constant of"):
            generate(parse_spec(text.encode()))


def test_kernels_that_differ_are_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: object, inputs: object, context: object) -> tuple[np.ndarray]:
        return (np.zeros((1, 2, 9), np.float32),)

    monkeypatch.setattr(Deconvolution, "execute", wrong)
    with pytest.raises(RuntimeError, match="the two kernels differ"):
        result(example())


def test_other_operations_have_no_oracle_here() -> None:
    text = """
        operation = "ReLU"
        [[example]]
        name = "a"
        inputs = { data = [2, 3] }
    """
    with pytest.raises(DeconvError, match="there is no loop kernel for ReLU"):
        generate(parse_spec(text.encode()))
    files = generate(parse_spec((text + "arrays = false\n").encode()))
    assert sorted(files) == ["a/layer.xml", "a/model.xml", "examples.md", "manifest.json"]
