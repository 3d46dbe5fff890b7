"""Rules about the file: whether it can be read, and is an IR."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.ir.graph import Layer
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.rule import ERROR, WARNING, check_once, rule
from deconv_ir.suggestions import nearest


@rule("IR107", "unknown-attribute", WARNING, takes="unknown-attribute")
def unknown_attributes(context: LintContext) -> Iterator[Finding]:
    """An attribute has no meaning where it is.

    Readers ignore it and use the default of the attribute that was meant: ``stride`` in
    place of ``strides`` gives strides of 1.  Attributes that OpenVINO's tools wrote without
    need, such as ``output_padding="0,0"`` of a Convolution, are not reported.

        <data stride="2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1"/>
    """

    def check(index: int, layer: Layer) -> Iterator[Finding]:
        known = context.parsed.known_attributes(layer)
        if known is None:
            return
        for name, value in layer.attributes:
            if name not in known:
                from deconv_ir.linter.leftovers import is_leftover

                if context.parsed.has_opsets and is_leftover(layer.type, name, value):
                    continue
                yield Finding(
                    f"{layer.type} has no attribute {name!r}",
                    GraphLocation(layer=index, attribute=name),
                    actual=name,
                    hint=nearest(name, known),
                )

    # A misspelt one of a Const leaves a required one missing, which is reported.
    layers = [found for found in enumerate(context.graph.layers) if found[1].type != "Const"]
    yield from check_once(
        layers,
        lambda layer: (layer.type, layer.version, id(layer.attributes)),  # layers share equal ones
        check,
    )


@rule("IR114", "refused-by-openvino", ERROR, takes="openvino-form", when="has_doubtful_versions")
def refused_layers(context: LintContext) -> Iterator[Finding]:
    """OpenVINO's reader refuses the form of a layer or a port.

    It wants a name and an opset for each layer, an id for each port, a precision for each
    output, and -1 for a dim that is not known.  Of opset17 its release 2026.4 has few
    operations.  This reader needs none of them, so such a file runs here.

        <layer id="5" version=""/>
    """
    from deconv_ir.linter.refusals import refused_form

    for index, layer in enumerate(context.graph.layers):
        yield from refused_form(index, layer)


@rule("IR116", "invalid-pre-process", ERROR, takes="pre-process")
def invalid_pre_process() -> None:
    """OpenVINO's reader refuses the section ``<pre-process>``.

    It has a mean for each channel of an input of known dims: a number, or an image in the
    .bin of the input's element type.

        <pre-process reference-layer-name="x">
            <channel id="0"><mean value="1"/></channel>
        </pre-process>
    """


@rule("IR101", "file-unreadable", ERROR, takes="io")
def file_unreadable() -> None:
    """The file cannot be read.

    It does not exist, permission is denied, or it is not a regular file.

        (model.xml is a FIFO or a folder)
    """


@rule("IR102", "xml-not-well-formed", ERROR, takes="xml")
def xml_not_well_formed() -> None:
    """The file is not well-formed XML, or has a DOCTYPE.

    No reader accepts such a file.  A DOCTYPE is refused for safety: it can define entities
    that expand without bound, or that name other files.

        <net name="example" version="11">
            <layers>
        </net>
    """


@rule("IR103", "wrong-root", ERROR, takes="root")
def wrong_root() -> None:
    """The root element is neither ``<net>`` nor ``<layer>``.

    The file is XML of another kind, so nothing in it can be checked.  In a folder, such
    files are skipped and counted.

        <model name="example" version="11"><layers/></model>
    """


@rule("IR104", "unsupported-ir-version", ERROR, takes="ir-version")
def unsupported_ir_version() -> None:
    """The IR version is not 10, 11, or one from 2 to 7.

    No release of OpenVINO wrote version 8 or 9 in public, and what an unknown version
    means by its attributes is not known, so nothing else in the file is checked.  Files of
    version 2 to 7 are converted when they are read, and checked as others are.

        <net name="example" version="9"><layers/></net>
    """


@rule("IR105", "missing-element", ERROR, takes="missing-element")
def missing_element() -> None:
    """A required element is missing.

    A ``<net>`` without ``<layers>`` is not a network.  Such files are often edited by hand
    or left by a script that failed half-way.

        <net name="example" version="11"><edges/></net>
    """


@rule("IR106", "unknown-element", WARNING, takes="unknown-element")
def unknown_element() -> None:
    """An element has no meaning where it is.

    Readers ignore it.  Often a known element is misspelt, and its content is lost: a
    ``<dim>`` of a port, an edge of the network.

        <output>
            <port id="2" precision="FP32"><dim>1</dim><dim>6</dim><dim>9</dim><dimm>11</dimm></port>
        </output>
    """


@rule("IR108", "missing-attribute", ERROR, takes="missing-attribute")
def missing_attribute() -> None:
    """An element lacks an attribute that it needs.

    A layer needs an id and a type, an edge its four ends, a network its version.

        <edge from-layer="0" from-port="0" to-layer="2"/>
    """


@rule("IR109", "not-a-number", ERROR, takes="number dim-value")
def not_a_number() -> None:
    """A value that must be an integer is not one.

    Ids and the ends of edges are integers from 0.  A ``<dim>`` is an integer too, or -1,
    ``?`` or a range where it is not known.

        <output>
            <port id="2" precision="FP32"><dim>1</dim><dim>six</dim><dim>9</dim><dim>11</dim></port>
        </output>
    """


@rule("IR110", "unknown-precision", ERROR, takes="precision")
def unknown_precision() -> None:
    """The precision of a port is not an element type.

    Without it the bytes of the tensor have no meaning.  IRs write FP32, FP16, BF16, I64,
    U8, BOOL and so on.

        <output>
            <port id="2" precision="FLOAT"><dim>1</dim><dim>6</dim><dim>9</dim><dim>11</dim></port>
        </output>
    """


@rule(
    "IR111",
    "too-large",
    ERROR,
    fails=f"""
        <output>
            <port id="2" precision="FP32">{"<dim>1</dim>" * 65}</port>
        </output>
        """,
    takes="oversize",
)
def too_large() -> None:
    """The file exceeds a limit on size, layers or rank.

    The limits are far beyond what any network needs; they keep a hostile file from
    exhausting the memory.  This port has 65 dims, and 64 are allowed.
    """


@rule("IR112", "repeated-element", ERROR, takes="duplicate-element")
def repeated_element() -> None:
    """A layer has an element twice that it may have once.

    This reader and OpenVINO use the first one and ignore the second.

        <data strides="2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1"/>
        <data strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1"/>
    """


@rule("IR113", "useless-suppression", WARNING, takes="suppression")
def useless_suppression() -> None:
    """A comment for this linter names no rule, or suppresses nothing.

    ``<!-- deconv-lint: ignore=IR401 -->`` suppresses a rule for the layer or the edge that
    follows immediately, ``ignore-file=IR401`` for the whole file.

        <!-- deconv-lint: ignore=IR999 -->
        <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
    """


@rule("IR115", "execution-graph", ERROR, takes="execution-graph")
def execution_graph() -> None:
    """The file is an execution graph, not a model.

    OpenVINO saves what a device made of a model (``benchmark_app -exec_graph_path``,
    ``exec_*.xml``) in the form of an IR.  Its layers are kernels, without attributes and
    weights, so that nothing in it can be checked or run.

        <net name="exec" version="11">
            <layers>
                <layer id="0" name="x" type="Input">
                    <data execOrder="0" originalLayersNames="x" primitiveType="unknown_f32"/>
                    <output><port id="0" precision="FP32"><dim>1</dim></port></output>
                </layer>
            </layers>
        </net>
    """
