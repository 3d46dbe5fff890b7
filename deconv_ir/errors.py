"""The errors that the library raises deliberately.

A message is one line: the location (file, line, layer), the expected and the actual value, and a
hint, if any.  The parts are also fields, so that the linter and the commands can format them
differently.
"""

from __future__ import annotations

from typing import Any

MAX_MESSAGE = 1000
MAX_NAME = 200


def extra_hint(extra: str) -> str:
    """Return the hint of an error for a missing package of an extra."""
    return f"pip install '.[{extra}]' in a checkout of deconv-ir"


def one_line(text: str, limit: int = MAX_MESSAGE) -> str:
    """Return a text that may hold parts of a hostile file as one line of bounded length.

    Control characters, which could move a terminal's cursor or break a log,
    are written as escapes; the middle of a text that is too long is left out.
    """
    if len(text) > limit:
        tail = limit // 4
        text = f"{text[: limit - tail]} ... {text[-tail:]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def utf_8(text: str) -> bytes:
    """Encode a text that may hold paths.

    Bytes of a file name that are not UTF-8 are lone surrogates in a path (PEP 383); they are
    written as escapes, as `one_line` does.
    """
    return text.encode("utf-8", "backslashreplace")


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
    hint : str, optional
        What the user can do about it.
    rule : str, optional
        Stable name of the kind of mistake, which the linter uses for its findings.
    location : optional
        The part of the graph or of the text at fault, which the linter marks with a caret.

    Examples
    --------
    >>> import deconv_ir
    >>> try:
    ...     deconv_ir.load("missing.xml")
    ... except deconv_ir.DeconvError as error:
    ...     print(error.file, error.rule)
    missing.xml io
    """

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
        hint: str | None = None,
        rule: str | None = None,
        column: int | None = None,
        location: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.layer = layer
        self.attribute = attribute
        self.expected = expected
        self.actual = actual
        self.hint = hint
        self.rule = rule
        self.column = column
        self.location = location

    @property
    def place(self) -> Any:
        """The same as `location`, under its earlier name."""
        return self.location

    def locate(
        self, *, file: str | None = None, line: int | None = None, layer: str | None = None
    ) -> DeconvError:
        """Fill in the parts of the location that are not known yet, and return the error."""
        self.file = self.file if self.file is not None else file
        self.line = self.line if self.line is not None else line
        self.layer = self.layer if self.layer is not None else layer
        return self

    def __str__(self) -> str:
        """One line: file and line, layer, message, hint."""
        where = one_line(self.file or "")
        if self.line is not None:
            where = f"{where}:{self.line}" if where else f"line {self.line}"
        parts = [where] if where else []
        if self.layer is not None:
            parts.append(f"layer {one_line(self.layer, MAX_NAME)}")
        parts.append(one_line(self.message))
        text = ": ".join(parts)
        return f"{text} ({one_line(self.hint)})" if self.hint else text


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
