"""The options that change a model: constants, preprocessing of inputs, shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import DeconvError

from .common import STREAM, Mistake
from .shapes import by_input, reshaped

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.ir.dtypes import Array

    from .options import Preprocessing


def changed(model: Model, request: Preprocessing, *, always: bool = False) -> Model:
    """Return the model with preprocessing, and the shapes of --shape, which are those of arrays.

    `always`: with these shapes even if it accepts them already.
    """
    return reshaped(preprocessed(model, request), request.shapes, always=always)


def preprocessed(
    model: Model, request: Preprocessing, names: Mapping[str, str] | None = None
) -> Model:
    """Return the model with preprocessing; `names` are its inputs for those that options name."""
    if not request.preprocesses:
        return model

    from deconv_ir.ir.dtypes import parse_element_type

    def named(option: str, given: Sequence[str], parse: Callable[[str], Any]) -> Any:
        known = list(model.inputs if names is None else names)
        found = by_input(option, given, known, parse)
        return {name if names is None else names[name]: value for name, value in found.items()}

    return model.preprocess(
        layout=named("--layout", request.layout, str),
        reverse_channels=request.reverse_channels,
        mean=named("--mean", request.mean, _numbers),
        scale=named("--scale", request.scale, _numbers),
        element_type=named("--input-type", request.input_type, parse_element_type),
    )


def _numbers(text: str) -> list[float]:
    words = text.strip().removeprefix("[").removesuffix("]").split(",")
    try:
        return [float(word.replace("_", "?")) for word in words]  # Python reads 1_0 as 10
    except ValueError:
        raise ValueError(
            f"expected a number, or one for each channel as in 123.7,116.3,103.5, found {text!r}"
        ) from None


def with_constants(model: Model, given: Sequence[str], cast: Any) -> Model:
    """Return the model with the constants of --set."""
    arrays: dict[str, Array] = {}
    for name, path in constant_files(given).items():
        arrays[name] = read_constant(name, path)
    return model.replace_constants(arrays, cast=cast) if arrays else model


def constant_files(given: Sequence[str]) -> dict[str, str]:
    """Return the files of --set by the names of constants, which may contain '='."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        while equals and "=" in path and not Path(path).exists():
            more, _, path = path.partition("=")
            name = f"{name}={more}"
        if not name or not path:
            raise Mistake(f"--set {text}: expected NAME=FILE.npy")
        if path == STREAM:
            raise Mistake(f"--set {text}: constants are read from files")
        if name in found:
            raise Mistake(f"--set {name!r} is given twice")
        found[name] = path
    return found


def read_constant(name: str, path: str) -> Array:
    """Read the array of a constant."""
    from deconv_ir.formats import npy, npz

    try:
        return npz.read(path, name) if path.endswith(npz.SUFFIX) else npy.read(path)
    except DeconvError as error:
        raise error.locate(file=path) from error
