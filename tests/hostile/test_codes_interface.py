"""The extension refuses arrays and figures of codes that do not fit, before it touches memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import isa_number
from deconv_ir.kernels.runtime.extension import compiled_module

MODULE = compiled_module()
pytestmark = pytest.mark.skipif(MODULE is None, reason="the compiled kernel was not built")

F32, F64, U32, I8 = np.float32, np.float64, np.uint32, np.int8
RANGES = np.array([[0.0, 1.0]])


def quantize(**changes: Any) -> None:
    given = {"data": np.zeros((2, 5, 7), F32), "out": np.zeros((2, 2, 7), U32), "ranges": RANGES}
    figures = {"isa": isa_number(), "highest": 255, "threads": 1}
    given |= {k: v for k, v in changes.items() if k in given}
    figures |= {k: v for k, v in changes.items() if k in figures}
    MODULE.quantize(*given.values(), interface.quantize_fields(**figures))


def dequantize(**changes: Any) -> None:
    """Sum codes of a 1 x 1 convolution from 4 to 5 channels, and make codes of the sums."""
    made: dict[str, Any] = {
        "of_channels": np.ones((5, 6)),
        "offsets": np.zeros((5, 2, 4)),
        "classes": np.array([0, 1, 0], np.int32),
        "ranges": RANGES,
    }
    figures = {"begin": 1, "chunk": 1, "end": 2, "highest": 255, "positions": 12, "columns": 4}
    figures |= {"adds": 0, "isa": isa_number(), "window_planes": 0, "greatest_sum": 1 << 20}
    windows = changes.get("windows")
    given: dict[str, Any] = {
        "data": np.zeros((1, 1, 1, 3, 4), U32),
        "out": np.zeros((1, 2, 12), U32),
        "addend": None,
    }
    layer: dict[str, Any] = {"forward": 1, "element": interface.U8X4, "isa": 0, "groups": 1}
    layer |= {"channels_in": 1, "channels_out": 5, "folded": 1, "longer": 0, "winograd": 0}
    layer |= {"form": interface.COMPRESSED_FORMS, "halves": 0, "frees": 0, "unread": 0}
    layer |= {"channel_block": 0, "level2_bytes": 1 << 19, "sure_level2_bytes": 1 << 18}
    layer |= {"level3_bytes": 1 << 25, "multiply_adds": 2.0}
    layer |= dict.fromkeys(("kernel", "strides", "dilations"), (1, 1, 1))
    run: dict[str, Any] = {"pads_begin": (0, 0, 0), "output": (1, 3, 4), "threads": 1}
    run |= {"scratch_bytes": 1 << 20, "thread_bytes": 1 << 20, "winograd": 0, "extent": 4}
    run |= {"crop": 0, "data_of_whole": (1, 3, 4), "pads_begin_of_whole": (0, 0, 0)}
    run |= {"output_of_whole": (1, 3, 4)}
    for table in (made, figures, given, layer, run):
        table |= {k: v for k, v in changes.items() if k in table}
    epilogue = Activation().fields()
    dequantizer = MODULE.Dequantizer(
        *made.values(), interface.dequantizer_fields(**epilogue, **figures)
    )
    kernel = MODULE.Kernel(None, None, None, None, interface.layer_fields(**layer, **epilogue))
    rows = layer["groups"] * layer["channels_out"]
    terms = rows * layer["channels_in"] * math.prod(layer["kernel"])
    kernel.fill(np.full(terms, changes.get("weight", 0), U32), 0, False, 1)
    assert kernel.run(*given.values(), dequantizer, windows, interface.run_fields(**run))


def combine_codes(**changes: Any) -> None:
    given: dict[str, Any] = {
        "first": np.zeros((2, 2, 7), U32),
        "second": np.zeros((2, 2, 7), U32),
        "out": np.zeros((2, 2, 7), U32),
    }
    figures = {"out_low": 0.0, "out_high": 1.0, "highest": 255, "threads": 1, "isa": isa_number()}
    figures["multiplies"] = 0
    steps = {"first_low": 0.0, "first_step": 1.0, "second_low": 0.0, "second_step": 1.0}
    epilogue = Activation().fields()
    given |= {k: v for k, v in changes.items() if k in given}
    figures |= {k: v for k, v in changes.items() if k in figures}
    epilogue |= {k: v for k, v in changes.items() if k in epilogue}
    MODULE.combine_codes(
        *given.values(), interface.combine_codes_fields(**figures, **steps, **epilogue)
    )


def average_codes(**changes: Any) -> None:
    given = {"codes": np.zeros((2, 2, 7), U32), "out": np.zeros((2, 5), F32)} | changes
    fields = interface.average_codes_fields(scale=1.0, offset=0.0, threads=1)
    MODULE.average_codes(*given.values(), fields)


def max_codes(**changes: Any) -> None:
    given = {"data": np.zeros((2, 1, 6, 6), U32), "out": np.zeros((2, 1, 3, 3), U32)}
    figures: dict[str, Any] = {
        "kernel": (1, 2, 2), "strides": (1, 2, 2), "dilations": (1, 1, 1), "pads_begin": (0, 0, 0)
    }  # fmt: skip
    given |= {k: v for k, v in changes.items() if k in given}
    figures |= {k: v for k, v in changes.items() if k in figures}
    MODULE.max_codes(*given.values(), interface.max_codes_fields(**figures, threads=1))


def multiply_quantized(**changes: Any) -> None:
    given: dict[str, Any] = {
        "a": np.zeros((3, 5), F32),
        "b": np.zeros(2 * 32, F32),
        "numbers": np.ones((3, 32)),
        "bases": np.zeros((2, 32), np.int32),
        "out": np.zeros((3, 20), F32),
    }
    figures = {"isa": isa_number(), "data_low": 0.0, "data_high": 1.0, "highest": 255}
    figures |= {"out_low": 0.0, "out_high": 1.0, "out_highest": 255, "greatest": 0.0}
    epilogue = Activation().fields()
    given |= {k: v for k, v in changes.items() if k in given}
    figures |= {k: v for k, v in changes.items() if k in figures}
    epilogue |= {k: v for k, v in changes.items() if k in epilogue}
    fields = interface.multiply_quantized_fields(**figures, **epilogue, plain=False, threads=1)
    MODULE.multiply_quantized(*given.values(), fields)


def multiply_pairs(**changes: Any) -> None:
    given: dict[str, Any] = {
        "a": np.zeros((3, 5), F32),
        "b": np.zeros(3 * 32, F32),
        "bias": None,
        "out": np.zeros((3, 20), F32),
    }
    figures = {"isa": 0, "is_packed": 1, "pairs": 1}
    given |= {k: v for k, v in changes.items() if k in given}
    figures |= {k: v for k, v in changes.items() if k in figures}
    fields = interface.multiply_fields(**figures, **Activation().fields(), threads=1)
    MODULE.multiply(*given.values(), fields)


MISFITS: list[tuple[Any, dict[str, Any]]] = [
    *((quantize, {"highest": n}) for n in (-1, 0, 256, 2**40)),
    *((quantize, {"isa": n}) for n in (-1, 99)),
    *((quantize, {"data": np.zeros(shape, F32)}) for shape in ((2, 9, 7), (2, 5, 8), (1, 5, 7))),
    *((quantize, {"data": np.zeros((2, 5, 7), F64)}, ), (quantize, {"out": np.zeros((2, 2), U32)})),
    *((quantize, {"ranges": np.array(rows)}) for rows in (
        [[1.0, 0.0]], [[0.0, 0.0]], [[0.0, np.inf]], [[0.0, np.nan]], [[0.0, 1.0]] * 2, [0.0],
    )),
    *((combine_codes, {"highest": n}) for n in (-1, 256, 2**40)),
    *((combine_codes, {"isa": n}) for n in (-1, 99)),
    *((combine_codes, {"activation": n}) for n in (-1, 4, 99)),
    *((combine_codes, {"out_high": n}) for n in (0.0, -1.0, np.inf, np.nan)),
    *(
        (combine_codes, {name: np.zeros(shape, U32)})
        for name in ("first", "second", "out")
        for shape in ((2, 2, 8), (2, 3, 7), (1, 2, 7), (2, 14))
    ),
    (combine_codes, {"first": np.zeros((2, 2, 7), F64)}),
    *((combine_codes, {"second": np.zeros(s, U32)}) for s in ((2, 3, 1), (1, 2, 1), (2, 2, 2))),
    *((average_codes, {"codes": np.zeros(s, U32)}) for s in ((2, 3, 7), (1, 2, 7), (2, 14))),
    *((average_codes, {"codes": np.zeros(s, U32)}) for s in ((2, 2, 0), (2, 1, 7))),
    *((average_codes, {"out": np.zeros(s, F32)}) for s in ((2, 4), (2, 9), (1, 5), (10,))),
    (average_codes, {"codes": np.zeros((2, 2, 7), F64)}),
    *(
        (combine_codes, {"highest": 0, "out": np.zeros(shape, F32)})
        for shape in ((2, 4, 7), (2, 9, 7), (1, 5, 7), (2, 5, 8))
        if shape != (2, 4, 7)
    ),
    *((dequantize, {"isa": n}) for n in (-1, 99)),
    *((dequantize, {"positions": n}) for n in (-12, 0, 11, 13, 2**40)),
    *((dequantize, {"columns": n}) for n in (-4, 0, 3, 2**40)),
    *((dequantize, {"begin": n}) for n in (-1, 0, 3, 2**40)),
    *((dequantize, {"chunk": n}) for n in (-1, 0, 2, 2**40)),
    *((dequantize, {"end": n}) for n in (0, 3, 5, 2**40)),
    *((dequantize, {"classes": np.array(rows, np.int32)}) for rows in (
        [0, 2, 0], [0, -1, 0], [0], [],
    )),
    (dequantize, {"classes": np.zeros(3, np.int64)}),
    (dequantize, {"classes": None}),
    *((dequantize, {"of_channels": np.ones(shape)}) for shape in ((4, 6), (5, 4), (0, 6))),
    (dequantize, {"of_channels": np.ones((5, 6), F32)}),
    *((dequantize, {"offsets": np.zeros(s)}) for s in ((4, 2, 4), (5, 2, 5), (5, 8), (0, 2, 4))),
    *((dequantize, {"out": np.zeros(shape, U32)}) for shape in ((1, 3, 12), (1, 2, 11))),
    (dequantize, {"data": np.zeros((2, 1, 1, 3, 4), U32)}),
    *((dequantize, {"window_planes": n}) for n in (-1, 2, 5, 10, 2**40)),
    *((dequantize, {"window_planes": 1, "windows": windows})
      for windows in (None, np.zeros(12 + 15, U32), np.zeros(0, U32))),
    (dequantize, {"windows": np.zeros(12 + 16, U32)}),
    (dequantize, {"window_planes": 5, "windows": np.zeros(5 * 12 + 15, U32)}),
    # Sums that become codes at once take no addend.
    (dequantize, {"addend": np.zeros((1, 5, 12), F32)}),
    (dequantize, {"adds": 1, "addend": np.zeros((1, 5, 11), F32)}),
    (dequantize, {"ranges": None}),
    (dequantize, {"ranges": np.array([[1.0, 0.0]])}),
    (dequantize, {"highest": 0}),
    (dequantize, {"channels_out": 6}),
    # Elements would have channels of two groups.
    (dequantize, {"groups": 5, "channels_out": 1, "data": np.zeros((1, 5, 1, 3, 4), U32)}),
    # Each channel of the data becomes two of the layer.
    (dequantize, {"element": interface.I16X2, "channels_in": 4}),
    *((dequantize, {"element": interface.I16X2, "channels_in": 2, "data": np.zeros(shape, U32)})
      for shape in ((1, 2, 1, 3, 4), (1, 0, 1, 3, 4))),
    # Kernels of other elements have no codes.
    (dequantize, {"element": interface.I32}),
    *((max_codes, {name: (1, n, 1)}) for name in ("kernel", "strides", "dilations")
      for n in (0, -1, 2**40)),
    *((max_codes, {"pads_begin": (0, n, 0)}) for n in (-1, 2**40)),
    (max_codes, {"out": np.zeros((3, 1, 3, 3), U32)}),
    (max_codes, {"out": np.zeros((2, 1, 3, 0), U32)}),
    (max_codes, {"data": np.zeros((2, 6, 6), U32)}),
    *((multiply_quantized, {"highest": n}) for n in (-1, 0, 256, 2**40)),
    *((multiply_quantized, {"isa": n}) for n in (-1, 99)),
    *((multiply_quantized, {"activation": n}) for n in (-1, 99)),
    *((multiply_quantized, {"data_high": n}) for n in (0.0, -1.0, np.inf, np.nan)),
    *((multiply_quantized, {"a": a}) for a in (
        np.zeros((4, 5), F32), np.zeros((3, 9), F32), np.zeros((3, 5), F64), np.zeros(5, F32),
        np.zeros((5, 3), F32).T, np.zeros((3, 10), F32)[:, ::2], np.zeros((3, 0), F32),
        np.zeros((3, 65794), F32),
    )),
    (multiply_quantized, {"b": np.zeros(2 * 32 - 1, F32)}),
    (multiply_quantized, {"numbers": np.ones((3, 32), F32)}),
    (multiply_quantized, {"numbers": np.ones((3, 16)), "bases": np.zeros((2, 16), np.int32)}),
    (multiply_quantized, {"numbers": np.ones((2, 32))}),
    (multiply_quantized, {"bases": np.zeros(63, np.int32)}),
    (multiply_quantized, {"out": np.zeros((3, 20), F64)}),
    (multiply_quantized, {"out": np.zeros((3, 40), F32)}),
    *((multiply_quantized, {"out": np.zeros((3, 20), I8), **row}) for row in (
        {"out_highest": 0}, {"out_highest": 256}, {"out_high": 0.0}, {"out_high": np.nan},
        {"out_low": -np.inf}, {"a": np.zeros((4, 5), F32)}, {"a": np.zeros((4, 5), I8)},
    )),
    *((multiply_quantized, {"a": a}) for a in (
        np.zeros((4, 5), I8), np.zeros((3, 9), I8), np.zeros(5, I8), np.zeros((5, 3), I8).T,
        np.zeros((3, 10), I8)[:, ::2], np.zeros((3, 0), I8), np.zeros((0, 5), I8),
        np.zeros((3, 65794), I8), np.zeros((3, 5), np.int16),
    )),
    (multiply_quantized, {"out": np.zeros((3, 40), I8)}),
    (multiply_quantized, {"out": np.zeros((2, 20), I8)}),
    *((quantize, {"out": out}) for out in (
        np.zeros((1, 1, 6), I8), np.zeros((1, 1, 8), I8), np.zeros((1, 2, 7), I8),
        np.zeros((1, 1, 7), np.int16), np.zeros(7, I8),
    )),
    *((multiply_pairs, {"isa": n}) for n in (-1, 1, 99)),  # no AVX2 has the instruction
    *((multiply_pairs, {"a": a}) for a in (
        np.zeros((4, 5), F32), np.zeros((3, 11), F32), np.zeros((3, 5), F64), np.zeros(5, F32),
        np.zeros((5, 3), F32).T, np.zeros((3, 10), F32)[:, ::2], np.zeros((3, 0), F32),
    )),
    (multiply_pairs, {"b": np.zeros(3 * 20 - 1, F32)}),
    (multiply_pairs, {"b": np.zeros((5, 20), F32), "is_packed": 0}),
    (multiply_pairs, {"bias": np.zeros(19, F32)}),
    (multiply_pairs, {"out": np.zeros((3, 20), F64)}),
]  # fmt: skip


@pytest.mark.parametrize(
    "call",
    [
        quantize,
        dequantize,
        max_codes,
        combine_codes,
        average_codes,
        multiply_quantized,
        multiply_pairs,
    ],
)
def test_arrays_that_fit_are_computed(call: Any) -> None:
    call()


@pytest.mark.parametrize("terms", [5, 8])
@pytest.mark.parametrize("out", [np.zeros((3, 20), F32), np.zeros((3, 20), I8)], ids=["f32", "i8"])
def test_rows_of_codes_may_be_apart(terms: int, out: Any) -> None:
    multiply_quantized(a=np.zeros((3, 12), I8)[:, :terms], out=out)
    multiply_quantized(a=np.zeros((3, 13), I8)[:, 1 : 1 + terms], out=out, greatest=np.nan)
    quantize(data=np.zeros((1, 1, 7), F32), out=np.zeros((1, 1, 7), I8))


def test_windows_that_fit_are_added() -> None:
    dequantize(window_planes=1, windows=np.zeros(12 + 16, U32))
    dequantize(window_planes=5, windows=np.zeros(5 * 12 + 16, U32))


def test_one_position_is_combined_with_all() -> None:
    combine_codes(second=np.zeros((2, 2, 1), U32), multiplies=1)


def test_codes_that_are_extended_are_computed() -> None:
    dequantize(element=interface.I16X2, channels_in=2)
    dequantize(element=interface.I16X2, channels_in=2, channel_block=2)
    dequantize(element=interface.I16X2, channels_in=1)


@pytest.mark.parametrize("weight", [0, 0x00010001, 0x7FFF8000, 0x80007FFF, 0xFFFFFFFF])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("scratch", [0, 1 << 20])
def test_weights_of_any_bits_are_transformed(weight: int, channels: int, scratch: int) -> None:
    """Python passes bytes alone, for which sums are exact."""
    transformed = {"kernel": (1, 3, 3), "pads_begin": (0, 1, 1), "winograd": 2}
    transformed |= {"element": interface.I16X2, "channels_in": channels, "weight": weight}
    data = np.full((1, 1, 1, 3, 4), 0xFFFFFFFF, U32)
    for pads in ((0, 1, 1), (-9, 1, 1), (0, 40, 1), (0, 1, -(2**40)), (2**60, 0, 0)):
        dequantize(data=data, scratch_bytes=scratch, **transformed | {"pads_begin": pads})


def test_codes_that_are_extended_are_summed_in_pairs_of_channels() -> None:
    with pytest.raises(ValueError, match="no such layer"):
        dequantize(element=interface.I16X2, channels_in=2, channel_block=1)


def named(value: Any) -> str:
    return str(value.__name__) if callable(value) else ",".join(value)


@pytest.mark.parametrize(("call", "changes"), MISFITS, ids=named)
def test_what_does_not_fit_is_refused(call: Any, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"fit|needed"):
        call(**changes)
