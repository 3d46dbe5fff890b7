"""Helpers shared by the tests of plans: arrays, rows of plans, networks."""

from __future__ import annotations

import numpy as np

import deconv_ir
from deconv_ir.execute.listing import PlanRow, as_rows

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def rows_of(model: deconv_ir.Model, inputs: object, **options: object) -> dict[str, PlanRow]:
    plan = model.bind(inputs, **options).plan  # type: ignore[arg-type]
    return {row.layer: row for row in as_rows(plan)}
