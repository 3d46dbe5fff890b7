"""Old files as they were published load without findings, run, and are upgraded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from deconv_ir.linter.engine import check_file
from deconv_ir.linter.options import choose

from .published import FILES, Published


def images(model: deconv_ir.Model) -> dict[str, np.ndarray]:
    """Return an input for each Input of a model."""
    rng = np.random.default_rng(5)
    return {
        name: rng.standard_normal(info.shape).astype(np.float32)
        for name, info in model.inputs.items()
    }


@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_published_files(make: Callable[[], Published], tmp_path: Path) -> None:
    made = make()
    path = made.write(tmp_path)
    assert not check_file(path, choose()).findings
    model = deconv_ir.load(path)
    first = model.run(images(model))
    new = tmp_path / "new.xml"
    deconv_ir.save(model, new)
    assert not check_file(new, choose()).findings
    second = deconv_ir.load(new).run(images(model))
    for name, array in first.items():
        assert np.isfinite(array).all()
        np.testing.assert_allclose(second[name], array, 1e-5, 1e-5)
    path.with_suffix(".bin").unlink()
    assert {found.code for found in check_file(path, choose()).findings} == {"IR501"}
