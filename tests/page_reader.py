"""A page in a real browser, for tests."""

import csv
import io

import numpy as np
import pytest
from matplotlib.image import imread


class Reader:
    """A page in a browser, with a record of its errors and network requests."""

    def __init__(self, browser, path, view="", **options):
        self.context = browser.new_context(
            **{"viewport": {"width": 1300, "height": 850}, **options}
        )
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on(
            "console", lambda message: message.type == "error" and self.complain(message.text)
        )
        self.page.on("pageerror", lambda error: self.complain(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri() + view)
        self.page.wait_for_selector("html[data-ready]")
        assert self.page.evaluate("document.documentElement.dataset.ready") == "true"

    def complain(self, text):
        self.complaints.append(text)

    def state(self):
        return self.page.evaluate("window.leafkernel.state()")

    def at(self, row):
        """Return where a row is drawn, in the window."""
        x, y = self.page.evaluate(f"window.leafkernel.position({row})")
        box = self.page.locator("#canvas").bounding_box()
        return box["x"] + x, box["y"] + y

    def until(self, reached):
        """Wait until a condition holds, even on a slow machine."""
        for _ in range(200):
            if reached():
                return
            self.page.wait_for_timeout(100)
        pytest.fail("waited for 20 s")

    def point_at(self, row):
        """Point at a row until the page has seen it.

        The plotting library looks once a frame whether the pointer is inside, so a single move may
        escape it; a hand makes many.
        """
        tip = self.page.locator("#tooltip")

        def seen():
            x, y = self.at(row)
            self.page.mouse.move(x - 1, y)
            self.page.mouse.move(x, y)
            return tip.is_visible() and f"row {row}" in tip.inner_text()

        self.until(seen)
        return tip

    def colors(self):
        """Return the most common colors of the map, without the background."""
        self.page.wait_for_timeout(300)
        picture = imread(io.BytesIO(self.page.locator("#canvas").screenshot()))
        pixels = np.round(picture[..., :3] * 255).astype(int).reshape(-1, 3)
        pixels = pixels[np.ptp(pixels, axis=1) > 60]  # colors that are not gray
        rough, counts = np.unique(pixels // 32 * 32 + 16, axis=0, return_counts=True)
        return {tuple(map(int, color)) for color in rough[counts > 0.1 * counts.max()]}

    def lonely_row(self):
        """Return a row that is drawn far from all others, so that a click can mean no other."""
        n = self.state()["n"]
        spots = np.array([self.at(row) for row in range(n)])
        apart = np.hypot(*(spots[:, None] - spots[None]).transpose(2, 0, 1))
        np.fill_diagonal(apart, np.inf)
        return int(apart.min(axis=1).argmax())

    def download(self, button):
        with self.page.expect_download() as waiting:
            button.click()
        text = waiting.value.path().read_text(encoding="utf-8-sig")
        return waiting.value.suggested_filename, list(csv.reader(io.StringIO(text)))

    def close(self):
        outside = [url for url in self.requests if not url.startswith(("file:", "blob:", "data:"))]
        self.context.close()
        assert self.complaints == []
        assert outside == []
