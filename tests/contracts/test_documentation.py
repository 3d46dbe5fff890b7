"""The documentation lists every public name and every page, and the guide's examples run."""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path

import pytest

import deconv_ir
import deconv_ir.operations

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"


@pytest.mark.parametrize(
    ("module", "page"), [(deconv_ir, "api"), (deconv_ir.operations, "operations")]
)
def test_reference_lists_every_public_name(module: object, page: str) -> None:
    text = (DOCS / "reference" / f"{page}.md").read_text()
    listed = re.findall(r"^::: (\S+)$", text, re.M)
    names = [n for n in module.__all__ if n != "__version__"]  # type: ignore[attr-defined]
    prefix = module.__name__  # type: ignore[attr-defined]
    assert sorted(listed) == sorted(f"{prefix}.{name}" for name in names)


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert pages <= listed
    assert listed - pages == {"index.md", "contributing.md", "security.md", "changelog.md"}


def test_the_examples_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "samples", tmp_path / "samples")
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    # A block's fence would be read as output of its last example.
    text = re.sub(r"^```.*$", "", (DOCS / "guide.md").read_text(), flags=re.M)
    test = doctest.DocTestParser().get_doctest(text, {}, "guide.md", "docs/guide.md", 0)
    assert len(test.examples) > 20
    printed: list[str] = []
    assert doctest.DocTestRunner().run(test, out=printed.append).failed == 0, "".join(printed)
    # As a reader does who types them into a checkout, which stays clean: git ignores out/.
    assert {path.name for path in tmp_path.iterdir()} == {"samples", "out"}


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_users_are_not_sent_to_internal_modules(path: Path) -> None:
    """Code on a page only imports and calls public names."""
    text = path.read_text()
    used = set(re.findall(r"\bdeconv_ir(?:\.\w+)+(?=\()", text))
    used |= set(re.findall(r"^(?:>>> )?(?:from|import) (deconv_ir[\w.]*)", text, re.M))
    for name in used:
        module, _, attribute = name.rpartition(".")
        modules = ("deconv_ir", "deconv_ir.lint_rules", "deconv_ir.operations")
        public = name in modules or attribute in getattr(
            {"deconv_ir": deconv_ir, "deconv_ir.operations": deconv_ir.operations}.get(module),
            "__all__",
            (),
        )
        assert public, name


PATH = re.compile(r"(?<![\w/.-])(?:deconv_ir|cli|tests|samples|bench|tools|docs)/[\w./-]*\w")
# Names that stand for a file of the reader's; docs/convolution.txt is such an example.
EXAMPLES = {"docs/convolution.txt", "samples/spec/OPERATION.toml"}


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")]), ids=lambda page: page.name
)
def test_paths_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    for name in set(PATH.findall(text)) - EXAMPLES:
        assert (ROOT / name).exists() or (page.parent / name).exists(), name
    tests = {path.name for path in (ROOT / "tests").rglob("*.py")}
    assert set(re.findall(r"\btest_\w+\.py", text)) <= tests


def test_every_package_has_its_row_in_the_architecture() -> None:
    text = (DOCS / "architecture.md").read_text()
    packages = {path.parent.name for path in (ROOT / "deconv_ir").glob("*/__init__.py")}
    assert packages <= set(re.findall(r"^\| `deconv_ir/(\w+)/`", text, re.M))


def test_contributing_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text[text.index("## Where is") : text.index("## Adding an operation")]
    paths = re.findall(r"`([\w/]+(?:\.inc)?\.(?:py|c|h|js))`", table)
    assert len(paths) > 25
    roots = {
        path: ROOT if path.startswith(("cli/", "tools/", "tests/")) else ROOT / "deconv_ir"
        for path in paths
    }
    assert [path for path in paths if not (roots[path] / path).is_file()] == []
