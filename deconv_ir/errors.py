"""The errors that the library raises deliberately.

A message is one line: the location (file, line, layer), the expected and the actual value, and a
hint, if any.  The parts are fields of a `Finding`, so that the linter and the commands can format
them differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deconv_ir.findings import Finding
from deconv_ir.text import MAX_MESSAGE as MAX_MESSAGE
from deconv_ir.text import MAX_NAME as MAX_NAME
from deconv_ir.text import one_line as one_line
from deconv_ir.text import utf_8 as utf_8

if TYPE_CHECKING:
    from deconv_ir.findings import Location
    from deconv_ir.hints import Advice


def _part(name: str) -> Any:
    """Return a property: a field of the error's finding."""

    def read(error: DeconvError) -> Any:
        return getattr(error.finding, name)

    def write(error: DeconvError, value: Any) -> None:
        error.finding = error.finding._replace(**{name: value})

    return property(read, write, doc=f"The same as `finding.{name}`.")


class DeconvError(Exception):
    """The base class of all errors that this package raises deliberately.

    Parameters
    ----------
    message : str
        The message of the error, without its location.
    file : str, optional
        Path of the file at fault.
    line, column : int, optional
        Line and column in that file, counted from 1.
    layer : str, optional
        The layer, as ``'name' (Type, id 5)``.
    attribute : str, optional
        The attribute of the layer at fault.
    expected, actual : Any, optional
        The value that was expected, and the value that was found.
    hint : Advice, optional
        What the user can do about it; the text of a plugin is taken as it is.
    rule : str, optional
        Stable name of the kind of mistake, which the linter uses for its findings.
    location : GraphLocation or TextSpan, optional
        The part of the graph or of the text at fault, which the linter marks with a caret.

    Attributes
    ----------
    finding : Finding
        All of these, as the linter reports them.

    Examples
    --------
    >>> import deconv_ir
    >>> try:
    ...     deconv_ir.load("missing.xml")
    ... except deconv_ir.DeconvError as error:
    ...     print(error.file, error.rule)
    missing.xml io
    """

    message: str = _part("message")
    file: str | None = _part("file")
    line: int | None = _part("line")
    column: int | None = _part("column")
    layer: str | None = _part("layer")
    attribute: str | None = _part("attribute")
    expected: Any = _part("expected")
    actual: Any = _part("actual")
    hint: Advice | None = _part("hint")
    location: Location | None = _part("location")

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        layer: str | None = None,
        attribute: str | None = None,
        expected: Any = None,
        actual: Any = None,
        hint: Advice | None = None,
        rule: str | None = None,
        column: int | None = None,
        location: Location | None = None,
    ) -> None:
        super().__init__(message)
        if type(hint) is str:  # of a plugin
            from deconv_ir.hints import Hint

            hint = Hint.AS_GIVEN(hint)
        # By position, since shape inference tries many values that do not fit.
        self.finding = Finding(
            message,
            location,
            expected,
            actual,
            hint,
            None,
            file,
            line,
            column,
            None,
            layer,
            attribute,
            rule or "",
        )

    @property
    def rule(self) -> str | None:
        """Stable name of the kind of mistake."""
        return self.finding.rule or None

    @rule.setter
    def rule(self, name: str | None) -> None:
        self.finding = self.finding._replace(rule=name or "")

    @property
    def place(self) -> Location | None:
        """The same as `location`, under its earlier name."""
        return self.location

    def locate(
        self, *, file: str | None = None, line: int | None = None, layer: str | None = None
    ) -> DeconvError:
        """Fill in the parts of the location that are not known yet, and return the error."""
        found = self.finding
        self.finding = found._replace(
            file=found.file if found.file is not None else file,
            line=found.line if found.line is not None else line,
            layer=found.layer if found.layer is not None else layer,
        )
        return self

    def __str__(self) -> str:
        """One line: file and line, layer, message, hint."""
        return str(self.finding)


class IRError(DeconvError):
    """The IR file is not well formed, or its graph is inconsistent.

    Examples
    --------
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml")
    >>> try:
    ...     model.layer("nothing")
    ... except deconv_ir.IRError as error:
    ...     print(error)
    samples/block/block.xml: there is no layer 'nothing'
    """


class AttributeValueError(IRError):
    """An attribute of a layer is missing, of the wrong form or out of range.

    Examples
    --------
    >>> import deconv_ir
    >>> with open("samples/documents/convolution_backprop_data_1.xml", "rb") as file:
    ...     wrong = file.read().replace(b'strides="2,2"', b'strides="0,2"')
    >>> try:
    ...     deconv_ir.load(wrong)
    ... except deconv_ir.AttributeValueError as error:
    ...     print(error.line, error.attribute, error.actual)
    2 strides 0,2
    """


class ShapeError(DeconvError):
    """Shapes or element types of a layer's inputs do not fit the operation.

    Examples
    --------
    >>> import numpy as np
    >>> import deconv_ir
    >>> try:
    ...     deconv_ir.conv_transpose(np.ones((1, 2, 3)), np.ones((3, 1, 2)))
    ... except deconv_ir.ShapeError as error:
    ...     print(error)
    channels do not fit: x has 2, filter takes 3
    """


class WeightsError(DeconvError):
    """The weights file is missing, too short, or a constant does not fit it.

    Examples
    --------
    >>> import deconv_ir
    >>> try:
    ...     deconv_ir.load("samples/block/block.xml", weights=b"")
    ... except deconv_ir.WeightsError as error:
    ...     print(error.layer)
    'weights_compressed' (Const, id 1)
    """


class InputError(DeconvError):
    """An argument or an array given by the user does not fit the model.

    Examples
    --------
    >>> import numpy as np
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml")
    >>> try:
    ...     model.run(np.zeros((1, 8, 16), np.float32))
    ... except deconv_ir.InputError as error:
    ...     print(error)
    samples/block/block.xml: input 'x' takes shape [1,8,16,16], the array has [1,8,16]
    """


class UnsupportedError(DeconvError):
    """A layer or an element type that is needed has no implementation.

    Examples
    --------
    >>> import deconv_ir
    >>> with open("samples/documents/convolution_backprop_data_1.xml", "rb") as file:
    ...     unknown = file.read().replace(b"ConvolutionBackpropData", b"Unknown")
    >>> model = deconv_ir.load(unknown)  # it loads, and its shapes are known
    >>> try:
    ...     model.require_runnable()
    ... except deconv_ir.UnsupportedError as error:
    ...     print(error.message)
    operation Unknown is not implemented
    """


class SettingError(DeconvError, ValueError):
    """A setting, such as an environment variable, has a value that is not allowed.

    Examples
    --------
    >>> import deconv_ir
    >>> try:
    ...     deconv_ir.set_threads(0)
    ... except deconv_ir.SettingError as error:
    ...     print(error)
    the number of threads must be at least 1, not 0
    """


class ResourceError(DeconvError):
    """A limit on size or memory would be exceeded; nothing was allocated.

    Examples
    --------
    >>> import numpy as np
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml", memory_limit=1000)
    >>> try:
    ...     model.run(np.zeros((1, 8, 16, 16), np.float32))
    ... except deconv_ir.ResourceError as error:
    ...     print(error.rule, error.expected)
    memory 1000
    """


class OutputError(DeconvError):
    """A result cannot be written to the requested path.

    Examples
    --------
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml")
    >>> try:
    ...     deconv_ir.save(model, "missing/copy.xml")
    ... except deconv_ir.OutputError as error:
    ...     print(error.file)
    missing/copy.bin
    """
