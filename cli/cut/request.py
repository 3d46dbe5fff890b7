"""The options of deconv-cut as one record."""

from __future__ import annotations

from typing import Any

from ..shared.options import (
    FILE,
    IntegerRange,
    Options,
    argument,
    completer,
    flag,
    option,
)


def _tensors(option_name: str, text: str) -> Any:
    return option(
        "TENSOR", text, option_name, multiple=True, shell_complete=completer("complete_tensors")
    )


class CutRequest(Options):
    """The options of deconv-cut."""

    model: str = argument("MODEL")
    starts: tuple[str, ...] = _tensors(
        "--from",
        "A tensor that becomes an input: a tensor name, a layer name or a layer id. "
        "Repeatable. Default: the inputs of the model. In a body, LAYER/BODY/NAME.",
    )
    ends: tuple[str, ...] = _tensors(
        "--to",
        "A tensor that becomes an output. Repeatable. Default: the outputs of the model.",
    )
    output: str = option(
        "PART.xml",
        "The IR to write; of a oneDNN Graph file also PART.json.",
        required=True,
        type=FILE,
    )
    strip_weights: bool = flag(
        "Replace the weights by noise of the same mean, deviation and range, so that the part "
        "can be shared. Constants of up to 16 elements, 16-bit and wider integers, and strings are "
        "kept, and named."
    )
    seed: int = option(
        None, "Seed of the noise.", type=IntegerRange(0), default=0, show_default=True
    )
    force: bool = flag("Overwrite the files.")
