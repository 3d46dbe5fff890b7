"""Tensors between quantised layers: codes of 8 bits instead of f32.

A FakeQuantize whose users all read codes is computed by the convolution or MatMul before it, while
its sums are in cache, or by a step that writes codes.  Of others, the users that quantise their
data themselves read the data before it.  The results have the same bits.

Codes have the layout of their readers.  Plain ones are moved by the layers themselves, others by
their operations on fours of channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from deconv_ir.execute.code_operations import (
    CODE_TYPES,
    AverageOfCodes,
    CombinedCodes,
    MaxOfCodes,
    ToCodes,
    stored_shape,
)
from deconv_ir.execute.joined import users_of
from deconv_ir.execute.prepare import PreparedModel
from deconv_ir.execute.quantized import KEEP_LEVELS
from deconv_ir.ir.dtypes import F32
from deconv_ir.ir.graph import Source, rewire
from deconv_ir.ir.operation import Infos, Kernel, Operation, TensorInfo
from deconv_ir.ir.quantization import CodeLayout, Levels
from deconv_ir.ir.shapes import is_static, static


class _CodePair(NamedTuple):
    """A sum or product of tensors that may be codes."""

    inputs: tuple[int, int]
    quantizers: dict[int, int | None]
    """Those that read it, through an activation, if there is one."""


_MOST_RANK = 5
_COMPUTE_NUMBERS = {"MaxPool", "Interpolate", "Pad"}
"""Types of `KEEP_LEVELS` that do more than move elements."""


def as_stored(prepared: PreparedModel, infos: Sequence[Infos]) -> Sequence[Infos]:
    """Return the infos of tensors as steps read and write them."""
    found = list(infos)
    for (index, output), layout in prepared.codes.items():
        row = list(found[index])
        shape = row[output].shape
        coded = stored_shape(static(shape), layout) if is_static(shape) else None
        row[output] = TensorInfo(coded, CODE_TYPES[layout])
        found[index] = tuple(row)
    return found


def join_quantized(
    prepared: PreparedModel,
    wanted: Sequence[Source],
    infos: Sequence[Infos],
    general: Sequence[Infos] | None,
) -> PreparedModel:
    """Let kernels quantise their data, or read and write codes, and drop FakeQuantize layers.

    `infos` are those of a run, `general` holds in every run; without it, or without compiled code,
    no tensor becomes codes.
    """
    from deconv_ir.kernels.runtime.extension import compiled_module

    as_codes = general is not None and compiled_module() is not None
    return _Joining(prepared, wanted, infos, general or infos).join(codes=as_codes)


class _Joining:
    def __init__(
        self,
        prepared: PreparedModel,
        wanted: Sequence[Source],
        infos: Sequence[Infos],
        general: Sequence[Infos],
    ) -> None:
        self.prepared, self.infos, self.general = prepared, infos, general
        self.layers = list(prepared.graph.layers)
        self.rows = [tuple(row) for row in prepared.graph.topology.sources]
        self.users = users_of(prepared)
        self.wanted = set(wanted)
        self.kernels = dict(prepared.kernels)
        steps = set(prepared.steps)
        self.levels = {i: one for i, one in prepared.quantizers.items() if i in steps}
        self.makers = {self._made(index): index for index in prepared.steps}
        self.reads: set[int] = set()
        self.writes: dict[int, Levels] = {}
        self.codes: dict[Source, CodeLayout] = {}
        # The tensors that products read, directly or moved.
        self.plain: set[int] = set()
        # Layer that moves codes -> its operation on them.
        self.moved: dict[int, Operation] = {}
        # Layer that reads codes of all positions -> its operation on them.
        self.averages: dict[int, AverageOfCodes] = {}
        self.reasons = dict(prepared.reasons)
        self.first_only = set(prepared.first_only)
        self.pairs: dict[int, _CodePair] = {}
        # Tensor on levels -> the others of its pairs.
        self.in_pairs: dict[int, set[int]] = {}

    def join(self, *, codes: bool) -> PreparedModel:
        """Return the network with joined layers."""
        dropped: set[int] = set()
        as_codes = self._as_codes() if codes else set()
        added: set[int] = set()
        for step in self.pairs:
            if self._combines(step, as_codes):
                added |= self._combine_codes(step, as_codes, dropped)
        for index, levels in self.levels.items():
            if index in added:
                continue
            output, source = (index, 0), self.rows[index][0]
            assert source is not None, "it has data"
            if index not in as_codes:
                self._bypass(index, source)
                if not self.users.get(output) and output not in self.wanted:
                    dropped.add(index)
                continue
            maker = self.makers.get(source)
            if maker is not None and self._can_write(maker, source, index):
                self.writes[maker] = levels
                self.codes[source] = self.codes.pop(output)
                dropped.add(index)
                for user in self.users[output]:
                    self._reconnect(user, output, source)
            else:
                quantizer = ToCodes(levels=levels, layout=self._layout(index))
                self.layers[index] = self.layers[index]._replace(operation=quantizer)
        self._replace_kernels()
        prepared = self.prepared
        return prepared._replace(
            graph=rewire(prepared.graph, self.layers, self.rows),
            steps=tuple(step for step in prepared.steps if step not in dropped),
            kernels=self.kernels,
            codes=self.codes,
            first_only=frozenset(self.first_only),
            reasons=self.reasons,
        )

    def _as_codes(self) -> set[int]:
        """Return the quantisers all of whose users can read codes."""
        on = {index: levels.of_results for index, levels in self.levels.items()}
        self._find_plain()
        for step in self.prepared.steps:
            levels = self._passed_levels(step, on)
            if levels is not None:
                on[step] = levels
        self._find_readers(on)
        coded = {step for step in on if not self._is_packed_once(step)}
        pending = list(coded)
        while pending:
            step = pending.pop()
            reason = self._why_numbers(step, coded, on) if step in coded else None
            if reason is not None:
                self.reasons[step] = reason
                coded.remove(step)
                pending += [s[0] for s in self.rows[step] if s is not None]
                pending += self._users_of(step)
                pending += self.in_pairs.get(step, ())
        for step in coded:
            self.codes |= dict.fromkeys(self._outputs(step), self._layout(step))
            others = self._users_of(step)
            for user in others & self.averages.keys():
                self.layers[user] = self.layers[user]._replace(operation=self.averages[user])
            self.reads.update(others - coded - self.pairs.keys() - self.averages.keys())
            if step in self.moved:
                self.layers[step] = self.layers[step]._replace(operation=self.moved[step])
            elif step not in self.levels:
                self._pool_codes(step)
        for step in on.keys() - coded - self.levels.keys():
            self.moved.pop(step, None)
        self.on = on
        return coded

    def _outputs(self, step: int) -> list[Source]:
        """Return the tensors that a step computes."""
        count = 1 if self.layers[step].type == "MaxPool" else len(self.infos[step])
        return [(step, output) for output in range(count)]

    def _users_of(self, step: int) -> set[int]:
        return set().union(*(self.users.get(source, ()) for source in self._outputs(step)))

    def _passed_levels(self, step: int, on: dict[int, Levels]) -> Levels | None:
        """Return the levels on which a layer that can carry codes lies; None for others."""
        kind, infos = self.layers[step].type, self.infos[step]
        if kind not in KEEP_LEVELS or not all(is_static(info.shape) for info in infos):
            return None
        if step in self.plain and kind in _COMPUTE_NUMBERS:
            return None
        found = {None if s is None else on.get(s[0]) for s in self._carried(step)}
        levels = found.pop() if len(found) == 1 else None
        if levels is None:
            return None
        if kind == "MaxPool":
            alone = (step, 1) not in self.users and (step, 1) not in self.wanted
            short = len(static(infos[0].shape)) <= _MOST_RANK
            return levels if alone and short and min(levels.steps) > 0 else None
        if not levels.is_single or step in self.kernels:
            return None
        operation = self.layers[step].operation
        moved = operation if step in self.plain else self._on_fours(step, levels)
        if moved is None:
            self.reasons[step] = "it does not move channels by fours, as codes are stored"
            return None
        self.moved[step] = moved
        return levels

    def _on_fours(self, step: int, levels: Levels) -> Operation | None:
        """Return the operation of a layer on codes; None: it would part channels."""

        def element(number: float) -> int | None:
            code = levels.code_of(number)
            return None if code is None else code * 0x01010101

        inputs = [self.general[s[0]][s[1]] for s in self.rows[step] if s is not None]
        return self.layers[step].operation.on_fours(inputs, self.general[step], element)

    def _carried(self, step: int) -> tuple[Source | None, ...]:
        """Return the inputs of a layer whose elements its output has."""
        return self.rows[step][: KEEP_LEVELS[self.layers[step].type]]

    def _why_numbers(self, step: int, coded: set[int], on: dict[int, Levels]) -> str | None:
        """Return why a layer cannot compute codes; None if it can."""
        if step not in self.levels:
            rows = self._carried(step)
            if not all(source is not None and source[0] in coded for source in rows):
                return "its data are not codes"
        carriers = coded - self.levels.keys()
        for source in self._outputs(step):
            if source in self.wanted:
                return "it is an output"
            for user in sorted(self.users.get(source, ())):
                if not (
                    (user in carriers and self._layout(user) is self._layout(step))
                    or user in self.averages
                    or self._combines(user, coded)
                    or self._reads(user, source, on[step])
                ):
                    layer = self.layers[user]
                    return f"layer {layer.name!r} ({layer.type}) does not read codes"
        return None

    def _find_readers(self, on: dict[int, Levels]) -> None:
        """Find the sums and products of tensors on levels, and their means."""
        for step in self.prepared.steps:
            operation = self.layers[step].operation
            if operation.is_sum or operation.is_product:
                found = self._pair_of(step, on)
                if found is not None:
                    self.pairs[step] = found
                    one, other = found.inputs
                    self.in_pairs.setdefault(one, set()).add(other)
                    self.in_pairs.setdefault(other, set()).add(one)
            elif self.layers[step].type in ("ReduceMean", "ReduceSum", "AvgPool"):
                average = self._average_of(step, on)
                if average is not None:
                    self.averages[step] = average

    def _average_of(self, step: int, on: dict[int, Levels]) -> AverageOfCodes | None:
        """Return a reduction of all positions as one of codes; None if it cannot be."""
        from deconv_ir.ops.checks import known_integers, normalize_axes

        source, operation = self.rows[step][0], self.layers[step].operation
        levels = None if source is None else on.get(source[0])
        if (
            source is None
            or source[0] in self.plain
            or levels is None
            or not levels.is_single
            or step in self.kernels
        ):
            return None
        shape = self.general[source[0]][source[1]].shape
        if shape is None or len(shape) < 3 or not isinstance(shape[1], int):
            return None
        kind: Any = operation
        if self.layers[step].type == "AvgPool":
            if not is_static(shape[2:]) or kind.kernel != shape[2:]:
                return None
            places = kind.geometry(shape[2:])
            if any(one.pad_begin or one.output != 1 for one in places):
                return None
            return AverageOfCodes(given=levels, channels=shape[1], mean=True, keeps_axes=True)
        other = self.rows[step][1]
        axes = None if other is None else known_integers(self.general[other[0]][other[1]])
        spatial = list(range(2, len(shape)))
        if axes is None or sorted(normalize_axes(axes, len(shape))) != spatial:
            return None
        return AverageOfCodes(
            given=levels, channels=shape[1], mean=kind.mean, keeps_axes=kind.keep_dims
        )

    def _pair_of(self, step: int, on: dict[int, Levels]) -> _CodePair | None:
        """Return a sum or product as one of codes; None if it cannot be."""
        rows, shape = self.rows[step], self.infos[step][0].shape
        terms = [s for s in rows if s is not None and s[0] in on and s[0] not in self.plain]
        if len(terms) != 2 or len(rows) != 2 or step in self.kernels or not is_static(shape):
            return None
        # Other axes may be broadcast in some runs.
        shapes = [self.general[s[0]][s[1]].shape or () for s in terms]
        one, other = (shape[1:2] for shape in shapes)
        same = one == other != () and is_static(one) and len(shapes[0]) == len(shapes[1])
        if not (same and all(on[s[0]].is_single for s in terms)):
            return None
        inputs = [s[0] for s in terms]
        found: dict[int, int | None] = {}
        for user in self.users.get((step, 0), ()):
            found[user] = None
            if self._activation(user) is not None:
                found |= dict.fromkeys(self.users.get((user, 0), ()), user)
        quantizers = {at: by for at, by in found.items() if self._is_single(at)}
        return _CodePair((inputs[0], inputs[1]), quantizers)

    def _is_single(self, step: int) -> bool:
        """Whether a step is a quantiser with one range, whose codes are fours."""
        return step in self.levels and self.levels[step].is_single and step not in self.plain

    def _activation(self, step: int) -> Any:
        """Return a layer that sums of codes can compute as an activation; None for others."""
        from deconv_ir.kernels.activation import ActivationType
        from deconv_ir.ops.convolution.fusing import as_activation, is_activation

        operation, parameters = self.layers[step].operation, self.rows[step][1:]
        constants = self.prepared.constants
        values = [constants[s] for s in parameters if s is not None and s in constants]
        if not is_activation(operation) or len(values) < len(parameters):
            return None
        found = as_activation(operation, values, F32.numpy())
        return None if found is None or found.type is ActivationType.FUNCTION else found

    def _combines(self, step: int, coded: set[int]) -> bool:
        """Whether a sum or product reads codes."""
        return step in self.pairs and coded.issuperset(self.pairs[step].inputs)

    def _combine_codes(self, step: int, coded: set[int], dropped: set[int]) -> set[int]:
        """Let a sum or product read codes, as do the quantisers behind it, which are returned.

        What nothing else reads is `dropped`.
        """
        rows, found = self.rows[step], self.pairs[step]
        one, other = (self.on[index] for index in found.inputs)
        added = CombinedCodes(
            given=(one, other),
            channels=static(self.infos[step][0].shape)[1],
            multiplies=self.layers[step].operation.is_product,
        )
        self.layers[step] = self.layers[step]._replace(operation=added)
        quantizers = {at: by for at, by in found.quantizers.items() if at in coded}
        for index, through in quantizers.items():
            activation = None if through is None else self._activation(through)
            own = added.replace(levels=self.levels[index], activation=activation)
            self.layers[index] = self.layers[index]._replace(operation=own)
            self.rows[index] = rows
            self.users[(step if through is None else through, 0)].discard(index)
        for at in (*quantizers.values(), step):
            if at is None or (at, 0) in self.wanted or self.users.get((at, 0)):
                continue
            dropped.add(at)
            self.users.get((step, 0), set()).discard(at)
        for source in rows:
            assert source is not None, "a sum has two terms"
            self.users[source].update(quantizers)
            if step in dropped:
                self.users[source].discard(step)
        return set(quantizers)

    def _reads(self, user: int, source: Source, levels: Levels) -> bool:
        """Whether a kernel can read codes of some levels as its data."""
        rows, kernel = self.rows[user], self._coded_kernel(user)
        if kernel is None or rows.count(source) != 1 or rows[0] != source:
            return False
        same = kernel.layout is self._layout(source[0]) and kernel.levels.of_results == levels
        return bool(same and kernel.can_read_codes)

    def _coded_kernel(self, step: int) -> Any:
        """Return the kernel that sums the codes of a convolution or product; None for others."""
        packed: Any = self.kernels[step] if step in self.prepared.quantizes else None
        kernel = getattr(packed, "kernel", None)
        return None if getattr(packed, "channels_last", False) else kernel

    def _layout(self, step: int) -> CodeLayout:
        return CodeLayout.PLAIN if step in self.plain else CodeLayout.FOURS

    def _find_plain(self) -> None:
        """Find the tensors that products read, directly or moved."""
        for step in reversed(self.prepared.steps):
            if step not in self.levels and self.layers[step].type not in KEEP_LEVELS:
                continue
            for source in self._outputs(step):
                for user in self.users.get(source, ()):
                    kernel = self._coded_kernel(user)
                    is_moved = user in self.plain and user not in self.levels
                    is_read = kernel is not None and kernel.layout is CodeLayout.PLAIN
                    if is_moved or is_read:
                        self.plain.add(step)

    def _is_packed_once(self, step: int) -> bool:
        """Whether a product alone reads a quantiser's results, and packs them as fast as codes."""
        source = self.rows[step][0]
        if step not in self.levels or step not in self.plain or source is None:
            return False
        users, maker = list(self.users.get((step, 0), ())), self.makers.get(source)
        packs = len(users) == 1 and self._coded_kernel(users[0]) is not None
        return packs and (maker is None or not self._can_write(maker, source, step))

    def _pool_codes(self, step: int) -> None:
        """Let a MaxPool pool codes."""
        layer = self.layers[step]
        self.layers[step] = layer._replace(operation=MaxOfCodes(pool=layer.operation))
        self.kernels.pop(step, None)  # that of its first output alone
        self.first_only.add(step)

    def _can_write(self, maker: int, source: Source, quantizer: int) -> bool:
        """Whether a kernel can write its result as codes, which only a quantiser reads."""
        kernel = self._coded_kernel(maker)
        if kernel is None or source in self.wanted or len(self.users[source]) > 1:
            return False
        if kernel.layout is not self._layout(quantizer):
            return False
        return bool(kernel.can_write_codes)

    def _bypass(self, index: int, source: Source) -> None:
        """Let the users that quantise the data of a quantiser read them themselves."""
        output = (index, 0)
        for user in list(self.users.get(output, ())):
            if user in self.prepared.quantizes and self.rows[user][0] == output:
                self.rows[user] = (source, *self.rows[user][1:])
                if output not in self.rows[user]:
                    self.users[output].discard(user)
                self.users.setdefault(source, set()).add(user)

    def _reconnect(self, user: int, old: Source, new: Source) -> None:
        self.rows[user] = tuple(new if source == old else source for source in self.rows[user])

    def _replace_kernels(self) -> None:
        """Let equal layers share kernels that read and write codes."""
        made: dict[tuple[int, bool, Levels | None], Kernel] = {}
        for index in self.reads | set(self.writes):
            packed: Any = self.kernels[index]
            reads, writes = index in self.reads, self.writes.get(index)
            key = id(packed), reads, writes
            if key not in made:
                made[key] = packed.with_kernel(packed.kernel.coded(reads=reads, writes=writes))
            self.kernels[index] = made[key]

    def _kernel(self, index: int) -> Any:
        packed: Any = self.prepared.kernels[index]
        return packed.kernel

    def _made(self, index: int) -> Source:
        fused = self.prepared.fused.get(index)
        return (fused[-1] if fused else index, 0)
