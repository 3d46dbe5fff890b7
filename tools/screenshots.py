"""Write the screenshots of docs/show.md: pages of samples in the installed Chromium.

make .venv/installed-samples .venv/installed-browser
.venv/bin/python tools/screenshots.py
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "samples"
TARGET = ROOT / "docs/show"
COLOURS = 96
"""A picture of few colours takes a quarter of the bytes."""
HEADING = "e => e.scrollIntoView()"


def show(model: Path, page: Path, *arguments: object) -> None:
    """Write the page of a model."""
    command = [sys.executable, "-m", "deconv_ir", "show", model, "--output", page, *arguments]
    # The page names the file by the path that the user gave.
    command[4] = str(model.relative_to(ROOT))
    subprocess.run([str(word) for word in command], check=True, cwd=ROOT)


def photograph(folder: Path) -> Path:
    """Return the photograph of `make run` as an array."""
    script, picture, array = SAMPLES / "upsample/picture.py", folder / "p.png", folder / "p.npy"
    for words in (("photo", picture), ("to-npy", picture, array, "--border", "1")):
        subprocess.run([sys.executable, str(script), *map(str, words)], check=True)
    return array


def save(page: Any, name: str) -> None:
    """Save a screenshot of the page with a reduced palette."""
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    TARGET.mkdir(exist_ok=True)
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(TARGET / name, optimize=True)


def main() -> None:
    """Write all screenshots."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium is installed")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        block, up, checker = folder / "block.html", folder / "up.html", folder / "checker.html"
        show(SAMPLES / "block/block.xml", block)
        array = photograph(folder)
        show(SAMPLES / "upsample/bilinear_x2.xml", up, "--input", array, "--profile")
        document = "documents/convolution_backprop_data_1.xml"
        show(SAMPLES / document, checker, "--severity", "info")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])

        def opened(file: Path, theme: Any, words: str, heading: str = "") -> Any:
            size: Any = {"width": 1180, "height": 720}
            page = browser.new_page(viewport=size, color_scheme=theme)
            page.goto(file.as_uri())
            page.wait_for_selector("html[data-ready]")
            page.fill("#search", words)
            page.press("#search", "Enter")
            page.press("#search", "Escape")
            if heading:
                page.locator("#panel h3", has_text=heading).first.evaluate(HEADING)
            page.wait_for_timeout(300)
            return page

        save(opened(block, "light", "ConvolutionBackpropData"), "block.png")
        save(opened(up, "light", "GroupConvolution", "Output of the run"), "tensors.png")
        save(opened(checker, "dark", "Backprop", "Geometry"), "geometry.png")
        browser.close()


if __name__ == "__main__":
    main()
