"""The verdict on two sides, made while their tensors are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence

from deconv_ir.compare.judge import Judge, Judged
from deconv_ir.compare.measure import SideVerdict
from deconv_ir.compare.network import Network
from deconv_ir.compare.structure import Difference
from deconv_ir.compare.tensors import TensorDifference, absolute_errors
from deconv_ir.compare.verdict import LayerVerdict
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Source

_BLOCK = 1 << 16
_NEAR = 1e-5
"""Inputs whose largest difference is less than this share of their scale have one allowance."""
_INPUT = SideVerdict(None, note="it is an input, and another array was given")


class Judging:
    """Judges both sides layer by layer, and splits their difference.

    Parameters
    ----------
    network : Network
        The first model.
    a, b : Judge
    differences : sequence of Difference
        Differences of the models.
    """

    def __init__(
        self,
        network: Network,
        a: Judge,
        b: Judge,
        differences: Sequence[Difference],
    ) -> None:
        self.network = network
        self.a = a
        self.b = b
        self.by_layer: dict[str, list[Difference]] = {}
        for difference in differences:
            self.by_layer.setdefault(difference.layer, []).append(difference)
        self.known: dict[Source, float] = {}
        """Tensor of the first model -> the difference of the sides, of its scale."""
        self.layers: list[LayerVerdict] = []
        self.wrong: tuple[int, int, tuple[Array, ...]] | None = None
        """The first output that is wrong on the second side, and the inputs of its layer there."""

    def add_input(
        self, index: int, found: TensorDifference, arrays: tuple[Array | None, Array | None]
    ) -> None:
        """Take the arrays that the sides had for an input of the model."""
        for judge, array in zip((self.a, self.b), arrays, strict=True):
            if array is not None:
                judge.set_input(index, array)
        self.known[index, 0] = found.relative
        if not found.within:
            self._append((index, 0), found, _INPUT._replace(right=True, note=""), _INPUT, 0, 0)

    def add(
        self,
        index: int,
        own_of_b: int,
        arrays: tuple[Sequence[Array | None], Sequence[Array | None]],
        found: Sequence[TensorDifference | None],
    ) -> None:
        """Judge the outputs of a layer on both sides; None: it was not compared."""
        a = self.a.judge(index, arrays[0])
        near = self.a.found if self._is_near(index) else None
        b = self.b.judge(own_of_b, arrays[1], near)
        self.a.found = self.b.found = None
        change = 0.0
        for output, (left, right, difference) in enumerate(zip(a, b, found, strict=False)):
            if left is None or right is None or difference is None:
                continue
            self.known[index, output] = difference.relative
            if output == 0:
                change = self._change_of_inputs(index, left, right)
            inherited = 0.0
            if change and left.exact is not None and right.exact is not None:
                inherited = _relative(left.exact, right.exact)
            amplification = inherited / change if change and math.isfinite(inherited) else 0.0
            if right.verdict.right is False and self.wrong is None:
                self.wrong = (own_of_b, output, right.inputs)
            discrete = left.exact is not None and left.exact.dtype.kind != "f"
            self._append(
                (index, output), difference, left.verdict, right.verdict, inherited,
                0.0 if discrete else amplification, discrete,
            )  # fmt: skip

    def replace(self, index: int, output: int, array: Array) -> None:
        """Take the tensor of the second side for the layers of the first that follow."""
        self.a.replace(index, output, array)
        self.known[index, output] = 0.0

    def _append(
        self,
        source: Source,
        found: TensorDifference,
        a: SideVerdict,
        b: SideVerdict,
        inherited: float,
        amplification: float,
        discrete: bool = False,
    ) -> None:
        layer = self.network.layer(source[0])
        near = {layer.label}
        near |= {
            self.network.layer(s[0]).label
            for s in self.network.graph.topology.sources[source[0]]
            if s is not None and s[0] in self.network.constant_layers
        }
        differences = tuple(d for label in near for d in self.by_layer.get(label, ()))
        self.layers.append(
            LayerVerdict(
                found.name,
                layer.label,
                layer.name,
                layer.type,
                layer.line,
                a,
                b,
                found.relative,
                found.within,
                inherited,
                amplification,
                differences,
                discrete,
            )
        )

    def note_fused(self, source: Source, verdict: SideVerdict) -> None:
        """Replace the verdict on a tensor of the second side, by the first model's source."""
        layer = self.network.layer(source[0])
        name = self.network.tensor_name(source)
        for place, found in enumerate(self.layers):
            if (found.name, found.layer) == (name, layer.label):
                self.layers[place] = found._replace(b=verdict)

    def _is_near(self, index: int) -> bool:
        """Whether the sides had almost the same inputs for a layer."""
        constant = self.network.constant_layers
        for source in self.network.graph.topology.sources[index]:
            if source is None:
                continue
            if source[0] in constant:
                if self.a.network is not self.b.network:
                    return False
            elif source not in self.known:
                # The inputs of the model are the same arrays.
                if self.network.layer(source[0]).type != "Parameter":
                    return False
            elif not self.known[source] <= _NEAR:
                return False
        return True

    def _change_of_inputs(self, index: int, a: Judged, b: Judged) -> float:
        """Return the largest difference of an input of the layer on both sides."""
        sources = [s for s in self.network.graph.topology.sources[index] if s is not None]
        changes = [0.0]
        for position, (x, y) in enumerate(zip(a.inputs, b.inputs, strict=False)):
            source = sources[position] if position < len(sources) else None
            if source is not None and source[0] in self.network.constant_layers:
                continue
            known = None if source is None else self.known.get(source)
            changes.append(_relative(x, y) if known is None else known)
        return max((c for c in changes if math.isfinite(c)), default=0.0)


def _relative(a: Array, b: Array) -> float:
    """Return the largest difference, relative to the largest finite magnitude of the first."""
    import numpy as np

    if a.shape != b.shape or a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        return math.inf
    x, y = a.reshape(-1), b.reshape(-1)
    largest = scale = 0.0
    for start in range(0, x.size, _BLOCK):
        left = x[start : start + _BLOCK].astype(np.float64, copy=False)
        right = y[start : start + _BLOCK].astype(np.float64, copy=False)
        largest = max(largest, float(absolute_errors(left, right).max(initial=0)))
        size = max(float(left.max()), -float(left.min()))
        if not math.isfinite(size):
            size = float(np.abs(left[np.isfinite(left)]).max(initial=0))
        scale = max(scale, size)
    return largest / scale if scale else (0.0 if largest == 0 else math.inf)
