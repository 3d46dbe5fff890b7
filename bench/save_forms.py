"""Saves the models of a folder in several forms, with the OpenVINO of the interpreter that runs it.

A part of precision.py.  For each form, one line of JSON is written to standard output; the next
form is saved when a line comes back.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

try:
    from openvino import Core, Dimension, PartialShape, save_model, serialize
except ImportError:  # 2023.0
    from openvino.runtime import Core, Dimension, PartialShape, serialize

    save_model = None
try:
    from openvino import get_version
except ImportError:
    from openvino.runtime import get_version

QUANTIZED = ("int8", "mixed")
COMPRESSED = ("int8_asym", "int4_sym", "int4_asym")
"""Forms that NNCF makes: with ranges of activations, and of weights alone."""
MAX_QUANTIZED = 16_000_000
"""Bytes of the largest file that NNCF gets."""


def save_f32(model: Any, path: str) -> None:
    """Save a model as it is."""
    if save_model is None:
        serialize(model, path)
    else:
        save_model(model, path, compress_to_fp16=False)


def save_f16(model: Any, path: str) -> None:
    """Save a model with weights in f16, as `ovc` does; 2023.0 has no such function."""
    if save_model is None:
        raise RuntimeError("this release cannot")
    save_model(model, path)


def with_dims(change: Callable[[int], Any]) -> Callable[[Any, str], None]:
    """Return a function that changes batch and, if they may, spatial dims, and saves."""

    def save(model: Any, path: str) -> None:
        shapes = [[int(n) for n in port.shape] for port in model.inputs]
        try:
            reshape(model, shapes, lambda axis, rank: axis == 0 or axis > 1 < rank - 2)
        except RuntimeError:
            reshape(model, shapes, lambda axis, rank: axis == 0)
        save_f32(model, path)

    def reshape(model: Any, shapes: list[list[int]], is_free: Callable[[int, int], bool]) -> None:
        model.reshape(
            {
                port: PartialShape(
                    [change(n) if is_free(axis, len(shape)) else n for axis, n in enumerate(shape)]
                )
                for port, shape in zip(model.inputs, shapes, strict=True)
            }
        )

    return save


def save_state(model: Any, path: str) -> None:
    """Add the sum of all earlier inputs to the input: a ReadValue and an Assign."""
    from openvino import Model
    from openvino import opset13 as ops
    from openvino._offline_transformations import apply_make_stateful_transformation

    first = model.inputs[0].get_node()
    before = ops.parameter(list(first.output(0).shape), first.output(0).element_type, name="before")
    before.output(0).get_tensor().set_names({"before"})
    users = list(first.output(0).get_target_inputs())
    total = ops.add(first, before)
    total.output(0).get_tensor().set_names({"after"})
    for user in users:
        user.replace_source_output(total.output(0))
    results = [*model.get_results(), ops.result(total)]
    changed = Model(results, [*model.get_parameters(), before], model.friendly_name)
    apply_make_stateful_transformation(changed, {"before": "after"})
    save_f32(changed, path)


def compressed(form: str) -> Callable[[Any, str], None]:
    """Return a function that compresses weights, or calibrates ranges, and saves."""

    def save(model: Any, path: str) -> None:
        import nncf

        if form in QUANTIZED:
            rng = np.random.default_rng(1)

            def drawn(_: int) -> dict[str, Any]:
                return {
                    port.get_any_name(): rng.standard_normal([int(n) for n in port.shape]).astype(
                        port.element_type.to_dtype()
                    )
                    for port in model.inputs
                }

            presets = nncf.QuantizationPreset
            preset = presets.MIXED if form == "mixed" else presets.PERFORMANCE
            dataset = nncf.Dataset(range(3), drawn)
            model = nncf.quantize(model, dataset, subset_size=3, preset=preset)
        else:
            mode = nncf.CompressWeightsMode[form.upper()]
            group = {"group_size": 16, "ratio": 1.0} if "4" in form else {}
            model = nncf.compress_weights(model, mode=mode, **group)
        save_model(model, path)

    return save


SAVERS: dict[str, Callable[[Any, str], None]] = {
    "f32": save_f32,
    "f16": save_f16,
    "dynamic": with_dims(lambda n: -1),
    "bounded": with_dims(lambda n: Dimension(n, 2 * n)),
    "state": save_state,
    **{form: compressed(form) for form in (*QUANTIZED, *COMPRESSED)},
}


def chosen(folder: Path, forms: list[str], *, turn: bool) -> Iterator[tuple[Path, str]]:
    """Iterate over files and forms; in turn, each file has one of the forms."""
    names = {path.stem.removesuffix("-onnx"): path for path in sorted(folder.glob("*.xml"))}
    for number, (name, path) in enumerate(sorted(names.items())):
        onnx = folder / f"{name}-onnx.onnx"
        source = onnx if onnx.exists() else path
        for form in [forms[number % len(forms)]] if turn else forms:
            large = source.stat().st_size > MAX_QUANTIZED
            if not large or form not in (*QUANTIZED, *COMPRESSED):
                yield source, form


def main() -> None:
    """Save forms: arguments are the folder, the folder to write, forms, and "turn" or "all"."""
    source, out, forms, turn = sys.argv[1:5]
    answers = sys.stdout
    sys.stdout = sys.stderr
    core = Core()
    for path, form in chosen(Path(source), forms.split(","), turn=turn == "turn"):
        target = Path(out, f"{path.stem}.xml")
        said = {"name": path.stem, "form": form, "release": get_version(), "why": ""}
        try:
            SAVERS[form](core.read_model(str(path)), str(target))
        except Exception as error:
            said["why"] = f"{type(error).__name__}: {str(error).strip()[-200:]}"
        answers.write(json.dumps(said) + "\n")
        answers.flush()
        if not sys.stdin.readline():
            return


if __name__ == "__main__":
    main()
