"""Direct sums with vectors of output channels: 64 channels, rows of any length."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from kernels.cases import DTYPES, ISAS, MACHINES, Case, Layer, check_direct_sums, same_bits

from deconv_ir.kernels import pack_convolution, set_threads

pytestmark = pytest.mark.skipif(not ISAS, reason="the compiled kernel was not built")

# Groups, channels in and out of each, extents, kernel, strides, dilations, pads and output.
GEOMETRIES: dict[str, tuple[Any, ...]] = {
    "an odd plane": (1, 5, 64, (17, 17), (3, 3), (1, 1), (1, 1), (1, 1), (17, 17)),
    "dilated": (1, 7, 64, (9, 19), (3, 3), (1, 1), (1, 3), (1, 3), (9, 19)),
    "rows shorter than a vector": (1, 3, 128, (7, 5), (3, 3), (1, 1), (1, 1), (1, 1), (7, 5)),
    "fewer positions than a block": (2, 9, 64, (2, 2), (3, 3), (1, 1), (1, 1), (1, 1), (2, 2)),
    "every other position": (1, 5, 64, (18, 35), (3, 3), (2, 2), (1, 1), (1, 1), (9, 18)),
    "a volume": (1, 4, 64, (3, 4, 9), (3, 2, 3), (1, 1, 1), (1, 1, 1), (1, 0, 1), (3, 3, 9)),
    "one axis": (1, 6, 64, (37,), (5,), (1,), (1,), (2,), (37,)),
    "one tap": (1, 40, 64, (3, 11), (1, 1), (1, 1), (1, 1), (0, 0), (3, 11)),
    "one tap, four positions": (1, 160, 960, (2, 2), (1, 1), (1, 1), (1, 1), (0, 0), (2, 2)),
    "a smaller last tile": (1, 120, 480, (2, 2), (1, 1), (1, 1), (1, 1), (0, 0), (2, 2)),
    "weights in several parts": (1, 190, 64, (3, 17), (3, 3), (1, 1), (1, 1), (1, 1), (3, 17)),
}
# Only for transposed layers, whose rows belong to several sub-convolutions.
TRANSPOSED: dict[str, tuple[Any, ...]] = {
    "tiny planes": (1, 40, 64, (4, 4), (4, 4), (2, 2), (1, 1), (1, 1), (8, 8)),
    "tiny planes, a large filter": (1, 210, 128, (4, 4), (4, 4), (2, 2), (1, 1), (1, 1), (8, 8)),
    "tiny planes of wide groups": (2, 150, 128, (3, 5), (5, 4), (2, 2), (1, 1), (2, 1), (6, 10)),
    "a tiny volume": (1, 70, 64, (2, 3, 2), (4, 3, 4), (2, 1, 2), (1, 1, 1), (1, 1, 1), (4, 3, 4)),
    "a stride of 3 without taps": (1, 9, 64, (2, 4), (2, 2), (3, 3), (1, 1), (0, 0), (6, 12)),
    "rows alone": (1, 80, 64, (5, 3), (4, 3), (2, 1), (1, 1), (1, 1), (10, 3)),
}
CASES = [("convolution", geometry) for geometry in GEOMETRIES]
CASES += [("transposed", geometry) for geometry in (*GEOMETRIES, *TRANSPOSED)]


def case(geometry: str, kind: str) -> Case:
    return Layer(*(GEOMETRIES | TRANSPOSED)[geometry]).case(kind, DTYPES["float32"])


@pytest.mark.parametrize(("kind", "geometry"), CASES)
def test_against_loops(kind, geometry, monkeypatch) -> None:
    check_direct_sums(case(geometry, kind), monkeypatch)


@pytest.mark.parametrize("geometry", [name for name, row in GEOMETRIES.items() if row[0] == 1])
def test_same_bits_as_vectors_of_positions(geometry, monkeypatch) -> None:
    """With one output channel less, the rows of a block do not fill a vector of channels."""
    layer = case(geometry, "convolution")
    static = {**layer.static, "bias": layer.bias[:-1]}
    for isa in ISAS:
        monkeypatch.setenv("DECONV_IR_ISA", isa)
        found = layer.actual(algorithm="direct")
        fewer = pack_convolution(layer.filter[:-1], algorithm="direct", **static)
        same_bits(fewer.run(layer.data, layer.pads_begin, layer.output), found[:, :-1], isa)


@pytest.mark.skipif("avx512" not in ISAS, reason="vectors of 16 lanes only")
@pytest.mark.parametrize("machine", MACHINES)
def test_one_image_needs_no_panels_for_a_large_filter(machine: str, monkeypatch) -> None:
    """Its 1.6 MiB exceed the second-level cache of all machines but Sapphire Rapids."""
    monkeypatch.setenv("DECONV_IR_ISA", "avx512")
    monkeypatch.setenv("DECONV_IR_MACHINE", machine)
    set_threads(1)
    layer = case("tiny planes, a large filter", "transposed")
    where = layer.pads_begin, layer.output
    details = layer.kernel(algorithm="direct").plan(layer.data[:1].shape, *where).details
    assert details["output_vectors"]
    assert not details["compact"]


@pytest.mark.skipif("avx512" not in ISAS, reason="vectors of 16 lanes only")
def test_the_table_has_layers_of_each_kind(monkeypatch) -> None:
    """Some are summed with vectors of channels, and several images in a tile; some are not."""
    monkeypatch.setenv("DECONV_IR_ISA", "avx512")
    seen = set()
    for (kind, geometry), machine in itertools.product(CASES, MACHINES):
        monkeypatch.setenv("DECONV_IR_MACHINE", machine)
        layer = case(geometry, kind)
        where = layer.pads_begin, layer.output
        details = layer.kernel(algorithm="direct").plan(layer.data.shape, *where).details
        seen.add((bool(details["output_vectors"]), details["images"] > 1))
        if {(False, False), (True, True)} <= seen:
            return
    pytest.fail(f"only {seen}")
