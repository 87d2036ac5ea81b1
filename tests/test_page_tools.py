"""Tools of the page in a real browser: filters, groups, scales, new rows, labels."""

import numpy as np
import pandas as pd
import pytest
from page_reader import Reader
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity

pytestmark = pytest.mark.browser

NOTES = [
    f"Note {i}: column {i} was read with a decimal comma, as the file shows." for i in range(9)
]


@pytest.fixture(scope="module")
def patients():
    """160 labeled patients, with a skewed income and a diagnosis that depends on age and city."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 90, size=160).astype(float),
            "income": np.exp(rng.normal(9, 1.8, size=160)),
            "weight": rng.normal(75, 12, size=160).round(1),
            "city": rng.choice(["Bern", "Rome", "Salt and Sea"], size=160),
            "parents": rng.choice(["ill", "well"], size=160),
        },
        index=pd.Index([f"P{1000 - i}" for i in range(160)], name="patient"),
    )
    score = table["age"] / 40 + (table["city"] == "Rome") + rng.normal(scale=0.5, size=160)
    table.loc[table.index[::9], "weight"] = np.nan
    return table, np.where(score > 1.9, "ill", "well")


@pytest.fixture(scope="module")
def page(patients, tmp_path_factory):
    table, labels = patients
    X = table.drop(columns="parents")
    X = X.assign(city=table["city"].factorize()[0].astype(float)).fillna(-1.0)
    prox = ForestProximity(RandomForestClassifier(60, random_state=0)).fit(X, labels)
    guests = pd.Index([f"guest {i}" for i in range(3)])
    report = prox.explore(
        X,
        labels,
        shown=table,
        X_new=X[:3].set_index(guests) + 0.5,
        shown_new=table[:3].set_index(guests),
        title="Patients",
        target_name="diagnosis",
        notes=NOTES,
        method="pca",
    )
    return prox, X, report.save(tmp_path_factory.mktemp("page") / "patients.html")


@pytest.fixture
def reader(browser, page):
    reading = Reader(browser, page[2], accept_downloads=True)
    yield reading
    reading.close()


def write_filter(reader, text):
    reader.page.fill("#filter", text)
    reader.page.keyboard.press("Enter")


def test_rows_have_the_labels_of_the_index(reader):
    reader.page.fill("#search", "P993")
    reader.page.keyboard.press("Enter")
    assert reader.state()["row"] == 7
    assert reader.page.inner_text("#details-title") == "patient P993 position 7"
    assert "patient P993" in reader.page.inner_text("#status")
    reader.page.fill("#search", "12")  # a position, where no label is the same
    reader.page.keyboard.press("Enter")
    assert reader.state()["row"] == 12
    reader.page.click("#tab-rows")
    _, (header, *lines) = reader.download(reader.page.locator("#download-all"))
    assert header[:2] == ["patient", "position"]
    assert lines[7][:2] == ["P993", "7"]
    assert lines[160][:2] == ["guest 0", "0"]


def test_new_rows_are_on_the_map(reader, page):
    prox, X, _ = page
    assert reader.page.locator("#overlay .new-rows").get_attribute("d").count("z") == 3
    reader.page.click("#tab-new")
    panel = reader.page.locator("#panel-new")
    assert "placed by projection" in panel.inner_text()
    panel.locator("tbody button", has_text="guest 1").click()
    assert reader.state()["row"] == 161
    assert "new patient guest 1" in reader.page.inner_text("#details-title")
    guest = X[1:2] + 0.5
    facts = reader.page.inner_text(".facts")
    assert prox.forest_.predict(guest)[0] in facts
    assert "unknown" in facts
    _, nearest = prox.kneighbors(guest, n_neighbors=10)
    lines = reader.page.locator("#neighbors > li")
    found = [int(lines.nth(k).get_attribute("data-row")) for k in range(lines.count())]
    assert found == nearest[0].tolist()
    assert "all trees" in reader.page.inner_text("#panel-row")


def test_skewed_numbers_have_a_log_or_rank_scale(reader, browser, page):
    reader.page.select_option("#color-by", label="age")
    assert reader.state()["scaling"] == "linear"
    reader.page.select_option("#color-by", label="income")
    assert reader.state()["scaling"] == "log"
    before = reader.colors()
    reader.page.select_option("#scaling", "linear")
    reader.until(lambda: reader.colors() != before)
    few = reader.colors()
    reader.page.select_option("#scaling", "rank")
    reader.until(lambda: len(reader.colors()) > len(few))  # the ramp is used evenly
    places = reader.page.evaluate("[1, 2, 2, 4, 9].map((v) => rankShare([1, 2, 2, 4, 9], v))")
    assert places == [0, 0.375, 0.375, 0.75, 1]
    other = Reader(browser, page[2], reader.page.evaluate("location.hash"))
    assert other.state()["scaling"] == "rank"
    other.close()


def colors_of(locator):
    return locator.evaluate_all("all => all.map((e) => getComputedStyle(e).backgroundColor)")


def test_a_color_has_one_meaning(reader):
    reader.page.evaluate("window.leafkernel.select(3)")
    bars = reader.page.locator(".details .bars .bar > span")
    classes = colors_of(reader.page.locator(".legend-entry .swatch"))
    assert set(colors_of(bars)) <= set(classes)
    # Colored by another column, the classes have no color, and dots have that of the map. Also if
    # that column has the same words.
    for column in ("city", "parents"):
        reader.page.select_option("#color-by", label=column)
        meant = colors_of(reader.page.locator(".legend-entry .swatch"))
        assert not set(colors_of(bars)) & set(meant)
        assert set(colors_of(reader.page.locator("#neighbors .swatch"))) <= set(meant)
    reader.page.click("#tab-prototypes")
    assert reader.page.locator("#panel-prototypes .swatch").count() == 0


def test_the_tooltip_covers_no_neighbor(reader):
    reader.page.evaluate("window.leafkernel.select(3)")
    rings = reader.page.locator("#overlay circle").evaluate_all(
        "all => all.map((c) => [Number(c.getAttribute('cx')), Number(c.getAttribute('cy'))])"
    )
    assert len(rings) == 11
    tip = reader.page.locator("#tooltip")
    corner = reader.page.locator("#canvas").bounding_box()
    neighbors = reader.page.locator("#neighbors > li")
    for k in range(0, 10, 3):
        x, y = reader.at(int(neighbors.nth(k).get_attribute("data-row")))

        def seen(x=x, y=y):
            reader.page.mouse.move(x - 1, y)
            reader.page.mouse.move(x, y)
            return tip.is_visible()

        reader.until(seen)
        box = tip.bounding_box()
        left, top = box["x"] - corner["x"], box["y"] - corner["y"]
        for cx, cy in rings:
            assert not (left < cx < left + box["width"] and top < cy < top + box["height"])
        reader.page.mouse.move(corner["x"] + 2, corner["y"] + 2)


def overlap(first, second):
    return all(
        first[start] + 1 < second[start] + second[size]
        and second[start] + 1 < first[start] + first[size]
        for start, size in (("x", "width"), ("y", "height"))
    )


@pytest.mark.parametrize("size", [(1360, 860), (390, 844)])
def test_the_map_is_not_covered_and_tabs_do_not_move(browser, page, size):
    viewport = {"width": size[0], "height": size[1]}
    reading = Reader(browser, page[2], viewport=viewport)
    canvas = reading.page.locator("#canvas").bounding_box()
    for part in ("#legend", ".shown", ".map-bar", ".zoom", "#lasso", "#status", ".toolbar"):
        assert not overlap(canvas, reading.page.locator(part).bounding_box()), part
    assert "Leaf PCA" in reading.page.inner_text("#map-caption")
    tabs = reading.page.locator("#tabs button")
    places = "all => all.map((t) => [t.offsetLeft, t.offsetTop, t.offsetWidth, t.offsetHeight])"
    before = tabs.evaluate_all(places)
    strip = reading.page.locator("#tabs").evaluate("t => [t.scrollWidth, t.clientWidth]")
    assert strip[0] <= strip[1]  # all of them can be seen
    for k in range(tabs.count()):
        tabs.nth(k).click()
        assert tabs.evaluate_all(places) == before
    reading.close()


def test_all_notes_are_visible(reader):
    for tab in ("row", "notes"):
        reader.page.click(f"#tab-{tab}")
        notes = reader.page.locator(f"#panel-{tab} .note-list li")
        assert notes.all_inner_texts() == NOTES
        inner = "list => list.scrollHeight <= list.clientHeight + 1"
        assert reader.page.locator(f"#panel-{tab} .note-list").evaluate(inner)
    reader.page.click("#see-notes")
    assert reader.state()["tab"] == "notes"


def test_the_page_says_why_fewer_trees_can_be_a_larger_share(reader):
    reader.page.evaluate("window.leafkernel.select(3)")
    assert "small leaf counts more" in reader.page.inner_text("#why-share")


def test_tables_show_that_they_scroll(reader):
    reader.page.click("#tab-mistakes")
    frame = reader.page.locator("#panel-mistakes .scroll-frame")
    reader.until(lambda: frame.get_attribute("class") == "scroll-frame more-right")
    assert reader.page.locator("#panel-mistakes .scroll-hint").is_visible()
    frame.locator(".scroller").evaluate("box => (box.scrollLeft = box.scrollWidth)")
    reader.until(lambda: frame.get_attribute("class") == "scroll-frame more-left")
    reader.page.click("#tab-importances")
    assert not reader.page.locator("#panel-importances .scroll-hint").is_visible()


def test_filters(reader, browser, page, patients):
    table, labels = patients
    n = len(table)

    def count(wanted):
        return int(wanted.sum() + wanted[:3].sum())  # the new rows are copies of the first

    filters = {
        "age > 60": table["age"] > 60,
        "AGE<=60 and city = rome": (table["age"] <= 60) & (table["city"] == "Rome"),
        "city = 'Salt and Sea' or age >= 80": (table["city"] == "Salt and Sea")
        | (table["age"] >= 80),
        "weight is missing": table["weight"].isna(),
        "weight is not missing and city != Bern": table["weight"].notna()
        & (table["city"] != "Bern"),
        "city contains om": table["city"] == "Rome",
        "weight > 75.5": table["weight"] > 75.5,
    }
    for text, wanted in filters.items():
        write_filter(reader, text)
        assert reader.state()["shown"] == count(wanted), text
        assert f"of {n + 3} rows" in reader.page.inner_text("#shown-text")
    write_filter(reader, "diagnosis = ill")
    assert reader.state()["shown"] == (labels == "ill").sum()
    write_filter(reader, "patient = P995")
    assert reader.state()["shown"] == 1
    other = Reader(browser, page[2], reader.page.evaluate("location.hash"))
    assert other.state()["shown"] == 1
    other.close()
    refused = {
        "agee > 3": "no column “agee”",
        "age > old": "“old” is not a number",
        "age >": "Write a value",
        "age > 3 or": "Write a condition",
        "age": "Write >",
    }
    for text, complaint in refused.items():
        write_filter(reader, text)
        assert complaint in reader.page.inner_text("#filter-error")
        assert reader.state()["shown"] == n + 3
    reader.page.keyboard.press("Escape")
    assert not reader.page.locator("#filter-error").is_visible()


def test_lasso_and_comparison_of_groups(reader, patients):
    table, _ = patients
    box = reader.page.locator("#canvas").bounding_box()
    spots = np.array([reader.at(row) for row in range(163)])
    middle = np.median(spots[:, 0])
    reader.page.click("#lasso")
    corners = [
        (box["x"] + 2, box["y"] + 2),
        (middle, box["y"] + 2),
        (middle, box["y"] + box["height"] - 2),
        (box["x"] + 2, box["y"] + box["height"] - 2),
    ]
    reader.page.mouse.move(*corners[0])
    reader.page.mouse.down()
    for corner in corners[1:]:
        reader.page.mouse.move(*corner, steps=3)
    reader.page.mouse.up()
    assert abs(reader.state()["shown"] - (spots[:, 0] < middle).sum()) <= 1
    assert reader.page.get_attribute("#lasso", "aria-pressed") == "false"
    reader.page.click("#show-all")
    assert reader.state()["shown"] == 163
    # Groups by a filter, each with its values.
    write_filter(reader, "age > 60")
    reader.page.click("#keep-a")
    write_filter(reader, "age < 40")
    reader.page.click("#keep-b")
    assert reader.state()["tab"] == "groups"
    lines = reader.page.locator("#panel-groups tbody tr")
    first = lines.first.locator("td").all_inner_texts()
    assert first[0] == "age"
    assert first[1].strip() == "1.00 ↑"
    both = pd.concat([table, table[:3]])
    for text, wanted in zip(first[2:], (both["age"] > 60, both["age"] < 40), strict=True):
        median = both["age"][wanted].quantile(0.5, interpolation="higher")
        assert abs(float(text.split()[0]) - median) <= 1
    texts = [lines.nth(k).locator("td").all_inner_texts() for k in range(lines.count())]
    strengths = [float(text[1].split()[0]) for text in texts]
    assert strengths == sorted(strengths, reverse=True)
    # Groups by class, and the map in the colors of the groups.
    reader.page.select_option("#group-a", label="diagnosis = ill")
    reader.page.select_option("#group-b", label="all other rows")
    assert "diagnosis" in lines.first.inner_text()
    reader.page.click("#color-groups")
    assert reader.page.locator(".legend-entry").all_inner_texts()[0].split()[0] == "A"
