"""Attribute kinds state their values as data, beside the words of messages."""

from __future__ import annotations

import pickle

import pytest

from deconv_ir.operations import (
    Allowed,
    ConvolutionBackpropData,
    Form,
    Kind,
    boolean,
    element_type,
    flags,
    integer,
    integers,
    number,
    numbers,
    shape,
    text,
)
from deconv_ir.ops.base import attributes_of, choices, one_of
from deconv_ir.ops.recurrent.recurrent import GateFunction

INTEGER, NUMBER, WORD = Form.INTEGER, Form.NUMBER, Form.WORD


@pytest.mark.parametrize(
    ("kind", "form", "minimum", "words", "is_list"),
    [
        (boolean(), Form.BOOLEAN, None, ("true", "false"), False),
        (integer(), INTEGER, None, (), False),
        (integer(1), INTEGER, 1, (), False),
        (integers(0), INTEGER, 0, (), True),
        (flags(), WORD, None, ("0", "1"), True),
        (number(minimum=0.5), NUMBER, 0.5, (), False),
        (numbers(), NUMBER, None, (), True),
        (choices(GateFunction), WORD, None, tuple(a.value for a in GateFunction), True),
        (element_type(), Form.ELEMENT_TYPE, None, (), False),
        (shape(), Form.SHAPE, None, (), False),
        (text(), Form.TEXT, None, (), False),
        (Kind(str, "a percentage"), Form.TEXT, None, (), False),
    ],
)
def test_values(
    kind: Kind, form: Form, minimum: float | None, words: tuple[str, ...], is_list: bool
) -> None:
    found = kind.values
    assert (found.form, found.minimum, found.words, found.is_list) == (
        form,
        minimum,
        words,
        is_list,
    )
    for word in words:
        kind.parse(word)
    if minimum is not None:
        kind.parse(str(minimum))
        with pytest.raises(ValueError, match=r"."):
            kind.parse(str(minimum - 1))


def test_attributes_of_a_transposed_convolution() -> None:
    """Source: OpenVINO operation specification, ConvolutionBackpropData-1, section Attributes."""
    found = {spec.name: spec.kind for spec in attributes_of(ConvolutionBackpropData)}
    assert {name for name, kind in found.items() if kind.per_axis} == {
        *("strides", "pads_begin", "pads_end", "dilations", "output_padding"),
    }
    assert found["strides"].values.minimum == found["dilations"].values.minimum == 1
    words = {word.lower() for word in found["auto_pad"].values.words}
    assert words >= {"explicit", "same_upper", "same_lower", "valid"}


def test_errors_carry_the_values_between_processes() -> None:
    allowed = one_of(["a", "b"])
    assert (
        pickle.loads(pickle.dumps(allowed))
        == allowed
        == Allowed(WORD, "one of a, b", None, ("a", "b"))
    )
