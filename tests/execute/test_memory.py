"""Models that need too much memory are refused quickly, before anything is allocated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import IR, traced_peak

import deconv_ir
from deconv_ir.execute import executor, memory
from deconv_ir.execute.memory import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("4096", 4096), ("1B", 1), ("1k", 1000), ("2KiB", 2048), ("1.5 GiB", 3 << 29),
        ("500MB", 500_000_000), ("2g", 2 * 10**9), (" 1 TiB ", 1 << 40), ("0", 0),
    ],
)  # fmt: skip
def test_sizes_are_read(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1.5.2", "2 XiB", "1e9", "\u0661", "9" * 50])
def test_invalid_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1 << 40, "1 TiB"),
     (3 << 69, "1536 EiB"), (1 << 4000, "more than 2^4000 B")],
)  # fmt: skip
def test_sizes_are_written(count: int, text: str) -> None:
    assert format_bytes(count) == text


def tile(target: list[int], shape: str = "1,1") -> IR:
    """Broadcast x to a target shape, then change it."""
    ir = IR()
    x = ir.parameter("x", shape)
    big = ir.layer("Tile", [x, ir.const(np.array(target))], name="tile")
    ir.result(ir.layer("Sinh", [big], name="sinh", names="y"))
    return ir


def refused(model: deconv_ir.Model, inputs: object) -> deconv_ir.ResourceError:
    """Return the error of a run that must not allocate more than 8 MiB before it."""
    errors = []

    def run() -> None:
        with pytest.raises(deconv_ir.ResourceError) as caught:
            model.run(inputs)  # type: ignore[arg-type]
        errors.append(caught.value)

    assert traced_peak(run) < 8 << 20
    return errors[0]


@pytest.mark.parametrize("target", [[1 << 20, 1 << 18], [1 << 30, 1 << 30]])
def test_tensors_of_a_tebibyte_and_more(target: list[int], tmp_path: Path) -> None:
    model = deconv_ir.load(tile(target).save(tmp_path))
    error = refused(model, [np.ones((1, 1), np.float32)])
    assert error.actual >= 4 * target[0] * target[1]
    assert "of memory, but only" in str(error)
    assert "is available" in str(error)


@pytest.mark.parametrize("target", [[1 << 31, 1 << 31], [1 << 62, 2]])
def test_sizes_that_overflow_are_errors_of_shape(target: list[int], tmp_path: Path) -> None:
    with pytest.raises(deconv_ir.ShapeError, match=r"layer 'tile'.*2\^63 - 1"):
        deconv_ir.load(tile(target).save(tmp_path))


def test_constants_that_unfold(tmp_path: Path) -> None:
    """Constants of a few bytes expand to a tebibyte before the model even runs."""
    ir = IR()
    x = ir.parameter("x", "1")
    small = ir.const(np.ones((1, 1), np.float32))
    big = ir.layer("Tile", [small, ir.const(np.array([1 << 19, 1 << 19]))])
    ir.result(ir.layer("Add", [x, big]))
    refused(deconv_ir.load(ir.save(tmp_path)), [np.ones(1, np.float32)])


def test_a_deconvolution_that_is_too_wide(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "1,1,2,2")
    filter_ = ir.const(np.ones((1, 1, 1, 1), np.float32))
    strides = {"strides": f"{1 << 20},{1 << 20}"}
    ir.result(ir.layer("ConvolutionBackpropData", [x, filter_], strides))
    refused(deconv_ir.load(ir.save(tmp_path)), [np.ones((1, 1, 2, 2), np.float32)])


def test_the_limit_is_to_the_byte(tmp_path: Path) -> None:
    path = tile([256, 1024]).save(tmp_path)
    x = np.ones((1, 1), np.float32)
    needed = deconv_ir.load(path).bind([x]).plan.peak_bytes
    repeats = 2 * 8  # a constant
    # the second layer overwrites the first one's output
    assert needed == 256 * 1024 * 4 + repeats
    assert deconv_ir.load(path, memory_limit=needed).run([x])["y"].shape == (256, 1024)
    error = refused(deconv_ir.load(path, memory_limit=needed - 1), [x])
    assert (error.expected, error.actual) == (needed - 1, needed)
    assert "the model needs 1048592 B of memory, but the limit is 1048591 B" in str(error)


def test_a_limit_counts_the_largest_outputs_of_unknown_sizes(tmp_path: Path) -> None:
    """Indices of 2^17 elements take 2 MiB, and 2 MiB while they are found; both results 4 MiB.

    Few are found here, but how many is not known before.
    """
    ir = IR()
    x = ir.parameter("x", "256,512")
    for _ in range(2):
        y = ir.layer("NonZero", [x], {"output_type": "i64"}, version="opset3", precision="I64")
        ir.result(ir.layer("Convert", [y], {"destination_type": "i64"}, precision="I64"))
    path, data = ir.save(tmp_path), np.zeros((256, 512), np.float32)
    assert not deconv_ir.load(path).bind([data]).plan.known
    data[:100] = 1
    found = 2 * 8 * int(data.sum())
    deconv_ir.load(path, memory_limit=(4 << 20) + 2 * found).run([data])
    error = refused(deconv_ir.load(path, memory_limit=(4 << 20) - 1024), [data])
    assert "(NonZero, id 1): the run up to the layer needs 4 MiB of memory" in str(error)
    error = refused(deconv_ir.load(path, memory_limit=(4 << 20) + found // 2), [data])
    assert "(NonZero, id 4): the run up to the layer needs 4.7" in str(error)
    deconv_ir.load(path).run([data])


@pytest.mark.parametrize("last", ["ConvTranspose", "ReLU", "Add", "Reshape"])
def test_results_that_are_put_in_order_count_twice(last: str, tmp_path: Path) -> None:
    """A layer with the channels last computes them first; ReLU is fused with it, others are not.

    Add cannot write to its array, nor can Reshape be a view.
    """
    ir = IR()
    x = ir.parameter("x", "1,128,128,8")
    filter_ = ir.const(np.full((3, 3, 8, 8), 0.01, np.float32))
    formats = {"data_format": "NXC", "filter_format": "XOI"}
    y = ir.layer("ConvTranspose", [x, filter_], PLACES | formats)
    more = {
        "ReLU": [y],
        "Add": [y, ir.parameter("other", "1,128,128,8")],
        "Reshape": [y, ir.const(np.array([128, -1]))],
    }
    attributes = {"special_zero": "false"} if last == "Reshape" else {}
    ir.result(ir.layer(last, more[last], attributes) if last in more else y)
    plan = deconv_ir.load(ir.save(tmp_path)).bind().plan
    size = 4 * 8 * 128 * 128
    assert 2 * size <= plan.bound_bytes - plan.constant_bytes < 3 * size


@pytest.mark.parametrize("layer", ["Add", "Convert", "Reshape", "Transpose"])
def test_arrays_in_another_order_are_copied_within_the_peak(layer: str, tmp_path: Path) -> None:
    """Those that Transpose returns: a Reshape of one is the copy, and a second Transpose a view."""
    ir = IR()
    y = ir.layer("Transpose", [ir.parameter("x", "512,256"), ir.const(np.array([1, 0]))])
    inputs = {
        "Add": [y, ir.parameter("other", "256,512")],
        "Reshape": [y, ir.const(np.array([-1]))],
        "Transpose": [y, ir.const(np.array([1, 0]))],
    }
    attributes = {
        "Convert": {"destination_type": "f16"},
        "Reshape": {"special_zero": "false"},
    }
    element = "FP16" if layer == "Convert" else "FP32"
    ir.result(ir.layer(layer, inputs.get(layer, [y]), attributes.get(layer, {}), precision=element))
    plan = deconv_ir.load(ir.save(tmp_path)).bind().plan
    size = 4 * 512 * 256
    output = size // 2 if element == "FP16" else size
    expected = output + size * (layer not in ("Reshape", "Transpose"))
    assert expected <= plan.peak_bytes - plan.weight_bytes < expected + size // 2


def test_scratch_counts(tmp_path: Path) -> None:
    """A kernel's scratchpad is part of the peak, and too large a scratchpad is refused."""
    ir = IR()
    x = ir.parameter("x", "1,16,64,64")
    filter_ = ir.const(np.ones((16, 16, 3, 3), np.float32))
    ir.result(ir.layer("ConvolutionBackpropData", [x, filter_], {"strides": "2,2"}, names="y"))
    path = ir.save(tmp_path)
    data = np.ones((1, 16, 64, 64), np.float32)
    plan = deconv_ir.load(path, scratch_bytes=1 << 20).bind([data]).plan
    assert 0 < plan.scratch_bytes <= 1 << 20
    assert plan.peak_bytes == plan.tensor_bytes + plan.weight_bytes + plan.scratch_bytes
    limits = {"scratch_bytes": 1 << 20, "memory_limit": plan.peak_bytes}
    assert deconv_ir.load(path, **limits).run([data])["y"].shape == (1, 16, 129, 129)
    limits["memory_limit"] = plan.bound_bytes
    refused(deconv_ir.load(path, **limits), [data])


def deconvolutions(channels: int, size: int) -> IR:
    ir = IR()
    y = ir.parameter("x", f"1,{channels},{size},{size}")
    for i in range(3):
        w = ir.const(np.full((channels, channels, 3, 3), 0.1, np.float32))
        y = ir.layer("ConvolutionBackpropData", [y, w], {"strides": f"{1 + i % 2},{1 + i % 2}"})
    ir.result(y, "y")
    return ir


@pytest.mark.parametrize(("channels", "size"), [(8, 8), (64, 4), (64, 32), (16, 96)])
def test_a_limit_is_held_or_the_run_is_refused(channels: int, size: int, tmp_path: Path) -> None:
    """The limit bounds the memory that the plan reports, packed weights included."""
    path = deconvolutions(channels, size).save(tmp_path)
    x = np.ones((1, channels, size, size), np.float32)
    free = deconv_ir.load(path).bind([x]).plan
    assert free.peak_bytes >= free.weight_bytes + free.tensor_bytes
    span = free.peak_bytes - free.bound_bytes
    ran = []
    for limit in [free.bound_bytes - 1, *(free.bound_bytes + span * i // 8 for i in range(9))]:
        model = deconv_ir.load(path, memory_limit=limit)
        plan = model.bind([x]).plan
        if plan.peak_bytes <= limit:
            model.run([x])
            ran.append(limit)
        else:
            error = refused(model, [x])
            assert (error.expected, error.actual) == (limit, plan.peak_bytes)
            assert f"needs {format_bytes(plan.peak_bytes)} of" in str(error)
            assert f"the limit is {format_bytes(limit)}" in str(error)
    assert free.peak_bytes in ran
    assert free.bound_bytes - 1 not in ran


def test_filters_packed_by_a_later_plan_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filters packed by the first run of an earlier plan count for later plans."""
    ir = IR()
    x = ir.parameter("x", "1,32,?,?")
    w = ir.const(np.full((32, 32, 3, 3), 0.1, np.float32))
    ir.result(ir.layer("Convolution", [x, w], names="y"))
    model = deconv_ir.load(ir.save(tmp_path))
    small, large = (np.ones((1, 32, n, n), np.float32) for n in (5, 200))
    required: list[int] = []
    monkeypatch.setattr(
        executor, "require_memory", lambda needed, *_, **__: required.append(needed)
    )
    first, second = model.bind([small]).plan, model.bind([large]).plan
    for x, expected in (
        (small, first.peak_bytes),
        (large, second.peak_bytes),
        (small, first.peak_bytes + second.weight_bytes - first.weight_bytes),
    ):
        assert model.run([x])["y"].shape == (1, 32, x.shape[2] - 2, x.shape[3] - 2)
        assert required[-1] == expected


def make_root(folder: Path, files: dict[str, str]) -> Path:
    """Make a file system with control groups."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


V1, V2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"
NONE_V1 = "9223372036854771712\n"


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, []),
        ({"proc/self/cgroup": "0::/\n", f"{V2}/memory.max": "max\n"}, []),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                f"{V2}/a/b/memory.max": "1000\n",
                f"{V2}/a/b/memory.current": "600\n",
                f"{V2}/a/b/memory.stat": "anon 5\ninactive_file 150\nactive_file 7\n",
                f"{V2}/a/memory.max": "500\n",
                f"{V2}/a/memory.current": "700\n",
                f"{V2}/memory.max": "max\n",
            },
            [550, 0],
        ),
        (  # the path is one of the host: the process's own group is at the root
            {
                "proc/self/cgroup": "0::/docker/0123\n",
                f"{V2}/memory.max": "4096\n",
                f"{V2}/memory.current": "1024\n",
            },
            [3072],
        ),
        (
            {
                "proc/self/cgroup": "5:cpu:/x\n4:hugetlb,memory:/x\n1:name=systemd:/x\n0::/\n",
                f"{V1}/x/memory.limit_in_bytes": "2000\n",
                f"{V1}/x/memory.usage_in_bytes": "500\n",
                f"{V1}/x/memory.stat": "inactive_file 1\ntotal_inactive_file 100\n",
                f"{V1}/memory.limit_in_bytes": NONE_V1,
            },
            [1600],
        ),
        ({"proc/self/cgroup": "4:memory:/\n", f"{V1}/memory.limit_in_bytes": NONE_V1}, []),
        ({"proc/self/cgroup": "nonsense\n::\n", f"{V2}/memory.max": "no number\n"}, []),
    ],
    ids=["none", "v2-max", "v2", "v2-container", "v1", "v1-none", "nonsense"],
)
def test_limits_of_control_groups_are_found(
    files: dict[str, str], free: list[int], tmp_path: Path
) -> None:
    """Linux kernel documentation, 'Memory Resource Controller' and 'Control Group v2'."""
    groups = memory.limited_groups(make_root(tmp_path, files))
    assert [group.free() for group in groups] == free


def test_what_a_container_has_left_is_what_is_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "proc/self/cgroup": "0::/\n",
        f"{V2}/memory.max": "2000000\n",
        f"{V2}/memory.current": "1000000\n",
    }
    groups = memory.limited_groups(make_root(tmp_path, files))
    monkeypatch.setattr(memory, "limited_groups", lambda: groups)
    model = deconv_ir.load(tile([256, 1024]).save(tmp_path))
    x = np.ones((1, 1), np.float32)
    assert "1 MiB of memory, but only 976.6 KiB is available" in str(refused(model, [x]))
    (tmp_path / V2 / "memory.current").write_text("0\n")  # another process has ended
    assert model.run([x])["y"].shape == (256, 1024)


def test_what_is_available_is_asked_when_pages_do_not_suffice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psutil

    model = deconv_ir.load(tile([256, 1024]).save(tmp_path))
    x = np.ones((1, 1), np.float32)
    monkeypatch.setattr(memory, "surely_free", lambda: 0)
    there = psutil.virtual_memory()
    assert model.run([x])["y"].shape == (256, 1024)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: there._replace(available=1000))
    # plus the 16 bytes of its constant, which are already in memory
    assert "1016 B is available" in str(refused(model, [x]))


def test_sizes_that_are_not_known_are_said_to_be(tmp_path: Path) -> None:
    """The length of a Range of floats depends on the values of its inputs."""
    ir = IR()
    ends = [ir.parameter(name, "") for name in ("start", "stop", "step")]
    ir.result(ir.layer("Range", ends, {"output_type": "f32"}, version="opset4", names="y"))
    model = deconv_ir.load(ir.save(tmp_path))
    scalars = [np.array(v, np.float32) for v in (0, 5, 1)]
    assert not model.bind(scalars).plan.known
    assert model.run(scalars)["y"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.skipif(sys.platform != "linux", reason="the figure of what is in use is Linux's")
def test_a_limit_of_addresses_counts() -> None:
    """`ulimit -v`: used and available memory add up to the limit."""
    code = """
import resource
from deconv_ir.execute.memory import available_bytes
before = available_bytes()
limit = 3 << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
assert 0 < available_bytes() <= min(before, limit - used) + (1 << 20), available_bytes()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def product(*, transposed: bool = False, turned: bool = False, uses: int = 1) -> IR:
    """Multiply by a constant of 16 MiB, as it is stored or transposed by a layer."""
    ir, side = IR(), 2048
    y = ir.parameter("x", f"3,{side}")
    matrix = ir.const(np.full((side, side), 0.01, np.float32))
    if turned:
        matrix = ir.layer("Transpose", [matrix, ir.const(np.array([1, 0]))])
    for _ in range(uses):
        y = ir.layer("MatMul", [y, matrix], {"transpose_b": str(transposed).lower()})
    ir.result(y)
    return ir


PLACES = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}


def convolution(kind: str, kernel: int, uses: int = 1, last: float = 0.01) -> IR:
    """Convolve with a filter of 16 MiB."""
    ir, channels = IR(), 2048 // kernel
    y = ir.parameter("x", f"1,{channels},3,3")
    weights = np.full((channels, channels, kernel, kernel), 0.01, np.float32)
    weights[-1, -1, -1, -1] = last
    filter_ = ir.const(weights)
    for _ in range(uses):
        y = ir.layer(kind, [y, filter_], PLACES)
    ir.result(y)
    return ir


def to_one_channel() -> IR:
    """Deconvolve to one channel by a large stride: the filter is folded."""
    ir = IR()
    x = ir.parameter("x", "1,4096,3,3")
    how = {"strides": "16,16", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    filter_ = ir.const(np.full((4096, 1, 32, 32), 0.01, np.float32))
    ir.result(ir.layer("ConvolutionBackpropData", [x, filter_], how))
    return ir


def compressed() -> IR:
    """Deconvolve with a filter of 16 MiB, stored in f16 as 8 MiB."""
    ir = IR()
    x = ir.parameter("x", "1,512,3,3")
    stored = ir.const(np.full((512, 512, 4, 4), 0.01, np.float16))
    filter_ = ir.layer("Convert", [stored], {"destination_type": "f32"})
    ir.result(ir.layer("ConvolutionBackpropData", [x, filter_], PLACES))
    return ir


def coded(kind: str) -> IR:
    """Multiply or convolve quantised data with weights of 16 MiB in f32, stored in i8."""
    ir, is_product = IR(), kind == "MatMul"
    x = ir.parameter("x", "3,2048" if is_product else "1,512,3,3")
    stored = ir.const(np.full((2048, 2048) if is_product else (512, 512, 4, 4), 10, np.int8))
    weights = ir.layer("Convert", [stored], {"destination_type": "f32"})
    weights = ir.layer("Multiply", [weights, ir.const(np.full((1, 1), 0.01, np.float32))])
    ends = [ir.const(np.float32(end)) for end in (0, 2.55, 0, 2.55)]
    x = ir.layer("FakeQuantize", [x, *ends], {"levels": "256"})
    ir.result(ir.layer(kind, [x, weights], {} if is_product else PLACES))
    return ir


def quantized(*filter_: int) -> IR:
    """Convolve groups of quantised data with quantised weights of 4 or 16 MiB in f32."""
    ir, (groups, _, inputs, *kernel) = IR(), filter_
    extent = max(3, kernel[0] - 2)
    x = ir.parameter("x", f"1,{groups * inputs},{extent},{extent}")
    ends = [ir.const(np.float32(end)) for end in (-1, 1, -1, 1)]
    weights = ir.const(np.full(filter_, 0.5, np.float32))
    x, weights = (ir.layer("FakeQuantize", [one, *ends], {"levels": "256"}) for one in (x, weights))
    ir.result(ir.layer("GroupConvolution", [x, weights], PLACES))
    return ir


def onednn(filter_format: str) -> IR:
    """Deconvolve with a filter of 16 MiB in a layout of oneDNN Graph."""
    ir = IR()
    x = ir.parameter("x", "1,512,3,3")
    shape = (512, 512, 4, 4) if filter_format == "IOX" else (4, 4, 512, 512)
    filter_ = ir.const(np.full(shape, 0.01, np.float32))
    formats = {"data_format": "NCX", "filter_format": filter_format}
    ir.result(ir.layer("ConvTranspose", [x, filter_], PLACES | formats))
    return ir


def recurrent(element: str = "f32") -> IR:
    """Weights of 2 times 16 MiB in f32, which may be stored in f16."""
    ir, h = IR(), 1024
    x = ir.parameter("x", f"1,3,{h}")
    states = [ir.const(np.zeros((1, 1, h), np.float32)) for _ in range(2)]
    lengths = ir.const(np.array([3]))
    dtype = np.float16 if element == "f16" else np.float32
    w, r = (ir.const(np.full((1, 4 * h, h), 0.01, dtype)) for _ in range(2))
    if element == "f16":
        w, r = (ir.layer("Convert", [one], {"destination_type": "f32"}) for one in (w, r))
    b = ir.const(np.zeros((1, 4 * h), np.float32))
    how = {"hidden_size": str(h), "direction": "forward"}
    layer = ir.layer(
        "LSTMSequence", [x, *states, lengths, w, r, b], how, version="opset5",
        outputs=[f"1,1,3,{h}", f"1,1,{h}", f"1,1,{h}"],
    )  # fmt: skip
    ir.result(layer)
    return ir


def of_a_run(kind: str) -> IR:
    """Compute with weights of 16 MiB that each run is given."""
    ir, is_product = IR(), kind == "MatMul"
    x = ir.parameter("x", "3,2048" if is_product else "1,512,3,3")
    weights = ir.parameter("w", "2048,2048" if is_product else "512,512,4,4")
    ir.result(ir.layer(kind, [x, weights], {} if is_product else PLACES))
    return ir


def also_folded() -> IR:
    """Scale a convolution by the sum of its filter, which is computed once."""
    ir = IR()
    x = ir.parameter("x", "1,512,3,3")
    filter_ = ir.const(np.full((512, 512, 4, 4), 0.01, np.float32))
    axes = ir.const(np.arange(4))
    total = ir.layer("ReduceSum", [filter_, axes], {"keep_dims": "true"})
    ir.result(ir.layer("Multiply", [ir.layer("Convolution", [x, filter_], PLACES), total]))
    return ir


def also_a_result() -> IR:
    """Convolve with a filter that is a result, too."""
    ir = IR()
    x = ir.parameter("x", "1,512,3,3")
    filter_ = ir.const(np.full((512, 512, 4, 4), 0.01, np.float32))
    ir.result(ir.layer("Convolution", [x, filter_], PLACES))
    ir.result(filter_)
    return ir


PACKED = {
    "matrix": product(),
    "matrix, transposed": product(transposed=True),
    "matrix, used twice": product(uses=2),
    "matrix, folded": product(turned=True),
    "filter": convolution("ConvolutionBackpropData", 4),
    "filter, used twice": convolution("ConvolutionBackpropData", 4, 2),
    "filter of one tap": convolution("Convolution", 1),
    "filter, infinite": convolution("ConvolutionBackpropData", 4, last=np.inf),
    "filter, folded": to_one_channel(),
    "filter IOX": onednn("IOX"),
    "filter XOI": onednn("XOI"),
    "filter of f16": compressed(),
    "matrix of codes": coded("MatMul"),
    "filter of codes": coded("Convolution"),
    "filter of groups, quantised": quantized(4, 256, 256, 4, 4),
    "filter of channels, quantised": quantized(1024, 1, 1, 32, 32),
    "recurrent": recurrent(),
    "recurrent of f16": recurrent("f16"),
    "filter of a run": of_a_run("ConvolutionBackpropData"),
    "matrix of a run": of_a_run("MatMul"),
    "filter, also folded": also_folded(),
    "filter, also a result": also_a_result(),
}


def test_constants_that_exceed_the_limit_are_named_as_such(tmp_path: Path) -> None:
    """Tensors would need more, so it is not what the model needs."""
    model = deconv_ir.load(product().save(tmp_path), memory_limit=1 << 20)
    error = refused(model, [np.ones((3, 2048), np.float32)])
    assert "preparing the model needs 16 MiB of memory, but the limit is 1 MiB" in str(error)


@pytest.mark.skipif(sys.platform != "linux", reason="the bound is Linux's")
@pytest.mark.parametrize(
    ("accuracy", "kernel"), [("fast", "auto"), ("bf16", "auto"), ("fast", "numpy")]
)
@pytest.mark.parametrize("name", PACKED)
def test_a_limit_holds_while_constants_are_packed(
    name: str, accuracy: str, kernel: str, tmp_path: Path
) -> None:
    """The private memory of a process is bounded by its limit, and 8 MiB.

    4 MiB are for code and objects.  Each block with huge pages reserves up to 2 MiB of addresses
    for its alignment, which are never touched; two of a model are alive at once.
    """
    code = """
import resource, sys, numpy as np, deconv_ir
deconv_ir.set_threads(1)
def load(path, **how):
    model = deconv_ir.load(path, accuracy=sys.argv[3], **how)
    return model, [np.ones(port.shape, np.float32) for port in model.inputs.values()]
model, x = load(sys.argv[1])
model.run(x)
limit = load(sys.argv[2])[0].bind().plan.peak_bytes
model, x = load(sys.argv[2], memory_limit=limit)
status = open("/proc/self/status").read()
used = 1024 * int(status.partition("VmData:")[2].split()[0])
bound = used + limit + (8 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
assert next(iter(model.run(x).values())).any()
"""
    folder = tmp_path / "warm"
    folder.mkdir()
    warm = IR()
    y = warm.parameter("x", "1,8,3,3")
    y = warm.layer("MatMul", [y, warm.const(np.ones((3, 64), np.float32))])
    warm.result(y)
    paths = map(str, (warm.save(folder), PACKED[name].save(tmp_path)))
    # The C library gives freed arrays back, rather than decide by earlier ones.
    own = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    subprocess.run(
        [sys.executable, "-c", code, *paths, accuracy],
        env=os.environ | own | {"DECONV_IR_KERNEL": kernel},
        check=True,
    )
