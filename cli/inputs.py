"""Which array goes to which input."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError

from . import npy
from .common import Mistake

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.dtypes import Array


def gather_inputs(
    model: Model, given: Sequence[str], seed: int | None, besides: Container[str] = ()
) -> dict[str, Array]:
    """Read the arrays, and make the ones that --random-inputs asks for.

    Inputs in `besides` come from elsewhere.
    """
    names = [name for name in model.inputs if name not in besides]
    paths = pair("--input", given, names)
    if list(paths.values()).count(npy.STREAM) > 1:
        raise Mistake("only one --input can be standard input")
    missing = [name for name in names if name not in paths]
    if missing and seed is None:
        raise Mistake(
            f"{model.graph.file}: no array for input {', '.join(map(repr, missing))} "
            "(use --input NAME=FILE.npy, or --random-inputs SEED)"
        )
    if missing:
        model.require_memory()
    arrays: dict[str, Array] = {}
    for index, (name, port) in enumerate(model.inputs.items()):
        if name in besides:
            continue
        if name in paths:
            try:
                arrays[name] = npy.read(paths[name])
            except DeconvError as error:
                raise error.locate(file=paths[name]) from error
        else:
            from deconv_ir.arrays import random_array

            arrays[name] = random_array(port.shape, port.element_type, seed or 0, index)
    return arrays


def pair(option: str, given: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Match ``[NAME=]FILE`` options with names; those without a name go in order."""
    pairs: dict[str, str] = {}
    unnamed: list[str] = []
    for text in given:
        name, equals, _ = text.partition("=")
        matches = [n for n in names if text.startswith(f"{n}=")]
        if matches:
            # A name may hold '=' itself: the longest that fits is meant.
            name = max(matches, key=len)
            if name in pairs:
                raise Mistake(f"{option} {name!r} is given twice")
            pairs[name] = text[len(name) + 1 :]
        elif equals and not Path(text).exists():
            known = ", ".join(map(repr, names)) or "none"
            raise Mistake(f"{option} {text}: the model has no {name!r}; it has {known}")
        else:
            unnamed.append(text)
    free = [name for name in names if name not in pairs]
    if len(unnamed) > len(free):
        raise Mistake(
            f"{option} {unnamed[len(free)]}: the model has {len(names)} "
            f"({', '.join(map(repr, names))}), {len(given)} are given"
        )
    pairs.update(zip(free, unnamed, strict=False))
    return pairs


def is_pattern(text: str) -> bool:
    """Whether an --input stands for many files."""
    path = text.partition("=")[2] if "=" in text and not Path(text).exists() else text
    return any(c in path for c in "*?[") and not Path(path).exists()
