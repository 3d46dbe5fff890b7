"""deconv-show: a page that shows a model, in one file."""

from __future__ import annotations

from typing import Any, NoReturn

import click

from ..shared.common import EXIT_OK, run_model_command
from ..shared.options import CONTEXT, version_option
from .request import ShowRequest

EPILOG = """\b
Examples:
  deconv-show model.xml
  deconv-show graph.json --output graph.html --force
  deconv-show model.xml --format svg
  deconv-show model.xml --input x.npy --profile
  deconv-show model.xml --input x.npy --other-input y.npy
  deconv-show model.xml --random-inputs 0 --against other.xml

\b
Exit codes: 0 written (a model with findings too), 2 the file cannot be read or
written, 130 interrupted.
"""


@click.command("deconv-show", epilog=EPILOG, context_settings=CONTEXT)
@ShowRequest.add_to
@version_option("deconv-show")
def command(**options: Any) -> int:
    """Write a page that shows MODEL, an IR or a oneDNN Graph file.

    It is one file that any browser opens without a network or a server. A broken model
    gives a page with its findings.
    """
    from .run import show

    show(ShowRequest(**options))
    return EXIT_OK


def main() -> NoReturn:
    """Run the command; the entry point of the script."""
    run_model_command(command)


if __name__ == "__main__":
    main()
