"""The page in a real browser: actions of a reader, and hostile data."""

import re

import numpy as np
import pandas as pd
import pytest
from page_reader import Reader
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from leafkernel import ForestProximity
from leafkernel.explorer import build_report

pytestmark = pytest.mark.browser

HOSTILE = '</script><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
FORMULA = '=HYPERLINK("http://example.com")'


@pytest.fixture(scope="module")
def animals():
    """150 rows: numbers with gaps, a category, notes, and a class that the numbers predict well."""
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


@pytest.fixture
def reader(browser, animals_page):
    reading = Reader(browser, animals_page[1], accept_downloads=True)
    yield reading
    reading.close()


def test_header(reader):
    summary = reader.page.inner_text("#summary")
    assert reader.page.inner_text("#title") == "Animals"
    assert "random forest with 60 trees on 150 rows" in summary.lower()
    assert "Out-of-bag accuracy" in summary
    assert "most common class" in summary


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
    # On to the first neighbor, and back.
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


def test_color_by_a_feature(reader):
    reader.page.select_option("#color-by", label="length")
    assert "length" in reader.page.inner_text("#legend")
    assert reader.page.locator("#legend .ramp").count() == 1
    reader.page.select_option("#color-by", label="island")
    assert "north" in reader.page.inner_text("#legend")
    before = reader.colors()
    reader.page.locator(".legend-entry").first.click()
    assert reader.page.locator(".legend-entry[aria-pressed=true]").count() == 1
    reader.until(lambda: reader.colors() != before)


def test_points_are_drawn_in_the_colors_of_the_legend(reader):
    entries = reader.page.locator(".legend-entry .swatch")
    shown = [
        tuple(map(int, re.findall(r"\d+", color)[:3]))
        for color in entries.evaluate_all(
            "swatches => swatches.map((s) => getComputedStyle(s).backgroundColor)"
        )
    ]
    assert len(shown) == 3
    for color in shown:
        assert min(np.abs(np.subtract(color, drawn)).max() for drawn in reader.colors()) < 60


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


def column_texts(rows, place):
    return [rows.nth(k).locator("td").nth(place).inner_text() for k in range(rows.count())]


def test_mistakes_name_who_misled_and_show_values(reader, animals, animals_page):
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
    header = reader.page.locator("#panel-mistakes thead th").all_inner_texts()
    place = header.index("length")
    shown = [float(text.replace("−", "-")) for text in column_texts(rows, place)]
    np.testing.assert_allclose(shown, animals[0]["length"][found], atol=1e-3)
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
    assert [float(row[1]) for row in rows] == table["length"].tolist()
    assert [row[2] == "" for row in rows] == table["weight"].isna().tolist()
    reader.page.click("#tab-outliers")
    name, lines = reader.download(reader.page.locator("#panel-outliers .download"))
    assert (name, len(lines)) == ("outliers.csv", 151)
    assert reader.page.locator(".formula-note").count() == 0


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
    assert reader.state()["tab"] == "groups"
    reached = set()
    for _ in range(60):
        reader.page.keyboard.press("Tab")
        reached.add(
            reader.page.evaluate("document.activeElement.id || document.activeElement.tagName")
        )
    assert {"color-by", "search", "filter", "plot", "lasso", "copy-link", "theme"} <= reached


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
    color = reader.page.evaluate("getComputedStyle(document.body).backgroundColor")
    return np.mean([int(part) for part in color.strip("rgb()").split(",")[:3]])


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
    for tab in ("groups", "outliers", "mistakes", "prototypes", "importances", "rows", "about"):
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
    for tab in ("groups", "outliers", "mistakes", "prototypes", "rows", "notes", "about", "row"):
        page.click(f"#tab-{tab}")
    page.select_option("#color-by", label=FORMULA)
    page.fill("#search", "onerror")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() <= 3
    page.click("#tab-rows")
    _, lines = reading.download(page.locator("#download-all"))
    # The saved text equals the text that was read, and a message warns about formulas.
    assert lines[0][:5] == [HOSTILE, "position", HOSTILE, FORMULA, "text"]
    assert [line[3] for line in lines[1:]] == table[FORMULA].tolist()
    assert [line[4] for line in lines[1:]] == table["text"].tolist()
    assert [line[0] for line in lines[1:]] == [f"{FORMULA}{i}" for i in range(60)]
    assert "begin like a formula" in page.inner_text("#panel-rows .formula-note")
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
    assert "neighbors' accuracy" in reading.page.inner_text("#summary").lower()
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
    assert "requires WebGL" in reading.page.inner_text("#plot-message")
    reading.page.fill("#search", "12")
    reading.page.keyboard.press("Enter")
    assert reading.page.locator("#neighbors > li").count() == 10
    reading.context.close()
