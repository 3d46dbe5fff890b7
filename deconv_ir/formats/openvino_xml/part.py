"""Writing a part of a model with only the weights that it uses, or with noise for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from deconv_ir.formats.exchange import Extract, Written
from deconv_ir.formats.files import output_errors, replace_file
from deconv_ir.formats.openvino_xml.packing import Packer
from deconv_ir.formats.openvino_xml.writer import to_bytes
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.operation import ConstantSource
from deconv_ir.ops.constants.constant import unpack

_SMALL = 16
"""Constants with at most this many elements are settings (a scale, a clamp), not weights."""


def write_part(part: Extract, path: Path) -> Written:
    """Write a part and its weights; see `Format.cut`."""
    packer = _NoisePacker(part.weights, part.seed)
    packed = packer.pack(part.graph)
    with output_errors(path, "the part"):
        if packer.size:
            with replace_file(path.with_suffix(".bin")) as stream:
                for chunk in packer.chunks():
                    stream.write(chunk)
        with replace_file(path) as stream:
            stream.write(to_bytes(packed))
    return Written(packer.size, tuple(packer.kept))


class _NoisePacker(Packer):
    """Replaces weights by noise if there is a seed."""

    def __init__(self, weights: ConstantSource | None, seed: int | None) -> None:
        super().__init__(weights)
        self.seed = seed
        self.kept: list[str] = []
        """Names of constants that are not replaced by noise, if others are."""

    def note(self, name: str, element_type: ElementType, size: int) -> None:
        if self.seed is not None and not _is_weight(element_type, size):
            self.kept.append(name)

    def data(
        self, number: int, offset: int, size: int, element_type: ElementType
    ) -> Iterator[bytes | memoryview]:
        if self.seed is None or not _is_weight(element_type, size):
            yield from super().data(number, offset, size, element_type)
            return
        assert self.weights is not None
        yield _noise(self.weights.read(offset, size), element_type, [self.seed, number])


def _is_weight(element_type: ElementType, size: int) -> bool:
    elements = size * 8 // (element_type.bits or 8)
    return elements > _SMALL and (element_type.is_float or 0 < element_type.bits <= 8)


def _noise(data: memoryview, element_type: ElementType, seed: Sequence[int]) -> bytes:
    """Return the bytes of random elements with the same statistics."""
    import numpy as np

    rng = np.random.default_rng(seed)
    if element_type.is_packed or not element_type.is_float:
        raw = np.frombuffer(data, np.uint8)
        if element_type.is_packed or element_type.kind == "bool":
            # Every bit pattern of a packed type is a valid element.
            return rng.permutation(raw).tobytes()
        values = raw.view(element_type.numpy())
        least, most = int(values.min()), int(values.max())
        return rng.integers(least, most, len(values), endpoint=True).astype(values.dtype).tobytes()
    values = unpack(data, element_type, len(data) * 8 // element_type.bits).astype(np.float64)
    finite = values[np.isfinite(values)]
    mean, deviation = (float(finite.mean()), float(finite.std())) if finite.size else (0.0, 1.0)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (-1.0, 1.0)
    drawn: Array = np.clip(rng.normal(mean, deviation, values.size), low, high)
    return drawn.astype(element_type.numpy()).tobytes()
