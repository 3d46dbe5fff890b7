"""The options of deconv-run as one record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from .common import STREAM, Mistake

if TYPE_CHECKING:
    from deconv_ir.arrays.casting import Cast
    from deconv_ir.limits import Limits

OPTIONAL_VALUES: dict[str, Callable[[str], bool]] = {
    "--profile": lambda word: word.endswith(".json"),
    "--batch": str.isdecimal,
    "--cast": lambda _: False,
}
"""Options whose value may be left out -> whether the next word is one; else ``--cast=wrap``."""

FILE_OPTIONS = ("--input", "--expect")
ARRAY_SUFFIXES = (".npy", ".npz")
SEVERAL = "\0"
"""Joins the paths of one option, as in ``--input a.npy b.npy``; no argument can hold it."""

OPTION_NAMES = {"output_layers": "output-layer"}
"""Fields whose option has another name."""

CLUSTER = ("workers", "scheduler", "scheduler_file")
FOR_ONE_RUN = ("no_output", "save_inputs", "repeat", "explain_plan")
FOR_MANY_RUNS = ("batch", "resume", "fail_fast")
INFO_HINT = "cannot be combined with --info, which is about the whole model"


class Request(NamedTuple):
    """The options of deconv-run, by their names."""

    model: str
    inputs: tuple[str, ...]
    output: str | None
    no_output: bool
    weights: str | None
    semantics: str
    accuracy: str
    layer: str | None
    until: str | None
    output_layers: tuple[str, ...]
    strict: bool
    random_inputs: int | None
    shapes: tuple[str, ...]
    save_inputs: str | None
    expect: tuple[str, ...]
    rtol: float
    atol: float
    cast: Cast
    force: bool
    batch: int | None
    resume: bool
    fail_fast: bool
    repeat: int | None
    warmup: int | None
    threads: int | None
    memory_limit: int | None
    tile: str | None
    two_pass: bool
    workers: int | None
    scheduler: str | None
    scheduler_file: str | None
    limits: Limits
    in_shapes: str
    op_attrs: str
    op_kind: str
    mb: str
    dt: str
    physical: bool
    save_xml: str | None
    save_onednn: str | None
    info: bool
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

    def require_consistent(self) -> None:
        """Require that no two options contradict each other."""
        if self.output == STREAM and self.as_json:
            raise Mistake("--output - and --json both write to standard output (use one of them)")
        if self.model == STREAM and any(i.rpartition("=")[2] == STREAM for i in self.inputs):
            raise Mistake("the model and an --input cannot both be standard input")
        if self.no_output and self.output is not None:
            raise Mistake("--output and --no-output cannot be combined")
        if self.info:
            self.require_none_of(("until", "output_layers", "explain_plan"), INFO_HINT)
        if self.save_xml is not None and self.save_onednn is not None:
            raise Mistake("--save-xml and --save-onednn cannot be combined")
        if self.two_pass and self.tile is None:
            raise Mistake("--two-pass requires --tile")
        if self.warmup is not None and self.repeat is None:
            raise Mistake("--warmup requires --repeat N")

    def require_none_of(self, names: Sequence[str], reason: str) -> None:
        """Require that the options of these fields were not given."""
        for name in names:
            value = getattr(self, name)
            if value is not None and value is not False and value != ():
                option = OPTION_NAMES.get(name, name.replace("_", "-"))
                raise Mistake(f"--{option} {reason}")


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
                fits = bool(rest) and OPTIONAL_VALUES[word](rest[0])
                word = f"{word}={rest.pop(0) if fits else ''}"
            if word in FILE_OPTIONS and rest:
                word = f"{word}={rest.pop(0)}"
            if word.partition("=")[0] in FILE_OPTIONS:
                # A shell makes several words of a pattern that is not quoted.
                while rest and rest[0].endswith(ARRAY_SUFFIXES) and rest[0][0] != "-":
                    word += SEVERAL + rest.pop(0)
            joined.append(word)
        if ctx.resilient_parsing and joined and joined[-1].startswith("--"):
            # A shell asks for the value of the last option; without any, click would not
            # look at the arguments, and the model stands there.
            joined.append("")
        try:
            return super().parse_args(ctx, joined)
        except click.UsageError as error:
            if "unexpected extra argument" not in error.message or ".np" not in error.message:
                raise
            message = f"{error.message} (arrays go after --input)"
            raise click.UsageError(message, error.ctx) from None


def cast_mode(value: str | bool) -> Cast:
    """Read --cast: `True` for the option alone, ``wrap`` for that value."""
    if value is False or value == "wrap":
        return value
    if value:
        raise click.BadParameter(f"{value!r} is not 'wrap' (write --cast, or --cast=wrap)")
    return True


def batch_size(value: str) -> int:
    """Read --batch: how many files a batch holds; 0, for the option alone: all of them."""
    if value and (not value.isdecimal() or int(value) < 1):
        raise click.BadParameter(f"{value!r} is not a positive integer")
    return int(value or 0)
