"""Boxes, rows and coordinates of drawings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from drawn_networks import chain, graph_of, large, random_network, sketch
from support import IR

import deconv_ir
from deconv_ir.drawing.graph.blocks import DrawnBox, name_parts
from deconv_ir.drawing.graph.placing import Drawing, first_open, place
from deconv_ir.drawing.graph.sketch import Sketch

FIXTURES = Path(__file__).parents[1] / "fixtures"
BODIES = [*FIXTURES.glob("bodies/*.xml"), *FIXTURES.glob("drawn/*.xml")]
NETWORKS = {f"random {seed}": (seed, 60 + 40 * seed) for seed in range(6)}


@pytest.fixture(scope="module", params=[*NETWORKS, *BODIES], ids=str)
def drawn(request: pytest.FixtureRequest) -> Sketch:
    if request.param not in NETWORKS:
        return sketch(deconv_ir.load(request.param, warn=False).graph)
    return sketch(graph_of(random_network(*NETWORKS[request.param])))


def drawings(drawn: Sketch) -> Iterator[Drawing]:
    """Return drawings with all groups closed, in the initial state, and with all open."""
    for opened in (set(), first_open(drawn.scene), set(drawn.scene.levels)):
        yield place(drawn.scene, drawn.sizes, opened)


def test_each_layer_is_in_one_box(drawn: Sketch) -> None:
    leaves = list(drawn.scene.boxes[0].leaves())
    shown = set(range(len(drawn.graph.layers))) - set(drawn.flow.hidden)
    assert sorted(leaves) == sorted(shown)


def test_boxes_of_a_group_are_connected_without_cycles(drawn: Sketch) -> None:
    """Links lead only from boxes to later boxes, so there cannot be a cycle."""
    for level in drawn.scene.levels.values():
        row_of = {entry: r for r, row in enumerate(level.rows) for entry in row}
        for _, a, b in level.links:
            assert row_of[a] < row_of[b]
            if a < len(level.boxes) and b < len(level.boxes):
                assert a < b


def test_links_join_neighbouring_rows(drawn: Sketch) -> None:
    for level in drawn.scene.levels.values():
        row_of = {entry: r for r, row in enumerate(level.rows) for entry in row}
        assert sorted(row_of) == list(range(len(row_of)))
        assert {row_of[b] - row_of[a] for _, a, b in level.links} <= {1}


def test_boxes_do_not_overlap(drawn: Sketch) -> None:
    for drawing in drawings(drawn):
        closed = [p for p in drawing.places if not p.open]
        for a, b in itertools.combinations(closed, 2):
            apart_x = a.x + a.width <= b.x + 1e-6 or b.x + b.width <= a.x + 1e-6
            apart_y = a.y + a.height <= b.y + 1e-6 or b.y + b.height <= a.y + 1e-6
            assert apart_x or apart_y


def test_boxes_are_within_their_groups(drawn: Sketch) -> None:
    for drawing in drawings(drawn):
        at = {p.box: p for p in drawing.places}
        for number, level in drawn.scene.levels.items():
            inside = [at[b] for b in level.boxes if b in at]
            left, top, right, bottom = 0.0, 0.0, drawing.width, drawing.height
            if number in at:
                group = at[number]
                left, top = group.x, group.y
                right, bottom = left + group.width, top + group.height
            for p in inside:
                assert left < p.x
                assert top < p.y
                assert p.x + p.width < right
                assert p.y + p.height < bottom


def test_lines_go_down(drawn: Sketch) -> None:
    for drawing in drawings(drawn):
        assert drawing.lines
        for line in drawing.lines:
            assert line.y1 < line.y2


def test_each_tensor_is_a_path_from_its_producer_to_its_consumers(drawn: Sketch) -> None:
    """With all groups open, the segments of each tensor's lines join end to end."""
    drawing = place(drawn.scene, drawn.sizes, set(drawn.scene.levels))
    box_of = {drawn.scene.boxes[p.box].layer: p for p in drawing.places if not p.open}
    exits, entries = drawn.flat.exits, drawn.flat.entries
    ends: dict[int, set[tuple[float, float]]] = {}
    for line in sorted(drawing.lines, key=lambda line: line.y1):
        tensor = drawn.scene.tensors[line.tensor]
        sources = [box_of[layer] for layer in exits.get(tensor, [tensor[0]])]
        starts = {(round(s.x + s.width / 2, 3), round(s.y + s.height, 3)) for s in sources}
        reached = ends.setdefault(line.tensor, starts)
        assert (round(line.x1, 3), round(line.y1, 3)) in reached
        reached.add((round(line.x2, 3), round(line.y2, 3)))
    for number, tensor in enumerate(drawn.scene.tensors):
        for index, taken in enumerate(drawn.graph.topology.sources):
            for port, source in enumerate(taken):
                own = [] if drawn.graph.layers[index].operation.bodies else [index]
                for end in entries.get((index, port), own) if source == tensor else ():
                    p = box_of[end]
                    assert (round(p.x + p.width / 2, 3), round(p.y, 3)) in ends[number]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a/b/c", ["a", "b", "c"]),
        ("/a//b.0/Conv", ["a", "b", "0", "Conv"]),
        ("__module.up.0/aten::add/Add", ["up", "0", "aten::add", "Add"]),
        ("__module", ["__module"]),
        ("conv", ["conv"]),
        ("/", ["/"]),
    ],
)
def test_parts_of_names(name: str, parts: list[str]) -> None:
    assert name_parts(name) == parts


def test_a_deep_name_makes_bounded_groups() -> None:
    ir = chain(12, lambda k: "a/" * 5000 + f"n{k}")
    depth, box = 0, sketch(graph_of(ir)).scene.boxes[0]
    while box.children:
        depth, box = depth + 1, max(box.children, key=lambda b: b.size)
    assert depth <= 10


def outline(box: DrawnBox) -> list[object]:
    return [[b.label, b.count, outline(b)] if b.children else b.label for b in box.children]


def test_groups_follow_names() -> None:
    ir = IR()
    at = ir.parameter("x", "1,2,4,4")
    for name in ("a/in/p", "a/in/q", "a/in/r.s/t", "a/out", "__module.b/c.d"):
        at = ir.layer(UNARY[len(name) % 4], [at], outputs=("1,2,4,4",), name=name)
    ir.result(at, "y")
    inner = ["in", 1, ["p", "q", "r.s/t"]]  # names keep their separators
    found = outline(sketch(graph_of(ir)).scene.boxes[0])
    assert found == ["x", ["a", 1, [inner, "out"]], "b/c.d", "y"]


UNARY = ("Abs", "Exp", "Sigmoid", "Tanh")


def test_bodies_are_inside_the_layers_that_run_them() -> None:
    """An If whose else_body has a Loop, as OpenVINO saved it; the Loop's one body has no frame."""
    found = sketch(deconv_ir.load(FIXTURES / "drawn/if_with_loop.xml", warn=False).graph)
    loop = ["Loop_22", ["state", "Add_12", "sig", "Result_16", "Result_17"]]
    then = ["then_body", ["t", "Multiply_6", "tanh", "Result_8"]]
    (shown,) = (box for box in outline(found.scene.boxes[0]) if isinstance(box, list))
    label, _, bodies = shown
    assert label == "If_25"
    assert [bodies[0][0], sorted(bodies[0][2])] == [then[0], sorted(then[1])]
    assert bodies[1][0] == "else_body"
    (inner,) = (box for box in bodies[1][2] if isinstance(box, list))
    assert [inner[0], sorted(inner[2])] == [loop[0], sorted(loop[1])]
    # Shapes are those of the tensors that enter, not the wider ones that the body declares.
    (tanh,) = (i for i, layer in enumerate(found.graph.layers) if layer.name == "tanh")
    assert [str(dim) for dim in found.outputs[tanh][0].shape or ()] == ["1", "4", "?"]


def test_repeated_blocks_are_one_box_with_a_count() -> None:
    graph = graph_of(chain(42, lambda k: f"net/block{k // 4}/layer{k % 4}"))
    _, (label, count, blocks), _ = outline(sketch(graph).scene.boxes[0])  # type: ignore[misc]
    assert (label, count) == ("net.block0 \N{HORIZONTAL ELLIPSIS} block9", 10)
    assert [len(block[2]) for block in blocks] == [4] * 10


def test_blocks_without_names_are_found_by_their_structure() -> None:
    box = sketch(graph_of(chain(42, lambda k: f"Layer_{k}"))).scene.boxes[0]
    assert [(b.count, b.size) for b in box.children] == [(1, 1), (10, 40), (1, 1)]
    assert {b.size for b in box.children[1].children} == {4}


def test_a_group_that_others_interrupt_is_drawn_in_parts() -> None:
    """a/1, a/2, a/3 -> b -> a/4, a/5, a/6: one box around all of a would be on a cycle."""
    ir = IR()
    at = ir.parameter("x", "1,2,4,4")
    for k, name in enumerate(("a/1", "a/2", "a/3", "b", "a/4", "a/5", "a/6")):
        at = ir.layer(UNARY[k % 4], [at], outputs=("1,2,4,4",), name=name)
    ir.result(at, "y")
    shown = outline(sketch(graph_of(ir)).scene.boxes[0])
    assert shown == ["x", ["a", 1, ["1", "2", "3"]], "b", ["a", 1, ["4", "5", "6"]], "y"]


def test_constants_belong_to_the_layers_that_take_them() -> None:
    import numpy as np

    ir = IR()
    x = ir.parameter("x", "1,2,4,4")
    c = ir.const(np.ones((1, 2, 1, 1), np.float16), "c")
    half = ir.layer("Convert", [c], {"destination_type": "f32"}, name="half")
    ir.result(ir.layer("Add", [x, half], name="sum"), "y")
    found = sketch(graph_of(ir))
    assert [found.graph.layers[i].name for i in found.flow.order] == ["x", "sum", "y"]
    assert {found.graph.layers[i].name for i in found.flow.hidden} == {"c", "half"}
    assert {found.graph.layers[i].name for i in found.flow.hidden.values()} == {"sum"}


def test_a_tensor_that_passes_many_rows_does_not_make_many_places() -> None:
    """Every layer's output goes to the last layer: a place per line and row would be quadratic."""
    ir = IR()
    at = ir.parameter("x", "1,2,4,4")
    all_ = [at]
    for k in range(300):
        at = ir.layer(("Abs", "Exp")[k * k % 7 % 2], [at], outputs=("1,2,4,4",), name=f"n{k}")
        all_.append(at)
    ir.result(ir.layer("Concat", all_, {"axis": "1"}, outputs=("1,602,4,4",), name="all"), "y")
    found = sketch(graph_of(ir))
    entries = sum(len(row) for level in found.scene.levels.values() for row in level.rows)
    assert entries < 20 * 303


def test_a_large_network_is_mostly_closed_at_first() -> None:
    found = sketch(graph_of(large()))
    drawing = place(found.scene, found.sizes, first_open(found.scene))
    assert len(found.graph.layers) == 12_500
    assert 3 < len(drawing.places) < 150
    assert max(len(level.boxes) for level in found.scene.levels.values()) < 400
