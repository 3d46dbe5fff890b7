"""The options --limit and --list-limits: bounds on what is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from deconv_ir.limits import Limits

_Command = TypeVar("_Command", bound=Callable[..., Any])

MEANINGS = {
    "xml_bytes": "size of an IR's XML",
    "tags": "tags of the XML, comments and the like among them",
    "layers": "layers of a network",
    "rank": "dims of a port",
    "problems": "mistakes in one file; after that many, the rest of it is not read",
    "document_bytes": "size of a document",
}
"""Fields of `Limits`, and what each bounds."""

OF_AN_IR = ("xml_bytes", "tags", "layers", "rank", "problems")
OF_A_DOCUMENT = ("document_bytes",)


class _Limit(click.ParamType):  # type: ignore[type-arg]
    """One limit: ``layers=2000000``, ``xml_bytes=1GiB``."""

    name = "limit"

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Read it."""
        name, _, number = value.partition("=")
        if name not in self._names:
            self.fail(f"{value!r} is not NAME=NUMBER with NAME one of {', '.join(self._names)}")
        if number.isascii() and number.isdecimal() and len(number) < 20 and int(number) > 0:
            return name, int(number)
        if not name.endswith("_bytes"):
            self.fail(f"{value!r}: {number!r} is not a positive integer")
        from deconv_ir.execute.memory import parse_bytes

        try:
            return name, max(1, parse_bytes(number))
        except ValueError as error:
            self.fail(f"{value!r}: {error}")


def limit_options(names: tuple[str, ...]) -> Callable[[_Command], _Command]:
    """Make the options; the command takes `limits`, a `Limits`.

    Parameters
    ----------
    names : tuple of str
        The limits that the command knows.
    """

    def combine(
        context: click.Context, parameter: click.Parameter, given: tuple[tuple[str, int], ...]
    ) -> Limits:
        from deconv_ir.limits import DEFAULT_LIMITS

        return DEFAULT_LIMITS.replace(**dict(given))

    def show(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if not value or context.resilient_parsing:
            return
        from deconv_ir.limits import DEFAULT_LIMITS

        for name in names:
            click.echo(f"{name}={getattr(DEFAULT_LIMITS, name)}".ljust(28) + MEANINGS[name])
        context.exit()

    def decorate(command: _Command) -> _Command:
        command = click.option(
            "--list-limits",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=show,
            help="List the limits with their defaults, and exit.",
        )(command)
        return click.option(
            "--limit",
            "limits",
            multiple=True,
            type=_Limit(names),
            callback=combine,
            metavar="NAME=NUMBER",
            help="Change a bound on what is read. Repeatable.",
        )(command)

    return decorate
