"""Make bilinear_x2.xml and .bin: upsample a photograph by 2 with a transposed convolution.

The filter is the bilinear one of FCN (Long, Shelhamer, Darrell 2015, section 3.3):
for a factor f = 2 a kernel of 4 taps, 0.25 0.75 0.75 0.25 on each axis, one group
per colour.  The input has a border of one pixel, so that pixels at the edges have
neighbours; pads of 3 crop the border's contribution: Y = 2*(X + 2 - 1) + 4 - 3 - 3 = 2*X.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
taps = np.array([0.25, 0.75, 0.75, 0.25], np.float32)
filter_ = np.broadcast_to(np.outer(taps, taps), (3, 1, 1, 4, 4)).astype("<f4")
half = np.array([0.5], "<f4")  # so that conversion to integers rounds

XML = """<?xml version="1.0"?>
<net name="bilinear_x2" version="11">
	<layers>
		<layer id="0" name="picture" type="Parameter" version="opset1">
			<data shape="1,3,?,?" element_type="u8" />
			<output>
				<port id="0" precision="U8" names="picture">
					<dim>1</dim>
					<dim>3</dim>
					<dim>-1</dim>
					<dim>-1</dim>
				</port>
			</output>
		</layer>
		<layer id="1" name="to_float" type="Convert" version="opset1">
			<data destination_type="f32" />
			<input>
				<port id="0" precision="U8">
					<dim>1</dim>
					<dim>3</dim>
					<dim>-1</dim>
					<dim>-1</dim>
				</port>
			</input>
			<output>
				<port id="1" precision="FP32">
					<dim>1</dim>
					<dim>3</dim>
					<dim>-1</dim>
					<dim>-1</dim>
				</port>
			</output>
		</layer>
		<layer id="2" name="bilinear" type="Const" version="opset1">
			<data element_type="f32" shape="3, 1, 1, 4, 4" offset="0" size="192" />
			<output>
				<port id="0" precision="FP32">
					<dim>3</dim>
					<dim>1</dim>
					<dim>1</dim>
					<dim>4</dim>
					<dim>4</dim>
				</port>
			</output>
		</layer>
		<layer id="3" name="upsample" type="GroupConvolutionBackpropData" version="opset1">
			<data strides="2, 2" dilations="1, 1" pads_begin="3, 3" pads_end="3, 3" \
auto_pad="explicit" output_padding="0, 0" />
			<input>
				<port id="0" precision="FP32">
					<dim>1</dim>
					<dim>3</dim>
					<dim>-1</dim>
					<dim>-1</dim>
				</port>
				<port id="1" precision="FP32">
					<dim>3</dim>
					<dim>1</dim>
					<dim>1</dim>
					<dim>4</dim>
					<dim>4</dim>
				</port>
			</input>
			<output>
				<port id="2" precision="FP32">
					<dim>1</dim>
					<dim>3</dim>
					<dim>-1</dim>
					<dim>-1</dim>
				</port>
			</output>
		</layer>
		<layer id="4" name="half" type="Const" version="opset1">
			<data element_type="f32" shape="1" offset="192" size="4" />
			<output>
				<port id="0" precision="FP32">
					<dim>1</dim>
				</port>
			</output>
		</layer>
		<layer id="5" name="round" type="Add" version="opset1">
			<data auto_broadcast="numpy" />
			<input>
				<port id="0" precision="FP32">
					<dim>1</dim>
					<dim>3</dim>
					<dim>-1</dim>
					<dim>-1</dim>
				</port>
				<port id="1" precision="FP32">
					<dim>1</dim>
				</port>
			</input>
			<output>
				<port id="2" precision="FP32">
					<dim>1</dim>
					<dim>3</dim>
					<dim>-1</dim>
					<dim>-1</dim>
				</port>
			</output>
		</layer>
		<layer id="6" name="to_bytes" type="Convert" version="opset1">
			<data destination_type="u8" />
			<input>
				<port id="0" precision="FP32">
					<dim>1</dim>
					<dim>3</dim>
					<dim>-1</dim>
					<dim>-1</dim>
				</port>
			</input>
			<output>
				<port id="1" precision="U8" names="picture_x2">
					<dim>1</dim>
					<dim>3</dim>
					<dim>-1</dim>
					<dim>-1</dim>
				</port>
			</output>
		</layer>
		<layer id="7" name="picture_x2" type="Result" version="opset1">
			<input>
				<port id="0" precision="U8">
					<dim>1</dim>
					<dim>3</dim>
					<dim>-1</dim>
					<dim>-1</dim>
				</port>
			</input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="1" to-port="0" />
		<edge from-layer="1" from-port="1" to-layer="3" to-port="0" />
		<edge from-layer="2" from-port="0" to-layer="3" to-port="1" />
		<edge from-layer="3" from-port="2" to-layer="5" to-port="0" />
		<edge from-layer="4" from-port="0" to-layer="5" to-port="1" />
		<edge from-layer="5" from-port="2" to-layer="6" to-port="0" />
		<edge from-layer="6" from-port="1" to-layer="7" to-port="0" />
	</edges>
	<rt_info />
</net>
"""

(HERE / "bilinear_x2.xml").write_text(XML)
(HERE / "bilinear_x2.bin").write_bytes(filter_.tobytes() + half.tobytes())
