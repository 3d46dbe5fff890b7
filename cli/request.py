"""What deconv-run is asked to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from deconv_ir.casting import Cast
    from deconv_ir.limits import Limits

NUMBER = "a number"
OPTIONAL_VALUES: dict[str, str | None] = {"--profile": ".json", "--batch": NUMBER, "--cast": None}
"""Options whose value may be left out -> how a value in a word of its own ends; None: only
``--cast=wrap`` gives one."""


class Request(NamedTuple):
    """The options of deconv-run, by their names."""

    model: str
    inputs: tuple[str, ...]
    output: str | None
    weights: str | None
    semantics: str
    layer: str | None
    until: str | None
    output_layers: tuple[str, ...]
    strict: bool
    random_inputs: int | None
    expect: tuple[str, ...]
    rtol: float
    atol: float
    cast: Cast
    force: bool
    batch: int | None
    resume: bool
    fail_fast: bool
    threads: int | None
    memory_limit: int | None
    limits: Limits
    explain_plan: bool
    profile: str | None
    as_json: bool
    verbose: bool
    quiet: bool

    @property
    def wanted(self) -> list[str] | None:
        """Names of the tensors asked for; None: the outputs of the model."""
        names = [*([self.until] if self.until is not None else []), *self.output_layers]
        return list(dict.fromkeys(names)) or None


class RunCommand(click.Command):
    """A command with options whose value may be left out, also before an argument.

    click takes whatever follows such an option for its value: the model, in
    ``deconv-run --profile model.xml``.  Here only what looks like one is taken.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join these options with their values, or with nothing."""
        joined: list[str] = []
        rest = list(args)
        while rest:
            word = rest.pop(0)
            if word == "--":
                joined += [word, *rest]
                break
            if word in OPTIONAL_VALUES:
                ending = OPTIONAL_VALUES[word]
                following = rest[0] if rest else ""
                fits = ending is not None and (
                    following.isdecimal() if ending is NUMBER else following.endswith(ending)
                )
                word = f"{word}={rest.pop(0) if fits else ''}"
            joined.append(word)
        return super().parse_args(ctx, joined)


class CastMode(click.ParamType):  # type: ignore[type-arg]
    """How inputs are converted: `True` for the option alone, ``wrap`` for that value."""

    name = "mode"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Cast:
        """Read it."""
        if value == "" or isinstance(value, bool):
            return value == "" or bool(value)
        if value != "wrap":
            self.fail(f"{value!r} is not 'wrap' (write --cast, or --cast=wrap)", param, ctx)
        return "wrap"


class Size(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes: 2GiB, 500MB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it."""
        if isinstance(value, int):
            return value
        from deconv_ir.execute.memory import parse_bytes

        try:
            return parse_bytes(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class BatchSize(click.ParamType):  # type: ignore[type-arg]
    """How many files a batch holds; empty: all of them, which is 0."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it."""
        if isinstance(value, int) or value == "":
            return int(value or 0)
        if not value.isdecimal() or int(value) < 1:
            self.fail(f"{value!r} is not a positive integer", param, ctx)
        return int(value)
