"""All commands in one: ``python -m deconv_ir run|lint|diff|cut|show|spec``."""

from __future__ import annotations

import importlib
from typing import NoReturn

import click

from .shared.common import run_model_command
from .shared.options import CONTEXT, version_option

_COMMANDS = {
    "cut": "Write a part of an IR (deconv-cut).",
    "diff": "Compare two IRs (deconv-diff).",
    "lint": "Check IRs (deconv-lint).",
    "run": "Run an IR on arrays (deconv-run).",
    "show": "Write a page that shows a model (deconv-show).",
    "spec": "Check and make examples of specifications (deconv-spec).",
}


class _Commands(click.Group):
    """Imports the requested command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        found: click.Command = importlib.import_module(f".{cmd_name}.command", __package__).command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command("python -m deconv_ir", cls=_Commands, context_settings=CONTEXT)
@version_option("deconv-ir")
def command() -> None:
    """Load, check and run OpenVINO-style XML IR.

    COMMAND --help shows the options of a command.
    """


def main() -> NoReturn:
    """Run the named command."""
    run_model_command(command)
