"""Calls into C with arguments that the Python code never passes; also run under the sanitizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deconv_ir.kernels import Activation
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.extension import compiled_module

from .test_kernel_arguments import FAR, of_odd_strides, read_only

if TYPE_CHECKING:
    from pathlib import Path

    from deconv_ir.ir.dtypes import Array


OBJECTS = ("data", "out", "addend", "dequantizer", "windows")


class Packed:
    """Valid arguments of the calls into C, which tests corrupt one by one."""

    def __init__(self, winograd: int = 2) -> None:
        module = compiled_module()
        if module is None:
            pytest.skip("the compiled kernel was not built here")
        self.module: Any = module
        self.layer = {"forward": 0, "element": 0, "isa": 0, "groups": 2, "channels_in": 2}
        self.layer |= {"channels_out": 2, "folded": 1, "longer": 0, "winograd": winograd}
        self.layer |= {"channel_block": 0, "form": interface.COMPRESSED_FORMS, "halves": 0}
        self.layer |= {"frees": 0, "unread": 0}
        self.machine = {
            "level2_bytes": 1 << 19,
            "sure_level2_bytes": 1 << 18,
            "level3_bytes": 1 << 25,
            "multiply_adds": 2.0,
        }
        self.vectors = {"kernel": (1, 3, 2), "strides": (1, 2, 1), "dilations": (1, 1, 2)}
        self.filter = np.ones((4, 2, 1, 3, 2), np.float32)
        self.bias: Array | None = np.ones(4, np.float32)
        self.first = 0
        self.call: dict[str, Any] = {
            "data": np.ones((2, 4, 1, 5, 6), np.float32),
            "out": np.zeros((2, 4, 1, 9, 8), np.float32),
            "addend": None,
            "dequantizer": None,
            "windows": None,
            "pads_begin": (0, 1, 2),
            "output": (1, 9, 8),
            "threads": 2,
            "scratch_bytes": 1 << 20,
            "thread_bytes": 1 << 20,
            "winograd": 1,
            "extent": 8,
            "crop": 0,
            "data_of_whole": (1, 5, 6),
            "pads_begin_of_whole": (0, 1, 2),
            "output_of_whole": (1, 9, 8),
        }

    def pack(self, *, filled: bool = True) -> Any:
        fields = self.layer | self.vectors | self.machine | Activation().fields()
        kernel = self.module.Kernel(self.bias, None, None, None, interface.layer_fields(**fields))
        if filled:
            kernel.fill(self.filter, self.first, False, 2)
        return kernel

    @property
    def fields(self) -> bytes:
        """The fields of a run."""
        return interface.run_fields(**{n: v for n, v in self.call.items() if n not in OBJECTS})

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of a run."""
        return (*(self.call[name] for name in OBJECTS), self.fields)

    def run(self) -> Any:
        return self.pack().run(*self.arguments)


@pytest.mark.parametrize("winograd", [0, 1, 2])
def test_c_accepts_the_unchanged_call(winograd: int) -> None:
    packed = Packed(winograd)
    assert packed.run() is True
    assert packed.call["out"].any()


def test_axes_that_the_data_lack_have_one_element() -> None:
    """Arrays are not copied to add the axes, since a copy would cost as much as a small layer."""
    expected, actual = Packed(), Packed()
    actual.call["data"] = actual.call["data"][:, :, 0]
    expected.run()
    actual.run()
    np.testing.assert_array_equal(actual.call["out"], expected.call["out"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("element", n) for n in (-1, interface.ELEMENTS, 2**40)),
        *(("isa", n) for n in (-1, 3, 2**40)),
        *(("groups", n) for n in (-2, 0, 1, 3, 2**62, FAR)),
        *(("channels_in", n) for n in (-2, 0, 1, 2**62, 2**63 // 24 + 1, FAR)),
        *(("channels_out", n) for n in (-2, 0, 1, 3, 2**62, FAR)),
        *(("folded", n) for n in (-1, 0, 3)),
        *(("longer", n) for n in (-1, 1, FAR)),  # nothing is folded
        *(("winograd", n) for n in (-1, 3, 2**40)),
        *(("channel_block", n) for n in (-FAR, -1)),
        # Others need numbers of codes, or other bytes of the filter.
        *(("form", n) for n in (-1, 0, 1, 3, 4, 7, FAR)),
        *(("level2_bytes", n) for n in (-FAR, 0, (1 << 18) - 1)),
        *(("sure_level2_bytes", n) for n in (-FAR, 0, (1 << 19) + 1)),
        *(("level3_bytes", n) for n in (-FAR, 0)),
        *(("multiply_adds", n) for n in (-1.0, 0.0, float("nan"))),
        *(("kernel", (1, 3, n)) for n in (-2, 0, 1, 3, 2**62, FAR)),
        *(("strides", (1, n, 1)) for n in (-1, 0)),
        *(("dilations", (1, n, 1)) for n in (-1, 0)),
        *(("filter", np.ones(n, np.float32)) for n in (47, 49, 60)),
        *(("first", n) for n in (-FAR, -1, 1, 4, FAR)),
        *(("bias", np.ones(n, np.float32)) for n in (0, 3, 5)),
    ],
    ids=lambda v: v if isinstance(v, str) else str(v)[:30].replace("\n", ""),
)
def test_c_packs_no_filter_that_does_not_fit(name: str, value: Any) -> None:
    packed = Packed()
    for part in (packed.layer, packed.vectors, packed.machine):
        if name in part:
            part[name] = value  # type: ignore[index]
            break
    else:
        setattr(packed, name, value)
    with pytest.raises(ValueError, match=r"no such layer|a buffer of \d+ bytes"):
        packed.pack()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data", np.ones((2, 4), np.float32)),
        ("data", np.ones(2, np.float32)),
        ("data", np.ones((), np.float32)),
        ("data", np.ones((2, 4, 1, 1, 5, 6), np.float32)),
        ("data", np.ones((2, 3, 1, 5, 6), np.float32)),
        ("data", np.ones((2, 4, 1, 5, 6), np.float64)),
        ("data", np.ones((3, 4, 1, 5, 6), np.float32)),
        ("data", of_odd_strides(np.ones((2, 4, 1, 5, 6), np.float32))),
        ("data", b"bytes"),
        ("out", np.zeros((2, 4, 1, 9, 7), np.float32)),
        ("out", np.zeros((2, 4, 1, 9, 16), np.float32)[..., ::2]),
        ("out", read_only(np.zeros((2, 4, 1, 9, 8), np.float32))),
        ("out", bytes(2 * 4 * 9 * 8 * 4)),
        ("addend", np.zeros((2, 4, 1, 9, 7), np.float32)),
        ("addend", np.zeros((2, 4, 1, 9, 16), np.float32)[..., ::2]),
        ("addend", 1.0),
        *(("output", (1, n, 8)) for n in (-9, 0, 8, 10, 2**62, FAR)),
        *(("pads_begin", (0, n, 0)) for n in (2**62, FAR, -(2**62), -FAR)),
        *(("extent", n) for n in (-8, 0, 7, 9, FAR)),
        *(("crop", n) for n in (-1, 1, FAR)),
        *(("data_of_whole", (1, n, 6)) for n in (-1, 2**62, FAR)),
        *(("pads_begin_of_whole", (0, n, 2)) for n in (2**62, FAR, -(2**62), -FAR)),
        *(("output_of_whole", (1, n, 8)) for n in (-1, 2**62, FAR)),
    ],
    ids=lambda v: v if isinstance(v, str) else str(v)[:30].replace("\n", ""),
)
def test_c_computes_nothing_that_does_not_fit(name: str, value: Any) -> None:
    packed = Packed()
    packed.call[name] = value
    with pytest.raises((ValueError, TypeError, BufferError)):
        packed.run()


@pytest.mark.parametrize("threads", [-FAR, -1, 0, 1, 1000, FAR])
def test_c_takes_any_number_of_threads(threads: int) -> None:
    packed = Packed()
    packed.run()
    expected = packed.call["out"].copy()
    packed.call["threads"] = threads
    packed.call["out"][...] = 0
    assert packed.run() is True
    np.testing.assert_array_equal(packed.call["out"], expected)


@pytest.mark.parametrize("winograd", [-FAR, 0, 1, FAR])
def test_c_takes_any_number_as_a_flag(winograd: int) -> None:
    packed = Packed()
    packed.run()
    expected = packed.call["out"].copy()
    packed.call["winograd"] = winograd
    packed.call["out"][...] = 0
    assert packed.run() is True
    np.testing.assert_allclose(packed.call["out"], expected, rtol=1e-5)


@pytest.mark.parametrize("output", [(1, 9, 8), (1, 0, 1), (1, 1 << 20, 1 << 20)])
@pytest.mark.parametrize("pads_begin", [(0, 1, 2), (0, -(1 << 30), 1 << 30)])
@pytest.mark.parametrize("data", [(1, 5, 6), (0, 0, 0), (1, 1 << 20, 1 << 20)])
def test_the_whole_that_a_tile_is_of_changes_no_sum(
    data: tuple[int, ...], pads_begin: tuple[int, ...], output: tuple[int, ...]
) -> None:
    packed = Packed()
    packed.run()
    expected = packed.call["out"].copy()
    packed.call |= {"data_of_whole": data, "pads_begin_of_whole": pads_begin}
    packed.call["output_of_whole"] = output
    packed.call["out"][...] = 0
    assert packed.run() is True
    np.testing.assert_allclose(packed.call["out"], expected, rtol=1e-5)


@pytest.mark.parametrize("scratch", [-FAR, 0, 1, FAR])
@pytest.mark.parametrize("channel_block", [1, 3, FAR])
def test_c_takes_any_block_of_channels_and_any_scratch(channel_block: int, scratch: int) -> None:
    packed = Packed()
    packed.layer["channel_block"] = channel_block
    packed.call["thread_bytes"] = scratch
    assert packed.run() is True
    assert packed.call["out"].any()


@pytest.mark.parametrize("scratch", [-FAR, 0, 1])
def test_c_says_when_scratch_is_too_small(scratch: int) -> None:
    packed = Packed(winograd=0)
    packed.call["scratch_bytes"] = scratch
    assert packed.run() is False


@pytest.mark.parametrize("size", [-FAR, -1, 0, FAR])
def test_c_has_no_memory_of_such_a_size(size: int) -> None:
    with pytest.raises((ValueError, MemoryError)):
        Packed().module.Block(size)


@pytest.mark.parametrize("where", [(-1, 0), (2**30, 0), ("file", -1), ("file", 1), ("file", FAR)])
def test_c_reads_no_filter_that_is_not_there(tmp_path: Path, where: tuple[Any, int]) -> None:
    packed = Packed()
    path = tmp_path / "weights"
    path.write_bytes(packed.filter.tobytes())
    with path.open("rb") as file:
        descriptor, offset = file.fileno() if where[0] == "file" else where[0], where[1]
        kernel = packed.pack(filled=False)
        assert kernel.read(descriptor, offset, 2) is False
        assert not kernel.is_filled
        assert kernel.read(file.fileno(), 0, 2) is True
        with pytest.raises(ValueError, match="packed"):
            kernel.read(file.fileno(), 0, 2)
    assert kernel.run(*packed.arguments) is True


def predict(packed: Packed, kernel: Any, **changed: Any) -> Any:
    """Predict the run with other values for some arguments."""
    costs = [value for _, value in packed.module.COST_CONSTANTS]
    given = {"shape": (2, 1, 5, 6), "fields": packed.fields, "costs": costs, **packed.machine}
    shape, fields, values, *_ = (given := given | changed).values()
    machine = interface.predict_fields(**{name: given[name] for name in packed.machine})
    return kernel.predict(shape, fields, np.asarray(values, np.float64), machine)


COSTS = len(getattr(compiled_module(), "COST_CONSTANTS", ()))


@pytest.mark.parametrize(
    "changed",
    [
        *({f"{name}_bytes": n} for name in ("level2", "sure_level2", "level3") for n in (-FAR, 0)),
        *({"multiply_adds": n} for n in (-1.0, 0.0, float("nan"))),
        *({"costs": [n] + [1.0] * (COSTS - 1)} for n in (-1.0, 0.0, float("nan"))),
        *({"costs": [1.0] * n} for n in (0, COSTS - 1, COSTS + 1)),
        *({"shape": (n, 1, 5, 6)} for n in (-FAR, -1)),
        *({"shape": (2, 1, n, 6)} for n in (-1, 2**62, FAR)),
        {"fields": b""},
    ],
    ids=str,
)
@pytest.mark.parametrize("winograd", [0, 2])
def test_c_predicts_no_run_that_does_not_fit(winograd: int, changed: dict[str, Any]) -> None:
    packed = Packed(winograd)
    kernel = packed.pack()
    before = predict(packed, kernel)
    assert before > 0
    with pytest.raises(ValueError, match=r"no such machine|do not fit|bytes of fields"):
        predict(packed, kernel, **changed)
    assert predict(packed, kernel) == before


def test_c_predicts_no_run_that_depends_on_weights_which_are_not_packed() -> None:
    packed = Packed()
    with pytest.raises(ValueError, match="the filter is not packed"):
        predict(packed, packed.pack(filled=False))
    packed = Packed(winograd=0)
    assert predict(packed, packed.pack(filled=False)) > 0


def test_fields_of_other_sizes_are_refused() -> None:
    packed = Packed()
    kernel, arguments = packed.pack(), packed.arguments
    for fields in (b"", arguments[-1][:-8], arguments[-1] + bytes(8)):
        with pytest.raises(ValueError, match="bytes of fields where"):
            kernel.run(*arguments[:-1], fields)
        with pytest.raises(ValueError, match="bytes of fields where"):
            kernel.describe((2, 1, 5, 6), fields)
        with pytest.raises(ValueError, match="bytes of fields where"):
            packed.module.Kernel(None, None, None, None, fields)


ARRAYS = {
    "resample": 6, "recur": 8, "pack_columns": 2, "multiply": 4, "attend": 5, "copy_matrices": 2,
    "pool": 5, "sample": 3, "select": 3, "standardize": 4, "sum_rows": 2, "softmax": 2,
    "Kernel": 4, "Program": 3,
}  # fmt: skip
"""Arrays of each call, before its fields; from interface.h."""
TABLE = {"Kernel": "layer", "Program": "program"}


def filled(table: str) -> bytes:
    """Return the fields of a table, all numbers zero."""
    pack = getattr(interface, f"{table}_fields")
    vectors = [name for name, kind in pack.__annotations__.items() if "tuple" in kind]
    names = pack.__code__.co_varnames[: pack.__code__.co_kwonlyargcount]
    found: bytes = pack(**{n: (0,) * interface.AXES if n in vectors else 0 for n in names})
    return found


@pytest.mark.parametrize("name", ARRAYS)
def test_fields_have_the_same_size_in_python_and_c(name: str) -> None:
    call: Any = getattr(Packed().module, name)
    fields, arrays = filled(TABLE.get(name, name)), (None,) * ARRAYS[name]
    for wrong in (b"", fields[:-8], fields + bytes(8)):
        expected = f"{len(wrong)} bytes of fields where {len(fields)} are needed"
        with pytest.raises(ValueError, match=expected):
            call(*arrays, wrong)
    for few in (arrays[1:], (), (*arrays, None)):
        with pytest.raises(TypeError, match=f"expected {len(arrays)} arrays and their fields"):
            call(*few, fields)
    with pytest.raises((TypeError, ValueError)):
        call(*arrays, fields)
    with pytest.raises(TypeError):
        call(*arrays, None)


def test_fields_are_packed_by_name() -> None:
    """A vector of another length does not move the fields after it."""
    how = {"isa": 1, "pooled": 2, "kernel": (3, 4, 5), "strides": (6, 7, 8)}
    how |= {"dilations": (9, 10, 11), "pads_begin": (12, 13, 14), "threads": -15}
    expected = np.array([*range(1, 15), -15])
    assert interface.pool_fields(**dict(reversed(how.items()))) == expected.tobytes()
    for change in ({"kernel": (3, 4), "strides": (5, 6, 7, 8)}, {"kernel": (1, 2, 3, 4)}):
        with pytest.raises(ValueError, match="values to unpack"):
            interface.pool_fields(**how | change)
    for wrong in ({"other": 1}, {}):
        with pytest.raises(TypeError):
            interface.pool_fields(**({"isa": 1} if not wrong else how | wrong))


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("length", [0, 3, 15, 17, 257])
def test_numbers_of_codes_have_their_length(at: int, length: int) -> None:
    """Numbers of four bits are 16, scales and zeros one for each of four output channels."""
    packed = Packed()
    packed.layer |= {"form": interface.COMPRESSED_4}
    fields = packed.layer | packed.vectors | packed.machine | Activation().fields()
    given = [np.zeros(16, np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32)]
    packed.module.Kernel(None, *given, interface.layer_fields(**fields))
    given[at] = np.zeros(length, np.float32)
    with pytest.raises(ValueError, match="bytes"):
        packed.module.Kernel(None, *given, interface.layer_fields(**fields))
