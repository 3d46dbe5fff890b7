"""What the commands share: exit codes, errors, paths."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import click

from deconv_ir.errors import DeconvError
from deconv_ir.version import __version__

_Command = TypeVar("_Command", bound=Callable[..., Any])

EXIT_OK = 0
EXIT_DIFFERS = 1
EXIT_MISTAKE = 2
EXIT_INTERRUPTED = 130


class Mistake(click.ClickException):
    """The user's mistake: one line on standard error, exit code 2."""

    exit_code = EXIT_MISTAKE

    def show(self, file: Any = None) -> None:
        """Print the message."""
        click.echo(click.style("error: ", fg="red", bold=True) + self.format_message(), err=True)


def warn(message: str) -> None:
    """Print a warning on standard error."""
    click.echo(click.style("warning: ", fg="yellow", bold=True) + message, err=True)


def run_command(command: click.Command) -> NoReturn:
    """Run a command and exit, with one line for what is not our bug.

    Exit codes: 0 done, 1 something differs (or was found), 2 the user's
    mistake, 130 interrupted.
    """
    try:
        code = command.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        code = done.exit_code
    except click.ClickException as error:
        error.show()
        code = EXIT_MISTAKE
    except DeconvError as error:
        Mistake(str(error)).show()
        code = EXIT_MISTAKE
    except MemoryError as error:
        Mistake(f"out of memory: {error or 'the arrays do not fit'}").show()
        code = EXIT_MISTAKE
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output is gone; the interpreter's own flush at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_OK
    sys.exit(code if isinstance(code, int) else EXIT_OK)


def version_option(
    program: str, details: Callable[[], str] | None = None
) -> Callable[[_Command], _Command]:
    """Make the --version option; with -v before it, `details` follow."""

    def show(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if not value or context.resilient_parsing:
            return
        click.echo(f"{program} {__version__}")
        if details is not None and {"-v", "--verbose"} & set(sys.argv[1:]):
            click.echo(details())
        context.exit()

    return click.option(
        "--version",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show the version (with -v: kernel, BLAS, threads) and exit.",
    )
