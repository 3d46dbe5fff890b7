"""deconv-cut: a part of a model as a separate IR."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, NoReturn

import click

from deconv_ir.errors import one_line

from ..shared.common import EXIT_OK, Mistake, run_model_command
from ..shared.options import (
    CONTEXT,
    FILE,
    IntegerRange,
    Options,
    argument,
    completer,
    flag,
    option,
    version_option,
)

_LISTED = 5
"""Maximum number of named constants that were kept."""

EPILOG = """\b
Examples:
  deconv-cut model.xml --from conv3 --to up --output part.xml
  deconv-cut model.xml --to up --output part.xml --strip-weights
  deconv-cut graph.json --from 4 --output part.json

\b
Exit codes: 0 done, 2 something is wrong with the model or the options.
"""


def _tensors(option_name: str, text: str) -> Any:
    return option(
        "TENSOR", text, option_name, multiple=True, shell_complete=completer("complete_tensors")
    )


class CutRequest(Options):
    """The options of deconv-cut."""

    model: str = argument("MODEL")
    starts: tuple[str, ...] = _tensors(
        "--from",
        "A tensor that becomes an input: a tensor name, a layer name or a layer id. "
        "Repeatable. Default: the inputs of the model.",
    )
    ends: tuple[str, ...] = _tensors(
        "--to",
        "A tensor that becomes an output. Repeatable. Default: the outputs of the model.",
    )
    output: str = option(
        "PART.xml",
        "The IR to write; of a oneDNN Graph file also PART.json.",
        required=True,
        type=FILE,
    )
    strip_weights: bool = flag(
        "Replace the weights by noise of the same mean, deviation and range, so that the part "
        "can be shared. Constants of up to 16 elements, 16-bit and wider integers, and strings are "
        "kept, and named."
    )
    seed: int = option(
        None, "Seed of the noise.", type=IntegerRange(0), default=0, show_default=True
    )
    force: bool = flag("Overwrite the files.")


@click.command("deconv-cut", epilog=EPILOG, context_settings=CONTEXT)
@CutRequest.add_to
@version_option("deconv-cut")
def command(**options: Any) -> int:
    """Write the part of MODEL between tensors as an IR with its own weights."""
    request = CutRequest(**options)
    model, path = request.model, Path(request.output)
    from deconv_ir.formats.registry import format_of_suffix, suffixes

    chosen = format_of_suffix(path)
    if chosen is None:
        *most, last = suffixes()
        names = f"{', '.join(most)} or {last}"
        raise Mistake(f"--output {request.output}: the name must end with {names}")
    from deconv_ir import cut

    from ..shared.guard import Guard

    guard = Guard([("the model", model), ("the weights", Path(model).with_suffix(".bin"))])
    beside = [path.with_suffix(chosen.weights_suffix)] if chosen.weights_suffix else []
    for target in (path, *beside):
        guard.allow("--output", target)
        if target.exists() and not request.force:
            raise Mistake(f"--output {target}: the file exists (use --force)")
    noise = request.seed if request.strip_weights else None
    part = cut(model, path, start=request.starts, end=request.ends, strip_weights=noise)
    click.echo(
        f"{path}: {part.layers} layers, {part.weight_bytes} bytes of weights; "
        f"from {', '.join(part.inputs) or 'constants'} to {', '.join(part.outputs)}"
    )
    if part.kept:
        shown = ", ".join(one_line(name, 80) for name in part.kept[:_LISTED])
        more = "" if len(part.kept) <= _LISTED else f" and {len(part.kept) - _LISTED} more"
        click.echo(f"not replaced, since small or no weights: {shown}{more}")
    click.echo(f"deconv-run {shlex.quote(request.output)} --random-inputs 0")
    return EXIT_OK


def main() -> NoReturn:
    """Run the command; the entry point of the script."""
    run_model_command(command)


if __name__ == "__main__":
    main()
