"""Loop and TensorIterator: the body runs for each slice, as often as count and condition say.

Sources: OpenVINO operation specifications, Loop-5 and TensorIterator-1.  The oracle is a loop in
the test.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from deconv_ir.errors import DeconvError
from deconv_ir.execute.listing import as_rows
from tests.support import IR, Out, invoke

FORWARD = 'axis="{axis}" start="0" end="-1" stride="{part}" part_size="{part}"'
BACKWARD = 'axis="{axis}" start="-1" end="0" stride="-{part}" part_size="{part}"'


def cut(axis: int = 0, part: int = 1, *, backward: bool = False) -> str:
    return (BACKWARD if backward else FORWARD).format(axis=axis, part=part)


def joints(*entries: tuple[str, int, int, str]) -> str:
    """Return a port map: input or output, the port of the layer, the layer of the body."""
    return "<port_map>\n{}</port_map>\n".format(
        "".join(
            f'<{side} external_port_id="{port}" internal_layer_id="{inner}" {more}/>\n'
            for side, port, inner, more in entries
        )
    )


def back_edges(*edges: tuple[Out, Out]) -> str:
    ends = (f'<edge from-layer="{a[0]}" to-layer="{b[0]}"/>\n' for a, b in edges)
    return f"<back_edges>\n{''.join(ends)}</back_edges>\n"


def running_sum(
    *, extent: str = "6", part: int = 2, backward: bool = False, loop: bool = False
) -> IR:
    """Sums of all slices so far, along axis 1 of x [2,extent], and the last of them.

    A Loop also takes the number of trips, and goes on while the sum of all sums is below a limit.
    """
    ir = IR()
    x = ir.parameter("x", f"2,{extent}")
    first = ir.parameter("first", "2,?")
    data = [x, first]
    body = ir.body()
    piece, state = body.parameter("piece", f"2,{part}"), body.parameter("state", "2,?")
    total = body.layer("Add", [piece, state], name="total")
    result, at = body.result(total), 0
    entries = []
    if loop:
        number = body.parameter("number", "", "i64")
        limit = body.parameter("limit", "")
        data = [ir.parameter("trips", "", "i64"), ir.parameter("go", "", "boolean"), *data]
        data.append(ir.parameter("limit", ""))
        axes = body.const(np.array([0, 1]))
        everything = body.layer("ReduceSum", [total, axes], outputs=("",))
        below = body.result(body.layer("Less", [everything, limit], precision="BOOL"))
        shown = body.layer("Convert", [number], {"destination_type": "f32"})
        numbers = body.result(body.layer("Unsqueeze", [shown, body.const(np.array([0]))]))
        at = 2
        entries = [
            ("input", -1, number[0], 'purpose="current_iteration"'),
            ("input", 4, limit[0], ""),
            ("output", -1, below[0], 'purpose="execution_condition"'),
            ("output", 7, numbers[0], cut()),
        ]
    slices = cut(1, part, backward=backward)
    ports = len(data)
    entries += [
        ("input", at, piece[0], slices),
        ("input", at + 1, state[0], ""),
        ("output", ports, result[0], ""),
        ("output", ports + 1, result[0], slices),
    ]
    layer = ir.layer(
        "Loop" if loop else "TensorIterator",
        data,
        name="sums",
        version="opset5" if loop else "opset1",
        outputs=("", "", "") if loop else ("", ""),
        bodies=joints(*entries)
        + back_edges((result, state))
        + f"<body>\n{body.sections()}</body>\n",
    )
    for number in range(3 if loop else 2):
        ir.result((layer[0], layer[1] + number))
    return ir


def sums(x: np.ndarray, first: np.ndarray, part: int, backward: bool) -> list[np.ndarray]:
    pieces = [x[:, i : i + part] for i in range(0, x.shape[1], part)]
    found = [first]
    for piece in reversed(pieces) if backward else pieces:
        found.append(found[-1] + piece)
    return found


@pytest.mark.parametrize("extent", ["6", "?"])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("part", [1, 2, 6])
def test_tensor_iterator(extent: str, backward: bool, part: int, tmp_path: Path) -> None:
    model = deconv_ir.load(running_sum(extent=extent, part=part, backward=backward).save(tmp_path))
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    first = np.full((2, part), 0.5, np.float32)
    expected = sums(x, first, part, backward)[1:]
    last, all_of_them = model.run([x, first]).values()
    np.testing.assert_array_equal(last, expected[-1])
    order = expected[::-1] if backward else expected
    np.testing.assert_array_equal(all_of_them, np.concatenate(order, 1))


def test_the_number_of_slices_is_checked(tmp_path: Path) -> None:
    with pytest.raises(DeconvError, match=r"\[2,5\] cannot be cut along axis 1 .* parts of 2"):
        deconv_ir.load(running_sum(extent="5").save(tmp_path))
    model = deconv_ir.load(running_sum(extent="?").save(tmp_path))
    with pytest.raises(DeconvError, match="layer 'sums'"):
        model.run([np.zeros((2, 5), np.float32), np.zeros((2, 2), np.float32)])


def test_shapes_of_a_tensor_iterator(tmp_path: Path) -> None:
    model = deconv_ir.load(running_sum().save(tmp_path))
    shapes = list(model.infer_shapes({"first": (2, 2)}).values())
    assert shapes == [(2, 2), (2, 6)]


LOOPS = [
    pytest.param(3, True, 1e9, 3, id="all trips"),
    pytest.param(1, True, 1e9, 1, id="one trip"),
    pytest.param(0, True, 1e9, 0, id="no trips"),
    pytest.param(3, False, 1e9, 0, id="condition false at the start"),
    pytest.param(3, True, 20.0, 2, id="early exit"),
    pytest.param(-1, True, 20.0, 2, id="trips without a bound"),
    pytest.param(3, True, -1.0, 1, id="exit after the first"),
]


@pytest.mark.parametrize(("trips", "goes", "limit", "count"), LOOPS)
def test_loop(trips: int, goes: bool, limit: float, count: int, tmp_path: Path) -> None:
    model = deconv_ir.load(running_sum(loop=True).save(tmp_path))
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    first = np.full((2, 2), 0.5, np.float32)
    given = [x, first, np.int64(trips), np.bool_(goes), np.float32(limit)]
    expected = sums(x, first, 2, False)[: count + 1]
    if count < trips and count:
        assert expected[-1].sum() >= limit, "the case exits early"
    last, all_of_them, numbers = model.run(given).values()
    np.testing.assert_array_equal(last, expected[-1])
    together = np.concatenate(expected[1:], 1) if count else np.zeros((2, 0))
    np.testing.assert_array_equal(all_of_them, together)
    np.testing.assert_array_equal(numbers, np.arange(count))


def test_more_trips_than_slices(tmp_path: Path) -> None:
    model = deconv_ir.load(running_sum(loop=True).save(tmp_path))
    x = np.zeros((2, 6), np.float32)
    given = [x, x[:, :2], np.int64(4), np.True_, np.float32(1)]
    with pytest.raises(DeconvError, match="iteration 3 takes 6:8 of axis 1 of input 2"):
        model.run(given)


def growing() -> IR:
    """A Loop in a Loop: the inner one appends its number to a list, the outer one runs it twice."""
    ir = IR()
    trips = ir.parameter("trips", "", "i64")
    start = ir.parameter("start", "?", "i64")

    def loop(around: IR, count: Out, data: Out, inside: str, body: IR, state: Out, end: Out) -> Out:
        yes = around.raw_const(b"\1", "boolean", ())
        return around.layer(
            "Loop",
            [count, yes, data],
            version="opset5",
            precision="I64",
            bodies=joints(("input", 2, state[0], ""), ("output", 3, end[0], ""), *extra[inside])
            + back_edges((end, state))
            + f"<body>\n{body.sections()}</body>\n",
        )

    extra: dict[str, list[tuple[str, int, int, str]]] = {}
    outer = ir.body()
    state = outer.parameter("outer", "?", "i64")
    inner = outer.body()
    items = inner.parameter("inner", "?", "i64")
    number = inner.parameter("number", "1", "i64")
    longer = inner.result(inner.layer("Concat", [items, number], {"axis": "0"}, precision="I64"))
    extra["inner"] = [("input", -1, number[0], 'purpose="current_iteration"')]
    two = outer.const(np.array(2))
    found = loop(outer, two, state, "inner", inner, items, longer)
    end = outer.result(found)
    go = outer.result(outer.raw_const(b"\1", "boolean", ()))
    extra["outer"] = [("output", -1, go[0], 'purpose="execution_condition"')]
    ir.result(loop(ir, trips, start, "outer", outer, state, end))
    return ir


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_nested_loops_and_growing_shapes(trips: int, tmp_path: Path) -> None:
    model = deconv_ir.load(growing().save(tmp_path))
    assert list(model.infer_shapes().values()) == [(deconv_ir.Interval(0, None),)]
    (found,) = model.run([np.int64(trips), np.array([7], np.int64)]).values()
    assert found.tolist() == [7] + [0, 1] * trips


def test_plan_and_profile_show_bodies(tmp_path: Path) -> None:
    path = running_sum().save(tmp_path)
    model = deconv_ir.load(path)
    plan = model.bind(shapes={"first": (2, 2)}).plan
    assert [(row.within, row.layer) for row in as_rows(plan)] == [
        ("", "sums"),
        ("sums/body", "total"),
    ]
    profile = deconv_ir.Profile()
    x = np.zeros((2, 6), np.float32)
    model.run([x, x[:, :2]], profile=profile)
    rows = [(row.within, row.layer) for row in profile.layers]
    assert rows == [("sums/body", "total")] * 3 + [("", "sums")]
    assert profile.seconds == profile.layers[-1].seconds
    shown = invoke(path, "--explain-plan", "--shape", "first=2,2")
    assert "sums/body: total" in shown.output, shown.output
    shown = invoke(path, "--random-inputs", 0, "--shape", "first=2,2", "--no-output", "--profile")
    assert "sums/body: total" in shown.output


def test_memory_of_a_body_is_planned(tmp_path: Path) -> None:
    """Each iteration makes a tensor of 2 x 4096 elements; all of them are kept, and joined."""
    model = deconv_ir.load(running_sum(extent="12288", part=4096).save(tmp_path))
    plan = model.bind(shapes={"first": (2, 4096)}).plan
    part = 2 * 4096 * 4
    assert plan.known
    assert plan.peak_bytes >= part + 3 * part + 3 * part


def test_bodies_that_cannot_run_are_refused(tmp_path: Path) -> None:
    ir = running_sum()
    text = ir.xml().replace('name="total" type="Add"', 'name="total" type="Adds"')
    path = ir.save(tmp_path)
    path.write_text(text)
    with pytest.raises(deconv_ir.UnsupportedError, match="Adds"):
        deconv_ir.load(path).run([np.zeros((2, 6), np.float32), np.zeros((2, 2), np.float32)])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('internal_layer_id="0"', 'internal_layer_id="9"', "not a Parameter"),
        ('external_port_id="0"', 'external_port_id="9"', "names an input port that is missing"),
        ("body>", "corpus>", "has no <body>"),
        (
            '<output external_port_id="2" internal_layer_id="3" />',
            "",
            "port map of the body fills no output 0",
        ),
        ('to-layer="1"/>', 'to-layer="2"/>', "back edge of the body"),
        ('axis="1"', 'axis="2"', "axis 2 is outside a rank of 2"),
        ('stride="2"', 'stride="0"', "cannot be cut"),
        ('part_size="2"', 'part_size="3"', "cannot be cut"),
    ],
)
def test_mistakes(old: str, new: str, message: str, tmp_path: Path) -> None:
    ir = running_sum()
    path = ir.save(tmp_path)
    path.write_text(ir.xml().replace(old, new))
    with pytest.raises(DeconvError, match=message):
        deconv_ir.load(path)


def test_errors_in_a_body_name_its_layer_and_line(tmp_path: Path) -> None:
    ir = running_sum()
    text = ir.xml()
    model = deconv_ir.load(ir.save(tmp_path))
    with pytest.raises(deconv_ir.ShapeError, match="layer 'total'") as caught:
        model.infer_shapes({"first": (2, 3)})
    assert text.splitlines()[(caught.value.line or 0) - 1].startswith('<layer id="2" name="total"')


def test_nesting_is_bounded(tmp_path: Path) -> None:
    ir = running_sum()
    at = ir.sections().index("<layers>\n<layer", 10)
    head, tail = ir.sections()[:at], ir.sections()[at:]
    deep = head * 40 + tail + "</body></layer></layers><edges></edges>" * 39
    with pytest.raises(DeconvError, match="nested more than 32 deep"):
        deconv_ir.load(f'<net name="n" version="11">{deep}</net>'.encode())
    limits = deconv_ir.Limits(layers=8)
    with pytest.raises(DeconvError, match="exceed the limit of 8 layers"):
        deconv_ir.load(ir.xml().encode(), bytes(ir.weights), limits=limits)


def test_declared_dims_in_a_body_are_findings(tmp_path: Path) -> None:
    """Nested bodies have findings too; each is reported once, though inference runs repeatedly."""
    ir = growing()
    text = ir.xml()
    line = '<port id="2" precision="I64">\n'
    assert text.count(line) == 1, "the Concat of the inner body"
    path = ir.save(tmp_path)
    path.write_text(text.replace(line, line + "<dim>3</dim><dim>3</dim>\n"))
    model = deconv_ir.load(path, warn=False)
    (found,) = model.findings
    assert (found.rule, found.layer) == ("declared-dims", "'layer2' (Concat, id 2)")
    where = next(i for i, row in enumerate(path.read_text().splitlines(), 1) if row == line.strip())
    assert found.line == where
    assert model.graph.layers[found.location.layer].type == "Loop"
    assert found.location.child == "body"
    with pytest.raises(deconv_ir.ShapeError, match="output 0 declares rank 2"):
        deconv_ir.load(path, strict=True)
    reported = [f for f in deconv_ir.lint(path) if f.line == found.line and f.code == "IR401"]
    assert len(reported) == 1
    shown = invoke(path, "--strict", "--random-inputs", 0, "--shape", "start=2", "--no-output")
    assert shown.exit_code == 2
    assert "(Concat, id 2): output 0 declares rank 2" in shown.output


def test_parts_of_different_shapes(tmp_path: Path) -> None:
    """The state doubles in each iteration, so its values cannot be concatenated along axis 1."""
    ir = IR()
    trips = ir.const(np.array(2))
    go = ir.raw_const(b"\1", "boolean", ())
    body = ir.body()
    state = body.parameter("state", "?,3")
    twice = body.result(body.layer("Concat", [state, state], {"axis": "0"}))
    goes_on = body.result(body.raw_const(b"\1", "boolean", ()))
    maps = joints(
        ("input", 2, state[0], ""),
        ("output", -1, goes_on[0], 'purpose="execution_condition"'),
        ("output", 3, twice[0], cut(1, 3)),
    )
    loop = ir.layer(
        "Loop",
        [trips, go, ir.parameter("x", "1,3")],
        version="opset5",
        bodies=maps + back_edges((twice, state)) + f"<body>\n{body.sections()}</body>\n",
    )
    ir.result(loop)
    model = deconv_ir.load(ir.save(tmp_path))
    with pytest.raises(DeconvError, match=r"iteration 0 gives \[2,3\], iteration 1 \[4,3\]"):
        model.run(np.ones((1, 3), np.float32))
