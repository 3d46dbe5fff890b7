"""The model that a command is given: a file, or standard input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError

from .common import FROM_STDIN, STREAM, standard_input
from .onednn import overrides_of

if TYPE_CHECKING:
    from deconv_ir import Model

    from .request import Request


def open_model(request: Request) -> Model:
    """Load the model, or the one layer of it that is asked for.

    Raises
    ------
    DeconvError
        It cannot be loaded.
    """
    # NumPy's import is most of the start; nothing before this needs it.
    from deconv_ir.model import load

    given: str | bytes = request.model
    if given == STREAM:
        # One byte more than is allowed, so that what is too large is refused.
        given = standard_input().read(request.limits.xml_bytes + 1)
    try:
        model = load(
            given,
            request.weights,
            request.semantics,
            warn=False,
            limits=request.limits,
            memory_limit=request.memory_limit,
            accuracy=request.accuracy,
            overrides=overrides_of(request),
        )
    except DeconvError as error:
        if given is not request.model:
            error.locate(file=FROM_STDIN)
        raise
    return model if request.layer is None else model.layer(request.layer)


def model_name(model: Model) -> str:
    """Return what messages and summaries call the model."""
    return model.graph.file or FROM_STDIN
