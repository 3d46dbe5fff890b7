"""Other tools that run an IR: OpenVINO, or any command."""

from __future__ import annotations

import contextlib
import shlex
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir import ToolError, load
from deconv_ir.errors import UnsupportedError
from deconv_ir.formats import npz

from ..shared.common import Mistake

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

PLACES = ("{model}", "{inputs}", "{outputs}")


class CommandTool:
    """Runs a command on an IR; it reads arrays from a .npz file, and writes its outputs to one.

    Raises
    ------
    Mistake
        The command lacks placeholders for model, inputs or outputs.
    """

    def __init__(self, command: str) -> None:
        try:
            self.words = shlex.split(command)
        except ValueError as error:
            raise Mistake(f"--command {command}: {error}") from None
        missing = [place for place in PLACES if not any(place in word for word in self.words)]
        if missing:
            raise Mistake(f"--command {command}: {missing[0]} is missing")

    def __call__(self, model: Path, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Run the command.

        Raises
        ------
        Mistake
            The command cannot be started, or writes no outputs.
        ToolError
            The command fails.
        """
        inputs, outputs = model.with_name("inputs.npz"), model.with_name("outputs.npz")
        npz.write(arrays, inputs)
        values = dict(zip(PLACES, map(str, (model, inputs, outputs)), strict=True))
        words = []
        for word in self.words:
            for place, value in values.items():
                word = word.replace(place, value)
            words.append(word)
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, errors="replace", check=False
            )
        except OSError as error:
            raise Mistake(f"--command {self.words[0]}: {error.strerror}") from error
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise ToolError(
                f"{self.words[0]} crashes: {_ending(done.returncode)}"
                + (f": {said[-1]}" if said else "")
            )
        if not outputs.exists():
            raise Mistake(f"--command {self.words[0]}: it wrote no {{outputs}}")
        return {name: npz.read(str(outputs), name) for name in npz.names(str(outputs))}


def _ending(code: int) -> str:
    """Describe the exit code of a process; it is negative after a signal."""
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


def run_openvino(model: Path, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Run an IR with OpenVINO.

    Raises
    ------
    UnsupportedError
        OpenVINO is not installed, or cannot run the model.
    """
    from deconv_ir.compare.sides import import_runtime, last_line

    core = import_runtime("openvino").Core()
    try:
        compiled = core.compile_model(str(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        given = {port.get_any_name(): arrays[port.get_any_name()] for port in compiled.inputs}
        results = compiled(given)
    except RuntimeError as error:
        raise UnsupportedError(f"OpenVINO cannot run the model: {last_line(error)}") from error
    names = load(model, warn=False).outputs
    return {name: results[k].copy() for k, name in enumerate(names)}
