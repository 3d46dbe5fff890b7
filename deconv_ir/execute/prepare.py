"""Work that depends only on constants, done once: folded arrays and packed filters."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from deconv_ir.execute.checked import require_fit
from deconv_ir.execute.fusion import Followers, find_followers
from deconv_ir.execute.memory import available_bytes, fits, require_memory
from deconv_ir.execute.places import tensor_bytes
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Graph, Source, locating, rewire
from deconv_ir.ir.lazy_tensor import Constant, LazyTensor, whole
from deconv_ir.ir.operation import Context, Epilogue, Infos, Kernel, Operation, Sharing
from deconv_ir.ir.options import Accuracy
from deconv_ir.ops.values import actual

if TYPE_CHECKING:
    from deconv_ir.execute.quantized import QuantizedLayer, QuantizedLayers
    from deconv_ir.ir.quantization import CodeLayout, Levels

# Layers between a file and a kernel that are read lazily: Convert, Subtract, Multiply, Reshape.
_MOST_LAZY = 8
# Bytes that plans need for scratchpads, so that they need not be small.
_SCRATCHPADS = 1 << 20
# Bytes of filters for which a run that unpacks them needs as much scratchpad.
_UNPACKING = 16 << 10
# Share of the bytes of all filters that unpacked ones may use; as much is left for scratchpads.
_UNPACKED_SHARE = 0.06


class PreparedModel(NamedTuple):
    """The results of work that is done once for a model."""

    graph: Graph
    """The graph of the steps."""
    steps: tuple[int, ...]
    """The layers that run each time, in order, without fused ones."""
    kernels: dict[int, Kernel]
    """Layer -> its prepared kernel, which equal layers share."""
    constants: dict[Source, Array]
    """The constants that are still needed, by source."""
    fused: dict[int, tuple[int, ...]]
    """Layer -> the following layers that are fused into its kernel."""
    first_only: frozenset[int]
    """The layers that compute only their first output."""
    constant_bytes: int
    """Bytes of the constants, each counted once."""
    packed_bytes: int
    """Bytes of the constants in kernels whose `packed_bytes` is None."""
    least_bytes: int
    """Minimum bytes needed to compute the constants."""
    first_bytes: int
    """`weight_bytes` before plans packed filters in further forms."""
    folded: int
    dropped: int
    """Number of layers that are computed once, and never."""
    quantizes: Mapping[int, Source] = {}
    """Layer that quantises its data -> the FakeQuantize's input, or the data."""
    quantizers: Mapping[int, "Levels"] = {}
    """FakeQuantize -> its levels."""
    reasons: Mapping[int, str] = {}
    """Layer that integers or bf16 were allowed for -> why it is computed in f32."""
    is_compressed: bool = False
    """Whether compressed filters are most of the constants."""
    codes: Mapping[Source, "CodeLayout"] = {}
    """The tensors that are codes of 8 bits: see `execute/coded.py`."""

    @property
    def precisions(self) -> dict[int, str]:
        """Layer -> the types in which it computes, where that is not its output's."""
        found = {i: k.precision for i, k in self.kernels.items() if k.precision is not None}
        return found | dict.fromkeys(self.quantizes, "i8")

    @property
    def weight_bytes(self) -> int:
        """Bytes of all constants, packed or not."""
        packed = (kernel.packed_bytes or 0 for kernel in set(self.kernels.values()))
        constants = sum(array.nbytes for array in self.constants.values())
        return self.packed_bytes + constants + sum(packed)


class Preparation:
    """Folds the constants of a graph; each array is freed after its last use.

    `order` are the needed layers in topological order, `constant` those that do not depend on a
    Parameter.  The memory limit bounds the output of a layer.  Without `add_tensors`, kernels add
    only constants.
    """

    def __init__(
        self,
        graph: Graph,
        context: Context,
        order: Sequence[int],
        constant: frozenset[int],
        wanted: Sequence[Source],
        infos: Sequence[Infos],
        memory_limit: int | None,
        *,
        add_tensors: bool = True,
    ) -> None:
        self.graph = graph
        self.context = context
        self.infos = infos
        self.order = order
        self.constant = constant
        self.wanted = wanted
        self.memory_limit = memory_limit
        self._values: dict[int, tuple[Array, ...]] = {}
        # Bytes of these, without views of others, and of all that is kept until the end.
        self._own_bytes: dict[int, int] = {}
        self._held = 0
        self.least_bytes = 0
        self._uses: dict[int, int] = {}
        for index in order:
            self._count(graph.topology.sources[index])
        self._count(wanted)
        self._followers = find_followers(graph, order, constant, wanted, infos, tensors=add_tensors)
        self._added: dict[int, Source] = {}
        self._quantized: QuantizedLayers | None = None
        if not context.accuracy.is_direct and graph.of_type("FakeQuantize"):
            from deconv_ir.execute import quantized

            self._quantized = quantized.QuantizedLayers(graph, order, constant, infos, self._peek)
        self._reasons: dict[int, str] = {}
        # Layer -> the tensor that its kernel quantises.
        self._quantizes: dict[int, Source] = {}
        self._fused: dict[int, tuple[int, ...]] = {}
        self._sizes: dict[Source, int] = {}
        self._first_only: set[int] = set()
        self._compressed = dict(self._find_compressed())
        filters = {s: t for s, t in self._compressed.items() if t.stays_stored}
        self._stored = {source: tensor.stored_bytes for source, tensor in filters.items()}
        self._coded = dict(self._find_coded())
        if filters:
            self._unpack_filters()
        self.least_bytes = max(self.least_bytes, self._least_bytes())
        used = {s for i in order for s in graph.topology.sources[i]} | set(wanted)
        self._with_others = {s[0] for s in used if s is not None and s[1] > 0}

    def run(self) -> PreparedModel:
        """Fold, pack and fuse."""
        kernels: dict[int, Kernel] = {}
        same = _first_equals(self.graph, [i for i in self.order if i in self.constant])
        first_like: dict[tuple[object, ...], int] = {}
        constants: dict[Source, Array] = {}
        absorbed: set[int] = set()
        packed = 0
        # A filter may be in memory twice while it is packed: the largest goes first, before others
        # use memory.
        for index in self._largest_first():
            if index in absorbed:
                continue
            rows = self.graph.topology.sources[index]
            quantized = None if self._quantized is None else self._quantized.find(index)
            first = first_like.setdefault(self._likeness(index, quantized, same), index)
            if first in kernels and first not in self._first_only:
                kernels[index] = kernels[first]
                self._share(index, first, quantized)
                absorbed.update(self._fused.get(index, ()))
                continue
            operation = self.graph.layers[index].operation
            inputs = [self._keep(s, i in operation.takes_lazy) for i, s in enumerate(rows)]
            self._require(self._packing_bytes(index, inputs))
            kernel, size = self._kernel(index, inputs, quantized)
            if kernel is not None:
                kernels[index] = kernel
                self._held += size if kernel.packed_bytes is None else kernel.packed_bytes
                if kernel.packed_bytes is not None:
                    own = self._sizes if index in self._quantizes else self._compressed
                    for stored in own.keys() & set(rows):
                        self._sizes[stored] = min(self._sizes[stored], kernel.packed_bytes)
                packed += size if kernel.packed_bytes is None else 0
            else:
                for source, array in zip(rows, inputs, strict=True):
                    self._hold(constants, source, array)
            absorbed.update(self._fused.get(index, ()))
            del inputs  # they would overlap with those of the next layer
        for source in self.wanted:
            self._hold(constants, source, self._keep(source))
        steps = tuple(i for i in self.order if i not in self.constant and i not in absorbed)
        # A Result does not compute, and is not counted.
        dropped = len(self.graph.layers) - len(self.order) - len(self.graph.of_type("Result"))
        folded = sum(self.graph.layers[i].type != "Const" for i in self.constant)
        prepared = PreparedModel(
            self._with_added(),
            steps,
            kernels,
            constants,
            self._fused,
            frozenset(self._first_only),
            sum(self._sizes.values()),
            packed,
            self.least_bytes,
            0,
            folded,
            dropped,
            self._quantizes,
            {} if self._quantized is None else self._quantized.quantizers,
            {i: k.why_f32 for i, k in kernels.items() if k.why_f32 is not None} | self._reasons,
            is_compressed=2 * sum(self._stored.values()) > sum(self._sizes.values()),
        )
        return prepared._replace(first_bytes=prepared.weight_bytes)

    def _with_added(self) -> Graph:
        """Return the graph in which tensors that kernels add are the layers' last inputs."""
        if not self._added:
            return self.graph
        sources = list(self.graph.topology.sources)
        for index, source in self._added.items():
            sources[index] = (*sources[index], source)
        return rewire(self.graph, self.graph.layers, sources)

    def _likeness(
        self, index: int, quantized: "QuantizedLayer | None", same: Mapping[int, int]
    ) -> tuple[object, ...]:
        """Return the key of a kernel; `same` maps each constant to the first equal one."""
        followers = self._followers.get(index)
        found: list[object] = [None if quantized is None else quantized.quantization.levels]
        for layer in (index, *(followers.layers if followers else ())):
            sources = self.graph.topology.sources[layer]
            found += [self.graph.layers[layer].operation, _mapped(sources, same)]
        return tuple(found)

    def _share(self, index: int, first: int, quantized: "QuantizedLayer | None") -> None:
        """Let a layer use the kernel of an equal one, and count its constants as used."""
        if first in self._reasons:
            self._reasons[index] = self._reasons[first]
        if first in self._quantizes:
            assert quantized is not None, "the first one is"
            self._quantizes[index] = quantized.source
        if first in self._fused:
            followers = self._followers[index]
            self._fused[index] = followers.layers[: len(self._fused[first])]
            if first in self._added and followers.tensor is not None:
                self._added[index] = followers.tensor
        for layer in (index, *self._fused.get(index, ())):
            for source in self.graph.topology.sources[layer]:
                if source is not None and source[0] in self.constant:
                    self._forget(source[0])

    def _forget(self, index: int) -> None:
        """Count a use of a constant as done; free it after the last."""
        self._uses[index] -= 1
        if self._uses[index] == 0:
            self._values.pop(index, None)
            self._held -= self._own_bytes.pop(index, 0)

    def _hold(
        self, constants: dict[Source, Array], source: Source | None, constant: Constant | None
    ) -> None:
        """Keep a constant that runs need; other layers may have read it from the file."""
        if source is None or constant is None or source in constants:
            return
        if isinstance(constant, LazyTensor) and constant.ndim > 1:
            rows = constant.reshape(math.prod(constant.shape[:-1]), constant.shape[-1])
            constants[source] = rows.whole().reshape(constant.shape)
        else:
            constants[source] = whole(constant)
        if self._own_bytes.pop(source[0], None) is None:
            self._held += constant.nbytes

    def _require(self, more: int) -> None:
        """Require memory for a step of the preparation, beside what is held."""
        needed = self._held + more
        if needed > self.least_bytes:
            require_memory(
                needed,
                self.memory_limit,
                held=self._held,
                subject="preparing the model",
                file=self.graph.file,
            )
            self.least_bytes = needed

    def _least_bytes(self) -> int:
        """Return the bytes of the constants that are kept, or of the largest one if larger."""
        kept = {
            source
            for index in self.order
            if index not in self.constant
            for source in self.graph.topology.sources[index]
            if source is not None and source[0] in self.constant
        }
        stack = [s[0] for s in kept if s not in self._compressed and s not in self._coded]
        stack += (source[0] for source in self.wanted if source[0] in self.constant)
        computed: set[int] = set()
        while stack:
            index = stack.pop()
            if index not in computed:
                computed.add(index)
                stack += (s[0] for s in self.graph.topology.sources[index] if s is not None)
        made = [(index, i) for index in computed for i in range(len(self.infos[index]))]
        return max(sum(map(self._kept_bytes, kept)), *map(self._kept_bytes, made), 0)

    def _kept_bytes(self, source: Source) -> int:
        """Return the bytes of a constant in a kernel, which may keep codes."""
        if source in self._coded:
            kept, _ = self._coded[source]
            return kept
        if source in self._compressed:
            return self._compressed[source].stored_bytes
        return tensor_bytes(self.infos[source[0]][source[1]]) or 0

    def _largest_first(self) -> list[int]:
        """Return the layers that run, those with the most bytes of constants first."""
        layers = [index for index in self.order if index not in self.constant]
        return sorted(layers, key=self._constant_bytes, reverse=True)

    def _packing_bytes(self, index: int, inputs: Sequence[Constant | None]) -> int:
        """Return the bytes that a layer's constants need while they are packed, and then."""
        operation, total = self.graph.layers[index].operation, 0
        for position, source in enumerate(self.graph.topology.sources[index]):
            constant = inputs[position]
            if source is None or constant is None:
                continue
            if not isinstance(constant, LazyTensor) and source[0] not in self._values:
                total += constant.nbytes
            if position in operation.takes_lazy:
                copies = self._packing_copies(operation, constant, is_coded=source in self._coded)
                _, more = self._coded.get(source, (0, 0))
                total += self._kept_bytes(source) + copies * constant.nbytes + more
        return total

    def _packing_copies(self, operation: Operation, constant: Constant, *, is_coded: bool) -> int:
        """Count the copies, in its own type, that packing needs beside a constant."""
        copies = operation.packing_copies if isinstance(constant, LazyTensor) else 0
        if is_coded:
            return copies + int(operation.keeps_codes)  # a matrix, in four bytes a code
        if self.context.accuracy is Accuracy.BF16 and not operation.keeps_codes:
            from deconv_ir.kernels.bf16 import copies_while_chosen

            copies += copies_while_chosen()
        return copies

    def _find_coded(self) -> Iterator[tuple[Source, tuple[int, int]]]:
        """Find the filters that are read in parts and become codes: see `Operation.code_bytes`."""
        for index in self.order:
            rows, operation = self.graph.topology.sources[index], self.graph.layers[index].operation
            if index in self.constant or not self._is_quantized(index):
                continue
            source = rows[1]
            assert source is not None, "a quantised layer has a filter"
            if 1 not in operation.takes_lazy:
                continue
            tensor = self._lazy_tensor(source[0])
            is_copied = operation.keeps_codes and tensor is not None and tensor.ndim != 2
            if tensor is not None and not is_copied:
                yield source, operation.code_bytes(tensor.shape)

    def _find_compressed(self) -> Iterator[tuple[Source, LazyTensor]]:
        """Find the constants that kernels can keep as they are stored."""
        for index in self.order:
            operation = self.graph.layers[index].operation
            may_keep = operation.may_keep_codes and not self._is_quantized(index)
            if index in self.constant or not (operation.keeps_codes or may_keep):
                continue
            sources = self.graph.topology.sources[index]
            for position in operation.takes_lazy:
                source = sources[position] if position < len(sources) else None
                if source is None or source[0] not in self.constant:
                    continue
                tensor = self._lazy_tensor(source[0])
                if tensor is not None and tensor.stored_bytes < tensor.nbytes:
                    tensor.stays_stored = may_keep
                    yield source, tensor

    def _is_quantized(self, index: int) -> bool:
        return self._quantized is not None and self._quantized.find(index) is not None

    def _unpack_filters(self) -> None:
        """Choose the filters that are unpacked once, as many as a share of the memory has room for.

        They have one tap, or are small: runs transform others for Winograd.  Those that are used
        at most positions come first: they would be unpacked most often.
        """
        positions: dict[Source, int] = {}
        for index in self.order:
            for source in self.graph.topology.sources[index]:
                if source in self._compressed and self._compressed[source].stays_stored:
                    size = tensor_bytes(self.infos[index][0]) or 0
                    positions[source] = max(size, positions.get(source, 0))
        needed = self._least_bytes() + self._tensor_bytes()
        # Not a share of the tensors, whose bytes depend on the batch: the bits of results must not.
        room = int(sum(self._stored.values()) * _UNPACKED_SHARE)
        needed += min(_SCRATCHPADS, needed // 2)  # small models need less
        if not fits(needed + room, self.memory_limit):
            limit = available_bytes() if self.memory_limit is None else self.memory_limit
            room = limit - needed
        small = _UNPACKING
        for source in sorted(positions, key=lambda s: -positions[s]):
            tensor = self._compressed[source]
            more = tensor.nbytes - tensor.stored_bytes
            if all(extent == 1 for extent in tensor.shape[2:]) and more <= room:
                room -= more
            elif more <= small:
                small -= more
            else:
                continue
            del self._compressed[source]

    def _tensor_bytes(self) -> int:
        """Return the most bytes of tensors at a time, without views and fused layers."""
        last: dict[Source, int] = {}
        for step, index in enumerate(self.order):
            for source in self.graph.topology.sources[index]:
                if source is not None and source[0] not in self.constant:
                    last[source] = step
        freed: dict[int, int] = {}
        live = most = 0
        for step, index in enumerate(self.order):
            for output, info in enumerate(self.infos[index] if index not in self.constant else ()):
                size = tensor_bytes(info) or 0
                live += size
                end = last.get((index, output), len(self.order))
                freed[end] = freed.get(end, 0) + size
            most = max(most, live)
            live -= freed.pop(step, 0)
        return most

    def _constant_bytes(self, index: int) -> int:
        sources = self.graph.topology.sources[index]
        constants = [s for s in sources if s is not None and s[0] in self.constant]
        return sum(tensor_bytes(self.infos[s[0]][s[1]]) or 0 for s in constants)

    def _kernel(
        self,
        index: int,
        inputs: Sequence[Constant | None],
        quantized: "QuantizedLayer | None",
    ) -> tuple[Kernel | None, int]:
        """Prepare a layer, fused with its followers if possible; also return the bytes packed."""
        size = sum(array.nbytes for array in inputs if array is not None)
        layer = self.graph.layers[index]
        if not any(array is not None for array in inputs):
            self._explain(index, quantized, None)
            first = None
            if index not in self._with_others:
                first = layer.operation.prepare_first(self.context)
            if first is not None:
                self._first_only.add(index)
            return first, 0
        with locating(self.graph, layer):
            followers = self._followers.get(index)
            while True:
                kernel = self._fused_kernel(index, inputs, followers, quantized)
                if followers is None:
                    return kernel, size
                if kernel is not None:
                    self._fused[index] = followers.layers
                    if followers.tensor is not None:
                        self._added[index] = followers.tensor
                    taken = [self._keep(source) for source in followers.constants]
                    return kernel, size + sum(a.nbytes for a in taken if a is not None)
                followers = followers.shortened()

    def _fused_kernel(
        self,
        index: int,
        inputs: Sequence[Constant | None],
        followers: Followers | None,
        quantized: "QuantizedLayer | None",
    ) -> Kernel | None:
        """Prepare a layer with some followers, in integers if possible."""
        operation = self.graph.layers[index].operation
        epilogue = Epilogue(None) if followers is None else self._epilogue(followers)
        reason = None
        if quantized is not None:
            kernel = operation.prepare_quantized(
                inputs, quantized.quantization, epilogue, self.context
            )
            if isinstance(kernel, Kernel):
                self._quantizes[index] = quantized.source
                self._reasons.pop(index, None)  # that of more followers
                return kernel
            reason = kernel
        self._explain(index, quantized, reason)
        if followers is None:
            return operation.prepare(inputs, self.context)
        return operation.prepare_fused(inputs, epilogue, self.context)

    def _explain(self, index: int, quantized: "QuantizedLayer | None", reason: str | None) -> None:
        """Keep the reason why a layer of quantised data is computed in f32.

        If the weights are quantised as well, the layer gave the reason, or None.
        """
        if quantized is None and self._quantized is not None:
            reason = self._quantized.why_f32(index)
        if reason is not None:
            self._reasons[index] = reason

    def _epilogue(self, followers: Followers) -> Epilogue:
        """Return the epilogue that a kernel would compute."""
        activation = followers.activation
        return Epilogue(
            None if followers.addend is None else self._peek(followers.addend),
            None if activation is None else self.graph.layers[activation].operation,
            [self._peek(source) for source in followers.parameters],
            followers.tensor is not None,
            None if followers.scale is None else self._peek(followers.scale),
            None if followers.offset is None else self._peek(followers.offset),
        )

    def _count(self, sources: Iterable[Source | None]) -> None:
        for source in sources:
            if source is not None and source[0] in self.constant:
                self._uses[source[0]] = self._uses.get(source[0], 0) + 1

    def _keep(self, source: Source | None, as_lazy_tensor: bool = False) -> Constant | None:
        """Return a constant that runs need, and record its bytes; None for other tensors."""
        if source is None or source[0] not in self.constant:
            return None
        constant: Constant | None = None
        if as_lazy_tensor and source in self._compressed:
            constant = self._compressed[source]
        elif as_lazy_tensor and source[0] not in self._values:
            constant = self._lazy_tensor(source[0])
        if constant is None:
            constant = self._take(source)
        else:
            self._forget(source[0])
        assert constant is not None, "it is one"
        if isinstance(constant, LazyTensor):
            # A limit has to hold for data that need both forms of a filter.
            constant.is_reread = self.memory_limit is None
        self._sizes[source] = self._stored.get(source, constant.nbytes)
        return constant

    def _lazy_tensor(self, index: int, most: int = _MOST_LAZY) -> LazyTensor | None:
        """Return the output of a layer with constant inputs as a lazy tensor, if possible.

        `most` bounds the number of layers in a row: longer chains are folded.
        """
        if most == 0:
            return None
        layer = self.graph.layers[index]
        rows = self.graph.topology.sources[index]
        inputs = [self._lazy_tensor(s[0], most - 1) for s in rows if s is not None]
        found = [tensor for tensor in inputs if tensor is not None]
        if len(found) < len(inputs):
            return None
        with locating(self.graph, layer):
            return layer.operation.as_lazy_tensor(found, self.context)

    def _take(self, source: Source | None) -> Array | None:
        """Return a constant for one of its uses; None for other tensors."""
        if source is None or source[0] not in self.constant:
            return None
        array = self._peek(source)
        self._forget(source[0])
        return array

    def _peek(self, source: Source) -> Array:
        """Return a constant; compute it and its dependencies if they are missing."""
        stack = [source[0]]
        while stack:
            index = stack[-1]
            rows = self.graph.topology.sources[index]
            missing = [s[0] for s in rows if s is not None and s[0] not in self._values]
            if index in self._values:
                stack.pop()
            elif missing:
                stack += missing
            else:
                stack.pop()
                self._values[index] = self._execute(index, [self._take(s) for s in rows])
        return self._values[source[0]][source[1]]

    def _execute(self, index: int, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        import numpy as np

        layer = self.graph.layers[index]
        sources = [s for s in self.graph.topology.sources[index] if s is not None]
        arrays = [array for array in inputs if array is not None]
        kept = [a for s, a in zip(sources, arrays, strict=True) if s[0] in self._values]
        with locating(self.graph, layer):
            outputs = self.infos[index]
            needed = sum(a.nbytes for a in arrays) - sum(a.nbytes for a in kept)
            if arrays:
                # All elements of the inputs are known, so that shapes can be checked now.
                types = [self.infos[s[0]][s[1]].element_type for s in sources]
                infos = list(map(actual, arrays, types))
                outputs = require_fit(layer, infos, self.context, self.memory_limit)
                needed += layer.operation.scratch(infos, outputs, self.context)
            if layer.operation.sharing is Sharing.NONE:
                needed += sum(tensor_bytes(info) or 0 for info in outputs)
            self._require(needed)
            # Infinities and NaNs are valid results here, so warnings are off.
            with np.errstate(all="ignore"):
                made = tuple(layer.operation.execute(arrays, self.context))
        own = (m for m in made if not any(np.may_share_memory(m, array) for array in kept))
        self._own_bytes[index] = sum(array.nbytes for array in own)
        self._held += self._own_bytes[index]
        return made


def _first_equals(graph: Graph, constant: Iterable[int]) -> dict[int, int]:
    """Map each constant layer, in topological order, to the first equal one."""
    first: dict[object, int] = {}
    found: dict[int, int] = {}
    for index in constant:
        operation = graph.layers[index].operation
        made = operation, _mapped(graph.topology.sources[index], found)
        found[index] = first.setdefault(index if operation.bodies else made, index)
    return found


def _mapped(
    sources: Sequence[Source | None], same: Mapping[int, int]
) -> tuple[tuple[int | None, int] | None, ...]:
    """Replace constants by the first equal one, and the layers of other tensors by None."""
    return tuple(None if s is None else (same.get(s[0]), s[1]) for s in sources)
