"""The options of deconv-diff as one record."""

from __future__ import annotations

import click

from ..shared.options import (
    FILE,
    SEMANTICS,
    IntegerRange,
    Preprocessing,
    argument,
    flag,
    input_arrays,
    input_shapes,
    option,
    random_inputs,
    semantics,
    tolerance,
)


class DiffRequest(Preprocessing, after="shapes"):
    """The options of deconv-diff."""

    first: str = argument("A.xml")
    second: str | None = argument("[B.xml]", required=False)
    inputs: tuple[str, ...] = input_arrays(
        "Array for an input, as of deconv-run: both models run, and all tensors are compared."
    )
    random_inputs: int | None = random_inputs()
    shapes: tuple[str, ...] = input_shapes(
        "Shape of an input: that of dynamic dims, for --random-inputs; other static shapes "
        "reshape the model, and the declared one permits work out of proportion to the network. "
        "Repeatable."
    )
    constants: tuple[str, ...] = option(
        "NAME=FILE.npy",
        "Another array for a constant, as of deconv-run, in both models. Repeatable.",
        "--set",
        multiple=True,
    )
    against: tuple[str, ...] = option(
        "RUNTIME|DIR",
        "openvino or onnxruntime: the runtime of the second model (or, without one, of the "
        "first). A folder of .npy files by tensor name, such as deconv-run writes: the tensors of "
        "another tool. Two folders are compared with each other.",
        multiple=True,
    )
    bisect: bool = flag(
        "For a tool that gives final outputs only: cut the model, and halve it until the first "
        "layer that differs is found."
    )
    tool: str | None = option(
        "COMMAND",
        "With --bisect: the tool. {model} stands for an IR, {inputs} for a .npz file to read, "
        "{outputs} for a .npz file to write, by output name.",
        "--command",
    )
    semantics: str = semantics()
    accuracy: str = option(
        None,
        "direct: the first model sums convolutions directly, without Winograd (docs/numerics.md).",
        type=click.Choice(["fast", "direct"]),
        default="fast",
        show_default=True,
    )
    other_semantics: str | None = option(
        None,
        "The same for the second model. Default: those of the first.",
        type=click.Choice(SEMANTICS),
    )
    ignore: str = option(
        "ASPECTS",
        "Aspects that are not compared: names, type, version, attribute, edge, weights, folded, "
        "shape, rt_info, ids, order; 'none' compares everything.",
        default="ids,order",
        show_default=True,
    )
    weights_tolerance: float = tolerance(
        0.0, "Difference of weights that does not count, relative to their largest magnitude."
    )
    rtol: float = tolerance(1e-4, "Tolerance of tensors, relative to their largest magnitude.")
    atol: float = tolerance(0.0)
    levels: int = option(
        "N",
        "Quantised tensors (outputs of FakeQuantize, Quantize and DynamicQuantize) may differ by N "
        "levels; the layers after them are compared for the same values.",
        type=IntegerRange(0),
        default=0,
        show_default=True,
    )
    verdict: str = option(
        None,
        "Say who is right: compute each layer in f64 from the tensors that each side had, and "
        "divide the side's deviation by the error that its precision allows (docs/verdicts.md). "
        "auto: where tensors differ.",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
    )
    settings: tuple[str, ...] = option(
        "NAME=VALUE",
        "With --against openvino: a setting of the runtime, such as INFERENCE_PRECISION_HINT=bf16 "
        "(default: f32). Repeatable.",
        "--setting",
        multiple=True,
    )
    fail_if: tuple[str, ...] = option(
        "[NAME:]METRIC>N",
        "The exit code is 1 if an output (or the one with this name) meets the condition, and not "
        "for any other difference. METRIC: max_abs, max_rel, rms, ulp, mismatches; cosine, snr and "
        "psnr (in dB) with <. Repeatable.",
        "--fail-if",
        multiple=True,
    )
    plot: str | None = option("FILE.png", "Draw the error through the network.", type=FILE)
    dump: str | None = option(
        "DIR",
        "Write the compared tensors of both sides to DIR/A and DIR/B, a .npy file each; --against "
        "DIR/A --against DIR/B compares them again.",
    )
    report: str | None = option(
        "FILE.zip",
        "Write a report to attach to an issue, if tensors differ: the smallest part that shows it, "
        "its inputs, both outputs and the exact one, commands that repeat it, versions, a text.",
        type=FILE,
    )
    strip_weights: bool = flag(
        "With --report: replace the weights by noise, as deconv-cut does; the report says whether "
        "the fault is still there."
    )
    seed: int = option(
        None, "Seed of the noise.", type=IntegerRange(0), default=0, show_default=True
    )
    force: bool = flag("Overwrite the plot, the report and dumps.")
    form: str = option(
        None,
        None,
        "--format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
    )
    verbose: bool = flag("List every difference and every tensor.", "-v", "--verbose")

    @property
    def runtime(self) -> str | None:
        """The runtime of the second model, or the folder with its tensors; None: this library."""
        return self.against[-1] if self.against else None

    @property
    def runs(self) -> bool:
        """Whether the models run."""
        return bool(self.inputs) or self.random_inputs is not None

    @property
    def modest(self) -> bool:
        """Whether sizes come from the files alone, so that the work is bounded."""
        return self.random_inputs is not None and not self.shapes
