"""--fix and --diff: bytes outside the fixed places stay unchanged."""

from __future__ import annotations

import difflib
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hostile.children import python

from deconv_ir.linter.catalogue import RULES
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.fix import fix_bytes
from deconv_ir.linter.options import choose

from .conftest import ALL_CASES, Case, case_of
from .mutations import mutate

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures/ir").glob("*.xml"))

DEFAULT = choose()
FIXABLE = {entry.name for entry in RULES.values() if RULES[entry.code].fix}
# A person must decide about these: see the rules' `fix`.
LEFT_ALONE = {
    "float-in-integer-list: fraction",
    "unknown-auto-pad: same",
    "edge-dims-differ: no dims",
}
CASES_TO_FIX = [case for case in ALL_CASES if case.fails and FIXABLE.intersection(case.rules)]
every_case = pytest.mark.parametrize("case", CASES_TO_FIX, ids=str)


def fixed(
    path: Path, data: bytes | None = None, *, unsafe: bool = False
) -> tuple[bytes, int, list[str]]:
    data = path.read_bytes() if data is None else data
    weights = path.with_suffix(".bin")
    new, count, left = fix_bytes(data, path.name, DEFAULT, weights, unsafe=unsafe)
    return new, count, [f.rule for f in left.findings]


def test_every_fix_has_a_case() -> None:
    assert {rule for case in CASES_TO_FIX for rule in case.rules} == FIXABLE


@every_case
def test_fix_leaves_no_finding_and_is_idempotent(case: Case, tmp_path: Path) -> None:
    path = case.write(tmp_path)
    data = path.read_bytes()
    unsafe = "layer-contradicted" in case.rules
    new, count, left = fixed(path, unsafe=unsafe)
    if str(case) in LEFT_ALONE:
        if not count:
            assert new == data
        return
    assert count >= 1
    assert not set(case.rules).intersection(left)
    assert fixed(path, new)[0] == new


@every_case
def test_fix_touches_the_lines_of_findings_only(case: Case, tmp_path: Path) -> None:
    path = case.write(tmp_path)
    data = path.read_bytes()
    findings = check_bytes(data, path.name, DEFAULT, path.with_suffix(".bin")).findings
    new, _, _ = fixed(path)
    lines = {f.line for f in findings}
    matcher = difflib.SequenceMatcher(None, data.split(b"\n"), new.split(b"\n"), autojunk=False)
    for tag, start, end, _, _ in matcher.get_opcodes():
        if tag != "equal":
            near = range(start - 4, end + 3)  # a dim is added below the port's line
            assert any(line in near for line in lines)


@pytest.mark.parametrize(
    ("encoding", "newline"),
    [
        ("utf-8", "\n"),
        ("utf-8", "\r\n"),
        ("utf-8-sig", "\n"),
        ("iso-8859-1", "\n"),
        ("utf-16", "\r\n"),
    ],
)
def test_encoding_line_ends_and_style_stay(
    encoding: str, newline: str, block: str, block_weights: bytes, tmp_path: Path
) -> None:
    """Unusual quotes, spacing, comments and attribute order are kept."""
    name = "utf-8" if encoding == "utf-8-sig" else encoding
    text = block.replace('<?xml version="1.0"?>', f"<?xml version='1.0'  encoding='{name}' ?>")
    text = text.replace('name="act"', "name='schön &amp; gut'").replace("<edges>", "<edges >")
    text = text.replace("\t<layers>", "<!-- über <dim>9</dim> -->\n\t<layers>")
    weights = tmp_path / "m.bin"
    weights.write_bytes(block_weights)
    wrong = text.replace("<dim>9</dim>\n", "<dim> 10 </dim>\n", 1)
    right = text.replace("<dim>9</dim>\n", "<dim> 9 </dim>\n", 1)
    data, wanted = (t.replace("\n", newline).encode(encoding) for t in (wrong, right))
    assert data != wanted
    new, count, left = fix_bytes(data, "m.xml", DEFAULT, weights)
    assert left.findings == []
    assert count == 1
    assert new == wanted


def test_fix_follows_dims_along_the_edges() -> None:
    """There is more than one correction: dims of three outputs and of the inputs they lead to."""
    path = Path(__file__).parents[1] / "fixtures/ir/static_2d_fp16.xml"
    data = path.read_bytes().replace(b'strides="2, 2"', b'strides="20, 2"')
    data = data.replace(b'dilations="1, 1"', b'dilations="1, 9"')
    assert fixed(path, data) == (data, 0, ["layer-contradicted"])
    new, count, left = fixed(path, data, unsafe=True)
    assert left == []
    assert count == 1, "one finding announced the fix"
    assert fixed(path, new) == (new, 0, [])
    changed = [
        (a.strip(), b.strip())
        for a, b in zip(data.split(b"\n"), new.split(b"\n"), strict=True)
        if a != b
    ]
    tall, wide = (b"<dim>9</dim>", b"<dim>81</dim>"), (b"<dim>11</dim>", b"<dim>27</dim>")
    assert changed == [tall, wide] * 6


@pytest.mark.parametrize("seed", [*range(30), 49, 131, 336, 458])
def test_as_many_are_fixed_as_were_announced(seed: int) -> None:
    """Seeded mutants; in the last four, findings share an edit or appear after one."""
    choices = random.Random(seed)
    path = FIXTURES[seed % len(FIXTURES)]
    text = path.read_text()
    for _ in range(1 + seed % 3):
        text = mutate(choices, text).text
    first = check_bytes(text.encode(), path.name, DEFAULT, path.with_suffix(".bin"))
    announced = sum(found.fix is not None and found.fix.safe for found in first.findings)
    assert fixed(path, text.encode())[1] == announced


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = case_of("declared-dims-differ", "one dim").write(tmp_path)
    for suffix in (".xml", ".bin"):
        path.with_suffix(suffix).rename(tmp_path / f"m{suffix}")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from deconv_cli.lint.command import main; main()"
    return python(code, *arguments, cwd=folder, text=True)


def test_fix_in_place(folder: Path) -> None:
    weights = folder / "m.bin"
    state = (weights.read_bytes(), weights.stat().st_mtime_ns)
    (folder / "m.xml").chmod(0o640)
    done = run(folder, "m.xml", "--fix")
    assert (done.returncode, done.stdout) == (
        0,
        "No problem found in 1 file. Fixed 1. Not shown: 1 note; --severity info shows it.\n",
    )
    assert (weights.read_bytes(), weights.stat().st_mtime_ns) == state
    assert (folder / "m.xml").stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in folder.iterdir()) == ["m.bin", "m.xml"]
    again = (folder / "m.xml").read_bytes()
    run(folder, "m.xml", "--fix")
    assert (folder / "m.xml").read_bytes() == again


def test_fix_follows_links(folder: Path) -> None:
    (folder / "link.xml").symlink_to("m.xml")
    (folder / "link.bin").symlink_to("m.bin")
    assert run(folder, "link.xml", "--fix").returncode == 0
    assert (folder / "link.xml").is_symlink()
    assert run(folder, "m.xml").returncode == 0


@pytest.mark.skipif(not shutil.which("patch"), reason="needs the command patch")
def test_diff_changes_nothing_and_can_be_applied(folder: Path) -> None:
    before = (folder / "m.xml").read_bytes()
    done = run(folder, "m.xml", "--diff")
    assert done.returncode == 1
    assert (folder / "m.xml").read_bytes() == before
    assert re.findall(r"^[-+][^-+].*<dim>(\d+)<", done.stdout, re.MULTILINE) == ["10", "9"]
    fixed_bytes, _, _ = fixed(folder / "m.xml")
    subprocess.run(["patch", "-p1"], cwd=folder, input=done.stdout, text=True, check=True)
    assert (folder / "m.xml").read_bytes() == fixed_bytes
    assert run(folder, "m.xml", "--diff").returncode == 0


def test_fix_does_not_hide_a_stale_output_shape() -> None:
    """A Parameter has grown from 5 x 6 to 10 x 12, output_shape [9,11] has stayed."""
    path = Path(__file__).parents[1] / "fixtures/ir/oshape_const_fp32.xml"
    text = path.read_text("utf-8")
    start, _, rest = text.partition('<data shape="1,4,5,6"')
    port, end, rest = rest.partition("</port>")
    port = port.replace("<dim>5</dim>", "<dim>10</dim>").replace("<dim>6</dim>", "<dim>12</dim>")
    stale = f'{start}<data shape="1,4,10,12"{port}{end}{rest}'
    for unsafe in (False, True):
        assert "output-shape-crops-inputs" in fixed(path, stale.encode(), unsafe=unsafe)[2]
    assert "output-shape-crops-inputs" not in fixed(path, text.encode())[2]
