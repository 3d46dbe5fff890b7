"""Rules about the sizes of dynamic models, as expressions of the sizes of their inputs."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.rule import ERROR, INFO, rule


def _fitting_nowhere(context: LintContext) -> set[int | None]:
    """Return the layers that no-size-fits reports."""
    return {error.part.layer for error, _, _ in context.contradictions}


@rule(
    "IR418",
    "sizes-never-equal",
    ERROR,
    weights="ones 1080",
    when="unequal_sizes",
)
def sizes_never_equal(context: LintContext) -> Iterator[Finding]:
    """A layer of a dynamic model needs two sizes to be equal that differ at every size.

    Dims that depend on the inputs are expressions of the inputs' sizes.  A Concat or Add of the
    sizes 2*H and 2*H + 1 fits at no size, whatever H is.  A name of each size is made from
    the layout of the input, or from the position of the axis.

        <layer id="0">
            <data shape="1,4,2..8,6" element_type="f32"/>
            <output>
                <port id="0" precision="FP32">
                    <dim>1</dim> <dim>4</dim> <dim>-1</dim> <dim>6</dim>
                </port>
            </output>
        </layer>
        <data strides="2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1" output_padding="1,0"/>
        <output>
            <port id="2" precision="FP32">
                <dim>1</dim> <dim>6</dim> <dim>-1</dim> <dim>11</dim>
            </port>
        </output>
        <layer id="3">
            <data element_type="f32" shape="1,6,9,1" offset="864" size="216"/>
            <output>
                <port id="0" precision="FP32">
                    <dim>1</dim> <dim>6</dim> <dim>9</dim> <dim>1</dim>
                </port>
            </output>
        </layer>
    """
    symbolic = context.symbolic
    assert symbolic is not None, "there are unequal sizes"
    reported = _fitting_nowhere(context)
    for found in symbolic.contradictions:
        if found.layer not in reported:
            yield found.finding._replace(
                message=f"fits at no size of the inputs: {found.finding.message}",
                location=GraphLocation(layer=found.layer),
            )


@rule(
    "IR419",
    "sizes-sometimes-equal",
    INFO,
    weights="ones 1080",
    when="unequal_sizes",
)
def sizes_sometimes_equal(context: LintContext) -> Iterator[Finding]:
    """Only some sizes of the inputs of a dynamic model fit its layers.

    A network that halves an odd height and doubles it again cannot be concatenated with
    itself.  The message has the sizes that fit, and the equation of the first layer that needs
    them.  Inputs of other sizes are an error when the model runs.

        <layer id="0">
            <data shape="1,4,2..8,6" element_type="f32"/>
            <output>
                <port id="0" precision="FP32">
                    <dim>1</dim> <dim>4</dim> <dim>-1</dim> <dim>6</dim>
                </port>
            </output>
        </layer>
        <output>
            <port id="2" precision="FP32">
                <dim>1</dim> <dim>6</dim> <dim>-1</dim> <dim>11</dim>
            </port>
        </output>
        <layer id="3">
            <data element_type="f32" shape="1,6,9,1" offset="864" size="216"/>
            <output>
                <port id="0" precision="FP32">
                    <dim>1</dim> <dim>6</dim> <dim>9</dim> <dim>1</dim>
                </port>
            </output>
        </layer>
    """
    from deconv_ir.ir.symbolic_shapes import requirements

    symbolic = context.symbolic
    assert symbolic is not None, "there are unequal sizes"
    layers, reported = context.graph.layers, _fitting_nowhere(context)
    for needed in requirements(symbolic):
        first, *others = needed.conditions
        axes = [symbolic.names[name] for name in needed.names]
        if first.layer in reported:
            continue
        if needed.text == f"{needed.names[0]} = 1" and axes[0][1] == 0:
            continue  # constant-batch reports this
        named = ", ".join(
            f"{name} is axis {axis} of {layers[index].name!r}"
            for name, (index, axis) in zip(needed.names, axes, strict=True)
        )
        more = len({condition.layer for condition in others} - {first.layer})
        also = f", and {more} more layer{'' if more == 1 else 's'}" if more else ""
        reason = f"; the layer needs {first}{also}" if needed.text != str(first) else ""
        yield Finding(
            f"fits only where {needed.text} ({named}){reason}",
            GraphLocation(layer=first.layer),
            expected=needed.text,
        )
