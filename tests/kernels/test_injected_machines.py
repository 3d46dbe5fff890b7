"""Run tests of cost models' choices for every processor in their tables, on any machine.

All tests pass under each: `DECONV_IR_MACHINE=zen5 make test`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deconv_ir.kernels.runtime.cpu import MACHINES
from deconv_ir.kernels.runtime.extension import compiled_module

WINOGRAD = "test_winograd.py::test_"
TESTS = (
    *("test_dispatch.py", "test_outside.py", "test_scratch.py"),
    f"{WINOGRAD}choice_by_cost",
    f"{WINOGRAD}tiles_are_as_high_as_blocks_of_positions_are_full",
    f"{WINOGRAD}panels_are_shared_where_positions_are_few",
)
# Two names may describe one machine.
DISTINCT = {machine: name for name, machine in MACHINES.items()}


@pytest.mark.skipif(compiled_module() is None, reason="the compiled kernel was not built")
@pytest.mark.parametrize("name", DISTINCT.values())
def test_choices_under_injected_machines(name: str) -> None:
    """Tests run in a process of their own, since plans are cached and the machine is global."""
    here = Path(__file__).parent
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short"),
            *(str(here / test) for test in TESTS),
        ],
        cwd=here.parents[1],
        env={**os.environ, "DECONV_IR_MACHINE": name},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert " failed" not in done.stdout
