"""Assignment of arrays to inputs."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError
from deconv_ir.formats import npy, npz
from deconv_ir.ir.shapes import compatible, format_shape
from deconv_ir.suggestions import nearest

from .common import STREAM, Mistake, model_name, standard_input
from .options import IMAGE_SUFFIXES, SEVERAL
from .shapes import OPTION as SHAPE_OPTION
from .shapes import describe_port, drawn_shapes

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ir.shapes import Shape

_MAGIC = frozenset("*?[")
"""Characters that make a path a pattern."""


def stands_for_many(text: str) -> bool:
    """Whether an option, ``[NAME=]PATH``, refers to many files."""
    if SEVERAL in text:
        return True
    path = text.partition("=")[2] if "=" in text and not Path(text).exists() else text
    return Path(path).is_dir() or (not _MAGIC.isdisjoint(path) and not Path(path).exists())


def gather_inputs(
    model: Model,
    given: Sequence[str],
    seed: int | None,
    shapes: Mapping[str, Shape],
    besides: Container[str] = (),
    *,
    modest: bool = False,
) -> dict[str, Array]:
    """Read the arrays of --input, `given`, and make those requested by --random-inputs.

    `shapes` is the result of `shapes.input_shapes`; inputs in `besides` are given otherwise.
    `modest`: few elements are drawn.
    """
    names = [name for name in model.inputs if name not in besides]
    paths = pair("--input", given, names)
    if list(paths.values()).count(STREAM) > 1:
        raise Mistake("only one --input can be standard input")
    missing = [name for name in names if name not in paths]
    if missing and seed is None:
        listed = ", ".join(
            f"{name!r} {describe_port(model.inputs[name], shapes[name])}" for name in missing
        )
        raise Mistake(
            f"{model_name(model)}: no array for input {listed} "
            "(use --input NAME=FILE.npy, or --random-inputs SEED)"
        )
    arrays = {
        name: _read_input(paths[name], name, model, shapes[name]) for name in names if name in paths
    }
    known = {
        name: arrays[name].shape if name in arrays else shape for name, shape in shapes.items()
    }
    drawn = drawn_shapes(model, known, missing)
    if drawn:
        model.require_memory(drawn)
        if modest:
            from deconv_ir.execute.effort import require_modest_inputs

            require_modest_inputs(list(drawn.values()), file=model.graph.file)
    for index, (name, port) in enumerate(model.inputs.items()):
        if name in drawn:
            from deconv_ir.arrays.fitting import random_array

            arrays[name] = random_array(drawn[name], port.element_type, seed or 0, index)
    return {name: arrays[name] for name in model.inputs if name in arrays}


def _read_input(path: str, name: str, model: Model, shape: Shape) -> Array:
    port = model.inputs[name]
    try:
        array = read_input(path, name, model, shape)
    except DeconvError as error:
        raise error.locate(file=path) from error
    # An array for an unknown input is reported by the model.
    if compatible(array.shape, port.shape) and not compatible(array.shape, shape):
        raise Mistake(
            f"{path}: {SHAPE_OPTION} gives input {name!r} the shape {format_shape(shape)}, "
            f"the array has {format_shape(array.shape)}"
        )
    return array


def read_input(path: str, name: str, model: Model, shape: Shape = None) -> Array:
    """Read the array for an input: as `read_array`, or from an image.

    `shape` are the dims that an image must have; by default those of the model.
    """
    if not path.lower().endswith(IMAGE_SUFFIXES):
        return read_array(path, name)
    from deconv_ir.formats import images

    return images.read_input(
        model.graph,
        model.inputs,
        name,
        path,
        shape,
        lambda dims: model.require_memory({name: dims}),
    )


def read_array(path: str, name: str) -> Array:
    """Read an array from a .npy or .npz file, or standard input."""
    if path == STREAM:
        return npy.read_stream(standard_input(), "standard input", None)
    return npz.read(path, name) if path.endswith(npz.SUFFIX) else npy.read(path)


def pair(option: str, given: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Match ``[NAME=]FILE`` options with names; those without a name are assigned in order.

    A .npz file without a name provides each of its arrays.
    """
    pairs: dict[str, str] = {}
    unnamed: list[str] = []
    for text in given:
        name, equals, _ = text.partition("=")
        matches = [n for n in names if text.startswith(f"{n}=")]
        if matches:
            # A name may contain '=': the longest match is used.
            name = max(matches, key=len)
            if name in pairs:
                raise Mistake(f"{option} {name!r} is given twice")
            pairs[name] = text[len(name) + 1 :]
        elif equals and not Path(text.partition(SEVERAL)[0]).exists():
            raise _unknown(f"{option} {text}", name, names)
        else:
            stored = _stored_names(text)
            if len(stored) == 1 and stored[0] not in names:
                stored = []  # the only array needs no name
            for name in stored:
                if name not in names:
                    raise _unknown(f"{option} {text}", name, names)
                if name in pairs:
                    raise Mistake(f"{option} {name!r} is given twice")
                pairs[name] = text
            if not stored:
                unnamed.append(text)
    free = [name for name in names if name not in pairs]
    if len(unnamed) > len(free):
        raise Mistake(
            f"{option} {unnamed[len(free)]}: the model has {len(names)} "
            f"({', '.join(map(repr, names))}), {len(given)} are given"
        )
    pairs.update(zip(free, unnamed, strict=False))
    return pairs


def _unknown(option: str, name: str, names: Sequence[str]) -> Mistake:
    known = ", ".join(map(repr, names)) or "none"
    hint = nearest(name, names)
    return Mistake(
        f"{option}: the model has no {name!r}; it has {known}" + (f" ({hint})" if hint else "")
    )


def _stored_names(path: str) -> list[str]:
    """Return the names of the arrays in a .npz file; empty for other files."""
    return npz.names(path) if path.endswith(npz.SUFFIX) and Path(path).exists() else []
