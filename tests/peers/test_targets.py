"""Verdicts of --target compared with the installed OpenVINO; bench/targets.py has more releases."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from deconv_ir.linter.releases import release_of, shown
from deconv_ir.linter.targets.table import measured
from deconv_ir.linter.targets.trial import Trial

pytestmark = pytest.mark.peers

ROOT = Path(__file__).parents[2]


def compared() -> Any:
    """Return the module bench/targets.py."""
    spec = importlib.util.spec_from_file_location("bench_targets", ROOT / "bench/targets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_likely_is_compiled(tmp_path: Path) -> None:
    """Saved cases, fixtures and mutants: a verdict is *likely* only where OpenVINO compiles."""
    bench = compared()
    samples = [*bench.saved_cases(40), *bench.fixtures()]
    samples += [*bench.versions(samples), *bench.mutated(samples, 60)]
    path = tmp_path / "m.xml"
    counts = {True: 0, False: 0}
    with Trial() as trial:
        trial.start()
        release = release_of(trial.version.split("-")[0])
        assert release in measured().releases
        for sample in samples:
            word = bench.verdicts(sample)[shown(release)]
            if word == "unverified":
                continue
            path.write_text(sample.file.text, "utf-8")
            path.with_suffix(".bin").write_bytes(sample.file.weights or b"\0")
            answer = trial.ask(str(path))
            counts[answer.accepted] += 1
            assert word != "likely" or answer.accepted, (sample.name, answer)
    assert min(counts.values()) > 10
