"""The fit of the cost model's constants, by measurements that the tests make up."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import cost_fit
import fit_costs
import numpy as np
import pytest
from cost_fit import Measurements, Sample

from deconv_ir.ir.scratchpad import DIRECT, UNLIMITED
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.native import CompiledKernel
from deconv_ir.kernels.native_plan import CompiledPlan
from deconv_ir.kernels.plan import RunShapes
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.runtime.cpu import MACHINES, instruction_set
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

needs_extension = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)
UNBOUNDED = [math.inf] * 4


def measurements(true, scale=1.0, noise=0.0, disturbed=0, bare=()):
    """Make up cycles of 60 plans, 4 of each layer: products of 3 constants with counts of work.

    A fourth constant is never used.  `disturbed`: plans that were measured at three times
    their cycles; `bare`: constants that no plan uses.
    """
    rng = np.random.default_rng(0)
    work = rng.lognormal(0, 1.5, (60, 4))
    work[:, [3, *bare]] = 0
    fixed = rng.lognormal(0, 1, 60)

    def predict(costs):
        return fixed + work @ np.asarray(costs)

    measured = scale * predict(true) * np.exp(rng.normal(0, noise, 60))
    measured[:disturbed] *= 3
    return Measurements(predict, measured, np.arange(60) // 4)


@pytest.mark.parametrize(
    ("made", "tolerance"),
    [
        ({}, 0.02),
        ({"scale": 1.4}, 0.02),
        ({"noise": 0.02}, 0.1),
        ({"disturbed": 6, "scale": 0.8}, 0.1),
    ],
    ids=["exact", "another clock", "noise", "disturbed"],
)
def test_constants_are_recovered(made, tolerance):
    true = [2.0, 0.5, 3.0, 1.0]
    found = cost_fit.fit(measurements(true, **made), [1.0, 1.0, 1.5, 7.0], UNBOUNDED)
    assert found.fitted == [0, 1, 2]
    assert found.constants[:3] == pytest.approx(true[:3], rel=tolerance)
    assert found.constants[3] == 7.0
    assert found.scale == pytest.approx(made.get("scale", 1.0), rel=tolerance)


def test_constants_that_samples_do_not_determine_keep_their_values():
    found = cost_fit.fit(
        measurements([2.0, 5.0, 3.0, 1.0], bare=[1]), [1.0, 1.0, 1.5, 7.0], UNBOUNDED
    )
    assert found.fitted == [0, 2]
    assert found.constants[1] == 1.0


def test_constants_stay_below_their_bounds():
    found = cost_fit.fit(
        measurements([2.0, 0.5, 3.0, 1.0]), [1.0] * 4, [1.2, math.inf, math.inf, math.inf]
    )
    assert found.constants[0] <= 1.2


def test_a_layer_is_predicted_by_constants_that_were_fitted_without_it():
    """Whatever was measured for a layer does not change its prediction."""
    true, start = [2.0, 0.5, 3.0, 1.0], [1.0, 1.0, 1.5, 7.0]
    given = measurements(true)
    first = given.groups == 0
    changed = given.measured.copy()
    changed[first] *= 10
    before = cost_fit.left_out(given, start, UNBOUNDED)
    after = cost_fit.left_out(given._replace(measured=changed), start, UNBOUNDED)
    assert before == pytest.approx(given.measured, rel=0.03)
    assert after[first] == pytest.approx(before[first], rel=1e-9)
    assert after[~first] != pytest.approx(before[~first], rel=1e-9)


def sample(layer, predicted, measured, chosen=False, threads=1):
    return Sample(layer, threads, "direct", f"tile {predicted}", chosen, predicted, measured)


def test_exactly_the_predictions_beyond_20_percent_are_listed():
    ratios = [1.0, 1.19, 1.21, 0.81, 0.79, 1.2, 0.8, 5.0]
    samples = [sample(f"layer{i}", 100 * ratio, 100) for i, ratio in enumerate(ratios)]
    kinds = [cost_fit.Predictions("old", [100 * ratio for ratio in ratios])] * 2
    assert cost_fit.beyond(kinds[0].cycles, [100] * 8) == [2, 4, 7]
    text = cost_fit.report(samples, ["A"], [1.0], cost_fit.Fit([2.0], [0], 1.0), kinds)
    _, _, listed = text.partition("beyond 20 % (old, new constants):\n")
    lines = listed.partition("\n\n")[0].splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["1.21", "1.21", "layer2,"],
        ["0.79", "0.79", "layer4,"],
        ["5.00", "5.00", "layer7,"],
    ]
    assert "A                                  1.0       2.0" in text


def test_choices_and_what_they_cost():
    """Two layers on one thread, one of them on two as well; worked out by hand."""
    samples = [
        sample("a", 100, 120, chosen=True),
        sample("a", 110, 100),
        sample("b", 50, 52, chosen=True),
        sample("b", 60, 50),
        sample("a", 70, 60, chosen=True, threads=2),
        sample("a", 60, 90, threads=2),
    ]
    ((chosen, fastest, speedup),) = cost_fit.wrong_choices(samples)
    assert (chosen, fastest, speedup) == (samples[0], samples[1], pytest.approx(1.2))
    # By the predictions: a takes 120 of 100, b 52 of 50, and a on two threads 90 of 60.
    expected = (1.2 * 1.04 * 1.5) ** (1 / 3)
    assert cost_fit.regret(samples, [s.predicted for s in samples]) == pytest.approx(expected)


def test_constants_are_written_where_they_are():
    text = (
        "/* Text with FIRST 1.0 */\n"
        "COST(FIRST, 1.0)         /* of a tile */\n"
        "COST(SECOND, 0.012)\n"
        "COST(THIRD, 300.0)       /* kept */\n"
    )
    assert cost_fit.with_constants(text, {"FIRST": 1234.56, "SECOND": 0.0123456}) == (
        "/* Text with FIRST 1.0 */\n"
        "COST(FIRST, 1230.0)      /* of a tile */\n"
        "COST(SECOND, 0.0123)\n"
        "COST(THIRD, 300.0)       /* kept */\n"
    )


@needs_extension
def test_the_file_of_constants_is_what_the_extension_was_built_from():
    module = compiled_module()
    assert module is not None
    text = fit_costs.CONSTANTS.read_text()
    assert cost_fit.with_constants(text, dict(module.COST_CONSTANTS)) == text
    changed = cost_fit.with_constants(text, {name: 9.99 for name, _ in module.COST_CONSTANTS})
    assert changed.count(", 9.99)") == len(module.COST_CONSTANTS) == text.count("\nCOST(")


# Filter, strides, groups, extents, batch; and whether it is a convolution.
KINDS = {
    "direct sums": ((20, 24, 3, 3), (2, 2), 1, (30, 40), 1, False),
    "Winograd": ((64, 64, 4, 4), (2, 2), 1, (32, 24), 2, False),
    "one position": ((64, 32, 4, 4), (2, 2), 1, (1, 1), 1, False),
    "folded": ((16, 1, 8, 8), (4, 4), 1, (40, 60), 1, False),
    "depthwise": ((24, 1, 3, 3), (1, 1), 24, (60, 60), 1, True),
    "short rows": ((256, 64, 4, 4), (2, 2), 1, (4, 4), 8, False),
    "one tap": ((64, 96, 1, 1), (1, 1), 1, (33, 33), 1, True),
    "volume": ((32, 24, 3, 3, 3), (2, 2, 2), 1, (12, 10, 9), 1, False),
}


def planned(kind, machine, budget):
    weights, strides, groups, extents, batch, forward = KINDS[kind]
    ones = (1,) * len(strides)
    problem = Problem.of_filter(weights, strides, ones, groups, forward=forward)
    kernel = CompiledKernel(
        problem, np.ones(weights, np.float32), None, Activation(), machine=machine
    )
    data = (batch, groups * problem.channels_in, *extents)
    output = tuple(s * x for s, x in zip(strides, extents, strict=True))
    shapes = RunShapes(data, (0,) * len(strides), (batch, groups * problem.channels_out, *output))
    return CompiledPlan(kernel, shapes, budget)


@needs_extension
@pytest.mark.parametrize("budget", [DIRECT, UNLIMITED], ids=["direct", "any"])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_for_a_plan_equal_those_it_was_chosen_by(kind, budget):
    module = compiled_module()
    assert module is not None
    costs = [value for _, value in module.COST_CONSTANTS]
    for machine in (MACHINES["small"], MACHINES["sapphire-rapids"]):
        for threads in (1, 3):
            set_threads(threads)
            plan = planned(kind, machine, budget)
            told = plan.details
            assert plan.predict(machine, costs) == pytest.approx(told["cycles"], rel=1e-12)
            # Other constants count; neither they nor another processor are kept.
            assert plan.predict(machine, [3 * cost for cost in costs]) != told["cycles"]
            halved = machine._replace(instruction_set=instruction_set(), halved=True)
            assert plan.predict(halved, costs) >= told["cycles"]
            assert plan.predict(machine, costs) == pytest.approx(told["cycles"], rel=1e-12)
            assert planned(kind, machine, budget).details == told


@needs_extension
def test_the_command_writes_what_it_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the constants only if it is asked to; a second run fits the measurements of the first."""
    constants = tmp_path / "constants.h"
    text = fit_costs.CONSTANTS.read_text()
    constants.write_text(text)
    monkeypatch.setattr(fit_costs, "CONSTANTS", constants)
    options = ["--case", "grp4", "--case", "dw4s2", "--random", "1", "--threads", "1"]
    command = ["fit_costs.py", *options, "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*command, "--seconds", "0"])
    fit_costs.main()
    assert constants.read_text() == text
    written = json.loads((tmp_path / "costs.json").read_text())
    rows = (tmp_path / "costs.md").read_text().splitlines()
    assert sum(row.startswith("| grp4 | 1 |") for row in rows) == sum(
        entry["layer"] == "grp4" for entry in written["samples"]
    )
    assert {entry["layer"] for entry in written["samples"]} >= {"grp4", "dw4s2"}
    assert all(entry["measured"] > 0 for entry in written["samples"])
    again = [*command, "--measured", str(tmp_path / "costs.json"), "--write"]
    monkeypatch.setattr(sys, "argv", again)
    capsys.readouterr()
    fit_costs.main()
    count = len(written["samples"])
    assert f"{count} plans, {count} of them are still planned" in capsys.readouterr().out
    second = json.loads((tmp_path / "costs.json").read_text())
    assert second["samples"] == written["samples"]
    assert constants.read_text() == cost_fit.with_constants(text, second["fitted"])
