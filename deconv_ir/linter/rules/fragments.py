"""Lines that several failing fragments share."""

from __future__ import annotations


def output_shape(
    extents: int = 2, *, precision: str = "I64", element_type: str = "i64", size: int = 16
) -> str:
    """Return the lines that give the transposed convolution an output_shape input."""
    return f"""
        <input>
            <port id="0"><dim>1</dim><dim>4</dim><dim>5</dim><dim>6</dim></port>
            <port id="1"><dim>4</dim><dim>6</dim><dim>3</dim><dim>3</dim></port>
            <port id="3" precision="{precision}"><dim>{extents}</dim></port>
        </input>
        <layer id="7" name="output_shape" type="Const" version="opset1">
            <data element_type="{element_type}" shape="{extents}" offset="888" size="{size}"/>
            <output>
                <port id="0" precision="{precision}"><dim>{extents}</dim></port>
            </output>
        </layer>
        <edge from-layer="7" from-port="0" to-layer="2" to-port="3"/>
        """
