"""A run takes the memory that its plan reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from plan_rows import normal, rows_of
from support import IR, Out, traced_peak

import deconv_ir
from deconv_ir.kernels.algorithm import Algorithm as Kernel
from deconv_ir.kernels.algorithm import preferred_algorithm


def u_net(size: int = 192) -> IR:
    """Build a small U-Net: convolutions, pooling, deconvolutions and skip connections."""
    ir = IR()
    pads = {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}
    twice = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    pool = {"strides": "2,2", "kernel": "2,2", "pads_begin": "0,0", "pads_end": "0,0",
            "rounding_type": "floor"}  # fmt: skip

    def conv(y: Out, i: int, o: int) -> Out:
        y = ir.layer("Convolution", [y, ir.const(normal(o, i, 3, 3) / 8)], pads)
        y = ir.layer("Add", [y, ir.const(normal(1, o, 1, 1))])
        return ir.layer("SoftSign", [y], version="opset9")

    y = ir.parameter("x", f"1,3,{size},{size}")
    skips = []
    for i, o in ((3, 16), (16, 32)):
        y = conv(y, i, o)
        skips.append(y)
        y = ir.layer("MaxPool", [y], pool)
    y = conv(y, 32, 64)
    for i, o in ((64, 32), (32, 16)):
        up = ir.layer("ConvolutionBackpropData", [y, ir.const(normal(i, o, 2, 2) / 8)], twice)
        y = conv(ir.layer("Concat", [up, skips.pop()], {"axis": "1"}), 2 * o, o)
    ir.result(ir.layer("Sigmoid", [y], names="y"))
    return ir


def decoder() -> IR:
    """Build deconvolutions in a chain, each with a larger output than the one before."""
    ir = IR()
    y = ir.parameter("x", "1,16,24,24")
    for channels in (16, 16, 8):
        w = ir.const(normal(16, channels, 4, 4) / 8)
        attributes = {"strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}
        y = ir.layer("ConvolutionBackpropData", [y, w], attributes)
        y = ir.layer("Tanh", [ir.layer("Add", [y, ir.const(normal(1, channels, 1, 1))])])
    ir.result(y, "y")
    return ir


def elementwise() -> IR:
    ir = IR()
    x = ir.parameter("x", "1,8,256,256")
    y = ir.layer("Exp", [x])
    for i in range(8):
        y = ir.layer("Tanh", [ir.layer("Add", [y, x])]) if i % 3 else ir.layer("Add", [y, y])
    ir.result(y)
    return ir


@pytest.mark.usefixtures("plain_memory")
@pytest.mark.parametrize("build", [u_net, decoder, elementwise])
def test_peak_memory_is_near_the_lower_bound(build, tmp_path: Path) -> None:
    """NumPy reports its arrays to tracemalloc; weights are packed before the measurement."""
    scratch = 1 << 20
    path = build().save(tmp_path)
    model = deconv_ir.load(path, scratch_bytes=scratch)
    (port,) = model.inputs.values()
    x = normal(*port.shape)
    model.run([x])
    plan = model.bind([x]).plan
    assert plan.known
    running = plan.peak_bytes - plan.weight_bytes
    assert plan.tensor_bytes <= running <= 1.25 * plan.tensor_bytes + plan.scratch_bytes
    peak = traced_peak(lambda: model.run([x]))
    # Only the NumPy fallback takes its scratchpad from NumPy.
    allowed = 1.3 * (plan.tensor_bytes + plan.weight_bytes) + scratch * (
        preferred_algorithm() is not Kernel.COMPILED
    )
    assert peak + plan.weight_bytes <= allowed
    # The bound is tight: the tensors that the plan counts are alive at the same time.  Arenas of
    # 8 MiB are not NumPy's, and later runs may find the arena of an earlier one.
    if plan.tensor_bytes < 8 << 20:
        fresh = deconv_ir.load(path, scratch_bytes=scratch)
        assert traced_peak(lambda: fresh.run([x])) >= 0.95 * plan.tensor_bytes


def test_places_are_used_again(tmp_path: Path) -> None:
    ir = IR()
    y = ir.parameter("x", "1,4,256,256")
    for _ in range(5):
        w = ir.const(normal(4, 4, 1, 1))
        y = ir.layer("ConvolutionBackpropData", [y, w])
    ir.result(ir.layer("ReduceMean", [y, ir.const(np.array([2, 3]))]))
    model = deconv_ir.load(ir.save(tmp_path))
    x = normal(1, 4, 256, 256)
    offsets = [row.offset for row in rows_of(model, [x]).values()]
    # A layer's input and output cannot share memory; the result is the caller's own.
    assert offsets == [0, 1 << 20, 0, 1 << 20, 0, None]
    assert model.bind([x]).plan.arena_bytes == 2 << 20


def test_a_part_without_an_axis_takes_no_memory(tmp_path: Path) -> None:
    ir = IR()
    e = ir.layer("Sinh", [ir.parameter("x", "2,4,8")])
    halves = ir.layer("Split", [e, ir.const(np.array(0))], {"num_splits": "2"}, outputs=("", ""))
    axis = ir.const(np.array(0))
    parts = [(halves[0], halves[1] + i) for i in (0, 1)]
    first, second = (ir.layer("Squeeze", [part, axis]) for part in parts)
    ir.result(ir.layer("MatMul", [first, second], {"transpose_b": "true"}))
    model = deconv_ir.load(ir.save(tmp_path))
    x = normal(2, 4, 8)
    plan = model.bind([x]).plan
    assert plan.tensor_bytes == 4 * (2 * 4 * 8 + 4 * 4)
    expected = np.sinh(x[0]) @ np.sinh(x[1]).T
    (found,) = model.run([x]).values()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_tensors_around_a_large_body_keep_their_places(tmp_path: Path) -> None:
    """A body that needs more than any plan may use does not put them outside of the arena."""
    ir = IR()
    x = ir.layer("SoftMax", [ir.parameter("x", "8,4")], {"axis": "1"}, outputs=("8,4",))
    body = ir.body()
    part = body.parameter("part", "8,4")
    axes, keep = body.const(np.array([0, 1])), {"keep_dims": "false"}
    number = body.layer("ReduceSum", [part, axes], keep)
    wide = body.layer("Broadcast", [number, body.const(np.array([5000, 5000]))])
    wide = body.layer("SoftMax", [wide], {"axis": "1"}, outputs=("5000,5000",))
    rows = body.layer("ReduceMax", [wide, body.const(np.array([0]))], keep, outputs=("5000",))
    last = body.result(rows)
    entries = (
        f'<input external_port_id="0" internal_layer_id="{part[0]}"/>\n'
        f'<output external_port_id="1" internal_layer_id="{last[0]}"/>\n'
    )
    sections = f"<port_map>\n{entries}</port_map>\n<body>\n{body.sections()}</body>\n"
    y = ir.layer("TensorIterator", [x], outputs=("5000",), bodies=sections)
    ir.result(ir.layer("SoftMax", [y], {"axis": "0"}, outputs=("5000",)))
    plan = deconv_ir.load(ir.save(tmp_path)).bind().plan
    assert plan.peak_bytes > 5000 * 5000 * 4
    assert plan.arena_bytes > 0
