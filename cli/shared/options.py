"""Options: declaration in records, options shared by several commands, types of values."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from deconv_ir.ir.record import Field, Record
from deconv_ir.version import __version__

if TYPE_CHECKING:
    from deconv_ir.limits import Limits

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _show_help(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        click.echo(context.get_help(), color=context.color)
        context.exit()


class Command(click.Command):
    """A command whose --help is not translated, which makes click faster."""

    help_option = click.Option(
        ["-h", "--help"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_help,
        help="Show this message and exit.",
    )

    def get_help_option(self, ctx: click.Context) -> click.Option:
        """Return --help."""
        return self.help_option


CONTEXT = {"help_option_names": ["-h", "--help"]}
SEMANTICS = ("spec", "openvino", "onednn")
SEVERITIES = ("error", "warning", "info")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")
SEVERAL = "\0"
"""Joins the paths of one option, as in ``--input a.npy b.npy``; arguments cannot contain it."""

LIMITS = {
    "xml_bytes": "size of an IR's XML",
    "tags": "tags of the XML, comments and the like among them",
    "layers": "layers of a network",
    "rank": "dims of a port",
    "problems": "mistakes in one file; after that many, the rest of it is not read",
    "document_bytes": "size of a document",
}
"""Field of `Limits` -> its meaning."""
OF_AN_IR = ("xml_bytes", "tags", "layers", "rank", "problems")
OF_A_DOCUMENT = ("document_bytes",)


class FileName(click.types.StringParamType):
    """A path, for shell completion.

    `click.Path` also translates its name: five options of that type take longer than reading a
    small model.
    """

    name = "path"

    def shell_complete(
        self, context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[Any]:
        """Leave the completion to the shell."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


FILE = FileName()


def parse_size(text: str) -> int:
    """Read a number of bytes: ``2GiB``, ``500MB``."""
    from deconv_ir.execute.memory import parse_bytes

    try:
        return parse_bytes(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


class Option(Field):
    """A field of `Options`; `decorator` maps its name to a decorator for commands."""

    __slots__ = ("decorator",)

    def __init__(self, decorator: Callable[[str], Callable[[Any], Any]]) -> None:
        super().__init__()
        self.decorator = decorator


class Options(Record):
    """The options of a command, in the order of its help.

    Each option is a field that `option`, `flag` or `given` declares; the names of options that only
    print something begin with an underscore.  Options of a base come first, or `after` a field.
    """

    declared: ClassVar[list[tuple[str, Option]]] = []

    def __init_subclass__(cls, after: str | None = None) -> None:
        own = [(name, o) for name, o in vars(cls).items() if isinstance(o, Option)]
        before = 0 if after is None else 1 + [name for name, _ in own].index(after)
        cls.declared = [*own[:before], *cls.declared, *own[before:]]
        for name, _ in own:
            if name.startswith("_"):
                delattr(cls, name)
        super().__init_subclass__()
        cls.fields = {name: cls.fields[name] for name, _ in cls.declared if name in cls.fields}

    @classmethod
    def add_to(cls, command: _Command) -> _Command:
        """Add the options to a command, as parameters with the names of the fields."""
        for name, found in reversed(cls.declared):
            command = found.decorator(name)(command)
        return command

    def asdict(self) -> dict[str, Any]:
        """Return the values by the names of the fields."""
        return self._values()


def option(metavar: str | None, text: str | None, *names: str, **details: Any) -> Any:
    """Declare an option with a value: --no-cache of the field ``no_cache``, or `names`.

    `details` are those of `click.option`.
    """
    return Option(
        lambda field: click.option(
            *(names or [f"--{field.replace('_', '-')}"]),
            field,
            metavar=metavar,
            help=text,
            **details,
        )
    )


def completer(name: str) -> Callable[..., Any]:
    """Return a function of `completion`, which is imported when a shell requests it."""

    def complete(*arguments: Any) -> Any:
        from . import completion

        return getattr(completion, name)(*arguments)

    return complete


def flag(text: str, *names: str) -> Any:
    """Declare an option without a value."""
    return option(None, text, *names, is_flag=True)


def given(decorator: Callable[[Any], Any]) -> Any:
    """Declare an option shared by several commands, by its decorator."""
    return Option(lambda field: decorator)


def argument(metavar: str, **details: Any) -> Any:
    """Declare an argument that is a path."""
    return Option(lambda field: click.argument(field, metavar=metavar, type=FILE, **details))


def semantics() -> Any:
    """Declare --semantics; deconv-lint, whose settings may also set it, has a separate one."""
    return option(
        None,
        "Rules to follow where the documents and a runtime differ.",
        type=click.Choice(SEMANTICS),
        default="spec",
        show_default=True,
    )


def weights_beside() -> Any:
    """Declare --weights of a command that checks a model."""
    return option("FILE.bin", "The .bin. Default: the one next to the .xml.", type=FILE)


def severity(text: str) -> Any:
    """Declare --severity; deconv-lint, whose settings may also set it, has a separate one."""
    choice = click.Choice(SEVERITIES)
    return option(None, text, type=choice, default="warning", show_default=True)


def input_arrays(text: str) -> Any:
    """Declare --input."""
    return option("[NAME=]FILE", text, "--input", multiple=True)


class _WrittenNumber:
    """The check of a number as people write it: not NaN, and not 1_0, which Python reads as 10."""

    name: str

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        found = super().convert(value, param, ctx)  # type: ignore[misc]
        if found != found or (isinstance(value, str) and "_" in value):
            raise click.BadParameter(f"{value!r} is not a valid {self.name}.", ctx, param)
        return found


class IntegerRange(_WrittenNumber, click.IntRange):
    """An integer in a range."""


class NumberRange(_WrittenNumber, click.FloatRange):
    """A number in a range; infinity is one."""


class _Seed(IntegerRange):
    """A seed; the message for another word shows where the seed goes."""

    name = "seed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the seed."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            expected = "an integer of at least 0"
            if os.path.exists(value):
                expected += f" before a file, as in --random-inputs 0 {value}"
            message = f"invalid seed {value!r} (expected {expected})"
            raise click.BadParameter(message, ctx, param) from error


def random_inputs(numbers: str = "") -> Any:
    """Declare --random-inputs; its help may mention the distribution."""
    return option(
        "[SEED]",
        f"Seeded random arrays for the inputs that are not given{numbers}. Without SEED: 0.",
        type=_Seed(0),
        is_flag=False,
        flag_value=0,
    )


def input_shapes(text: str) -> Any:
    """Declare --shape."""
    return option("[NAME=]SHAPE", text, "--shape", multiple=True)


class Preprocessing(Options):
    """The options that preprocess the inputs of a model, of all commands that run one."""

    shapes: tuple[str, ...]  # --shape, which each command declares with its own help
    layout: tuple[str, ...] = option(
        "[NAME=]LAYOUT",
        "Layout of the arrays of an input, as in nhwc; with that of the network if it is not nchw, "
        "as in chw->hwc. Repeatable, like --mean, --scale and --input-type.",
        multiple=True,
    )
    reverse_channels: bool = flag(
        "Reverse the channels of inputs with three, RGB to BGR. --mean and --scale are in the "
        "order of the network's channels, as in OpenVINO's mo."
    )
    mean: tuple[str, ...] = option(
        "[NAME=]NUMBERS",
        "Subtract a number, or one for each channel, from an input: 123.7,116.3,103.5.",
        multiple=True,
    )
    scale: tuple[str, ...] = option(
        "[NAME=]NUMBERS",
        "Divide an input, after --mean, by a number or one for each.",
        multiple=True,
    )
    input_type: tuple[str, ...] = option(
        "[NAME=]TYPE", "Element type of the arrays of an input, as in u8.", multiple=True
    )

    @property
    def preprocesses(self) -> list[str]:
        """The given options that preprocess inputs."""
        return [f"--{name.replace('_', '-')}" for name in PREPROCESSING if getattr(self, name)]


PREPROCESSING = tuple(Preprocessing.fields)


def tolerance(default: float, text: str | None = None) -> Any:
    """Declare --rtol or --atol."""
    return option(None, text, type=NumberRange(0), default=default, show_default=True)


def listing_option(
    name: str, show: Callable[[], None], text: str
) -> Callable[[_Command], _Command]:
    """Make an option that prints something and exits."""

    def callback(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value and not context.resilient_parsing:
            show()
            context.exit()

    return click.option(
        name, is_flag=True, is_eager=True, expose_value=False, callback=callback, help=text
    )


def version_option(program: str, *, computes: bool = False) -> Callable[[_Command], _Command]:
    """Make the option --version; for a program that computes, -v adds kernel, BLAS and threads."""

    def show() -> None:
        click.echo(f"{program} {__version__}")
        if not computes:
            return
        from .about import describe_fallback, describe_kernels

        # Loading the kernel would import NumPy, which takes most of the time of --version.
        verbose = bool({"-v", "--verbose"} & set(sys.argv[1:]))
        if fallback := describe_fallback(load=verbose):
            click.echo(fallback)
        if verbose:
            click.echo(describe_kernels())

    more = " (with -v: kernel, BLAS, threads)" if computes else ""
    return listing_option("--version", show, f"Show the version{more} and exit.")


def limit_options(names: tuple[str, ...]) -> Callable[[_Command], _Command]:
    """Make the options --limit and --list-limits; the command takes `limits`, a `Limits`."""

    def parse(text: str) -> tuple[str, int]:
        name, _, number = text.partition("=")
        if name not in names:
            expected = f"NAME=NUMBER with NAME one of {', '.join(names)}"
            raise click.BadParameter(f"{text!r} is not {expected}")
        if number.isascii() and number.isdecimal() and len(number) < 20 and int(number) > 0:
            return name, int(number)
        if not name.endswith("_bytes"):
            raise click.BadParameter(f"{text!r}: {number!r} is not a positive integer")
        try:
            return name, max(1, parse_size(number))
        except click.BadParameter as error:
            raise click.BadParameter(f"{text!r}: {error.message}") from None

    def combine(
        context: click.Context, parameter: click.Parameter, given: tuple[tuple[str, int], ...]
    ) -> Limits:
        from deconv_ir.limits import DEFAULT_LIMITS

        return DEFAULT_LIMITS._replace(**dict(given))

    def show() -> None:
        from deconv_ir.limits import DEFAULT_LIMITS

        for name in names:
            click.echo(f"{name}={getattr(DEFAULT_LIMITS, name)}".ljust(28) + LIMITS[name])

    def decorate(command: _Command) -> _Command:
        listing: Callable[[_Command], _Command] = listing_option(
            "--list-limits", show, "List the limits with their defaults, and exit."
        )
        limit = click.option(
            "--limit",
            "limits",
            multiple=True,
            type=parse,
            callback=combine,
            metavar="NAME=NUMBER",
            help="Change a bound on what is read. Repeatable.",
        )
        return limit(listing(command))

    return decorate
