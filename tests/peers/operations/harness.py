"""Compare one operation in OpenVINO and here: outputs, and shapes for dynamic inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import deconv_ir
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ir.geometry import Interval, bounds
from deconv_ir.ir.shapes import Shape, compatible, format_shape, is_static, parse_shape

ov = pytest.importorskip(
    "openvino", reason="OpenVINO cannot be imported: install the `peers` extra"
)

core = ov.Core()
BF16 = "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
"""Whether the CPU plugin computes in bf16 on this processor, as it does with AVX-512."""

TOLERANCES = {"f32": 2e-5, "f64": 2e-5, "f16": 2e-3, "bf16": 2e-2}
"""Largest error, relative to the largest element of the output."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """An input that is fed to each run."""

    element_type: str
    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    values: Any = None
    fixed: bool = False
    """Never made dynamic: OpenVINO needs its shape."""

    def array(self, rng: np.random.Generator) -> np.ndarray:
        dtype = parse_element_type(self.element_type).numpy()
        if self.values is not None:
            return np.array(self.values).astype(dtype).reshape(self.shape)
        if dtype.kind in "iub":
            low, high = (0, 1) if dtype.kind == "b" else (int(self.low), int(self.high))
            low = max(0, low) if dtype.kind == "u" else low
            return rng.integers(low, high + 1, self.shape).astype(dtype)
        return rng.uniform(self.low, self.high, self.shape).astype(dtype)


@dataclasses.dataclass(frozen=True)
class Constant:
    """An input that is a constant of the model."""

    element_type: str
    values: Any


@dataclasses.dataclass(frozen=True)
class Case:
    """An operation with its inputs.

    Attributes
    ----------
    build : callable
        Takes the nodes of the inputs, returns the node of the operation.
    fault : str
        The fault of OpenVINO's CPU plugin, in a few words; the outputs are then compared with
        those of its reference implementation.
    lenient : str
        An error that OpenVINO's static inference accepts, or a dim that it guesses; its static
        results then do not count.
    """

    name: str
    build: Callable[..., Any]
    inputs: tuple[Parameter | Constant, ...]
    fault: str = ""
    lenient: str = ""
    tolerance: float | None = None
    dynamic: bool = True
    semantics: str = "spec"

    def __str__(self) -> str:
        return self.name

    def parameters(self) -> list[Parameter]:
        return [i for i in self.inputs if isinstance(i, Parameter)]

    def model(self, shapes: Sequence[str] | None = None) -> Any:
        """Build the model, with `shapes` in place of the parameters' own."""
        nodes, parameters = [], []
        given = iter(shapes or [])
        for item in self.inputs:
            if isinstance(item, Constant):
                dtype = parse_element_type(item.element_type).numpy()
                nodes.append(ov.opset13.constant(np.array(item.values).astype(dtype)))
            else:
                shape = next(given) if shapes else ",".join(map(str, item.shape))
                kind = getattr(ov.Type, item.element_type)
                parameter = ov.opset13.parameter(ov.PartialShape(f"[{shape}]"), kind)
                parameter.output(0).set_names({f"in{len(parameters)}"})
                nodes.append(parameter)
                parameters.append(parameter)
        node = self.build(*nodes)
        outputs = node.outputs() if hasattr(node, "outputs") else [node]
        for i, output in enumerate(outputs):
            output.set_names({f"out{i}"})
        return ov.Model([ov.opset13.result(o) for o in outputs], parameters, "single")

    def save(self, folder: Path, shapes: Sequence[str] | None = None) -> Path:
        path = folder / "model.xml"
        ov.save_model(self.model(shapes), path, compress_to_fp16=False)
        return path


def _tensor(array: np.ndarray) -> Any:
    if array.dtype == ml_dtypes.bfloat16:
        return ov.Tensor(array.view(np.uint16), list(array.shape), ov.Type.bf16)
    return ov.Tensor(array)


def compare_outputs(case: Case, folder: Path, seed: int = 0) -> None:
    """Run the operation on both sides with the same arrays."""
    rng = np.random.default_rng(seed)
    arrays = {f"in{i}": p.array(rng) for i, p in enumerate(case.parameters())}
    path = case.save(folder)
    model = deconv_ir.load(path, semantics=case.semantics, warn=False)
    ours = list(model.run(arrays).values())
    tensors = {name: _tensor(array) for name, array in arrays.items()}
    if case.fault:
        theirs = _evaluate(case.model(), list(tensors.values()))
    else:
        theirs = core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(tensors)
    for i, mine in enumerate(ours):
        expected = np.array(theirs[i])
        if mine.dtype == ml_dtypes.bfloat16:
            expected = expected.view(ml_dtypes.bfloat16)
        assert mine.dtype == expected.dtype
        assert mine.shape == expected.shape
        compare(mine, expected, case.tolerance)


def _evaluate(model: Any, inputs: list[Any]) -> list[np.ndarray]:
    """Run a model with OpenVINO's reference implementations."""
    # The evaluation sets the shapes of outputs that depend on input values.
    outputs = []
    for output in model.outputs:
        shape = output.partial_shape
        start = shape.to_shape() if shape.is_static else ov.Shape([0])
        outputs.append(ov.Tensor(output.element_type, start))
    assert model.evaluate(outputs, inputs)
    return [np.array(o.data) for o in outputs]


def compare(mine: np.ndarray, expected: np.ndarray, tolerance: float | None = None) -> None:
    """Require equal integers, and close floats with NaN and infinities in the same places."""
    if mine.dtype.kind in "iub":
        np.testing.assert_array_equal(mine, expected)
        return
    names = {"float32": "f32", "float16": "f16", "float64": "f64", "bfloat16": "bf16"}
    if tolerance is None:
        tolerance = TOLERANCES[names[mine.dtype.name]]
    mine, expected = mine.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isnan(mine), np.isnan(expected))
    np.testing.assert_array_equal(mine[np.isinf(expected)], expected[np.isinf(expected)])
    scale = float(np.abs(expected[finite]).max(initial=0))
    np.testing.assert_allclose(mine[finite], expected[finite], rtol=0, atol=tolerance * scale)


def partial_shapes(case: Case, seed: int) -> list[str] | None:
    """Make some dims of the parameters dynamic; return None if none can be changed."""
    rng = np.random.default_rng([seed, 7])
    shapes, changed = [], False
    for parameter in case.parameters():
        if parameter.fixed:
            shapes.append(",".join(map(str, parameter.shape)))
            continue
        if parameter.shape and rng.random() < 0.1:
            shapes.append("...")
            changed = True
            continue
        dims = []
        for dim in parameter.shape:
            kind = rng.integers(0, 6)
            low = int(rng.integers(0, dim + 1))
            high = dim + int(rng.integers(0, 4))
            forms = [str(dim), str(dim), str(dim), "?", f"{low}..{high}", f"{low}.."]
            dims.append(forms[kind])
            changed = changed or dims[-1] != str(dim)
        shapes.append(",".join(dims))
    return shapes if changed else None


def their_shape(partial: Any) -> Any:
    """Parse OpenVINO's notation of a shape."""
    text = str(partial)
    shape = parse_shape(text)
    # OpenVINO sometimes divides its number for "no bound", and prints the quotient.
    return shape and tuple(
        Interval(d.min, None) if isinstance(d, Interval) and (d.max or 0) > 2**50 else d
        for d in shape
    )


def compare_shapes(case: Case, folder: Path, seed: int) -> str | None:
    """Infer with some dims dynamic; return a description of the error, or None.

    The inferred shape must allow every static result, and be at least as specific as OpenVINO's,
    unless that excludes a static result.
    """
    shapes = partial_shapes(case, seed)
    if shapes is None:
        return None
    try:
        model = case.model(shapes)
    except RuntimeError as error:
        return f"{shapes}: OpenVINO refuses: {str(error).strip().splitlines()[-1]}"
    theirs = [their_shape(o.get_partial_shape()) for o in model.outputs]
    path = folder / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    try:
        loaded = deconv_ir.load(path, semantics=case.semantics, warn=case.semantics == "spec")
        ours = [port.shape for port in loaded.outputs.values()]
    except deconv_ir.DeconvError as error:
        return f"{shapes}: refused: {error}"
    results = [] if case.lenient else static_results(case, shapes, seed)
    unsound = [r for r in results if not all(map(compatible, ours, r))]
    if not unsound and all(map(within, ours, theirs)):
        return None
    if case.lenient and all(map(compatible, ours, theirs)):
        return None
    if not unsound and any(not all(map(compatible, theirs, r)) for r in results):
        return None
    return (
        f"{shapes}: ours {' '.join(map(format_shape, ours))}, "
        f"theirs {' '.join(map(format_shape, theirs))}"
        + (f", static {format_shape(unsound[0][0])}" if unsound else "")
    )


def within(a: Shape, b: Shape) -> bool:
    """Return whether a shape is at least as specific as another."""
    if b is None:
        return True
    if a is None or len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        (x_low, x_high), (y_low, y_high) = bounds(x), bounds(y)
        if x_low < y_low or (y_high is not None and (x_high is None or x_high > y_high)):
            return False
    return True


def static_results(case: Case, shapes: Sequence[str], seed: int) -> list[list[Shape]]:
    """Infer with OpenVINO for static shapes that the partial ones allow."""
    rng = np.random.default_rng([seed, 11])
    found = []
    for attempt in range(24):
        chosen = []
        for parameter, text in zip(case.parameters(), shapes, strict=True):
            partial = parse_shape(text)
            if partial is None or attempt == 0:
                chosen.append(",".join(map(str, parameter.shape)))
                continue
            dims = []
            for dim, own in zip(partial, parameter.shape, strict=True):
                low, high = bounds(dim)
                reach = low + int(rng.choice([2, 8, 40, 300]))
                picked = int(rng.integers(low, (reach if high is None else high) + 1))
                if attempt == 1:
                    picked = low + 1000 if high is None else high
                    own = picked
                keep = rng.random() < 0.5 and low <= own
                dims.append(own if keep else picked)
            chosen.append(",".join(map(str, dims)))
        try:
            outputs = case.model(chosen).outputs
        except RuntimeError:
            continue
        result = [their_shape(o.get_partial_shape()) for o in outputs]
        if all(map(is_static, result)):
            found.append(result)
    return found
