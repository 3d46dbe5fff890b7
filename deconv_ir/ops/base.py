"""Typed attributes of operations, and their registration: imported by every operation file.

An operation is a frozen record; its fields, made by `attribute`, define their spelling in the IR,
the allowed values, and whether the document requires them.  `operation` registers the class under
its type and versions.
"""

import abc
import enum
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from deconv_ir.errors import AttributeValueError
from deconv_ir.hints import Advice
from deconv_ir.ir.dtypes import Array, ElementType, parse_element_type
from deconv_ir.ir.operation import Arrays, Call, Context, Infos, LayerPlan, Operation, TensorInfo
from deconv_ir.ir.record import REQUIRED, Field, field
from deconv_ir.ir.shapes import Shape, format_shape, parse_shape

MAX_INTEGER = 2**63 - 1


class Form(enum.Enum):
    """The values of an attribute, or of the elements of a list.

    Examples
    --------
    >>> from deconv_ir.operations import Form, number
    >>> number().allowed.form is Form.NUMBER
    True
    """

    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    WORD = "word"
    SHAPE = "shape"
    ELEMENT_TYPE = "element type"
    TEXT = "text"


class Allowed(NamedTuple):
    """The values that an attribute may have; as text, they are named in words.

    Attributes
    ----------
    form : Form
    said : str
        The values in words, for messages.
    minimum : int or float, optional
        The smallest number.
    words : tuple of str
        The words of an attribute that is one of them.
    is_list : bool
        The attribute is a list of such values, separated by commas.

    Examples
    --------
    >>> from deconv_ir.operations import Allowed, integers
    >>> allowed = integers(1).allowed
    >>> isinstance(allowed, Allowed), str(allowed)
    (True, 'positive whole numbers separated by commas')
    >>> allowed.form, allowed.minimum, allowed.is_list
    (<Form.INTEGER: 'integer'>, 1, True)
    """

    form: Form
    said: str
    minimum: float | None = None
    words: tuple[str, ...] = ()
    is_list: bool = False

    def __str__(self) -> str:
        return self.said


class Kind(NamedTuple):
    """The format of an attribute.

    Attributes
    ----------
    parse : callable
        Parses the text of the attribute; raises ValueError if the value is not allowed.
    allowed : Allowed or str
        The allowed values; or their words, for messages.
    format : callable
        The inverse of `parse`.
    per_axis : bool
        The attribute has one value for each spatial axis.

    Examples
    --------
    >>> from deconv_ir.operations import Kind, attribute, Operation
    >>> percent = Kind(lambda text: float(text.removesuffix("%")) / 100, "a percentage")
    >>> percent.parse("25%")
    0.25
    >>> class Drop(Operation):
    ...     rate: float = attribute(percent)
    """

    parse: Callable[[str], Any]
    allowed: Allowed | str
    format: Callable[[Any], str] = str
    per_axis: bool = False

    @property
    def values(self) -> Allowed:
        """The allowed values; if only their words are given, of any text."""
        allowed = self.allowed
        return allowed if isinstance(allowed, Allowed) else Allowed(Form.TEXT, allowed)


def _integer(text: str, minimum: int | None) -> int:
    text = text.strip()
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        raise ValueError(text)
    value = int(text)
    if abs(value) > MAX_INTEGER or (minimum is not None and value < minimum):
        raise ValueError(text)
    return value


_RANGES = {
    None: "whole number",
    -1: "whole number from -1",
    0: "non-negative whole number",
    1: "positive whole number",
}


def _whole(minimum: int | None, is_list: bool) -> Allowed:
    words = _RANGES[minimum]
    said = f"{words}s separated by commas" if is_list else f"a {words}"
    return Allowed(Form.INTEGER, said, minimum, is_list=is_list)


def integer(minimum: int | None = None) -> Kind:
    """One whole number of at least `minimum`.

    Examples
    --------
    >>> from deconv_ir.operations import integer
    >>> integer(0).parse("3")
    3
    """
    return Kind(lambda text: _integer(text, minimum), _whole(minimum, False))


def _listed(
    one: Callable[[str], Any],
    allowed: Allowed,
    show: Callable[[Any], str] = str,
    per_axis: bool = False,
) -> Kind:
    """Values separated by commas."""

    def parse(text: str) -> tuple[Any, ...]:
        return tuple(map(one, text.split(","))) if text.strip() else ()

    return Kind(parse, allowed, lambda value: ",".join(map(show, value)), per_axis)


def integers(minimum: int | None = None, *, per_axis: bool = False) -> Kind:
    """Whole numbers separated by commas; `per_axis`: one for each spatial axis.

    Examples
    --------
    >>> from deconv_ir.operations import integers
    >>> integers(1).parse("2,3")
    (2, 3)
    """
    return _listed(lambda text: _integer(text, minimum), _whole(minimum, True), per_axis=per_axis)


def flags() -> Kind:
    """Zeros and ones separated by commas.

    Examples
    --------
    >>> from deconv_ir.operations import flags
    >>> flags().parse("0,1")
    (0, 1)
    """

    def parse(text: str) -> int:
        bit = _integer(text, 0)
        if bit > 1:
            raise ValueError(text)
        return bit

    said = "zeros and ones separated by commas"
    return _listed(parse, Allowed(Form.WORD, said, words=("0", "1"), is_list=True))


def number(*, minimum: float | None = None) -> Kind:
    """One floating-point number, which may be infinite, of at least `minimum`.

    Examples
    --------
    >>> from deconv_ir.operations import number
    >>> number(minimum=0).parse("2.5")
    2.5
    """

    def parse(text: str) -> float:
        value = float(text)
        if math.isnan(value) or (minimum is not None and value < minimum):
            raise ValueError(text)
        return value

    said = "a number" + ("" if minimum is None else f" from {minimum}")
    return Kind(parse, Allowed(Form.NUMBER, said, minimum), repr)


def boolean() -> Kind:
    """``true`` or ``false``; 1 and 0 are accepted too.

    Examples
    --------
    >>> from deconv_ir.operations import boolean
    >>> boolean().parse("1")
    True
    """
    words = {"true": True, "1": True, "false": False, "0": False}

    def parse(text: str) -> bool:
        try:
            return words[text.strip().lower()]
        except KeyError:
            raise ValueError(text) from None

    allowed = Allowed(Form.BOOLEAN, "true or false", words=("true", "false"))
    return Kind(parse, allowed, lambda value: "true" if value else "false")


def choice(values: type[enum.Enum], *, fold: bool = True, **aliases: enum.Enum) -> Kind:
    """One of an enum's values, or of its aliases; case is ignored unless `fold` is off.

    Examples
    --------
    >>> from deconv_ir import PadMode
    >>> from deconv_ir.operations import choice
    >>> choice(PadMode, notset=PadMode.EXPLICIT).parse("NOTSET")
    <PadMode.EXPLICIT: 'explicit'>
    """
    table: dict[str, enum.Enum] = {str(m.value): m for m in values} | aliases
    return choice_of(table, fold=fold)


def one_of(words: Iterable[str]) -> Allowed:
    """Return the values that are one of some words."""
    listed = tuple(words)
    return Allowed(Form.WORD, "one of " + ", ".join(listed), words=listed)


def choice_of(table: Mapping[str, enum.Enum], *, fold: bool = True) -> Kind:
    """One of the words of a table; a member is written as its first word."""
    allowed, words = one_of(table), dict[enum.Enum, str]()
    for word, member in table.items():
        words.setdefault(member, word)
    if fold:
        table = {word.lower(): member for word, member in table.items()}

    def parse(text: str) -> enum.Enum:
        key = text.strip().lower() if fold else text.strip()
        if key not in table:
            raise ValueError(text)
        return table[key]

    return Kind(parse, allowed, words.__getitem__)


def numbers() -> Kind:
    """Finite numbers separated by commas.

    Examples
    --------
    >>> from deconv_ir.operations import numbers
    >>> numbers().parse("1,2.5")
    (1.0, 2.5)
    """

    def parse(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            raise ValueError(text)
        return value

    return _listed(parse, Allowed(Form.NUMBER, "numbers separated by commas", is_list=True), repr)


def choices(values: type[enum.Enum]) -> Kind:
    """Values of an enum, separated by commas; case is ignored."""
    one = choice(values)
    words = one.values.words
    said = "words separated by commas, each one of " + ", ".join(words)
    allowed = Allowed(Form.WORD, said, words=words, is_list=True)
    return _listed(one.parse, allowed, one.format)


def shape() -> Kind:
    """A shape; dims may be ``?``, ``-1`` or ranges, the whole ``...``.

    Examples
    --------
    >>> from deconv_ir.operations import shape
    >>> shape().parse("1,?,2..4")
    (1, ?, 2..4)
    """

    def format_(value: Shape) -> str:
        return "..." if value is None else format_shape(value)[1:-1]

    allowed = Allowed(Form.SHAPE, "dims separated by commas: numbers, '?', ranges 'a..b'")
    return Kind(parse_shape, allowed, format_)


def element_type() -> Kind:
    """An element type; ``dynamic`` and ``undefined`` are None.

    Examples
    --------
    >>> from deconv_ir.operations import element_type
    >>> element_type().parse("f16")
    f16
    """

    def parse(text: str) -> ElementType | None:
        return None if text in ("dynamic", "undefined") else parse_element_type(text)

    allowed = Allowed(Form.ELEMENT_TYPE, "an element type")
    return Kind(parse, allowed, lambda value: "dynamic" if value is None else value.name)


def result_type() -> Kind:
    """The element type of an output that arrays can have: neither dynamic nor string."""

    def parse(text: str) -> ElementType:
        found = parse_element_type(text)
        if found.kind == "string":
            raise ValueError(text)
        return found

    allowed = Allowed(Form.ELEMENT_TYPE, "an element type other than dynamic and string")
    return Kind(parse, allowed, lambda value: value.name)


def text() -> Kind:
    """Any text.

    Examples
    --------
    >>> from deconv_ir.operations import text
    >>> text().parse("linear")
    'linear'
    """
    return Kind(lambda value: value, Allowed(Form.TEXT, "text"))


class AttributeSpec(Field):
    """A declared attribute, as listed by `attributes_of`; `name` is its name in the IR."""

    __slots__ = ("kind", "name", "required")

    def __init__(self, kind: Kind, default: Any, required: bool, name: str) -> None:
        super().__init__(default)
        self.kind = kind
        self.required = required
        self.name = name

    def __set_name__(self, owner: type[Any], name: str) -> None:
        super().__set_name__(owner, name)
        self.name = self.name or name

    @property
    def has_default(self) -> bool:
        """Whether the attribute may be absent."""
        return self.default is not REQUIRED


def attribute(
    kind: Kind, default: Any = REQUIRED, *, required: bool = False, name: str = ""
) -> Any:
    """Declare an attribute.

    Parameters
    ----------
    kind : Kind
        The format of the attribute.
    default : Any, optional
        Its value if it is absent; without a default, absence is an error.
    required : bool
        The document requires the attribute, although readers tolerate its absence; the linter
        reports a missing one.
    name : str, optional
        Its name in the IR, if that is not a Python name.

    Examples
    --------
    >>> from deconv_ir.operations import Operation, attribute, number
    >>> class Scale(Operation):
    ...     factor: float = attribute(number(), 1.0)
    >>> Scale(), Scale(factor=2.5)
    (Scale(factor=1.0), Scale(factor=2.5))
    """
    return AttributeSpec(kind, default, required or default is REQUIRED, name)


_ATTRIBUTES: dict[type[Operation], tuple[AttributeSpec, ...]] = {}


def attributes_of(operation: type[Operation]) -> tuple[AttributeSpec, ...]:
    """Return the attributes that an operation declares, in their order."""
    if operation not in _ATTRIBUTES:
        declared = operation.fields.values()
        _ATTRIBUTES[operation] = tuple(f for f in declared if isinstance(f, AttributeSpec))
    return _ATTRIBUTES[operation]


def parse_attributes(
    operation: type[Operation], written: Mapping[str, str]
) -> tuple[Operation | None, list[AttributeValueError]]:
    """Make an operation from its attributes as written.

    Returns None if an attribute is wrong, and all errors, one for each attribute.
    """
    values: dict[str, Any] = {}
    errors: list[AttributeValueError] = []
    for spec in attributes_of(operation):
        value = written.get(spec.name)
        if value is None:
            if not spec.has_default:
                errors.append(
                    AttributeValueError(
                        f"attribute {spec.name!r} is missing",
                        attribute=spec.name,
                        expected=spec.kind.allowed,
                        rule="attribute-missing",
                    )
                )
            continue
        try:
            values[spec.field] = spec.kind.parse(value)
        except ValueError:
            shown = value if len(value) <= 80 else value[:77] + "..."
            errors.append(
                AttributeValueError(
                    f"attribute {spec.name!r} must be {spec.kind.allowed}, found {shown!r}",
                    attribute=spec.name,
                    expected=spec.kind.allowed,
                    actual=shown,
                    rule="attribute-value",
                )
            )
    return (None if errors else operation(**values)), errors


def format_attributes(operation: Operation) -> dict[str, str]:
    """Return the attributes of an operation as text for the IR; absent ones stay absent."""
    written: dict[str, str] = {}
    for spec in attributes_of(type(operation)):
        value = getattr(operation, spec.field)
        if value is None and spec.default is None:
            continue
        written[spec.name] = spec.kind.format(value)
    return written


REGISTRY: dict[str, dict[str, type[Operation]]] = {}
"""Type -> version -> class, of the operation files imported so far."""

_Class = TypeVar("_Class", bound=type[Operation])


def operation(signature: str, *examples: str) -> Callable[[_Class], _Class]:
    """Register a class for an operation; its docstring gets the source.

    `signature` has the type, the versions and the names of the inputs, such as
    ``Pad-1,12(data, pads_begin, pads_end, pad_value?)``: the last is optional, and
    ``data...`` is any number of inputs.  No versions: an operation of oneDNN.
    `examples`: see `Operation.examples`.
    """
    name, _, listed = signature.removesuffix(")").partition("(")
    type_name, _, numbers = name.partition("-")
    names = tuple(listed.split(", ")) if listed else ()
    return declare(
        type_name,
        *(f"opset{number}" for number in numbers.split(",") if number),
        inputs=tuple(name.rstrip("?.") for name in names),
        required=sum(not name.endswith("?") for name in names),
        variadic=listed.endswith("..."),
        examples=examples,
    )


def declare(
    type_name: str,
    *versions: str,
    inputs: tuple[str, ...] = (),
    required: int | None = None,
    variadic: bool = False,
    examples: tuple[str, ...] = (),
) -> Callable[[_Class], _Class]:
    """Register a class for a type of layer.

    Parameters are those of `plugins.register`, and `examples`: see `Operation.examples`.
    """

    def register(cls: _Class) -> _Class:
        cls.type = type_name
        cls.versions = versions
        cls.inputs = inputs
        cls.required_inputs = len(inputs) if required is None else required
        if variadic:
            cls.required_inputs = None
        cls.examples = examples
        if (
            versions
            and cls.__module__.startswith(__package__)
            and cls.__doc__  # python -OO strips them
            and "Source:" not in cls.__doc__
        ):
            name = f"{type_name}-{versions[0].removeprefix('opset')}"
            cls.__doc__ = f"{cls.__doc__}\n\nSource: OpenVINO operation specification, {name}."
        # The name under which pickle looks for the class; some classes are made by functions.
        vars(sys.modules[cls.__module__]).setdefault(cls.__qualname__, cls)
        for version in versions or ("",):
            REGISTRY.setdefault(type_name, {})[version] = cls
        return cls

    return register


class TakesOut(Operation, abc.ABC):
    """An operation with one output whose `compute` takes an array like NumPy's `out`."""

    @abc.abstractmethod
    def compute(self, inputs: Arrays, context: Context, out: Array | None) -> Array:
        """Compute the output, into `out` if it is given and the kernel can write to it."""

    def plan(self, inputs: Infos, outputs: Infos, context: Context) -> LayerPlan:
        return _BindingPlan(self, self.bind(inputs, outputs, context))

    def bind_arrays(self, inputs: Arrays, out: Array) -> Callable[[], object] | None:
        """Return a call that computes `out` from arrays at fixed addresses; None: `compute` does.

        Their elements may change from call to call.
        """
        return None

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        return True

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        result = self.compute(inputs, context, out)
        if result is not out:
            out[...] = result

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return (self.compute(inputs, context, None),)


class _BindingPlan(LayerPlan):
    """A plan of an operation that binds arrays itself."""

    def __init__(self, operation: TakesOut, call: Call) -> None:
        super().__init__(call)
        self._operation = operation

    def bind(self, inputs: Arrays, out: Array) -> Callable[[], object] | None:
        return self._operation.bind_arrays(inputs, out)


class UnknownOperation(Operation):
    """A layer whose type or version is not implemented: it loads, but cannot run.

    `hint` names a similar type, if the reader `searched` for one; else OpenVINO's types are.
    """

    implemented = False

    attributes: tuple[tuple[str, str], ...] = field(default=())
    hint: Advice | None = field(default=None)
    searched: bool = field(default=False)
