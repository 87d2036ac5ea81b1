"""The page in a real browser: what a reader does, and what hostile data must not do."""

import csv
import io
import os
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from leafkernel import ForestProximity
from leafkernel.explorer import build_report

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="pages are tested with Playwright: pip install playwright"
)

pytestmark = pytest.mark.browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "msedge")
# Graphics in software: a machine that runs tests seldom has a card.
SOFTWARE = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
HOSTILE = '</script><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
FORMULA = '=HYPERLINK("http://example.com")'


@pytest.fixture(scope="module")
def browser():
    wanted = os.environ.get("LEAFKERNEL_BROWSER")
    path = wanted or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)}, and no LEAFKERNEL_BROWSER")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=[*SOFTWARE])
        yield running
        running.close()


@pytest.fixture(scope="module")
def animals():
    """150 rows: numbers with holes, a category, notes; a class that the numbers nearly tell."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, size=150)
    table = pd.DataFrame(
        {
            "length": kind + rng.normal(scale=0.4, size=150),
            "weight": rng.normal(size=150),
            "island": rng.choice(["north", "south"], size=150),
            "seen": pd.Timestamp("2024-02-27") + pd.to_timedelta(np.arange(150) % 5, unit="D"),
            "note": [f"animal number {i}" for i in range(150)],
        }
    )
    table.loc[::10, "weight"] = np.nan
    return table, np.array(["auk", "booby", "coot"])[kind]


@pytest.fixture(scope="module")
def animals_page(animals, tmp_path_factory):
    table, labels = animals
    X = table[["length", "weight"]].assign(island=(table["island"] == "south").astype(float))
    prox = ForestProximity(RandomForestClassifier(60, random_state=0)).fit(X, labels)
    report = build_report(
        prox, X, labels, shown=table, title="Animals", target_name="kind", method="pca"
    )
    path = tmp_path_factory.mktemp("page") / "animals.html"
    return prox, report.save(path)


class Reader:
    """A page that is read, and all that it did which it should not."""

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
        """Wait until something is so, however slow the machine is."""
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

    def colours(self):
        """Return the commonest colours of the points: those of the map but its background."""
        self.page.wait_for_timeout(300)
        picture = imread(io.BytesIO(self.page.locator("#canvas").screenshot()))
        pixels = np.round(picture[..., :3] * 255).astype(int).reshape(-1, 3)
        pixels = pixels[np.ptp(pixels, axis=1) > 60]  # what is not grey
        rough, counts = np.unique(pixels // 32 * 32 + 16, axis=0, return_counts=True)
        return {tuple(map(int, colour)) for colour in rough[counts > 0.1 * counts.max()]}

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


@pytest.fixture
def reader(browser, animals_page):
    reading = Reader(browser, animals_page[1], accept_downloads=True)
    yield reading
    reading.close()


def test_header(reader):
    summary = reader.page.inner_text("#summary")
    assert reader.page.inner_text("#title") == "Animals"
    assert "random forest of 60 trees on 150 rows" in summary.lower()
    assert "Out-of-bag accuracy" in summary
    assert "commonest class" in summary


def test_hover_shows_the_row(reader, animals):
    row = reader.lonely_row()
    tip = reader.point_at(row)
    assert animals[1][row] in tip.inner_text()


def test_click_shows_the_neighbors(reader, animals_page, animals):
    prox = animals_page[0]
    row = reader.lonely_row()
    reader.point_at(row)
    reader.page.mouse.click(*reader.at(row))
    reader.page.wait_for_selector(f".details[data-row='{row}']")
    similarity, neighbors = prox.kneighbors(n_neighbors=10)
    items = reader.page.locator("#neighbors > li")
    assert items.count() == 10
    for k in range(10):
        text = items.nth(k).inner_text()
        assert items.nth(k).get_attribute("data-row") == str(neighbors[row, k])
        share = items.nth(k).locator(".value").first.inner_text()
        assert float(share.strip("%")) == pytest.approx(100 * similarity[row, k], rel=0.05)
        assert animals[1][neighbors[row, k]] in text
        assert "same leaf in" in text
    values = reader.page.inner_text("#values")
    assert "length" in values
    assert "animal number" in values
    assert "2024-02-29" in values
    # On to the first neighbour, and back.
    items.first.locator("button").first.click()
    assert reader.state()["row"] == neighbors[row, 0]
    reader.page.click("#back")
    assert reader.state()["row"] == row
    reader.page.keyboard.press("Escape")
    assert reader.state()["row"] == -1


def test_differences_are_marked_with_signs(reader, animals):
    table, _ = animals
    reader.page.evaluate("window.leafkernel.select(1)")
    lines = reader.page.locator("#values tbody tr")
    texts = [lines.nth(k).inner_text().split("\t") for k in range(lines.count())]
    island = next(line for line in texts if line[0].startswith("island"))
    for cell in island[2:]:
        assert cell == table["island"][1] or cell.startswith("≠ ")


def test_colour_by_a_feature(reader):
    reader.page.select_option("#color-by", label="length")
    assert "length" in reader.page.inner_text("#legend")
    assert reader.page.locator("#legend .ramp").count() == 1
    reader.page.select_option("#color-by", label="island")
    assert "north" in reader.page.inner_text("#legend")
    before = reader.colours()
    reader.page.locator(".legend-entry").first.click()
    assert reader.page.locator(".legend-entry[aria-pressed=true]").count() == 1
    reader.until(lambda: reader.colours() != before)


def test_points_are_drawn_in_the_colours_of_the_legend(reader):
    entries = reader.page.locator(".legend-entry .swatch")
    shown = [
        tuple(map(int, re.findall(r"\d+", colour)[:3]))
        for colour in entries.evaluate_all(
            "swatches => swatches.map((s) => getComputedStyle(s).backgroundColor)"
        )
    ]
    assert len(shown) == 3
    for colour in shown:
        assert min(np.abs(np.subtract(colour, drawn)).max() for drawn in reader.colours()) < 60


def test_search(reader, animals):
    reader.page.keyboard.press("/")
    reader.page.keyboard.type("number 77")
    reader.page.locator("#search-results li").first.wait_for()
    reader.page.keyboard.press("Enter")
    assert reader.state()["row"] == 77
    reader.page.fill("#search", "42")
    reader.page.keyboard.press("Enter")
    assert reader.state()["row"] == 42
    assert animals[1][42] in reader.page.inner_text("#status")
    reader.page.fill("#search", "no such thing")
    reader.page.locator("#search-results .empty").wait_for()


def test_tables_sort(reader):
    reader.page.click("#tab-outliers")
    panel = reader.page.locator("#panel-outliers")

    def scores():
        cells = panel.locator("tbody tr td:nth-child(2)").all_inner_texts()
        return [float(cell.replace("−", "-").replace(",", "")) for cell in cells]

    assert scores() == sorted(scores(), reverse=True)
    panel.locator("thead button", has_text="score").click()
    assert scores() == sorted(scores())
    assert panel.locator("th[aria-sort=ascending]").count() == 1
    panel.locator(".next").click()
    assert "26–50 of 150" in panel.inner_text()
    first = panel.locator("tbody tr").first
    first.locator("button").first.click()
    assert reader.state()["tab"] == "row"


def test_mistakes_name_who_misled(reader, animals, animals_page):
    _, labels = animals
    prox = animals_page[0]
    classes = np.unique(labels)
    shares = prox.weighted_average((labels[:, None] == classes).astype(float))
    wrong = np.flatnonzero(classes[shares.argmax(axis=1)] != labels)
    assert len(wrong)
    reader.page.click("#tab-mistakes")
    rows = reader.page.locator("#panel-mistakes tbody tr")
    found = [int(rows.nth(k).get_attribute("data-row")) for k in range(rows.count())]
    assert sorted(found) == wrong.tolist()
    misled = rows.first.locator("td").nth(4).locator("button").all_inner_texts()
    predicted = classes[shares[found[0]].argmax()]
    assert misled
    assert all(labels[int(name)] == predicted for name in misled)


def test_prototypes_importances_and_help(reader):
    reader.page.click("#tab-prototypes")
    assert reader.page.locator("#panel-prototypes .card").count() == 3
    reader.page.click("#tab-importances")
    assert "length" in reader.page.locator("#panel-importances tbody tr").first.inner_text()
    reader.page.click("#tab-about")
    assert "share of the prediction" in reader.page.inner_text("#panel-about")


def test_downloads(reader, animals):
    table, labels = animals
    reader.page.click("#tab-rows")
    name, lines = reader.download(reader.page.locator("#download-all"))
    assert name == "rows.csv"
    header, *rows = lines
    assert header[:6] == ["row", "length", "weight", "island", "seen", "note"]
    assert rows[2][4] == "2024-02-29"
    assert len(rows) == 150
    place = header.index("kind")
    assert [row[place] for row in rows] == labels.tolist()
    np.testing.assert_allclose([float(row[1]) for row in rows], table["length"], rtol=1e-6)
    assert [row[2] == "" for row in rows] == table["weight"].isna().tolist()
    reader.page.click("#tab-outliers")
    name, lines = reader.download(reader.page.locator("#panel-outliers .download"))
    assert (name, len(lines)) == ("outliers.csv", 151)


def test_a_link_restores_the_view(reader, browser, animals_page):
    reader.page.select_option("#color-by", label="weight")
    reader.page.evaluate("window.leafkernel.select(33)")
    reader.page.click("#tab-prototypes")
    reader.page.click("#zoom-in")
    # The address follows when the camera rests.
    view, last = None, ""
    while view != last or "view=" not in last:
        view, last = last, reader.page.evaluate("location.hash")
        reader.page.wait_for_timeout(600)
    other = Reader(browser, animals_page[1], view)
    found, known = other.state(), reader.state()
    for key in ("row", "color", "tab"):
        assert found[key] == known[key]
    for key in ("x", "y", "distance"):
        assert found["camera"][key] == pytest.approx(known["camera"][key], rel=1e-3, abs=1e-3)
    other.close()
    for nonsense in ("#row=9999&color=nothing&tab=none&view=a,b", "#%%%", "#row=-5&only=x"):
        Reader(browser, animals_page[1], nonsense).close()


def test_keyboard_alone(reader):
    reader.page.focus("#plot")
    reader.page.keyboard.press("ArrowRight")
    first = reader.state()["row"]
    assert first >= 0
    reader.page.keyboard.press("ArrowRight")
    second = reader.state()["row"]
    assert second != first
    assert reader.at(second)[0] > reader.at(first)[0]
    reader.page.keyboard.press("ArrowUp")
    assert reader.at(reader.state()["row"])[1] < reader.at(second)[1]
    before = reader.state()["camera"]["distance"]
    reader.page.keyboard.press("+")
    reader.until(lambda: reader.state()["camera"]["distance"] < before)
    reader.page.focus("#tab-row")
    reader.page.keyboard.press("ArrowRight")
    assert reader.state()["tab"] == "outliers"
    reached = set()
    for _ in range(60):
        reader.page.keyboard.press("Tab")
        reached.add(
            reader.page.evaluate("document.activeElement.id || document.activeElement.tagName")
        )
    assert {"color-by", "search", "plot", "copy-link", "theme"} <= reached


def test_wheel_zooms_and_drag_moves(reader):
    box = reader.page.locator("#canvas").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    reader.page.mouse.move(*middle)
    home = reader.state()["camera"]
    reader.page.mouse.wheel(0, -300)
    reader.until(lambda: reader.state()["camera"]["distance"] < home["distance"])
    reader.page.wait_for_timeout(300)
    near = reader.state()["camera"]
    reader.page.mouse.down()
    reader.page.mouse.move(middle[0] + 80, middle[1] + 40, steps=5)
    reader.page.mouse.up()
    reader.until(lambda: reader.state()["camera"]["x"] != near["x"])
    assert reader.state()["camera"]["y"] != near["y"]


def brightness(reader):
    colour = reader.page.evaluate("getComputedStyle(document.body).backgroundColor")
    return np.mean([int(part) for part in colour.strip("rgb()").split(",")[:3]])


def test_dark_mode(browser, animals_page, reader):
    dark = Reader(browser, animals_page[1], color_scheme="dark")
    assert brightness(dark) < 60
    assert brightness(reader) > 200
    dark.page.click("#theme")
    assert brightness(dark) > 200
    dark.close()


def test_phone(browser, animals_page):
    phone = Reader(
        browser,
        animals_page[1],
        viewport={"width": 360, "height": 740},
        has_touch=True,
        is_mobile=True,
    )
    fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert phone.page.evaluate(fits)
    row = phone.lonely_row()
    phone.page.touchscreen.tap(*phone.at(row))
    phone.page.wait_for_selector(f".details[data-row='{row}']")
    assert phone.page.evaluate(fits)
    for tab in ("outliers", "mistakes", "prototypes", "importances", "rows", "about"):
        phone.page.evaluate(f"window.leafkernel.openTab('{tab}')")
        assert phone.page.evaluate(fits), tab
    size = phone.page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")
    assert size >= 14
    phone.close()


def test_hostile_text_is_text(browser, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            HOSTILE: rng.normal(size=60),
            FORMULA: rng.choice([HOSTILE, FORMULA, "@SUM(1)"], size=60),
            "text": [f"{HOSTILE} {i}" for i in range(60)],
        }
    )
    labels = np.where(table[HOSTILE] > 0, HOSTILE, FORMULA)
    X = pd.DataFrame({HOSTILE: table[HOSTILE], FORMULA: rng.normal(size=60)})
    prox = ForestProximity(RandomForestClassifier(40, random_state=0)).fit(X, labels)
    report = build_report(
        prox,
        X,
        labels,
        shown=table,
        title=HOSTILE,
        target_name=HOSTILE,
        notes=[HOSTILE],
        ids=[f"{FORMULA}{i}" for i in range(60)],
        id_name=HOSTILE,
        method="pca",
    )
    reading = Reader(browser, report.save(tmp_path / "hostile.html"), accept_downloads=True)
    page = reading.page
    assert page.inner_text("#title") == HOSTILE
    page.evaluate("window.leafkernel.select(3)")
    page.mouse.move(*reading.at(3))
    for tab in ("outliers", "mistakes", "prototypes", "importances", "rows", "about", "row"):
        page.click(f"#tab-{tab}")
    page.select_option("#color-by", label=FORMULA)
    page.fill("#search", "onerror")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() <= 3
    page.click("#tab-rows")
    _, lines = reading.download(page.locator("#download-all"))
    cells = [cell for line in lines for cell in line]
    assert any(cell == f"'{FORMULA}" for cell in cells)
    for cell in cells:
        assert not cell.startswith(("=", "+", "@")), cell
    reading.close()


def test_regression_and_notebook_frame(browser, tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    prox = ForestProximity(RandomForestRegressor(40, random_state=0)).fit(X, y)
    report = prox.explore(X, y, title="diabetes", method="pca")
    reading = Reader(browser, report.save(tmp_path / "page.html"))
    reading.page.evaluate("window.leafkernel.select(5)")
    assert "out-of-bag r²" in reading.page.inner_text("#summary").lower()
    reading.page.click("#tab-mistakes")
    assert "Largest errors" in reading.page.inner_text("#panel-mistakes")
    reading.page.click("#tab-prototypes")
    assert "highest quarter" in reading.page.inner_text("#panel-prototypes")
    reading.close()
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><body>{report._repr_html_()}</body>", encoding="utf-8")
    page = browser.new_page()
    page.goto(notebook.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("html[data-ready=true]").wait_for(state="attached")
    frame.locator("#tab-outliers").click()
    assert frame.locator("#panel-outliers tbody tr").count() > 10
    page.close()


def test_schemes_that_are_not_out_of_bag_do_not_say_so(browser, animals, tmp_path):
    table, labels = animals
    X = table[["length"]]
    prox = ForestProximity(RandomForestClassifier(40, random_state=0), "kerf").fit(X, labels)
    reading = Reader(browser, prox.explore(X, labels, method="pca").save(tmp_path / "page.html"))
    reading.page.evaluate("window.leafkernel.select(5)")
    for tab in ("row", "mistakes"):
        reading.page.click(f"#tab-{tab}")
        text = reading.page.inner_text(f"#panel-{tab}").lower()
        assert "out of bag" not in text
        assert "out-of-bag" not in text
        assert "had not seen" not in text
    assert "neighbours' accuracy" in reading.page.inner_text("#summary").lower()
    reading.close()


def test_without_webgl_the_tables_remain(animals_page, browser):
    reading = Reader.__new__(Reader)
    reading.context = browser.new_context()
    reading.page = reading.context.new_page()
    reading.page.add_init_script(
        "HTMLCanvasElement.prototype.getContext = function () { return null; };"
    )
    reading.page.goto(animals_page[1].as_uri())
    reading.page.wait_for_selector("html[data-ready=true]")
    assert "needs WebGL" in reading.page.inner_text("#plot-message")
    reading.page.fill("#search", "12")
    reading.page.keyboard.press("Enter")
    assert reading.page.locator("#neighbors > li").count() == 10
    reading.context.close()
