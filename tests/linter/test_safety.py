"""--fix makes no file worse: it only makes changes that the rest of the file confirms."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest
from support import IR

from deconv_ir.linter.engine import FileResult, check_bytes
from deconv_ir.linter.fix import fix_bytes
from deconv_ir.linter.options import choose

from .meaning import computes_the_same, meaning
from .mutations import mutate

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures/ir").glob("*.xml"))
DEFAULT = choose()
STATIC = next(path for path in FIXTURES if path.stem == "static_2d_fp16")
CHUNKS = 4
MUTANTS = 150


def fixed(text: str, weights: Path | None, *, unsafe: bool = False) -> tuple[str, int, FileResult]:
    data, count, result = fix_bytes(text.encode(), "m.xml", DEFAULT, weights, unsafe=unsafe)
    return data.decode(), count, result


def changed(old: str, new: str) -> str:
    text = STATIC.read_text()
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_fix_restores_or_leaves_a_finding(chunk: int, tmp_path: Path) -> None:
    """After --fix a mutant computes the same as the file, or still has a finding."""
    choices = random.Random(40_000 + chunk)
    ends: Counter[str] = Counter()
    for _ in range(MUTANTS):
        path = choices.choice(FIXTURES)
        text = path.read_text()
        mutation = mutate(choices, text)
        before = check_bytes(mutation.text.encode(), path.name, DEFAULT, path.with_suffix(".bin"))
        if not before.findings:
            continue  # test_mutations.py compares these with an oracle
        new, _, left = fixed(mutation.text, path.with_suffix(".bin"))
        if left.findings:
            ends["left"] += 1
            continue
        ends["fixed"] += 1
        weights = path.with_suffix(".bin").read_bytes()
        was, now = text.encode(), new.encode()
        assert meaning(was, weights) == meaning(now, weights) or computes_the_same(
            was, now, weights, tmp_path
        ), f"{path.name}:{mutation.line} {mutation.was!r} -> {mutation.now!r}"
    assert ends["fixed"] > MUTANTS // 10
    assert ends["left"] > MUTANTS // 3


@pytest.mark.parametrize(
    ("old", "new", "diagnosis"),
    [
        ('pads_begin="1, 1" ', "", 'pads_begin="1,1" would make all 12 declared dims right'),
        ('strides="2, 2"', 'stride="2, 2"', 'strides="2, 2" in place of stride would'),
        ('strides="2, 2"', 'strides="2, 3"', 'strides="2,2" or'),
        ('dilations="1, 1"', 'dilations="2, 1"', 'dilations="1,1" or'),
        ('shape="1,4,5,6"', 'shape="1,4,5,7"', 'shape="1,4,5,6" would make'),
    ],
)
def test_dims_that_agree_outvote_a_layer(old: str, new: str, diagnosis: str) -> None:
    """There is one finding about the layer, which names the correction; declared dims stay."""
    text = changed(old, new)
    result = check_bytes(text.encode(), "m.xml", DEFAULT, STATIC.with_suffix(".bin"))
    found = [f for f in result.findings if f.code == "IR416"]
    assert len(found) == 1
    assert found[0].hint is not None
    assert found[0].hint.startswith(diagnosis)
    assert not {"IR401", "IR209"} & {f.code for f in result.findings}
    assert fixed(text, STATIC.with_suffix(".bin"))[:2] == (text, 0)
    unsafe, _, left = fixed(text, STATIC.with_suffix(".bin"), unsafe=True)
    assert left.findings == []
    assert re.findall("<dim>.*</dim>", unsafe) == re.findall("<dim>.*</dim>", text)
    weights = STATIC.with_suffix(".bin").read_bytes()
    assert meaning(unsafe.encode(), weights) == meaning(STATIC.read_bytes(), weights)


def test_unsafe_fixes_correct_the_layer() -> None:
    """A layer with a diagnosis is corrected, and the declared dims are left alone."""
    corrected = tied = 0
    for path in FIXTURES:
        text = path.read_text()
        for spot in re.finditer(r'(?:strides|dilations|pads_begin|pads_end)="([^"]*)"', text):
            for number in ("0", "2", "3"):
                wrong = text[: spot.start(1)] + number + spot[1][1:] + text[spot.end(1) :]
                weights = path.with_suffix(".bin")
                result = check_bytes(wrong.encode(), path.name, DEFAULT, weights)
                if [f.code for f in result.findings if f.hint] != ["IR416"]:
                    continue
                new, count, left = fixed(wrong, weights, unsafe=True)
                (fix,) = (found.fix for found in result.findings if found.fix is not None)
                if fix.alternatives:  # nothing prefers one of several corrections
                    tied += 1
                    assert (new, count) == (wrong, 0)
                    continue
                corrected += 1
                assert count == 1
                assert "IR416" not in {f.code for f in left.findings}
                assert re.findall("<dim>.*</dim>", new) == re.findall("<dim>.*</dim>", text)
    assert corrected > 10
    assert tied > 0


@pytest.mark.parametrize(
    ("data", "strides", "output", "right"),
    [
        ("1,1,9,9", "2,3", "1,1,4,7", "2,1"),
        # One list of three axes is tried at the end: each axis must have been found by its extent.
        ("1,1,9,9,9", "2,3,3", "1,1,4,7,3", "2,1,3"),
        ("1,1,9,9,9", "2,3,1", "1,1,4,3,3", "2,3,3"),
    ],
)
def test_each_axis_of_a_correction_is_its_own(
    data: str, strides: str, output: str, right: str
) -> None:
    """Windows of 3 on axes of 9: a stride of 1 gives 7, one of 2 gives 4, one of 3 gives 3."""
    ir = IR()
    count = strides.count(",") + 1
    lists = {"kernel": 3, "pads_begin": 0, "pads_end": 0}
    window = {name: ",".join([str(n)] * count) for name, n in lists.items()} | {"strides": strides}
    y = ir.layer("MaxPool", [ir.parameter("x", data)], window, outputs=(output,))
    for kind in ("Exp", "Abs", "Sqrt", "Negative", "Floor"):
        y = ir.layer(kind, [y], outputs=(output,))
    ir.result(y)

    def dims(shape: str) -> str:
        return "".join(f"<dim>{d}</dim>" for d in shape.split(","))

    text = ir.xml().replace('names="x">', f'names="x">{dims(data)}')
    port = '<port id="0" precision="FP32"/>'
    text = text.replace(port, f"{port[:-2]}>{dims(data)}</port>", 1)
    text = text.replace(port, f"{port[:-2]}>{dims(output)}</port>")
    result = check_bytes(text.encode(), "m.xml", DEFAULT)
    (found,) = (f for f in result.findings if f.code == "IR416")
    assert f'strides="{right}"' in str(found.hint)


@pytest.mark.parametrize(("old", "new"), [("f32", "f16"), ("f32", "i32")])
def test_a_wrong_type_of_a_parameter_is_corrected_there(old: str, new: str) -> None:
    """Twelve ports declare FP32: they are right, and the attribute is not."""
    ir = IR()
    y = ir.parameter("x", "1,3")
    for kind in ("Exp", "Abs", "Sqrt", "Negative", "Floor"):
        y = ir.layer(kind, [y], outputs=("1,3",))
    ir.result(y)
    right = re.sub(
        r'(<port id="\d+" precision="FP32"[^>]*)/>', r"\1><dim>1</dim><dim>3</dim></port>", ir.xml()
    )
    right = right.replace('names="x">', 'names="x"><dim>1</dim><dim>3</dim>')
    wrong = right.replace(f'element_type="{old}"', f'element_type="{new}"')
    assert check_bytes(right.encode(), "m.xml", DEFAULT).findings == []
    assert fixed(wrong, Path("none.bin"))[:2] == (wrong, 0)
    assert fixed(wrong, Path("none.bin"), unsafe=True)[0] == right


def test_label_of_a_constant_is_not_copied() -> None:
    text = changed('element_type="f16"', 'element_type="bf16"')
    assert fixed(text, STATIC.with_suffix(".bin"))[:2] == (text, 0)


def test_defaults_are_written_where_the_dims_confirm_them() -> None:
    text = changed(' output_padding="0, 0"', "").replace('dilations="1, 1" ', "")
    new, count, left = fixed(text, STATIC.with_suffix(".bin"))
    assert (count, left.findings) == (1, [])
    assert new == text.replace(' auto_pad="explicit"', ' auto_pad="explicit" dilations="1,1"')


def test_dims_stay_without_the_bin(tmp_path: Path) -> None:
    """Dims that cannot be computed without constants are not erased."""
    for path in FIXTURES:
        text = path.read_text()
        assert fixed(text, tmp_path / "missing.bin")[:2] == (text, 0)
        for dim in list(re.finditer("<dim>(\\d+)</dim>", text))[::3]:
            wrong = f"{text[: dim.start(1)]}{int(dim[1]) + 1}{text[dim.end(1) :]}"
            new = fixed(wrong, tmp_path / "missing.bin")[0]
            assert new in (wrong, text)


COL2IM = """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1">
<data shape="1,12,9" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>1</dim><dim>12</dim><dim>9</dim></port></output></layer>
<layer id="1" name="c" type="Strange" version="custom">
<input><port id="0" precision="FP32"><dim>1</dim><dim>12</dim><dim>9</dim></port></input>
<output><port id="1" precision="FP16"><dim>1</dim><dim>3</dim><dim>4</dim><dim>4</dim></port>
</output></layer>
<layer id="2" name="y" type="Result" version="opset1">
<input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim><dim>4</dim><dim>5</dim></port></input>
</layer></layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>
"""


def test_declaration_without_a_rule_is_not_copied() -> None:
    """Type and dims of this operation cannot be inferred, so neither end of the edge is trusted."""
    for unsafe in (False, True):
        new, count, left = fixed(COL2IM, None, unsafe=unsafe)
        assert (new, count) == (COL2IM, 0)
        assert {f.code for f in left.findings} == {"IR209", "IR210"}


def test_edge_may_be_wrong_rather_than_its_end() -> None:
    """The Result declares another layer's dims: --fix does not adapt it to a wrong edge."""
    text = STATIC.read_text()
    end = re.search(r'<edge from-layer="(\d+)" from-port="(\d+)" to-layer="8"', text)
    assert end is not None
    wrong = text.replace(end[0], '<edge from-layer="3" from-port="2" to-layer="8"')
    assert wrong != text
    new, _, left = fixed(wrong, STATIC.with_suffix(".bin"))
    assert new == wrong
    assert left.findings
