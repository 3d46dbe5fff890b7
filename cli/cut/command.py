"""deconv-cut: a part of a model as a separate IR."""

from __future__ import annotations

from typing import Any, NoReturn

import click

from ..shared.common import EXIT_OK, run_model_command
from ..shared.options import CONTEXT, version_option
from .request import CutRequest

EPILOG = """\b
Examples:
  deconv-cut model.xml --from conv3 --to up --output part.xml
  deconv-cut model.xml --to up --output part.xml --strip-weights
  deconv-cut graph.json --from 4 --output part.json

\b
Exit codes: 0 done, 2 something is wrong with the model or the options.
"""


@click.command("deconv-cut", epilog=EPILOG, context_settings=CONTEXT)
@CutRequest.add_to
@version_option("deconv-cut")
def command(**options: Any) -> int:
    """Write the part of MODEL between tensors as an IR with its own weights."""
    request = CutRequest(**options)
    from .report import report
    from .run import cut_part

    report(cut_part(request), request)
    return EXIT_OK


def main() -> NoReturn:
    """Run the command; the entry point of the script."""
    run_model_command(command)


if __name__ == "__main__":
    main()
