"""The section `<pre-process>`: means that are subtracted from an input.

Source: OpenVINO 2026.4, src/frontends/ir/src/input_model.cpp; `tests/peers/test_old_files.py`
compares the same sections with OpenVINO.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR, invoke

import deconv_ir
from deconv_ir import DeconvError, load

VALUES = np.array([1.5, -2, 3], np.float32)
IMAGES = np.arange(12, dtype=np.float32).reshape(3, 2, 2)


def channels(*texts: str) -> str:
    return "".join(f"<channel>{text}</channel>" for text in texts)


def section(content: str, name: str = ' reference-layer-name="x"') -> str:
    return f"<pre-process{name}>{content}</pre-process>"


MEANS = channels(*(f'<mean value="{v}"/>' for v in VALUES))
IN_BIN = channels(*(f'<mean offset="{8 + 16 * i}" size="16"/>' for i in range(3)))
EXCHANGED = "".join(
    f'<channel id="{i}"><mean offset="{8 + 16 * i}" size="16"/></channel>' for i in (2, 0, 1)
)


def save(
    folder: Path,
    pre_process: str,
    shape: str = "1,3,2,2",
    element_type: str = "f32",
    version: int = 11,
) -> Path:
    """Save a model that negates its input, with a constant before the mean images in the .bin."""
    ir = IR(version=version)
    x = ir.parameter("x", shape, element_type)
    c = ir.const(np.array([0, 7], np.float32))
    y = ir.layer("Negative", [x], precision="UNSPECIFIED", names="y")
    ir.result(y)
    ir.result(c)
    kind = {"f16": np.float16, "f64": np.float64}.get(element_type, np.float32)
    ir.weights += IMAGES.astype(kind).tobytes()
    path = ir.save(folder)
    path.write_text(path.read_text().replace("<layers>", f"{pre_process}<layers>", 1))
    return path


@pytest.mark.parametrize(
    ("content", "shape", "mean"),
    [
        (MEANS, "1,3,2,2", VALUES[:, None, None]),
        (MEANS, "2,3", VALUES),
        (MEANS, "3,2,4", VALUES[:, None, None]),  # CHW
        (MEANS, "1,3,2,2,2", VALUES[:, None, None, None]),
        (IN_BIN, "1,3,2,2", IMAGES),
        (IN_BIN, "2,3,1,2,2", IMAGES[:, None]),
        (EXCHANGED, "1,3,2,2", IMAGES),
        (IN_BIN, "3,2,2", IMAGES),
        ("", "1,3,2,2", 0),
        (channels("<scale value='2'/>"), "1,3,2,2", 0),
        (MEANS.replace("/>", '/><scale value="2"/>'), "1,3,2,2", VALUES[:, None, None]),
    ],
)
def test_means_are_subtracted(content: str, shape: str, mean: np.ndarray, tmp_path: Path) -> None:
    extents = [int(extent) for extent in shape.split(",")]
    x = np.random.default_rng(0).standard_normal(extents).astype(np.float32)
    for name in (
        ' reference-layer-name="x"',
        ' reference-layer-name=" x " mean-precision="FP16"',
        "",
    ):
        model = load(save(tmp_path, section(content, name), shape))
        assert np.array_equal(model.run(x)["y"], -(x - mean))


def test_images_belong_to_the_weights(tmp_path: Path) -> None:
    """They lie behind the constants, farther than padding reaches."""
    images = channels(*(f'<mean offset="{8 + 64 * i}" size="64"/>' for i in range(3)))
    path = save(tmp_path, section(images), "1,3,4,4")
    path.with_suffix(".bin").write_bytes(bytes(8 + 3 * 64))
    model = load(path, path.with_suffix(".bin"), warn=False)
    assert [f for f in model.findings if f.rule == "weights-longer"] == []


@pytest.mark.parametrize("element_type", ["f16", "bf16", "f64", "i32", "u8"])
def test_means_have_the_element_type_of_the_input(element_type: str, tmp_path: Path) -> None:
    content = channels(*('<mean value="1.1"/>' for _ in range(3)))
    model = load(save(tmp_path, section(content), element_type=element_type), warn=False)
    dtype = model.inputs["x"].element_type.numpy()  # type: ignore[union-attr]
    x = np.full((1, 3, 2, 2), 10, dtype)
    mean = np.float32(1.1).astype(dtype)  # OpenVINO rounds to f32 first
    assert np.array_equal(model.run(x)["y"], -(x - mean))


@pytest.mark.parametrize("version", [10, 11])
def test_images_of_f16_are_saved_with_the_model(version: int, tmp_path: Path) -> None:
    content = channels(*(f'<mean offset="{8 + 8 * i}" size="8"/>' for i in range(3)))
    model = load(save(tmp_path, section(content), element_type="f16", version=version), warn=False)
    x = np.full((1, 3, 2, 2), 10, np.float16)
    deconv_ir.save(model, tmp_path / "copy.xml")
    copy = load(tmp_path / "copy.xml", warn=False)
    assert np.array_equal(copy.run(x)["y"], -(x - IMAGES.astype(np.float16)))
    assert "pre-process" not in [info.tag for info in copy.graph.extras]


def test_numbers_are_saved_with_the_model(tmp_path: Path) -> None:
    model = load(save(tmp_path, section(MEANS)))
    deconv_ir.save(model, tmp_path / "copy.xml")
    x = np.zeros((1, 3, 2, 2), np.float32)
    found = load(tmp_path / "copy.xml").run(x)
    assert np.array_equal(found["y"], np.broadcast_to(VALUES[:, None, None], x.shape))
    assert list(found.values())[1].tolist() == [0, 7]


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (MEANS, ' reference-layer-name="z"', "names the input 'z', which does not exist"),
        (channels('<mean value="1"/>'), "", "means for 1 channels, the input 'x' has 3"),
        ('<channel id="7"><mean value="1"/></channel>', "", "the input 'x' has 3"),
        ('<channel id="0"><mean value="1"/></channel>' * 2, "", "channel 0 has two means"),
        ('<channel id="-1"><mean value="1"/></channel>', "", "id in <pre-process> must be a whole"),
        (MEANS.replace("1.5", "1_5"), "", "value in <pre-process> must be a number, found '1_5'"),
        (channels("<mean/>"), "", "the <mean> of channel 0 has neither value nor size"),
        (channels('<mean offset="0" size="12"/>') * 3, "", "has 12 bytes, but f32[1,2,2] takes 16"),
        (
            channels('<mean value="1"/>', '<mean offset="0" size="16"/>', '<mean value="1"/>'),
            "",
            "the means of some channels are numbers, those of others images",
        ),
        (channels(*['<mean offset="99999" size="16"/>'] * 3), "", "past the end of model.bin"),
    ],
)
def test_mistakes(content: str, name: str, words: str, tmp_path: Path) -> None:
    path = save(tmp_path, section(content, name))
    with pytest.raises(DeconvError) as caught:
        load(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")
    done = invoke(path, "--random-inputs", "0", "--no-output")
    assert (done.exit_code, words in done.stderr) == (2, True)


@pytest.mark.parametrize("shape", ["3", "1,1,1,1,1,3", "-1,3,2,2", "..."])
def test_inputs_without_known_channels_are_refused(shape: str, tmp_path: Path) -> None:
    with pytest.raises(DeconvError, match="needs an input of 2 to 5 dims that are known"):
        load(save(tmp_path, section(MEANS), shape))
