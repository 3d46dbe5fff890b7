"""Properties that every operation of the registry must have, whatever it computes."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

from deconv_ir.errors import DeconvError, ShapeError
from deconv_ir.ir.dtypes import from_numpy
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import Context, Operation, Sharing
from deconv_ir.ir.record import REQUIRED
from deconv_ir.ir.shapes import compatible, is_static
from deconv_ir.ops import all_operations, find_operation
from deconv_ir.ops.base import format_attributes, parse_attributes
from deconv_ir.ops.examples import OperationExample, parse_example

OPERATIONS = all_operations()
# Begin and end of a model, and its weights: they have no inputs to infer from.
BOUNDARY = {"Parameter", "Result", "Const"}


def name(operation: type[Operation]) -> str:
    return f"{operation.type}-{','.join(operation.versions)}"


def test_documented() -> None:
    """The docstring states the computation and its document, and the class has an example."""
    for operation in OPERATIONS:
        text = inspect.getdoc(operation) or ""
        assert text.split("\n")[0].endswith((".", ":")), f"{name(operation)}: not a sentence"
        if operation.type not in BOUNDARY:
            source = rf"Source: .* operation specification, {operation.type}"
            assert re.search(source, text), name(operation)
            assert operation.examples or operation.body_names, name(operation)


@pytest.mark.parametrize("operation", OPERATIONS, ids=name)
def test_every_example_keeps_the_contract(operation: type[Operation]) -> None:
    require_frozen(operation)
    for text in operation.examples:
        example = parse_example(text)
        require_the_same_attributes_if_written(operation, example)
        require_declared_is_inferred_is_executed(operation, example)
        require_less_is_known_of_less(operation, example)
        require_inputs_stay_and_views_are_declared(operation, example)
        # The example's own types, and others in place of f32.
        for other in sorted({text.replace("f32", kind) for kind in ("f32", "f16", "f64", "i32")}):
            require_the_same_if_bound(operation, parse_example(other))


def require_frozen(operation: type[Operation]) -> None:
    """Operations are immutable, and found under each of their versions."""
    given = {name: None for name, f in operation.fields.items() if f.default is REQUIRED}
    one, other = operation(**given), operation(**given)
    assert one == other
    assert hash(one) == hash(other)
    for attribute in operation.fields:
        with pytest.raises(AttributeError, match="frozen"):
            setattr(one, attribute, None)
    for version in operation.versions:
        assert re.fullmatch(r"opset[1-9]\d*", version)
        assert find_operation(operation.type, version) is operation


def require_the_same_attributes_if_written(
    operation: type[Operation], example: OperationExample
) -> None:
    made = example.operation(operation)
    again, errors = parse_attributes(operation, format_attributes(made))
    assert not errors
    assert again == made


def require_declared_is_inferred_is_executed(
    operation: type[Operation], example: OperationExample
) -> None:
    made = example.operation(operation)
    declared = [(t.element_type, t.shape) for t in example.outputs]
    infos = [t.info() for t in example.inputs]
    inferred = made.infer(infos, Context())
    assert [(i.element_type, i.shape) for i in inferred] == declared
    arrays = [t.array(seed) for seed, t in enumerate(example.inputs)]
    results = made.execute(arrays, Context())
    assert [from_numpy(r.dtype) for r in results] == [t for t, _ in declared]
    assert all(compatible(r.shape, shape) for r, (_, shape) in zip(results, declared, strict=True))
    for info, array in zip(inferred, results, strict=True):
        if info.value is not None and all(isinstance(v, int) for v in info.value):
            assert list(info.value) == array.ravel().tolist()
        if info.reals is not None:
            np.testing.assert_array_equal(np.array(info.reals).astype(array.dtype), array.ravel())
    for info in inferred:
        for axis in range(len(info.shape)):
            explained = made.explain(infos, Context(), 0, axis)
            assert explained is None or ("\n" not in explained and explained)


def require_the_same_if_bound(operation: type[Operation], example: OperationExample) -> None:
    """The plan's knowledge, shapes alone, and an output array, even an input's, change nothing.

    An operation that does not take these types, or whose values decide the shape, is not bound.
    """
    made = example.operation(operation)
    infos = [t.info() for t in example.inputs]
    try:
        outputs = made.infer(infos, Context())
    except DeconvError:
        return
    if not all(is_static(i.shape) for i in (*infos, *outputs)):
        return
    # Made in f32 for all types, with negative values: the test compares two ways to compute.
    arrays = [t.array(seed) for seed, t in enumerate(example.inputs)]
    if arrays and arrays[0].dtype.kind == "f" and infos[0].reals is None:
        arrays[0] = arrays[0] * np.where(np.arange(arrays[0].size) % 2, 1, -1).astype(
            arrays[0].dtype
        ).reshape(arrays[0].shape)
    expected = made.execute(arrays, Context())
    forgotten = [i._replace(value=None, reals=None) for i in infos]
    for known in (infos, forgotten):
        # Without `execute_into`, only the prepared kernel accepts an array.
        takes_out = type(made).execute_into is not Operation.execute_into and (
            len(outputs) == 1 and made.accepts_out(known, outputs[0])
        )
        targets: list[np.ndarray | None] = [None]
        if takes_out:
            targets.append(np.empty_like(expected[0]))
        for number, target in enumerate(targets):
            with np.errstate(all="ignore"):
                plan = made.plan(known, outputs, Context())
                results = plan.run([a.copy() for a in arrays], target)
            for result, right in zip(results, expected, strict=True):
                assert result.dtype == right.dtype
                if result.dtype.hasobject:
                    np.testing.assert_array_equal(result, right)
                    continue
                np.testing.assert_allclose(
                    np.asarray(result, np.float64), np.asarray(right, np.float64), 1e-6, 1e-6
                )
            if number:
                shared = not target.size or np.shares_memory(results[0], target)
                assert shared, "it writes to another array"
        for position in made.overwritable(known, outputs[0]) if takes_out else ():
            copies = [a.copy() for a in arrays]
            with np.errstate(all="ignore"):
                (result,) = made.plan(known, outputs, Context()).run(copies, copies[position])
            np.testing.assert_allclose(
                np.asarray(result, np.float64), np.asarray(expected[0], np.float64), 1e-6, 1e-6
            )


def test_what_accepts_an_array_can_write_to_it() -> None:
    """A plan passes output arrays to operations with `execute_into`, or to their kernels."""
    accepting = [o for o in OPERATIONS if o.accepts_out is not Operation.accepts_out]
    assert accepting
    for operation in accepting:
        writers = operation.execute_into, operation.prepare
        assert writers != (Operation.execute_into, Operation.prepare), name(operation)


def require_less_is_known_of_less(operation: type[Operation], example: OperationExample) -> None:
    """Without the inputs' values, dims or rank, the inferred shape still allows the output."""
    made = example.operation(operation)
    infos = [t.info() for t in example.inputs]
    shapes = [t.shape for t in example.outputs]
    for forget in (
        lambda i: i._replace(value=None, reals=None),
        lambda i: i._replace(shape=(UNKNOWN,) * len(i.shape)),
        lambda i: i._replace(shape=(UNKNOWN,) * len(i.shape), value=None, reals=None),
        lambda i: i._replace(shape=None),
        lambda i: i._replace(shape=None, value=None, reals=None),
        lambda i: i._replace(element_type=None),
    ):
        for position in range(len(infos)):
            some = [forget(i) if p == position else i for p, i in enumerate(infos)]
            check(made, some, shapes)
        check(made, [forget(i) for i in infos], shapes)


def check(made: Operation, infos, shapes) -> None:
    try:
        inferred = made.infer(infos, Context())
    except ShapeError as error:
        # Only the number of outputs may be unknown.
        assert "number of outputs is not known" in error.message  # noqa: PT017
        return
    for info, shape in zip(inferred, shapes, strict=True):
        assert compatible(info.shape, shape), (infos, info.shape, shape)


def require_inputs_stay_and_views_are_declared(
    operation: type[Operation], example: OperationExample
) -> None:
    """An output that shares an input's memory is declared so: the executor relies on it."""
    arrays = [t.array(seed) for seed, t in enumerate(example.inputs)]
    copies = [a.copy() for a in arrays]
    for array in arrays:
        array.flags.writeable = False
    results = example.operation(operation).execute(arrays, Context())
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    for result in results:
        for position, array in enumerate(arrays):
            if np.shares_memory(result, array):
                assert position == 0
                assert operation.sharing is not Sharing.NONE


@pytest.mark.parametrize(
    ("kind", "version", "attributes", "named"),
    [
        ("ScatterNDUpdate", "opset15", {"reduction": "mean"}, "reduction"),
        ("ScatterElementsUpdate", "opset12", {"reduction": "sub"}, "reduction"),
    ],
)
def test_attributes_that_the_documents_refuse(
    kind: str, version: str, attributes: dict[str, str], named: str
) -> None:
    """The reductions of ScatterNDUpdate-15 and of ScatterElementsUpdate-12 differ."""
    _, errors = parse_attributes(find_operation(kind, version), attributes)
    assert [error.attribute for error in errors] == [named]
