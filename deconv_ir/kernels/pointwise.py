"""Elementwise programs: several operations in one pass over memory, compiled.

A `PointwiseExpression` is built value by value; its `PointwiseProgram` computes one value.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deconv_ir.kernels.copies import in_order, is_turned
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import isa_number
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import get_threads

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

ELEMENTS = {
    "float32": interface.PW_F32,
    "float16": interface.PW_F16,
    "bfloat16": interface.PW_BF16,
    "bool": interface.PW_BOOLEAN,
}
"""Dtypes of inputs and output; all are computed in f32."""

_MOST_INPUTS, _MOST_CONSTANTS, _MOST_INSTRUCTIONS, _MOST_REGISTERS = 8, 16, 64, 32
_BLOCK_BYTES = 2048

Value = int
"""A value of an expression."""


@functools.cache
def _operations() -> Mapping[str, tuple[int, int, int]]:
    """Return number, operand count and immediate count of each compiled operation."""
    module = compiled_module()
    rows = () if module is None else module.OPERATIONS
    return {name: (number, *counts) for number, (name, *counts) in enumerate(rows)}


def operation_number(name: str) -> int:
    """Return the number of a compiled operation; -1 if the name is unknown."""
    return _operations().get(name, (-1,))[0]


class _ExpressionNode(NamedTuple):
    """A value: an input, a constant, or the result of an operation on other values."""

    name: str
    operands: tuple[Value, ...] = ()
    immediates: tuple[float, ...] = ()
    array: int = 0
    element: int = 0
    trailing: int = 0


class PointwiseExpression:
    """A tree of elementwise operations; inputs are broadcast by NumPy's rule."""

    def __init__(self) -> None:
        self._nodes: list[_ExpressionNode] = []
        self._known: dict[_ExpressionNode, Value] = {}
        self._arrays = 0

    def input(self, dtype: np.dtype[Any]) -> Value:
        """Add an input; the arrays of a run are given in this order."""
        self._arrays += 1
        return self._add(
            _ExpressionNode("input", array=self._arrays - 1, element=ELEMENTS[dtype.name])
        )

    def append_axes(self, value: Value, count: int) -> Value | None:
        """Return an input with axes of extent 1 appended to its shape; None for other values."""
        node = self._nodes[value]
        if count == 0:
            return value
        return self._add(node._replace(trailing=count)) if node.name == "input" else None

    def constant(self, number: float) -> Value:
        """Return a constant value."""
        return self._add(_ExpressionNode("constant", immediates=(number,)))

    def apply(
        self, name: str, *operands: Value | None, immediates: Sequence[float] = ()
    ) -> Value | None:
        """Return the result of an operation; None if it is not compiled."""
        found, given = _operations().get(name), [v for v in operands if v is not None]
        if found is None or len(given) < len(operands):
            return None
        if found[1:] != (len(given), len(immediates)):
            return None
        return self._add(_ExpressionNode(name, tuple(given), tuple(immediates)))

    def unary(self, value: Value) -> tuple[str, tuple[float, ...]] | None:
        """Return name and immediate values of a single operation on an input; None for others."""
        node = self._nodes[value]
        inputs = [v for v in node.operands if self._nodes[v].name == "input"]
        return (node.name, node.immediates) if len(inputs) == len(node.operands) == 1 else None

    def _add(self, node: _ExpressionNode) -> Value:
        if node not in self._known:
            self._known[node] = len(self._nodes)
            self._nodes.append(node)
        return self._known[node]

    def program(self, result: Value, dtype: np.dtype[Any]) -> PointwiseProgram | None:
        """Compile the expression; None if it is too large."""
        used = self._used(result)
        inputs = [v for v in used if self._nodes[v].name == "input"]
        constants = [v for v in used if self._nodes[v].name == "constant"]
        code = [v for v in used if self._nodes[v].operands]
        sizes = len(inputs), len(constants), len(code)
        if not code or any(n > most for n, most in zip(sizes, _LIMITS, strict=True)):
            return None
        registers = {v: i for i, v in enumerate((*inputs, *constants))}
        instructions = self._assign_registers(code, registers)
        used_registers = 1 + max(registers.values())
        if used_registers > _MOST_REGISTERS:
            return None
        return PointwiseProgram(
            [self._nodes[v] for v in inputs],
            [self._nodes[v].immediates[0] for v in constants],
            dtype,
            instructions,
            used_registers,
        )

    def _used(self, result: Value) -> list[Value]:
        """Return the values that a result depends on, each after its operands."""
        used = {result}
        for value in range(result, -1, -1):
            if value in used:
                used.update(self._nodes[value].operands)
        return sorted(used)

    def _assign_registers(self, code: Sequence[Value], registers: dict[Value, int]) -> bytes:
        """Give each value the lowest register that no later instruction needs.

        Returns the instructions for C.
        """
        given = len(registers)
        last = {v: i for i, value in enumerate(code) for v in self._nodes[value].operands}
        free: list[int] = []
        instructions = []
        most = given
        for number, value in enumerate(code):
            node = self._nodes[value]
            operands = [registers[v] for v in node.operands]
            for operand in set(node.operands):
                if last[operand] == number and registers[operand] >= given:
                    free.append(registers[operand])
            if not free:
                free.append(most)
                most += 1
            free.sort(reverse=True)
            registers[value] = free.pop()
            operands += [operands[0]] * (3 - len(operands))
            immediates = (*node.immediates, 0.0, 0.0)
            instructions.append(
                interface.instruction_fields(
                    operation=operation_number(node.name),
                    out=registers[value],
                    operand=operands[0],
                    second=operands[1],
                    third=operands[2],
                    immediate=immediates[0],
                    second_immediate=immediates[1],
                )
            )
        return b"".join(instructions)


_LIMITS = _MOST_INPUTS, _MOST_CONSTANTS, _MOST_INSTRUCTIONS


class PointwiseProgram:
    """A compiled expression.

    Parameters
    ----------
    inputs : sequence of _ExpressionNode
    constants : sequence of float
    dtype : dtype
        Dtype of the output.
    instructions : bytes
        The fields of each instruction.
    registers : int
        Number of registers.
    """

    def __init__(
        self,
        inputs: Sequence[_ExpressionNode],
        constants: Sequence[float],
        dtype: np.dtype[Any],
        instructions: bytes,
        registers: int,
    ) -> None:
        module = compiled_module()
        assert module is not None, "there are no operations without it"
        self.dtype = dtype
        self._arrays = tuple(node.array for node in inputs)
        self.scratch_bytes = registers * _BLOCK_BYTES
        """Scratch bytes of each thread."""
        elements = (ELEMENTS[dtype.name], *(node.element for node in inputs))
        self._plain = interface.PW_BF16 not in elements
        given = [
            interface.input_fields(element=node.element, trailing=node.trailing) for node in inputs
        ]
        self._program = module.Program(
            b"".join(given),
            struct.pack(f"={len(constants)}d", *constants),
            instructions,
            interface.program_fields(isa=isa_number(), output=ELEMENTS[dtype.name]),
        )

    def run(self, arrays: Sequence[Array], out: Array) -> None:
        """Compute the output, on the current number of threads."""
        self.bind(arrays, out)()

    def bind(self, arrays: Sequence[Array], out: Array) -> Callable[[], object]:
        """Return a call that computes the output from arrays at fixed addresses."""
        given = [arrays[i] for i in self._arrays]
        as_they_are = not any(map(is_turned, given)) and out.flags.c_contiguous
        if as_they_are and all(array.flags.aligned for array in (*given, out)):
            return functools.partial(self._program.run, *self._buffers(given, out), get_threads())
        return functools.partial(self._run_copied, given, out, get_threads())

    def _run_copied(self, arrays: Sequence[Array], out: Array, threads: int) -> None:
        # A transposed array would be read one element at a time.
        arrays, target = self._buffers(
            [a if (b := in_order(a)) is None else b for a in arrays], out
        )
        if not self._program.run(arrays, target, threads):
            copies = [np.require(a, requirements=["C", "A"]) for a in arrays]
            result = np.empty_like(target, order="C")
            self._program.run(copies, result, threads)
            np.copyto(target, result)

    def _buffers(self, arrays: list[Array], out: Array) -> tuple[list[Array], Array]:
        """Return arrays as the buffer protocol supports them."""
        if self._plain:
            return arrays, out
        return [_as_bits(array) for array in arrays], _as_bits(out)


def _as_bits(array: Array) -> Array:
    return array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}")
