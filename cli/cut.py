"""deconv-cut: a part of a model as an IR of its own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from .common import EXIT_OK, Mistake, run_model_command
from .completion import complete_tensors
from .options import CONTEXT, FILE, version_option

if TYPE_CHECKING:
    from collections.abc import Sequence

EPILOG = """\b
Examples:
  deconv-cut model.xml --from conv3 --to up --output part.xml
  deconv-cut model.xml --to up --output part.xml --strip-weights
  deconv-cut graph.json --from 4 --output part.json

\b
Exit codes: 0 done, 2 something is wrong with the model or the options.
"""


@click.command("deconv-cut", epilog=EPILOG, context_settings=CONTEXT)
@click.argument("model", metavar="MODEL", type=FILE)
@click.option(
    "--from",
    "starts",
    multiple=True,
    metavar="TENSOR",
    shell_complete=complete_tensors,
    help="A tensor that becomes an input: a tensor name, a layer name or a layer id. "
    "Repeatable. Default: the inputs of the model.",
)
@click.option(
    "--to",
    "ends",
    multiple=True,
    metavar="TENSOR",
    shell_complete=complete_tensors,
    help="A tensor that becomes an output. Repeatable. Default: the outputs of the model.",
)
@click.option(
    "--output",
    required=True,
    metavar="PART.xml",
    type=FILE,
    help="The IR to write; of a oneDNN Graph file also PART.json.",
)
@click.option(
    "--strip-weights",
    is_flag=True,
    help="Replace the weights by noise of the same mean, deviation and range, so that the part "
    "can be shared.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the noise.")
@click.option("--force", is_flag=True, help="Overwrite the files.")
@version_option("deconv-cut")
def command(
    model: str,
    starts: Sequence[str],
    ends: Sequence[str],
    output: str,
    strip_weights: bool,
    seed: int,
    force: bool,
) -> int:
    """Write the part of MODEL between tensors as an IR with its own weights."""
    path = Path(output)
    if path.suffix not in (".xml", ".json"):
        raise Mistake(f"--output {output}: the name must end with .xml or .json")
    from deconv_ir import cut

    from .guard import Guard

    guard = Guard([("the model", model), ("the weights", Path(model).with_suffix(".bin"))])
    for target in (path, path.with_suffix(".bin"))[: 1 + (path.suffix == ".xml")]:
        guard.allow("--output", target)
        if target.exists() and not force:
            raise Mistake(f"--output {target}: the file exists (use --force)")
    part = cut(model, path, start=starts, end=ends, strip_weights=seed if strip_weights else None)
    click.echo(
        f"{path}: {part.layers} layers, {part.weight_bytes} bytes of weights; "
        f"from {', '.join(part.inputs) or 'constants'} to {', '.join(part.outputs)}"
    )
    click.echo(f"deconv-run {shlex.quote(output)} --random-inputs 0")
    return EXIT_OK


def main() -> NoReturn:
    """Run the command; the entry point of the script."""
    run_model_command(command)


if __name__ == "__main__":
    main()
