"""ONNX networks with bodies: onnxruntime, OpenVINO's conversion, and this library.

The control flow is computed from data: numbers of iterations, exits and branches.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deconv_ir
from deconv_ir.ir.graph import walk_graphs

from .operations.harness import compare, core
from .runtimes import onnx, ov

onnxruntime = pytest.importorskip("onnxruntime", reason="install the `peers` extra")
pytestmark = pytest.mark.peers

NETWORKS = {
    "loop": """
network (float[5,2] x, float[1,2] first, int64 trips, bool go, float limit)
=> (float[1,2] last, float[K,1,2] rows) {
  last, rows = Loop (trips, go, first) <body = step (int64 i, bool c, float[1,2] s)
    => (bool on, float[1,2] t, float[1,2] r) {
      zero = Constant <value_ints = [0]> ()
      third = Constant <value_floats = [0.3, 0.7]> ()
      row = Gather <axis = 0> (x, i)
      rows = Unsqueeze (row, zero)
      t = Add (s, rows)
      total = ReduceSum <keepdims = 0> (t)
      on = Less (total, limit)
      r = Mul (t, third)
    }>
}""",
    "counted": """
network (float[N,2] x) => (float[2] last, float[K,2] sums) {
  zero = Constant <value_int = 0> ()
  yes = Cast <to = 9> (zero)
  go = Not (yes)
  extents = Shape (x)
  trips = Gather (extents, zero)
  start = Constant <value_floats = [0.25, -0.5]> ()
  last, sums = Loop (trips, go, start) <body = step (int64 i, bool c, float[2] s)
    => (bool on, float[2] t, float[2] r) {
      on = Identity (c)
      row = Gather <axis = 0> (x, i)
      t = Add (s, row)
      r = Tanh (t)
    }>
}""",
    "scan": """
network (float[2] first, float[N,2] x, float[2,N] y)
=> (float[2] last, float[N,2] a, float[2,N] b) {
  last, a, b = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1],
    scan_input_directions = [INPUTS], scan_output_axes = [0, 1],
    scan_output_directions = [OUTPUTS], body = step (float[2] s, float[2] p, float[2] q)
    => (float[2] t, float[2] u, float[2] v) {
      half = Constant <value_floats = [0.5, 0.3]> ()
      pq = Mul (p, q)
      decayed = Mul (s, half)
      t = Add (decayed, pq)
      u = Add (t, p)
      v = Sub (t, q)
    }> (first, x, y)
}""",
    "branch in loop": """
network (float[3] x, int64 trips) => (float[3] last) {
  zero = Constant <value_int = 0> ()
  yes = Cast <to = 9> (zero)
  go = Not (yes)
  two = Constant <value_int = 2> ()
  last = Loop (trips, go, x) <body = step (int64 i, bool c, float[3] s) => (bool on, float[3] t) {
    on = Identity (c)
    rest = Mod (i, two)
    odd = Cast <to = 9> (rest)
    t = If (odd) <
      then_branch = odds () => (float[3] a) { a = Mul (s, x) },
      else_branch = evens () => (float[3] b) {
        more = Constant <value_floats = [0.1, 0.2, 0.3]> ()
        b = Add (s, more)
      }>
  }>
}""",
    "loop in loop": """
network (float[3] x, int64 trips, float limit) => (float[3] last, float[K] sums) {
  zero = Constant <value_int = 0> ()
  yes = Cast <to = 9> (zero)
  go = Not (yes)
  last, sums = Loop (trips, go, x) <body = outer (int64 i, bool c, float[3] s)
    => (bool on, float[3] t, float total) {
      on = Identity (c)
      t = Loop (i, go, s) <body = inner (int64 j, bool d, float[3] u) => (bool more, float[3] v) {
        step = Constant <value_floats = [0.1, 0.2, 0.3]> ()
        v = Add (u, step)
        high = ReduceMax <keepdims = 0> (v)
        more = Less (high, limit)
      }>
      total = ReduceSum <keepdims = 0> (t)
    }>
}""",
    "scan in branch": """
network (float[2] first, float[N,2] x, bool cond) => (float[2] last, float[N,2] all) {
  last, all = If (cond) <
    then_branch = scanned () => (float[2] p, float[N,2] q) {
      p, q = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] r)
        => (float[2] t, float[2] u) { t = Add (s, r)  u = Mul (t, s) }> (first, x)
    },
    else_branch = other () => (float[2] f, float[N,2] g) {
      f = Neg (first)
      g = Add (x, f)
    }>
}""",
    "four deep": """
network (float[3] x, int64 trips, float limit) => (float[3] last) {
  zero = Constant <value_int = 0> ()
  yes = Cast <to = 9> (zero)
  go = Not (yes)
  last = Loop (trips, go, x) <body = first (int64 i, bool c, float[3] s) => (bool on, float[3] t) {
    on = Identity (c)
    odd = Cast <to = 9> (i)
    t = If (odd) <
      then_branch = second () => (float[3] e) {
        e = Loop (i, go, s) <body = third (int64 j, bool d, float[3] u) => (bool more, float[3] v) {
          high = ReduceMax <keepdims = 0> (u)
          more = Less (high, limit)
          v = If (more) <
            then_branch = fourth () => (float[3] g) {
              step = Constant <value_floats = [0.1, 0.2, 0.3]> ()
              g = Add (u, step)
            },
            else_branch = fifth () => (float[3] h) { h = Mul (u, x) }>
        }>
      },
      else_branch = sixth () => (float[3] f) { f = Add (s, x) }>
  }>
}""",
}
Feed = Mapping[str, np.ndarray]


def array(value: Any, dtype: Any = np.float32) -> np.ndarray:
    return np.array(value, dtype)


def trips_of(x: list[float], limits: list[float]) -> list[Feed]:
    return [
        {"x": array(x), "trips": array(trips, np.int64), "limit": array(limit)}
        for limit in limits
        for trips in (0, 1, 2, 5)
    ]


def of_rows(count: int, *names: str) -> Feed:
    rng = np.random.default_rng(count)
    shapes = {"first": (2,), "x": (count, 2), "y": (2, count)}
    return {name: rng.uniform(-1, 1, shapes[name]).astype(np.float32) for name in names}


ROWS = np.arange(10).reshape(5, 2)
LOOPS = [
    (5, True, 1e4), (1, True, 1e4), (0, True, 1e4), (3, False, 1e4), (5, True, 8), (5, True, -1),
]  # fmt: skip
"""All, one and no iterations, an initially false condition, exits in iterations three and one."""
FEEDS: dict[str, list[Feed]] = {
    "loop": [
        {
            "x": array(ROWS),
            "first": array([[0.5, 0.5]]),
            "trips": array(trips, np.int64),
            "go": array(go, bool),
            "limit": array(limit),
        }
        for trips, go, limit in LOOPS
    ],
    "counted": [of_rows(n, "x") for n in (4, 1, 0)],
    "branch in loop": [{"x": array([1, -2, 3]), "trips": array(n, np.int64)} for n in (0, 1, 2, 5)],
    "loop in loop": trips_of([0.5, 1, 2], [2.7, 0.0, 1e4]),
    "scan in branch": [
        {**of_rows(n, "first", "x"), "cond": array(cond, bool)}
        for n in (4, 1)
        for cond in (True, False)
    ],
    "four deep": trips_of([0.5, 1.1, 1.2], [2.7, 0.0, 1e4]),
}
for inputs in ("0, 0", "1, 1", "0, 1"):
    for outputs in ("0, 0", "1, 0"):
        name = f"scan, {inputs} to {outputs}"
        NETWORKS[name] = NETWORKS["scan"].replace("INPUTS", inputs).replace("OUTPUTS", outputs)
        FEEDS[name] = [of_rows(n, "first", "x", "y") for n in (4, 1)]
del NETWORKS["scan"]


def check(mine: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
    """Compare results; without iterations peers may give unknown dims as 0."""
    if mine.size or theirs.size:
        assert mine.shape == theirs.shape
        compare(mine, theirs, tolerance)
    else:
        assert all(b in (a, 0) for a, b in zip(mine.shape, theirs.shape, strict=True))


@pytest.mark.parametrize("form", ["static", "dynamic", "f16"])
@pytest.mark.parametrize("name", NETWORKS)
def test_bodies(name: str, form: str, tmp_path: Path) -> None:
    header = '<ir_version: 9, opset_import: ["" : 20]>'
    network = onnx.parser.parse_model(header + NETWORKS[name])
    onnx.checker.check_model(network)
    onnx.save(network, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(
        tmp_path / "model.onnx", providers=["CPUExecutionProvider"]
    )
    path = tmp_path / "model.xml"
    converted = ov.convert_model(tmp_path / "model.onnx")
    feeds = FEEDS[name]
    if form != "dynamic":
        feeds = [
            f
            for f in feeds
            if {n: a.shape for n, a in f.items()} == {n: a.shape for n, a in feeds[0].items()}
        ]
        converted.reshape({n: ov.PartialShape(list(a.shape)) for n, a in feeds[0].items()})
    else:
        converted.reshape({n: ov.PartialShape([-1] * a.ndim) for n, a in feeds[0].items()})
    ov.save_model(converted, path, compress_to_fp16=form == "f16")
    ours = deconv_ir.load(path, semantics="openvino")
    found = [*ours.findings, *deconv_ir.lint(path)]
    assert not [f for f in found if f.severity is deconv_ir.Severity.ERROR]
    assert sum(1 for _ in walk_graphs(ours.graph)) > 1, "it has bodies"
    for feed in feeds:
        mine = list(ours.run(feed).values())
        # Without iterations, OpenVINO returns the scan outputs of the compiled model's last run.
        compiled = core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        theirs = [np.array(a) for a in compiled(dict(feed)).values()]
        original = session.run(None, dict(feed))
        for a, b, c in zip(mine, theirs, original, strict=True):
            check(a, b, 2e-5)
            check(a, c, 2e-3 if form == "f16" else 2e-5)
