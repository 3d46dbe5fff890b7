"""Matrix products: of stacks in one call, and of any arrays on the threads of the kernels.

Larger products in f32 are compiled; a constant factor is packed once.

A multithreaded BLAS keeps its threads spinning after a product, which slows down the next
computation (docs/kernels.md, Threads).  Here, each of the kernels' threads calls it for a part of
the result instead.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deconv_ir.ir.lazy_tensor import LazyTensor
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import isa_number
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import empty
from deconv_ir.kernels.runtime.parallel import run_jobs, single_threaded_blas
from deconv_ir.kernels.runtime.threads import get_threads

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ir.lazy_tensor import Constant

# Maximum number of pieces of a result for threads, minimum multiply-adds of a piece and, if
# matrices are divided, its minimum rows or columns.
_MOST_PIECES, _PIECE, _PIECE_ROWS = 32, 1 << 21, 32
LEAST_FOR_THREADS = 1 << 13
"""Multiply-adds below which a BLAS does not use several threads."""

# Products with fewer rows or multiply-adds per matrix use the BLAS, which need not pack.
_LEAST_ROWS, _LEAST_COMPILED = 8, 1 << 15
# So do products with fewer columns, which would fill vectors in part: points times an affine map.
_LEAST_COLUMNS = 9
# Minimum number of elements of a matrix that is packed.
_LEAST_PACKED = 1 << 10
# Columns of a transposed matrix that are read at once, at least.
_COLUMNS_AT_ONCE = 16
_MOST_STACKED = 8
MOST_CODED_ROWS = 4
"""Rows up to which a product looks codes up: unpacked ones are faster for more."""

IDENTITY = Activation()
"""No activation."""


class RightFactor(abc.ABC):
    """The constant right factor of products.

    Attributes
    ----------
    shape : tuple of int
        K and N.
    """

    precision = "f32"
    """The type in which products are computed, and that of stored weights."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape

    @property
    @abc.abstractmethod
    def nbytes(self) -> int:
        """Bytes of all forms that are kept."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of results."""
        return np.dtype(np.float32)

    @abc.abstractmethod
    def multiplier(
        self, bias: Array | None, activation: Activation, count: int
    ) -> Callable[[Array, Array], object]:
        """Return `multiply` of `count` aligned rows into a contiguous array, on these threads."""

    def multiply(
        self,
        rows: Array,
        bias: Array | None = None,
        activation: Activation = IDENTITY,
        out: Array | None = None,
    ) -> Array:
        """Return the product of ``[M, K]`` and this matrix, plus ``[N]``: ``[M, N]``.

        The activation is applied at the end; the result is written to `out`, contiguous, if that is
        given.
        """
        rows = rows if rows.flags.aligned else rows.copy()
        if out is None:
            out = empty((len(rows), self.shape[1]), self.dtype)
        if out.size:
            self.multiplier(bias, activation, len(rows))(rows, out)
        return out


class PackedMatrix(RightFactor):
    """The right factor of products, packed for an instruction set in panels of columns.

    Each sum begins with the bias and adds its terms in order: the bits are the same for any number
    of rows and threads.

    Parameters
    ----------
    pairs : bool
        Whether each element is the bf16 of two terms, as products of `kernels.bf16` need them.
    """

    def __init__(
        self, data: Array, shape: tuple[int, int], isa: int, *, pairs: bool = False
    ) -> None:
        super().__init__(shape)
        self._data, self._isa, self._pairs = data, isa, pairs
        self.precision = "bf16" if pairs else "f32"

    @property
    def nbytes(self) -> int:
        """Bytes of the packed matrix."""
        return self._data.nbytes

    def multiplier(
        self, bias: Array | None, activation: Activation, count: int
    ) -> Callable[[Array, Array], object]:
        """Return `multiply` of any rows."""
        module = compiled_module()
        assert module is not None, "the matrix is packed for it"
        run, data, pairs = module.multiply, self._data, self._pairs
        fields = _multiply_fields(self._isa, activation, is_packed=True, pairs=pairs)

        def multiply(rows: Array, out: Array) -> None:
            run(np.ascontiguousarray(rows) if pairs else rows, data, bias, out, fields)

        return multiply


def padded_columns(columns: int) -> int:
    """Return the columns of a packed matrix at most: whole vectors."""
    module = compiled_module()
    assert module is not None, "it packs matrices"
    return columns + -columns % int(module.PRODUCT_LANES)


def can_pack(terms: int, columns: int) -> bool:
    """Whether a matrix is large enough, and not padded by more than a quarter."""
    module = compiled_module()
    if module is None or terms * columns < _LEAST_PACKED:
        return False
    return bool(4 * (-columns % module.PRODUCT_LANES) <= columns)


class MatrixBlock(NamedTuple):
    """A block of a matrix, and where it is in it."""

    row: int
    column: int
    elements: Array


def blocks_of(matrix: Constant, *, transposed: bool = False) -> Iterator[MatrixBlock]:
    """Iterate over blocks of ``[K, N]``, or ``[N, K]`` if `transposed`; an array is one block.

    A lazy tensor is read in parts, which begin at even rows or at multiples of 16 columns.
    """
    if not isinstance(matrix, LazyTensor):
        yield MatrixBlock(0, 0, matrix.T if transposed else matrix)
        return
    for first, elements in matrix.parts(multiple=_COLUMNS_AT_ONCE if transposed else 2):
        part = elements.reshape(-1, matrix.shape[1])
        yield MatrixBlock(0, first, part.T) if transposed else MatrixBlock(first, 0, part)


def pack_matrix(matrix: Constant, *, transposed: bool = False) -> PackedMatrix | None:
    """Pack ``[K, N]``, or ``[N, K]`` if `transposed`; a lazy tensor is read in parts.

    Returns None if the extension was not built, if the matrix is small or not of f32, or if more
    than a quarter of the packed matrix would be padding.
    """
    columns, terms = matrix.shape if transposed else matrix.shape[::-1]
    if compiled_module() is None or matrix.dtype != np.float32 or not can_pack(terms, columns):
        return None
    isa = isa_number()
    packed = pack_columns(blocks_of(matrix, transposed=transposed), terms, columns, isa)
    return PackedMatrix(packed, (terms, columns), isa)


def pack_columns(blocks: Iterable[MatrixBlock], terms: int, columns: int, isa: int) -> Array:
    """Return ``[K, N]``, of elements of four bytes, in panels for an instruction set."""
    module = compiled_module()
    assert module is not None, "it packs matrices"
    packed = np.zeros(terms * padded_columns(columns), np.float32)
    for row, column, block in blocks:
        elements = block if block.flags.aligned else block.copy()
        fields = interface.pack_columns_fields(
            isa=isa, terms=terms, columns=columns, row=row, column=column
        )
        module.pack_columns(elements, packed, fields)
    return packed


def scratch_bytes(rows: int, depth: int, columns: int, *, writes_codes: bool = False) -> int:
    """Return the maximum scratch bytes of a compiled product with these extents.

    0: the product is not compiled.
    """
    module = compiled_module()
    if module is None or depth * columns * max(rows, _LEAST_ROWS) < _LEAST_COMPILED:
        return 0
    lanes: int = module.PRODUCT_LANES
    most: int = module.PRODUCT_ROWS
    packed: int = min(rows + lanes, most) + module.PRODUCT_COLUMNS + 2 * lanes
    terms: int = min(depth, module.PRODUCT_DEPTH)
    coded = depth * min(rows, MOST_CODED_ROWS)
    elements = max(terms * packed, coded) + most  # sums of rows of quantised data
    if writes_codes:  # all terms of rows, and sums of a panel
        joined = -(-depth // 2)
        at_once = max(min((rows + lanes) * joined, most * module.PRODUCT_DEPTH), lanes * joined)
        elements += at_once + most * module.PRODUCT_COLUMNS
    return get_threads() * elements * 4


def _is_compiled(a: Array, b: Array) -> bool:
    """Whether a product is compiled, which depends only on one matrix of each stack."""
    (m, k), n = a.shape[-2:], b.shape[-1]
    return (
        _is_worth(m, k, n)
        and k == b.shape[-2]
        and _is_plain(a)
        and _is_plain(b)
        and compiled_module() is not None
    )


def _is_worth(m: int, k: int, n: int) -> bool:
    return m >= _LEAST_ROWS and m * k * n >= _LEAST_COMPILED


def _is_plain(x: Array) -> bool:
    return x.dtype == np.float32 and x.flags.aligned and x.ndim <= 2 + _MOST_STACKED


def _compiled(a: Array, b: Array) -> Array:
    """Return the product of arrays of two axes and more."""
    module = compiled_module()
    assert module is not None, "the caller has seen that it is there"
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    product = empty((*stack, a.shape[-2], b.shape[-1]), np.dtype(np.float32))
    if product.size:
        fields = _multiply_fields(isa_number(), IDENTITY, is_packed=False)
        module.multiply(_spread(a, stack), _spread(b, stack), None, product, fields)
    return product


def _multiply_fields(
    isa: int, activation: Activation, *, is_packed: bool, pairs: bool = False
) -> bytes:
    return interface.multiply_fields(
        isa=isa, is_packed=is_packed, pairs=pairs, **activation.fields(), threads=get_threads()
    )


def matmul(a: Array, b: Array) -> Array:
    """Return ``a @ b``, as NumPy defines it, computed on several threads.

    The operands are ``[..., M, K]``, or ``[K]``, and ``[..., K, N]``, or ``[K]``; stacks are
    broadcast.  The bits are the same on any number of threads.  Raises `ValueError` if the shapes
    do not fit.
    """
    if a.ndim < 2 or b.ndim < 2:
        product: Array = np.matmul(a, b)
        return product
    compiled = b.shape[-1] >= _LEAST_COLUMNS and _is_compiled(a, b)
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous and a.size:
        # One product instead of a stack of products.
        rows = a.reshape(-1, a.shape[-1])
        product = _compiled(rows, b) if compiled else _multiply(rows, b)
        return product.reshape(*a.shape[:-1], b.shape[-1])
    return _compiled(a, b) if compiled else _multiply(a, b)


def attend(
    query: Array,
    key: Array,
    value: Array,
    scale: float,
    mask: Array | None = None,
    out: Array | None = None,
) -> Array | None:
    """Return ``softmax(scale * query key^T + mask) value``, computed for few queries at once.

    The operands are ``[..., M, K]``, ``[..., N, K]`` and ``[..., N, V]``, with stacks broadcast;
    the result is ``[..., M, V]``, with the same bits on any number of threads.  The mask, in f32,
    is broadcast to ``[..., M, N]``.  The result is written to `out` if that is in f32 and
    contiguous. Returns None if this is not compiled, which depends only on the types, and on the
    shapes of one matrix of each stack.
    """
    bound = bind_attention(query, key, value, scale, mask, out)
    if bound is None:
        return None
    out, call = bound
    call()
    return out


def bind_attention(
    query: Array,
    key: Array,
    value: Array,
    scale: float,
    mask: Array | None = None,
    out: Array | None = None,
) -> tuple[Array, Callable[[], object]] | None:
    """Return the array and the call of `attend`, for arrays whose memory does not move."""
    module, scores = compiled_module(), (query.shape[-2], key.shape[-2])
    if module is None or not (_is_compiled(query, key.swapaxes(-1, -2)) and _is_plain(value)):
        return None
    stack = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    if mask is not None:
        stack = np.broadcast_shapes(stack, mask.shape[:-2])
        if not _is_plain(mask) or np.broadcast_shapes(mask.shape[-2:], scores) != scores:
            return None
        mask = np.broadcast_to(mask, (*stack, *scores))
    if out is None or out.dtype != np.float32 or not out.flags.carray:
        out = empty((*stack, query.shape[-2], value.shape[-1]), np.dtype(np.float32))
    if not out.size:
        return out, tuple
    given = (_spread(x, stack) for x in (query, key, value))
    fields = interface.attend_fields(isa=isa_number(), scale=scale, threads=get_threads())
    return out, functools.partial(module.attend, *given, mask, out, fields)


def attention_bytes(queries: int, depth: int, keys: int, width: int) -> int | None:
    """Return the maximum scratch bytes of `attend`; None if it is not compiled.

    `depth` is the last extent of queries and keys, `width` that of values.
    """
    module = compiled_module()
    if module is None or not _is_worth(queries, depth, keys):
        return None
    panel: int = module.ATTENTION_VECTORS * module.PRODUCT_LANES
    weights: int = module.ATTENTION_WEIGHT_BYTES // (4 * max(1, keys))
    at_once: int = min(max(panel, min(module.PRODUCT_ROWS, weights)), queries) + panel
    masked: int = 4 * module.ATTENTION_MASKED_KEYS * (at_once + module.PRODUCT_LANES)
    packed = (scratch_bytes(keys, depth, queries), scratch_bytes(queries, keys, width))
    return get_threads() * (4 * (keys + 1) * at_once + masked) + max(packed)


def _spread(x: Array, stack: tuple[int, ...]) -> Array:
    return x if x.shape[:-2] == stack else np.broadcast_to(x, (*stack, *x.shape[-2:]))


def _multiply(a: Array, b: Array) -> Array:
    """Return the product of arrays of two axes and more, computed by the BLAS."""
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    product = np.empty(shape, np.result_type(a, b))
    # The longest axis of the result, counted from its end, is divided among threads.
    axis = max(range(-product.ndim, 0), key=lambda i: product.shape[i])
    extent = product.shape[axis]
    most = extent if axis < -2 else extent // _PIECE_ROWS
    # The division depends only on shapes: a BLAS sums pieces of other sizes in another order.
    pieces = max(1, min(most, product.size * a.shape[-1] // _PIECE, _MOST_PIECES))
    with single_threaded_blas() as alone:

        def multiply(number: int) -> None:
            piece = slice(extent * number // pieces, extent * (number + 1) // pieces)
            rows = a if axis == -1 else _cut(a, axis, piece)
            columns = b if axis == -2 else _cut(b, axis, piece)
            np.matmul(rows, columns, out=_cut(product, axis, piece))

        run_jobs(lambda: multiply, pieces, get_threads() if alone else 1)
    return product


def multiply_stacks(a: Array, b: Array, out: Array) -> None:
    """Write the products of two stacks of matrices into `out`, in the caller's thread.

    The arrays are ``[..., M, K]``, ``[..., K, N]`` and ``[..., M, N]``; stacks are broadcast.
    """
    if a.shape[-1] == 1:
        # Depthwise: NumPy's loop for products of one term is 10× slower.
        np.multiply(a, b, out=out)
    else:
        np.matmul(a, b, out=out)


def _cut(array: Array, axis: int, piece: slice) -> Array:
    """Return a piece of an axis, counted from the end, unless it is missing or broadcast."""
    if -axis > array.ndim or array.shape[axis] == 1:
        return array
    index = [slice(None)] * array.ndim
    index[axis] = piece
    cut: Array = array[tuple(index)]
    return cut
