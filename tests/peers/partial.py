"""Partly known shapes: random ones for inference, and a table of instructive ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from support import IR

from .runtimes import ops, ov

__all__ = ["TABLE", "Partial", "partials"]

Dims = Sequence[Any] | None
"""Dims: an int, -1, or (min, max) with -1 for no bound; None for a dynamic rank."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A deconvolution with inputs of partly known shapes."""

    name: str
    data: Dims
    filter: Dims
    grouped: bool = False
    strides: tuple[int, ...] = (2, 2)
    dilations: tuple[int, ...] = (1, 1)
    pads_begin: tuple[int, ...] = (1, 1)
    pads_end: tuple[int, ...] = (1, 1)
    output_padding: tuple[int, ...] = (0, 0)
    auto_pad: str = "explicit"
    shape_from: Any = None
    """list: a Const; int: a Parameter of that length; spatial, doubled or shifted: the data's"""

    def __str__(self) -> str:
        return self.name

    def lower_bounds(self) -> list[tuple[int, int]]:
        """Axes of the output whose extent is computed from an open range, with its lower end."""
        if self.shape_from not in ("doubled", "shifted"):
            return []
        assert self.data is not None
        bounds = []
        for axis, dim in enumerate(self.data[2:]):
            low, high = dim if isinstance(dim, tuple) else (max(dim, 0), dim)
            if high == -1:
                more = low * 2 if self.shape_from == "doubled" else low + _MORE[axis] - _LESS
                bounds.append((axis + 2, more))
        return bounds

    def save(self, folder: Path) -> Path:
        """Save the IR."""
        data, filters = (
            _parameter(d, n) for d, n in ((self.data, "data"), (self.filter, "filter"))
        )
        parameters = [data, filters]
        shape = self._shape(data, parameters)
        create = (
            ops.group_convolution_backprop_data if self.grouped else ops.convolution_backprop_data
        )
        node = create(
            data,
            filters,
            list(self.strides),
            shape,
            list(self.pads_begin),
            list(self.pads_end),
            list(self.dilations),
            auto_pad=self.auto_pad,
            output_padding=list(self.output_padding),
        )
        node.output(0).set_names({"y"})
        path = folder / "partial.xml"
        ov.save_model(ov.Model([ops.result(node)], parameters, "partial"), path, False)
        return path

    def save_unchecked(self, folder: Path) -> Path:
        """Write the IR by hand, since OpenVINO would refuse to save it."""
        ir = IR()
        inputs = [
            ir.parameter("data", _written(self.data)),
            ir.parameter("filter", _written(self.filter)),
        ]
        if isinstance(self.shape_from, int):
            inputs.append(ir.parameter("output_shape", str(self.shape_from), "i64"))
        elif isinstance(self.shape_from, list):
            inputs.append(ir.const(np.array(self.shape_from, np.int64)))
        lists = ("strides", "dilations", "pads_begin", "pads_end", "output_padding")
        attributes = {name: ",".join(map(str, getattr(self, name))) for name in lists}
        kind = ("Group" if self.grouped else "") + "ConvolutionBackpropData"
        ir.result(ir.layer(kind, inputs, attributes | {"auto_pad": self.auto_pad}))
        return ir.save(folder)

    def _shape(self, data: Any, parameters: list[Any]) -> Any:
        if self.shape_from is None:
            return None
        if isinstance(self.shape_from, list):
            return ops.constant(np.array(self.shape_from, np.int64))
        if isinstance(self.shape_from, int):
            node = ops.parameter([self.shape_from], np.int64)
            parameters.append(node)
            return node
        # ShapeOf `like`, whose dims are the spatial dims of `data`
        assert self.data is not None
        like = _parameter(list(self.data)[2:], "like")
        parameters.append(like)
        spatial = ops.shape_of(like, output_type="i32")
        if self.shape_from == "doubled":
            return ops.multiply(spatial, ops.constant(np.array([2], np.int32)))
        if self.shape_from == "shifted":
            return ops.subtract(
                ops.add(spatial, ops.constant(np.array(_MORE, np.int32))),
                ops.constant(np.array([_LESS], np.int32)),
            )
        return spatial


_MORE, _LESS = (7, 5), 3
"""Summands that `shifted` adds to the data's extents and then subtracts."""


def _written(dims: Dims) -> str:
    """Write dims as a Parameter does: ``?``, ``1..8``, ``2..``, ``...``."""
    if dims is None:
        return "..."
    words = []
    for dim in dims:
        if isinstance(dim, tuple):
            words.append(f"{dim[0]}..{'' if dim[1] == -1 else dim[1]}")
        else:
            words.append("?" if dim == -1 else str(dim))
    return ",".join(words)


def _parameter(dims: Dims, name: str) -> Any:
    node = ops.parameter(_partial_shape(dims), np.float32, name=name)
    node.output(0).set_names({name})
    return node


def _partial_shape(dims: Dims) -> Any:
    if dims is None:
        return ov.PartialShape.dynamic()
    return ov.PartialShape([ov.Dimension(*d) if isinstance(d, tuple) else d for d in dims])


_F = [4, 6, 3, 3]
_G = [2, 2, 3, 3, 3]

TABLE = [
    Partial("static", [1, 4, 5, 6], _F),
    Partial("batch", [-1, 4, 5, 6], _F),
    Partial("batch-range", [(2, 5), 4, 5, 6], _F),
    Partial("spatial-unknown", [1, 4, -1, 6], _F),
    Partial("spatial-range", [1, 4, (2, 5), (1, -1)], _F),
    Partial("spatial-from-zero", [1, 4, (0, 3), (0, 1)], _F),
    Partial("channels-unknown", [1, -1, 5, 6], _F),
    Partial("channels-range", [1, (2, 7), 5, 6], _F),
    Partial("all-unknown", [-1, -1, -1, -1], _F),
    Partial("data-rank-unknown", None, _F),
    Partial("more-pad-than-data", [1, 4, (1, 9), 5], _F, pads_begin=(2, 2), pads_end=(2, 2)),
    Partial("extent-zero-output", [1, 4, 1, 5], _F, pads_begin=(1, 2), pads_end=(2, 2)),
    Partial("kernel-unknown", [1, 4, 5, 6], [4, 6, -1, 3]),
    Partial("kernel-unknown-data-range", [-1, -1, (2, 5), -1], [4, 6, -1, 3]),
    Partial("kernel-unknown-rank-unknown", None, [4, 6, -1, 3]),
    Partial("kernel-range", [1, 4, 5, 6], [4, (2, 6), (1, 3), (2, -1)]),
    Partial("filter-inputs-unknown", [1, 4, 5, 6], [-1, 6, 3, 3]),
    Partial("filter-outputs-unknown", [1, 4, 5, 6], [4, -1, 3, 3]),
    Partial("filter-all-unknown", [1, 4, 5, 6], [-1, -1, -1, -1]),
    Partial("filter-rank-unknown", [1, 4, 5, 6], None),
    Partial("filter-rank-unknown-data-range", [-1, -1, (2, 5), -1], None),
    Partial("dilated", [1, 4, 5, -1], _F, strides=(1, 3), dilations=(2, 3)),
    *(
        Partial(
            f"{mode}-output-padding", [1, 4, 5, (2, 6)], _F, auto_pad=mode, output_padding=(1, 3)
        )
        for mode in ("explicit", "same_upper", "same_lower", "valid")
    ),
    *(
        Partial(f"{mode}-shape-{how}", [1, 4, (2, 8), -1], _F, auto_pad=mode, shape_from=shape)
        for mode in ("explicit", "same_upper", "same_lower", "valid")
        for how, shape in (
            ("const", [9, 12]),
            ("parameter", 2),
            ("spatial", "spatial"),
            ("doubled", "doubled"),
            ("shifted", "shifted"),
        )
    ),
    Partial("shape-const-data-rank-unknown", None, _F, shape_from=[9, 12]),
    Partial("shape-const-filter-rank-unknown", [1, 4, 5, 6], None, shape_from=[9, 12]),
    Partial("shape-const-both-ranks-unknown", None, None, shape_from=[9, 12]),
    Partial("shape-parameter-data-rank-unknown", None, _F, shape_from=2),
    Partial("shape-parameter-both-ranks-unknown", None, None, shape_from=2),
    Partial("shape-zero", [1, 4, 5, 6], _F, shape_from=[0, 12]),
    Partial("group-static", [1, 4, 5, 6], _G, grouped=True),
    Partial("group-data-rank-unknown", None, _G, grouped=True),
    Partial("group-filter-rank-unknown", [1, 4, 5, 6], None, grouped=True),
    Partial("groups-unknown", [1, 4, 5, 6], [-1, 2, 3, 3, 3], grouped=True),
    Partial("groups-and-channels-unknown", [1, -1, 5, 6], [-1, 2, 3, 3, 3], grouped=True),
    Partial("groups-and-inputs-unknown", [1, 4, 5, 6], [-1, -1, 3, 3, 3], grouped=True),
    Partial("group-inputs-unknown", [1, 4, 5, 6], [2, -1, 3, 3, 3], grouped=True),
    Partial("group-outputs-unknown", [1, 4, 5, 6], [2, 2, -1, 3, 3], grouped=True),
    Partial("groups-range", [1, 4, 5, 6], [(2, 3), 2, 3, 3, 3], grouped=True),
    Partial("groups-range-channels-range", [1, (4, 9), 5, 6], [(1, 3), 2, 3, 3, 3], grouped=True),
    Partial("groups-unknown-channels-range", [1, (2, 6), 5, 6], [-1, 2, 3, 3, 3], grouped=True),
    Partial("group-channels-range", [1, (3, 9), 5, 6], _G, grouped=True),
    Partial("group-all", [-1, -1, (2, 5), -1], [2, 2, 3, (1, 3), -1], grouped=True),
    Partial("group-shape", [1, 4, -1, 6], _G, grouped=True, shape_from=[9, 12]),
]


def partials(count: int, first: int) -> list[Partial]:
    """Return `count` random problems; known channels match."""
    return [_partial(first + i) for i in range(count)]


def _partial(seed: int) -> Partial:
    rng = random.Random(seed)
    n = rng.choice((1, 2, 2, 3))
    groups, inputs, outputs = (rng.randint(1, 4) for _ in range(3))
    grouped = rng.random() < 0.5
    groups = groups if grouped else 1

    def blur(dim: int) -> Any:
        return rng.choice(
            (dim, dim, dim, -1, (max(1, dim - 1), dim + rng.randint(1, 3)), (dim, -1))
        )

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(rng.randint(low, high) for _ in range(n))

    kernel = each(1, 4)
    channels = [groups, inputs, outputs] if grouped else [inputs, outputs]
    return Partial(
        name=f"{n}d-{'group-' if grouped else ''}{seed}",
        data=[blur(d) for d in (rng.randint(1, 4), groups * inputs, *each(2, 8))],
        filter=[blur(d) for d in (*channels, *kernel)],
        grouped=grouped,
        strides=each(1, 4),
        dilations=each(1, 3),
        pads_begin=tuple(rng.randint(0, k - 1) for k in kernel),
        pads_end=tuple(rng.randint(0, 1) if k > 1 else 0 for k in kernel),
        output_padding=each(0, 2),
        auto_pad=rng.choice(("explicit", "explicit", "same_upper", "same_lower", "valid")),
        shape_from=rng.choice((None, None, None, list(each(1, 9)), n, "spatial", "doubled")),
    )
