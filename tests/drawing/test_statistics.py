"""Figures of constants: of all elements, or of a sample whose size is bounded."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from deconv_ir.drawing.page.statistics import (
    LEAST_READ,
    MOST_READ,
    constant_figures,
    figures,
    share_of,
)
from deconv_ir.formats.openvino_xml.weights import WeightsInMemory
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ir.operation import Context
from deconv_ir.ops.constants.constant import Const
from tests.support import IR, invoke_script


@pytest.mark.parametrize(
    ("counts", "share"),
    [
        ([0, 5, MOST_READ - 5], MOST_READ - 5),  # all are read whole
        ([100, MOST_READ, MOST_READ], (MOST_READ - 100) // 2),
        ([MOST_READ] * 10000, LEAST_READ),
        ([], MOST_READ),
    ],
)
def test_large_constants_share_what_small_ones_leave(counts: list[int], share: int) -> None:
    assert share_of(counts) == share


class Counting(WeightsInMemory):
    """Weights that count the bytes that are read."""

    __slots__ = ("done",)

    def read(self, offset: int, size: int) -> memoryview:
        self.done = getattr(self, "done", 0) + size
        return super().read(offset, size)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("f32", 0, 1),
        ("f16", 0, 1),
        ("i64", -3, 9),
        ("u8", 0, 255),
        ("i4", -8, 7),
        ("u4", 0, 15),
        ("u3", 0, 7),
        ("u6", 0, 63),
        ("u1", 0, 1),
        ("boolean", 0, 1),
    ],
)
@pytest.mark.parametrize("count", [4096, 4099, 100003])
def test_a_sample_has_the_distribution_of_the_whole(
    name: str, least: int, most: int, count: int
) -> None:
    """Elements are uniform, so that a mean of n of them is within 5 deviations / sqrt(n)."""
    rng = np.random.default_rng(0)
    element_type = parse_element_type(name)
    if element_type.is_packed or name == "u8":
        data = rng.bytes(element_type.size_of(count))
    elif element_type.is_float:
        data = rng.random(count).astype(element_type.numpy()).tobytes()
    else:
        data = (
            rng.integers(least, most, count, endpoint=True).astype(element_type.numpy()).tobytes()
        )
    weights = Counting(b"other" + data)
    constant = Const(element_type=element_type, shape=(count,), offset=5, size=len(data))
    found = constant_figures(constant, Context(weights=weights), 1024)
    assert found is not None
    assert found["sample"] == [1024, count]
    assert weights.done == element_type.size_of(1024)
    assert least <= found["min"] <= found["max"] <= most
    assert found["max"] - found["min"] > 0.95 * (most - least)
    # A uniform variable deviates by at most half of its range.
    error = 5 * 0.5 * (most - least) / math.sqrt(1024)
    assert found["mean"] == pytest.approx((least + most) / 2, abs=error)
    assert sum(found["bins"]) == 1024


def test_a_rare_value_of_a_whole_constant_is_found() -> None:
    data = np.zeros(100003, np.float32)
    data[77777] = np.nan
    constant = Const(
        element_type=parse_element_type("f32"), shape=(100003,), offset=0, size=data.nbytes
    )
    found = constant_figures(constant, Context(weights=WeightsInMemory(data.tobytes())), 100003)
    assert found is not None
    assert found["odd"] == 1
    assert "sample" not in found


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (np.array([2**53 - 1, -(2**63), 7], np.int64), [2**53 - 1, str(-(2**63)), 7]),
        (np.array([123456789, -1], np.int32), [123456789, -1]),
        (np.array([True, False]), [1, 0]),
        (np.array([0.1234567, np.inf, np.nan], np.float32), [0.12346, "inf", "nan"]),
        (np.array(["ab", "x" * 99], object), ["ab", "x" * 60 + "…"]),
        (np.array([b"ab", b"\xff"], object), ["ab", "\ufffd"]),
        (np.arange(100, dtype=np.int64), list(range(20))),
        (np.array([], np.float32), []),
    ],
)
def test_the_first_values_are_listed(array: np.ndarray, values: list[object]) -> None:
    assert figures(array, 20)["values"] == values


@pytest.mark.parametrize("runs", [False, True])
def test_a_string_constant_is_shown(runs: bool, tmp_path: Path) -> None:
    """The bytes: number of strings, begin and ends, characters."""
    ir = IR()
    data = np.array([2, 0, 1, 2], np.int32).tobytes() + b"ab"
    strings = ir.raw_const(data, "string", (2,), "strings")
    ir.result(ir.layer("ReLU", [ir.parameter("x", "2")], name="y"), "out")
    ir.result(strings, "names")
    path, page = ir.save(tmp_path), tmp_path / "page.html"
    arguments = ["--random-inputs", 0] if runs else []
    done = invoke_script("show", path, *arguments, "--output", page)
    assert done.exit_code == 0, done.stderr
    assert '"element_type","string"' in page.read_text()
    assert '"values":["a","b"]' in page.read_text()
    assert ('"pictures":{"' in page.read_text()) == runs
    assert deconv_ir.diff(path, path).equal


def test_signalling_nans_give_no_warning() -> None:
    found = figures(np.array([0x7FA00000, 0x3F800000] * 100, np.uint32).view(np.float32))
    assert (found["odd"], found["min"], found["max"]) == (100, 1, 1)
