"""The installed browser, driven through playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deconv_cli.shared.pages import read_linted_file

from deconv_ir.drawing.page.html import write_page
from deconv_ir.linter.options import choose

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WINDOW = {"width": 1400, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, or $CHROMIUM.

    While it is open an event loop runs in this thread, which other tests must not meet.
    """
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (make test-browser)"
    )
    path = shutil.which(os.environ.get("CHROMIUM") or "") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    if path is None:
        pytest.skip(f"no browser is installed: none of {', '.join(NAMES)} is on PATH")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


class Opened:
    """An open page, with its console messages and network requests."""

    def __init__(self, page: Any, file: Path) -> None:
        self.page = page
        self.file = file
        self.logged: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.logged.append(message.text))
        page.on("pageerror", lambda error: self.logged.append(str(error)))
        page.on("dialog", lambda dialog: self.logged.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]")

    def evaluate(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(script, argument)

    def wait(self, condition: str) -> None:
        """Wait for a condition; the page's policy forbids playwright's own polling."""
        for _ in range(100):
            if self.evaluate(condition):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(condition)

    def search(self, words: str) -> None:
        self.page.fill("#search", words)
        self.page.press("#search", "Enter")

    def panel(self) -> str:
        return str(self.page.inner_text("#panel"))

    def shown(self) -> list[str]:
        """Return the texts of the closed boxes in the drawing."""
        self.page.evaluate("() => new Promise(requestAnimationFrame)")
        return list(self.page.eval_on_selector_all(".box", "all => all.map(e => e.textContent)"))

    def click(self, text: str) -> None:
        """Click on a box, or on the head of an open group, by its text."""
        self.page.evaluate("() => new Promise(requestAnimationFrame)")
        place = self.page.locator(".box, .open").filter(has_text=text).first.locator("text").first
        box = place.bounding_box()
        assert box is not None
        self.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def require_quiet(self) -> None:
        assert self.logged == []
        assert self.requests == [self.file.as_uri()]


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Write the page of a model and open it."""
    pages = []

    def open_page(model: Path | bytes, extras: Any = None, **settings: Any) -> Opened:
        file = tmp_path / "page.html"
        data = model if isinstance(model, bytes) else model.read_bytes()
        name = "model.xml" if isinstance(model, bytes) else str(model)
        weights = None if isinstance(model, bytes) else model.with_suffix(".bin")
        linted = read_linted_file(data, name, choose(severity="info"), weights)
        file.write_text(write_page(linted, extras))
        pages.append(browser.new_page(viewport=WINDOW, **settings))
        return Opened(pages[-1], file)

    yield open_page
    for page in pages:
        page.close()
