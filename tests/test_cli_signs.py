"""Detection of decimal and thousands separators, and the notes about them."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from cli_runs import run, run_json, write_frame
from hypothesis import assume, given
from hypothesis import strategies as st

from leafkernel.tables._notation import NUMBER_FORMS, Notation, Stated, show_sign
from leafkernel.tables.files import read_file
from leafkernel.tables.preparation import prepare

FEW = ("--trees", 8)
UNSURE = "could also"


def spell(number, places, decimal, thousands):
    """Write a whole number of thousandths, tenths or ones with the given signs."""
    text = f"{abs(number):0{places + 1}}"
    whole, rest = text[: len(text) - places], text[len(text) - places :]
    grouped = f"{int(whole):,}".replace(",", thousands)
    return "-" * (number < 0) + grouped + (decimal + rest if places else "")


def write_table(path, columns, separator):
    """Write columns of texts, and a target of two classes."""
    n = len(next(iter(columns.values())))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow([*columns, "target"])
        writer.writerows(zip(*columns.values(), ["a", "b"] * (n // 2), strict=True))
    return path


@pytest.fixture
def read(tmp_path):
    """Write a table, read it again, and return it prepared."""

    def prepared(columns, separator=";", **stated):
        path = write_table(tmp_path / "t.csv", columns, separator)
        return prepare(read_file(path, stated=Stated(**stated)), "target")

    return prepared


def notes_on(prepared, name):
    return [note for note in prepared.notes if f"'{name}'" in note]


# --- single columns


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        *[
            (text, ".")
            for text in ("0.125", "1234.567", "1.5", "1.2345", ".5", "1,234.5", "1.234e5")
        ],
        *[(text, ",") for text in ("0,125", "1234,567", "1,5", "1,2345", ",5", "1.234,5")],
        *[("1,234,567", "."), ("1.234.567", ","), ("1 234.567", "."), ("1\xa0234,567", ",")],
        *[("33.932", "?."), ("-1,500", "?,"), ("+999.000", "?.")],
        *[
            (text, "")
            for text in ("12", "1.2.3", "12.05.2024", "a.b", "1.", "x1.5", "01.234.567", "")
        ],
    ],
)
def test_signs_that_numbers_show(text, sign):
    assert show_sign(text) == sign


@given(
    st.sampled_from(sorted(NUMBER_FORMS)),
    st.one_of(st.integers(-(10**12), 10**12), st.floats(-1e12, 1e12)),
)
def test_what_is_written_is_read_again(form, number):
    text = (
        np.format_float_positional(number, trim="-") if isinstance(number, float) else str(number)
    )
    assume(form != "dot thousands" or "." not in text)
    assert float(Notation(form).plain(Notation(form).write(text))) == float(text)


THOUSANDS = ["33.932", "568", "7.001", "12.345", "99.876", "450"] * 4
TRUTH = [33932, 568, 7001, 12345, 99876, 450]


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
def test_another_column_shows_the_decimal_comma(read, separator):
    prepared = read({"x": THOUSANDS, "size": ["1,5", "2,25", "3"] * 8}, separator)
    assert prepared.features["x"].tolist()[:6] == TRUTH
    assert notes_on(prepared, "x") == [
        "Column 'x' was read as whole numbers with dots as thousands separators."
    ]


def test_another_column_shows_the_decimal_point(read):
    commas = [text.replace(".", ",") for text in THOUSANDS]
    for separator in ";,":
        prepared = read({"x": commas, "size": ["1.5", "2.25", "3"] * 8}, separator)
        assert prepared.features["x"].tolist()[:6] == TRUTH
        assert UNSURE not in " ".join(prepared.notes)


@pytest.mark.parametrize("late", [False, True])
def test_a_number_with_two_dots_shows_it(tmp_path, late):
    """Also if it is not among the rows that are used."""
    numbers = [f"{i % 90 + 10}.{i % 9 + 1}00" for i in range(400)]
    numbers[-1 if late else 0] = "1.234.567"
    path = write_table(tmp_path / "t.csv", {"x": numbers}, ";")
    prepared = prepare(read_file(path, max_rows=100), "target")
    assert prepared.features["x"].min() > 1000
    assert notes_on(prepared, "x")


@pytest.mark.parametrize("shown", ["0.125", "1234.567", "1.5"])
@pytest.mark.parametrize("separator", [";", ","])
def test_decimals_stay_decimals(read, shown, separator):
    """No note if a number of this or another column shows the decimal point."""
    for columns in (
        {"x": [*THOUSANDS[:-1], shown]},
        {"x": THOUSANDS, "size": [shown, *["7.1"] * 23]},
    ):
        prepared = read(columns, separator)
        assert prepared.features["x"][0] == 33.932
        assert notes_on(prepared, "x") == []


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_dots_that_nothing_tells(read, separator):
    prepared = read({"x": THOUSANDS, "n": list(range(5, 29))}, separator)
    assert prepared.features["x"][0] == 33.932
    (note,) = notes_on(prepared, "x")
    assert UNSURE in note
    assert "use --thousands '.'" in note
    for stated in ({"thousands": "."}, {"decimal": ","}):
        prepared = read({"x": THOUSANDS}, separator, **stated)
        assert prepared.features["x"].tolist()[:6] == TRUTH
        assert UNSURE not in " ".join(prepared.notes)
    for stated in ({"thousands": "none"}, {"thousands": ","}, {"decimal": "."}):
        prepared = read({"x": THOUSANDS}, separator, **stated)
        assert prepared.features["x"][0] == 33.932
        assert notes_on(prepared, "x") == []


@pytest.mark.parametrize(("separator", "first"), [(";", 33.932), (",", 33932)])
def test_commas_that_nothing_tells(read, separator, first):
    commas = {"x": [text.replace(".", ",") for text in THOUSANDS]}
    prepared = read(commas, separator)
    assert prepared.features["x"][0] == first
    (note,) = notes_on(prepared, "x")
    assert UNSURE in note
    assert read(commas, separator, decimal=",").features["x"][0] == 33.932
    assert read(commas, separator, thousands=",").features["x"][0] == 33932


def test_columns_that_disagree_leave_it_open(read):
    columns = {"x": THOUSANDS, "a": ["1,5", "2"] * 12, "b": ["1.5", "2"] * 12}
    prepared = read(columns)
    assert prepared.features["x"][0] == 33.932
    assert UNSURE in notes_on(prepared, "x")[0]


def test_one_mistyped_number_does_not_decide(read):
    columns = {
        "x": [*THOUSANDS * 4, "1.5", "3"],
        "size": ["1,5", "2"] * 49,
        "y": THOUSANDS * 4 + ["5"] * 2,
    }
    prepared = read(columns)
    assert prepared.features["y"][0] == 33932
    assert any(UNSURE in note for note in notes_on(prepared, "x"))
    prepared = read(columns, decimal=",")
    assert prepared.features["x"].tolist()[:6] == TRUTH
    assert UNSURE not in " ".join(prepared.notes)


def test_few_numbers_with_signs_are_enough(read):
    """Most numbers are below 1000. Those with a separator are not read as text."""
    prepared = read({"x": [*["5"] * 11, *["568"] * 12, "33.932"], "size": ["1,5", "2"] * 12})
    assert prepared.features["x"].iloc[-1] == 33932
    assert not prepared.features["x"].isna().any()


@pytest.mark.parametrize("space", [" ", "\xa0", "\u202f"])
def test_spaces_between_thousands(read, space):
    spaced = [text.replace(".", space) for text in THOUSANDS]
    prepared = read({"x": spaced, "y": [f"{text},25" for text in spaced]})
    assert prepared.features["x"].tolist()[:6] == TRUTH
    assert prepared.features["y"].tolist()[:6] == [number + 0.25 for number in TRUTH]
    assert "spaces as thousands separators" in notes_on(prepared, "x")[0]


def test_text_in_parquet_files(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": THOUSANDS, "size": ["1,5", "2"] * 12, "target": ["a", "b"] * 12})
    write_frame(frame, tmp_path / "t.parquet")
    assert prepare(read_file(tmp_path / "t.parquet"), "target").features["x"][0] == 33932
    write_frame(frame[["x", "target"]], tmp_path / "t.parquet")
    frame = read_file(tmp_path / "t.parquet", stated=Stated(thousands="."))
    assert prepare(frame, "target").features["x"][0] == 33932


# --- any table

signs = st.sampled_from(
    [
        (decimal, between)
        for decimal in ".,"
        for between in ("", ".", ",", " ")
        if between != decimal
    ]
)
number_columns = st.integers(0, 4).flatmap(
    lambda places: st.tuples(
        st.just(places), st.lists(st.integers(-(10**8), 10**8), min_size=12, max_size=12)
    )
)
small_columns = st.tuples(
    st.sampled_from([0, 3]), st.lists(st.integers(1000, 999_999), min_size=12, max_size=12)
)


@given(
    signs,
    st.sampled_from(";,\t"),
    st.lists(st.one_of(number_columns, small_columns), min_size=1, max_size=4),
)
def test_numbers_are_read_as_they_were_written(tmp_path_factory, signs, separator, columns):
    """If the format is ambiguous, a note says so, and an option sets it."""
    decimal, between = signs
    path = tmp_path_factory.getbasetemp() / "signs.csv"
    texts = {
        f"c{i}": [spell(n, places, *signs) for n in ns] for i, (places, ns) in enumerate(columns)
    }
    truth = {f"c{i}": [n / 10**places for n in ns] for i, (places, ns) in enumerate(columns)}
    # A column that is a feature whatever the others are.
    write_table(path, {**texts, "other": [0, 1, 2] * 4}, separator)
    stated = Stated(decimal, {"": "none", " ": "space"}.get(between, between))
    for options in (Stated(), stated, Stated(decimal=decimal)):
        prepared = prepare(read_file(path, stated=options), "target")
        for name in truth.keys() & set(prepared.features.columns):
            doubt = any(UNSURE in note for note in notes_on(prepared, name))
            assert not doubt or options == Stated()
            right = np.allclose(prepared.features[name], truth[name], rtol=1e-12, atol=0)
            assert right or doubt, (name, texts[name], prepared.notes)


# --- commands


def write_shops(path, separator=";", rows=120):
    """Write rents with decimal commas and sales with dots as thousands separators and gaps."""
    rng = np.random.default_rng(0)
    size = rng.uniform(1, 9, rows)
    sales = (size * 11_000 + rng.normal(0, 500, rows)).astype(int)
    texts = [spell(int(n), 0, ",", ".") for n in sales]
    columns = {
        "rent": [spell(int(100 * x), 2, ",", ".") for x in size],
        "sales": ["" if i % 10 == 3 else text for i, text in enumerate(texts)],
    }
    return write_table(path, columns, separator), sales


def read_sales(text):
    cells = pd.read_csv(io.StringIO(text), sep=";", dtype=str)["sales"]
    assert cells.str.fullmatch(r"\d{1,3}(\.\d{3})*").all()
    return cells.str.replace(".", "").astype(int).to_numpy()


def test_impute_fills_thousands(tmp_path):
    path, sales = write_shops(tmp_path / "shops.csv")
    result = run("impute", path, *FEW)
    filled = read_sales(result.stdout)
    gaps = np.arange(len(sales)) % 10 == 3
    assert (filled[~gaps] == sales[~gaps]).all()
    assert filled.min() >= sales.min()
    assert filled.max() <= sales.max()
    assert np.corrcoef(filled[gaps], sales[gaps])[0, 1] > 0.7
    assert "'sales' was read as whole numbers with dots as thousands separators" in result.stderr
    # The result is read as the table was.
    again = tmp_path / "again.csv"
    again.write_text(result.stdout)
    assert prepare(read_file(again), "target").features["sales"].tolist() == filled.tolist()


@pytest.mark.parametrize("ending", [".parquet", None])
def test_impute_gives_numbers_to_formats_that_have_them(tmp_path, ending):
    path, sales = write_shops(tmp_path / "shops.csv")
    if ending is None:
        found = pd.DataFrame(run_json("impute", path, *FEW)["result"])
    else:
        pytest.importorskip("pyarrow")
        run("impute", path, "-o", tmp_path / f"out{ending}", *FEW)
        found = pd.read_parquet(tmp_path / f"out{ending}")
    assert found["sales"].dtype == np.int64
    assert found["rent"].dtype == np.float64
    assert found["sales"].between(sales.min(), sales.max()).all()


def test_impute_keeps_negative_thousands(tmp_path):
    path = tmp_path / "t.csv"
    cells = ["-1.234.567", "", "12.345", "-33.932", "568", "7.001"] * 5
    write_table(path, {"x": cells, "size": [f"{i},5" for i in range(30)]}, ";")
    text = run("impute", path, *FEW).stdout
    lines = pd.read_csv(io.StringIO(text), sep=";", dtype=str)["x"].tolist()
    assert [after for before, after in zip(cells, lines, strict=True) if before] == [
        cell for cell in cells if cell
    ]


@pytest.mark.parametrize(
    "command", ["outliers", "prototypes", "embed", "neighbors", "predict", "benchmark"]
)
def test_targets_and_features_of_commands(tmp_path, command):
    path, sales = write_shops(tmp_path / "shops.csv")
    more = ("-m", "pca") if command == "embed" else ()
    document = run_json(command, path, "-t", "sales", *FEW, *more)
    assert document["task"] == "regression"
    assert "Column 'sales' was read as whole numbers with dots" in " ".join(document["notes"])
    if command in ("outliers", "embed"):
        found = [row["target"] for row in document["result"]]
        assert set(found) <= set(sales.tolist())
    document = run_json(command, path, "-t", "target", *FEW, *more)
    assert document["features"] == ["rent", "sales"]
    assert "dots as thousands separators" in " ".join(document["notes"])


def test_another_table_is_read_in_the_form_of_the_first(tmp_path):
    """Its few rows do not show the decimal comma."""
    path, _ = write_shops(tmp_path / "shops.csv")
    new = tmp_path / "new.csv"
    new.write_text("rent;sales\n3;33.932\n8;90.000\n")
    prepared = prepare(read_file(path), "target")
    assert prepared.read(read_file(new)).features["sales"].tolist() == [33932, 90000]
    options = ("neighbors", path, "-t", "rent", "--new", new, "-k", 1, "--drop", "target")
    low, high = (row["neighbor_target"] for row in run_json(*options, *FEW)["result"])
    assert low < 5
    assert high > 6


@pytest.mark.parametrize(
    ("options", "first"),
    [((), 33.932), (("--thousands", "."), 33932), (("--decimal", ","), 33932)],
)
def test_options_for_the_standard_input(tmp_path, options, first):
    path = write_table(tmp_path / "t.csv", {"x": THOUSANDS, "n": [5, 6, 7] * 8}, ";")
    command = ("outliers", "-", "-t", "x", "--task", "regression", *options, *FEW)
    rows = run_json(*command, input=path.read_bytes())["result"]
    assert {row["row"]: row["target"] for row in rows}[0] == first


@pytest.mark.parametrize("command", ["impute", "outliers", "explore"])
@pytest.mark.parametrize("sign", [".", ","])
def test_options_that_contradict(tmp_path, command, sign):
    path = write_table(tmp_path / "t.csv", {"x": THOUSANDS}, ";")
    options = ("-t", "target", "--decimal", sign, "--thousands", sign)
    text = run(command, path, *options, exit_code=2).stderr
    assert f"--decimal and --thousands are both '{sign}'," in text
    assert text.count("\n") == 1
