"""A plan with its memory, which is kept between runs."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deconv_ir.execute.checked import CheckedPlan
from deconv_ir.execute.places import ALIGNMENT, tensor_bytes
from deconv_ir.execute.plan import Plan, Step
from deconv_ir.execute.prepare import PreparedModel
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Call
from deconv_ir.kernels import empty
from deconv_ir.kernels.runtime.memory import is_pooled


class InferRequest:
    """The arena of a plan, and the calls of its steps; used by one run at a time.

    Tensors in the arena have fixed addresses, so their arrays, and the calls of steps that use no
    other tensors, are made once.

    Attributes
    ----------
    calls : list of callable
        Computes each step, in order.
    work : list of (Step, callable)
        Those that compute anything.
    values : list
        The tensors of the run, by slot.
    is_direct : bool
        Whether no call uses NumPy's arithmetic, or it sets NumPy's error state itself.
    is_apart : bool
        Whether each result is a new array that no other tensor shares.
    with_bodies : callable or None
        Returns the call of a step that runs graphs, for this run.
    """

    def __init__(self, plan: Plan, prepared: PreparedModel) -> None:
        self.plan = plan
        self.with_bodies: Callable[[Step], Call] | None = None
        memory = empty((plan.arena_bytes + ALIGNMENT,), np.dtype(np.uint8))
        first = -memory.ctypes.data % ALIGNMENT
        self._arena = memory[first : first + plan.arena_bytes]
        # The last entry, which NOWHERE reads, stays None.
        self.values: list[Any] = [None] * (plan.slots + 1)
        for source, slot in plan.constants.items():
            self.values[slot] = prepared.constants[source]
        for slot, array in plan.values.items():
            self.values[slot] = array
        self._constant = {-1, *plan.constants.values(), *plan.values}
        self._fixed = set(self._constant)
        self._new: set[int] = set()
        self._unplanned = [
            slot
            for step in plan.steps
            for slot, info in zip(step.outputs, plan.infos[step.made], strict=False)
            if tensor_bytes(info) is None
        ]
        self._directs = 0
        with np.errstate(all="ignore"):
            self.calls = [self._call(step) for step in plan.steps]
        self.work = [
            (step, call)
            for step, call in zip(plan.steps, self.calls, strict=True)
            if call is not _do_nothing
        ]
        self._kept = tuple(self.values)
        once = len(set(plan.wanted)) == len(plan.wanted)
        self.is_direct = self._directs == len(self.work)
        self.is_apart = once and self._new.issuperset(plan.wanted)

    def reset(self) -> None:
        """Release the tensors of a run."""
        self.values[:] = self._kept
        self.with_bodies = None

    def _call(self, step: Step) -> Callable[[], object]:
        """Return the call of a step; tensors in the arena become fixed."""
        arrays = [self.values[slot] for slot in step.inputs]
        ready = self._fixed.issuperset(step.inputs) and step.layer not in self.plan.bodies
        if step.offset is not None:
            assert step.shape is not None, "what has a place has a shape"
            (slot,) = step.outputs
            out: Array = np.ndarray(step.shape, step.dtype, self._arena, step.offset)
            self.values[slot] = out
            self._fixed.add(slot)
            bound = step.plan.bind(arrays, out) if ready else None
            if bound is not None:
                return bound
            if ready:
                return functools.partial(_compute, step, arrays, out)
            direct = self._direct(step, out)
            if direct is not None:
                return direct
        elif step.views and ready and self._constant.issuperset(step.inputs[1:]):
            results = step.plan.run(arrays, None)
            if all(self._shows(result) for result in results):
                for slot, result in zip(step.outputs, results, strict=False):
                    self.values[slot] = result
                    self._fixed.add(slot)
                return _do_nothing
        else:
            direct = self._direct(step, None)
            if direct is not None:
                self._new.update(step.outputs)
                return direct
        return functools.partial(self._step, step)

    def _direct(self, step: Step, out: Array | None) -> Callable[[], None] | None:
        """Return the call of a step whose data differ from run to run, if its plan has one.

        `out` is its place in the arena; None: it allocates its output.
        """
        allocate, compute = step.allocate, step.plan.direct()
        if allocate is None or compute is None or step.overwrites is not None:
            return None
        data, *others = step.inputs
        if step.layer in self.plan.bodies or not self._constant.issuperset(others):
            return None
        self._directs += 1
        values, run = self.values, step.plan.run
        (slot,) = step.outputs
        arrays = [values[other] for other in others]
        frees = [freed for freed in step.frees if freed not in self._fixed]

        def call() -> None:
            given = values[data]
            result = allocate() if out is None else out
            if not compute(given, result):
                with np.errstate(all="ignore"):
                    run([given, *arrays], result)
            values[slot] = result
            for freed in frees:
                values[freed] = None

        return call

    def _step(self, step: Step) -> None:
        """Compute a step on arrays of this run, and free tensors after their last use."""
        values = self.values
        out = None
        if step.allocate is not None:
            out = _out(step, values) if step.offset is None else values[step.outputs[0]]
        call: Call = step.plan.run
        if step.layer in self.plan.bodies:
            assert self.with_bodies is not None, "it runs"
            call = self.with_bodies(step)
        elif isinstance(step.plan, CheckedPlan) and not step.plan.is_counted:
            call = functools.partial(step.plan.run, held=self._held())
        results = call([values[slot] for slot in step.inputs], out)
        if step.offset is not None:
            _copy(results[0], values[step.outputs[0]])
        else:
            for slot, result in zip(step.outputs, results, strict=False):
                own = step.views or result is out or not self._shows(result)
                values[slot] = result if own else _copied(result)
        for slot in step.frees:
            if slot not in self._fixed:
                values[slot] = None

    def _held(self) -> int:
        """Return the bytes that the run has planned, and those of tensors of unknown sizes."""
        arrays = (self.values[slot] for slot in self._unplanned)
        return self.plan.peak_bytes + sum(int(a.nbytes) for a in arrays if a is not None)

    def _shows(self, array: Array) -> bool:
        return bool(np.may_share_memory(array, self._arena))


def _compute(step: Step, arrays: Sequence[Array], out: Array) -> None:
    _copy(step.plan.run(arrays, out if step.allocate else None)[0], out)


def _copy(result: Array, out: Any) -> None:
    if result is not out:
        np.copyto(out, result)


def _copied(result: Array) -> Array:
    """Copy an array, transposed ones in blocks."""
    from deconv_ir.kernels.copies import copy_into
    from deconv_ir.kernels.runtime.memory import empty

    out = empty(result.shape, result.dtype)
    copy_into(result, out)
    return out


def _do_nothing() -> None:
    """The call of a step whose outputs are views of fixed tensors."""


def _out(step: Step, values: list[Any]) -> Any:
    """Return the array outside of the arena that a step may write to; it is contiguous."""
    if step.overwrites is not None and is_alone(values, step.overwrites):
        found = values[step.overwrites]
        if found.flags.c_contiguous:
            return found
    assert step.allocate is not None, "or the layer makes its own"
    return step.allocate()


# CPython's reference counts decide whether an array may be overwritten, as in NumPy for
# temporaries.  The count of an unshared array depends on the interpreter, so it is measured by the
# functions that use it.


def _references(items: list[Any], index: int) -> int:
    return sys.getrefcount(items[index])


def _base_references(items: list[Any], index: int) -> int:
    return sys.getrefcount(items[index].base)


def is_alone(values: list[Any], slot: int) -> bool:
    """Whether only its slot refers to an array and to its memory."""
    if _references(values, slot) > _UNSHARED or not values[slot].flags.writeable:
        return False
    base = values[slot].base
    if base is None:
        return True
    owner = getattr(base, "base", values)
    del base
    if owner is not None and not is_pooled(owner):
        return False
    return _base_references(values, slot) <= _UNSHARED_BASE


def _measure() -> tuple[int, int]:
    """Return the counts of an array in a list, and of the base of a view in a list."""

    class Owner:
        """Placeholder for an array."""

    class View:
        """Placeholder for a view."""

        def __init__(self) -> None:
            self.base = Owner()

    return _references([Owner()], 0), _base_references([View()], 0)


_UNSHARED, _UNSHARED_BASE = _measure()
