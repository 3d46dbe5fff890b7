"""The options of deconv-show, as one record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ..shared.options import (
    FILE,
    OF_AN_IR,
    Preprocessing,
    argument,
    flag,
    given,
    input_arrays,
    input_shapes,
    limit_options,
    option,
    parse_size,
    random_inputs,
    semantics,
    severity,
    weights_beside,
)

if TYPE_CHECKING:
    from deconv_ir.limits import Limits

FORMATS = ("html", "svg", "png")


class ShowRequest(Preprocessing, after="shapes"):
    """The options of deconv-show."""

    model: str = argument("MODEL")
    output: str | None = option(
        "FILE",
        "Default: the model's name with .html, in the working directory; '-' is standard output.",
        type=FILE,
    )
    form: str | None = option(
        None, "Default: by the ending of --output; html.", "--format", type=click.Choice(FORMATS)
    )
    force: bool = flag("Overwrite the output.")
    weights: str | None = weights_beside()
    semantics: str = semantics()
    severity: str = severity("Show findings of this severity and above.")
    inputs: tuple[str, ...] = input_arrays(
        "Array for an input, as of deconv-run: the model runs, and its tensors are drawn."
    )
    random_inputs: int | None = random_inputs()
    shapes: tuple[str, ...] = input_shapes(
        "Shape of an input: that of dynamic dims, which the page shows; other static shapes "
        "reshape the model, and the declared one permits work out of proportion to the network. "
        "Repeatable."
    )
    other_inputs: tuple[str, ...] = option(
        "[NAME=]FILE",
        "Another array for an input: differences to the first are drawn. Inputs that are not "
        "given another array keep theirs.",
        "--other-input",
        multiple=True,
    )
    against: str | None = option(
        "MODEL|openvino",
        "Another model, or a runtime: where it differs, as deconv-diff finds it.",
    )
    profile: bool = flag("Time the layers: the page can be coloured by time.")
    max_size: int = option(
        None,
        "Total size of the pictures of tensors.",
        default="4MiB",
        show_default=True,
        callback=lambda context, parameter, value: parse_size(value),
    )
    limits: Limits = given(limit_options(OF_AN_IR))
    quiet: bool = flag("No progress, and no line about the output.", "-q", "--quiet")

    @property
    def runs(self) -> bool:
        """Whether the model runs."""
        asked = self.inputs or self.other_inputs or self.against or self.profile
        return bool(asked) or self.random_inputs is not None

    def read_too(self) -> Iterator[str]:
        """Iterate over the other files that are read: arrays, and the second model."""
        for text in (*self.inputs, *self.other_inputs):
            yield from (text, text.rpartition("=")[2])
        if self.against is not None:
            yield self.against
