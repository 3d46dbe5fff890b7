"""Every public name has an example in its docstring, which runs and prints the output shown."""

from __future__ import annotations

import doctest
import inspect
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import deconv_ir
import deconv_ir.operations
from deconv_ir.ops.base import REGISTRY

ROOT = Path(__file__).parent.parent.parent
NAMES = [
    (module, name)
    for module in (deconv_ir, deconv_ir.operations)
    for name in module.__all__
    if name != "__version__"
]
FINDER = doctest.DocTestFinder(exclude_empty=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with samples/ in which examples may write; changed settings are restored."""
    shutil.copytree(ROOT / "samples", tmp_path / "samples")
    monkeypatch.chdir(tmp_path)
    kinds = set(REGISTRY)
    yield
    for kind in set(REGISTRY) - kinds:
        if any(not cls.__module__.startswith("deconv_ir.") for cls in REGISTRY[kind].values()):
            del REGISTRY[kind]
    deconv_ir.set_threads(None)
    deconv_ir.set_memory_pool_limit(192 << 20)


def examples_of(value: object, name: str) -> list[doctest.DocTest]:
    module = sys.modules[value.__module__] if hasattr(value, "__module__") else None
    return [test for test in FINDER.find(value, name, module, globs={}) if test.examples]


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[name for _, name in NAMES])
@pytest.mark.usefixtures("checkout")
def test_examples_run(module: object, name: str) -> None:
    tests = examples_of(getattr(module, name), name)
    sources = "".join(example.source for test in tests for example in test.examples)
    assert re.search(rf"\b{name}\b", sources), f"no docstring of {name} has an example of it"
    assert not any(doctest.SKIP in e.options for test in tests for e in test.examples)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in tests:
        printed: list[str] = []
        assert runner.run(test, out=printed.append).failed == 0, "".join(printed)


@pytest.mark.usefixtures("checkout")
def test_examples_of_the_package_run() -> None:
    for module in (deconv_ir, deconv_ir.operations):
        (test,) = doctest.DocTestFinder(recurse=False).find(module, globs={})
        assert test.examples
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


PUBLIC_CLASSES = {getattr(m, n) for m, n in NAMES if inspect.isclass(getattr(m, n))}


def test_public_methods_have_docstrings() -> None:
    for cls in PUBLIC_CLASSES:
        for member, value in vars(cls).items():
            documented = inspect.isfunction(value) or isinstance(value, property)
            if documented and not member.startswith("_"):
                assert inspect.getdoc(value), f"{cls.__name__}.{member}"
