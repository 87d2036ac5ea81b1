"""Amounts of money, percentages and brackets; columns that the user declares with --as."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from cli_runs import plain, run, run_json

from leafkernel.cli.errors import TableError
from leafkernel.tables._kinds import settle
from leafkernel.tables._notation import find_notation, read_amount
from leafkernel.tables._values import Values
from leafkernel.tables.preparation import prepare

FEW = ("--trees", "10")

# The text of each number from 1 to 100, and the note.
COLUMNS = {
    "dollar": (lambda x: f"${x:,.2f}", "amounts in $."),
    "percent": (lambda x: f"{x:.1f}%", "percentages"),
    "euro": (lambda x: f"{x:.2f} €".replace(".", ","), "amounts in €."),
    "pound": (lambda x: f"£{x:.2f}", "amounts in £."),
    "yen": (lambda x: f"¥{100 * x:,.0f}", "amounts in ¥."),
    "dots": (lambda x: f"{100_000 * x:,.0f}".replace(",", "."), "dots as thousands separators"),
    "brackets": (lambda x: f"({60 - x:,.2f})" if x < 60 else f"{x - 60:,.2f}", "parentheses"),
    "krone": (lambda x: f"{100 * x:,.2f} kr".replace(",", " ").replace(".", ","), "in kr."),
    "code": (lambda x: f"EUR {x:.2f}", "amounts in EUR."),
    "code behind": (lambda x: f"{x:.2f} USD", "amounts in USD."),
    "swiss": (lambda x: f"CHF {100 * x:,.2f}".replace(",", "'"), "apostrophes"),
    "minus": (lambda x: f"-${60 - x:.2f}" if x < 60 else f"${x - 60:.2f}", "amounts in $."),
}


@pytest.fixture(params=COLUMNS)
def amounts(request, tmp_path):
    """Write a table whose target depends on an amount; return it with the numbers and the note."""
    write, note = COLUMNS[request.param]
    rng = np.random.default_rng(0)
    numbers = rng.uniform(1, 100, 120)
    lines = ["price;noise;y"]
    lines += [
        f"{'' if i % 20 == 3 else write(x)};{'abc'[i % 3]};{'high' if x > 50 else 'low'}"
        for i, x in enumerate(numbers)
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path, [write(x) for x in numbers], note


def test_amounts_are_numbers(amounts):
    path, _, note = amounts
    document = run_json("outliers", path, "-t", "y", *FEW)
    assert document["features"] == ["price", "noise"]
    assert document["score"]["value"] > 0.93
    assert any("'price' was read as" in each and note in each for each in document["notes"])


def test_filled_amounts_have_the_style_of_the_column(amounts):
    path, written, _ = amounts
    text = run("impute", path, *FEW).stdout
    records = list(csv.reader(io.StringIO(text), delimiter=";"))[1:]
    for i, (price, *_) in enumerate(records):
        if i % 20 != 3:
            assert price == written[i]
        else:
            signs = "".join(sorted({*price} - {*"0123456789 ,.()-'"}))
            assert signs == "".join(sorted({*written[0]} - {*"0123456789 ,.()-'"}))
            others = [text for text in written if read_amount(text)]
            assert len(price.rpartition(".")[2]) in {len(x.rpartition(".")[2]) for x in others} or (
                "." not in price
            )
    before, after = (
        settle(Values(objects=np.array(x, object))) for x in (written, [r[0] for r in records])
    )
    assert after.form == before.form
    assert not after.counts
    assert after.numbers.min() >= before.numbers.min()
    assert after.numbers.max() <= before.numbers.max()


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("$58.96", "58.96", "$"),
        ("US$ 5", "5", "US$"),
        ("-$5.00", "-5.00", "$"),
        ("$-5.00", "-5.00", "$"),
        ("\N{MINUS SIGN}5 €", "-5", "EUR"),
        ("(€5)", "-5", "EUR"),
        ("8.3 %", "8.3", "%"),
        ("CHF 1'234.50", "1'234.50", "CHF"),
        ("1\N{NO-BREAK SPACE}234,50\N{NO-BREAK SPACE}kr.", "1\N{NO-BREAK SPACE}234,50", "kr."),
        ("12", "12", ""),
    ],
)
def test_parts_of_an_amount(text, number, unit):
    found, around = read_amount(text)
    assert (found, around.currency) == (number, unit)


@pytest.mark.parametrize(
    "text",
    ["", "$", "kr", "5 apples", "$5 €", "(-5)", "(5", "5)", "--5", "12.5.2024x", "2024-01-02"],
)
def test_other_text_is_no_amount(text):
    assert read_amount(text) is None


def test_brackets_around_whole_numbers_only_are_no_minus():
    assert not find_notation(["(1)", "(2)"]).is_amount
    assert find_notation(["(1.50)", "(2)"]).brackets
    assert find_notation(["(1)", "2"]).brackets


def test_several_currencies_stay_text(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{'$' if i % 2 else '£'}{i % 7}.50,{i % 5},{i % 3}\n" for i in range(60)]
    path.write_text("price,a,y\n" + "".join(lines))
    document = run_json("outliers", path, "-t", "y", *FEW)
    assert any("'price' (£, $) has amounts in several" in note for note in document["notes"])
    said = run("outliers", path, "-t", "y", "--as", "price=number", exit_code=4).stderr
    assert "several currencies" in said


def test_new_rows_are_read_in_the_same_unit(tmp_path):
    frame = pd.DataFrame({"price": [f"${i}.00" for i in range(40)], "y": ["a", "b"] * 20})
    prepared = prepare(frame, "y")
    new = prepared.read(pd.DataFrame({"price": ["$3.50", "4", "€5", "(6)"]}))
    np.testing.assert_array_equal(new.features["price"], [3.5, 4, np.nan, -6])
    assert "'€5'" in " ".join(new.notes)


# --- columns declared by the user


@pytest.fixture
def table(tmp_path):
    """Write a table with a code, a number with text, three kinds of dates, and a target."""
    rng = np.random.default_rng(0)
    lines = ["zip,size,day,month,open,year,y"]
    for i in range(60):
        day, month = 1 + i % 28, 1 + i % 12
        size = "big" if i % 3 == 0 else f"{rng.normal():.2f}"
        lines.append(
            f"0{i % 9},{size},{day}/{month}/2024,{month}-{day}-2024,{month}/{month}/2024,"
            f"2024/{month}/{day},{i % 2}"
        )
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines))
    return path


def test_a_column_as_number(table):
    options = ("outliers", table, "-t", "y", *FEW)
    assert "size" not in run_json(*options)["features"]
    document = run_json(*options, "--as", "size=number", "--as", "zip=number")
    assert {"size", "zip"} <= {*document["features"]}
    assert any("'size' (20 values: 'big' (20 times))" in note for note in document["notes"])
    filled = run_json("impute", table, "--as", "size=number", *FEW)["filled"]
    assert filled == {"size": 20}


def test_a_column_as_category(table):
    document = run_json("prototypes", table, "-t", "y", "--as", "day=category", *FEW)
    assert "day" in document["features"]
    assert "/2024" in document["result"][0]["day"]
    document = run_json("outliers", table, "-t", "zip", "--as", "zip=category", *FEW)
    assert document["task"] == "classification"
    assert document["result"][0]["target"].startswith("0")


def test_a_column_as_date(table):
    kinds = [f"--as={name}=date" for name in ("day", "month", "year")]
    document = run_json("prototypes", table, "-t", "y", *kinds, *FEW)
    for line in document["result"]:
        assert line["day"] == line["month"] == line["year"]
        assert line["day"].startswith("2024-")
    notes = " ".join(document["notes"])
    assert "'day' has dates with the day first" in notes
    assert "'month' has dates with the month first" in notes
    said = run("outliers", table, "-t", "y", "--as", "open=date", exit_code=4).stderr
    assert "whether the dates start with the day or the month" in said
    assert ".." not in said
    said = run("outliers", table, "-t", "y", "--as", "size=date", exit_code=4).stderr
    assert "no value of the column is a date" in said


def test_a_column_to_ignore(table):
    ignored = run_json(
        "outliers", table, "-t", "y", "--as", "zip=ignore", "--as", "size=number", *FEW
    )
    dropped = run_json("outliers", table, "-t", "y", "--drop", "zip", "--as", "size=number", *FEW)
    assert ignored["result"] == dropped["result"]


@pytest.mark.parametrize(
    ("given", "exit_code", "said"),
    [
        ("sise=number", 4, "--as 'sise' is not a column of the table. Did you mean 'size'?"),
        ("size=numbr", 2, "'numbr' is not a kind of column. Did you mean 'number'?"),
        ("size", 2, "COLUMN=KIND"),
        ("y=ignore", 4, "cannot also be dropped, ignored"),
    ],
)
@pytest.mark.parametrize("command", ["outliers", "impute"])
def test_wrong_kinds(table, command, given, exit_code, said):
    result = run(command, table, "-t", "y", "--as", given, exit_code=exit_code)
    assert said in plain(result.stderr)
    result = run(command, table, "-t", "y", "--as=size=number", "--as=size=date", exit_code=2)
    assert "twice" in plain(result.stderr)


def test_a_target_as_number_is_a_regression():
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5, 4.0] * 10, "y": ["1", "2", "3", "x"] * 10})
    assert prepare(frame, "y").task == "classification"
    prepared = prepare(frame, "y", kinds={"y": "number"})
    assert prepared.task == "regression"
    assert len(prepared.target) == 30
    with pytest.raises(TableError, match="classification"):
        prepare(frame, "y", task="regression", kinds={"y": "category"})
