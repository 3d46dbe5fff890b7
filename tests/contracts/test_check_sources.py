"""tools/check_sources.py lists what a planted source does wrong; `make check` runs it on all."""

from __future__ import annotations

import check_sources
import pytest

TALL = "int f(int a) {\n    if (a) {\n    }\n" + "    a++;\n" * 77 + "}\n"


def lines_of(**texts: str) -> list[str]:
    """Return what is listed for sources, given as folder_name_suffix=text."""
    sources = {
        "/".join(k.rsplit("_", 2)[:2]) + f".{k.rsplit('_', 1)[1]}": t for k, t in texts.items()
    }
    return list(check_sources.violations(sources))


def test_all_kinds_of_sources_are_read() -> None:
    found = check_sources.read_sources()
    assert {path.rpartition(".")[2] for path in found} == {"py", "c", "h"}
    assert {"cli/start.py", "deconv_ir/kernels/_native/module.c"} <= found.keys()


def test_a_function_of_c_fits_on_a_page() -> None:
    assert lines_of(native_a_c=TALL) == ["native/a.c:1: a function of 81 lines, at most 80 fit"]
    assert lines_of(native_a_c=TALL.replace("    a++;\n", "", 1)) == []
    second = "void NAME(g)(int a,\n  int b) {\n}\n\n" + TALL
    assert lines_of(native_a_c=second) == ["native/a.c:5: a function of 81 lines, at most 80 fit"]


def test_private_and_inner_classes_have_names_of_their_own() -> None:
    texts = {"x_a_py": "class Box:\n    class Row: ...", "x_b_py": "def f():\n    class _Row: ..."}
    assert lines_of(**texts) == ["class Row stands in x/a.py, x/b.py"]
    assert lines_of(x_a_py="class Tile: ...", x_b_py="class Tile: ...") == []


def test_a_name_stands_for_one_struct() -> None:
    texts = {
        "x_a_h": "struct tile {\n};\n",
        "x_b_c": "static struct tile {\n} t;\nstruct tile *u;\n",
    }
    assert lines_of(**texts) == ["struct tile stands in x/a.h, x/b.c"]


@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ('importlib.import_module(f".rules.{name}", __package__)', True),
        ('import_module(".a", __name__)', True),
        ('importlib.import_module("deconv_ir.loading").load', False),
        ('importlib.import_module(f"deconv_ir.{name}")', False),
        ('importlib.import_module("..loading", __package__)', False),
        ('importlib.import_module(".loading", "deconv_ir")', False),
        ("importlib.import_module(name)", False),
        ('__import__("deconv_ir.loading")', False),
    ],
)
def test_imports_of_other_packages_are_recognised(source: str, allowed: bool) -> None:
    seen = ["cli/x.py:1: an import that import-linter does not see"]
    assert list(check_sources.violations({"cli/x.py": source})) == ([] if allowed else seen)


@pytest.mark.parametrize("path", sorted(check_sources.OTHERS))
def test_a_file_that_imports_other_distributions_hides_none_of_ours(path: str) -> None:
    hidden = 'importlib.import_module("deconv_ir.loading")'
    assert len(list(check_sources.violations({path: hidden}))) == 1
    assert list(check_sources.violations({path: "importlib.import_module(name)"})) == []
