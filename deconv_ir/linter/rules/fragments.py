"""Lines that several failing fragments share."""

from __future__ import annotations


def output_shape(extents: int = 2, element_type: str = "i64", size: int = 16) -> str:
    """Return the lines that give the transposed convolution an output_shape input."""
    return f"""
        <layer id="7" name="output_shape" type="Const" version="opset1">
            <data element_type="{element_type}" shape="{extents}" offset="888" size="{size}"/>
        </layer>
        <edge from-layer="7" from-port="0" to-layer="2" to-port="3"/>
        """


def fake_quantize(low: int, high: int, output_low: int, output_high: int) -> str:
    """Return the lines that quantize the network's output; bounds are layers 7 and 8."""
    return _quantize((low, high, output_low, output_high), (5, 1), (6, 0))


def quantized_filter() -> str:
    """Return the lines that quantize the network's filter; bounds are layers 7 and 8."""
    return _quantize((7, 8, 7, 8), (1, 0), (2, 1))


def quantized_data() -> str:
    """Return the lines that quantize the network's input; bounds are layers 7 and 8."""
    return _quantize((7, 8, 7, 8), (0, 0), (2, 0))


def _quantize(bounds: tuple[int, ...], source: tuple[int, int], user: tuple[int, int]) -> str:
    """Return the lines of a FakeQuantize between two layers and their ports."""
    edges = "".join(
        f'''
        <edge from-layer="{layer}" from-port="0" to-layer="9" to-port="{port}"/>'''
        for port, layer in enumerate(bounds, 1)
    )
    return f"""
        <layer id="7" name="a" type="Const" version="opset1">
            <data element_type="f32" shape="" offset="888" size="4"/>
        </layer>
        <layer id="8" name="b" type="Const" version="opset1">
            <data element_type="f32" shape="" offset="892" size="4"/>
        </layer>
        <layer id="9" name="quantized" type="FakeQuantize" version="opset1">
            <data levels="256"/>
        </layer>
        <edge from-layer="{source[0]}" from-port="{source[1]}" to-layer="9" to-port="0"/>{edges}
        <edge from-layer="9" from-port="5" to-layer="{user[0]}" to-port="{user[1]}"/>
        """
