"""IR214 unknown-operation."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Place
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject
from deconv_ir.ops import find_operation
from deconv_ir.ops.opsets import EXTENSIONS, LAST_OPSET, OPERATIONS, nearest_operation


class UnknownOperation(Rule):
    """A layer's type is in no opset, or its version is none that has it.

    OpenVINO does not read such a file.  Layers of an extension are passed over;
    so are types that an opset has but that have no shape rule here: their
    declared dims are taken as true, and the summary counts them.

    Fails::

        <layer id="5" name="a" type="Relu6" version="opset1">
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="a" type="ReLU" version="opset1">
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </output>
        </layer>
    """

    code = "IR214"
    name = "unknown-operation"
    severity = ERROR
    when = "unusual_operations"

    def check(self, subject: Subject) -> Iterator[Report]:
        """Look up types and versions."""
        layers = subject.graph.layers
        verdicts: dict[tuple[str, str], tuple[str, str, str | None] | None] = {}
        for index, layer in enumerate(layers):
            key = (layer.type, layer.version or "")
            if key not in verdicts:
                verdicts[key] = _judge(*key)
            verdict = verdicts[key]
            if verdict is not None:
                attribute, message, hint = verdict
                place = Place(layer=index, attribute=attribute, own=True)
                yield Report(message, place, actual=getattr(layer, attribute), hint=hint)


def _judge(kind: str, version: str) -> tuple[str, str, str | None] | None:
    """Return the attribute at fault, what is wrong with it, and a hint; None: nothing."""
    newest = find_operation(kind)
    if newest is not None and not newest.versions:
        return None  # of oneDNN, which has no opsets
    if newest is None and kind not in OPERATIONS:
        if version and not version.startswith("opset"):
            return None  # of an extension
        return "type", f"no opset has an operation {kind!r}", nearest_operation(kind, version)
    if version in EXTENSIONS or (newest is not None and version in newest.versions):
        return None
    number = version.removeprefix("opset")
    if number == version or not number.isdecimal() or not 1 <= int(number) <= LAST_OPSET:
        return "version", f"there is no {version!r}: opset1 to opset{LAST_OPSET} are known", None
    if newest is not None and find_operation(kind, version) is None:
        return "version", f"{kind} is not in {version}; it came with {newest.versions[0]}", None
    return None


RULE = UnknownOperation
