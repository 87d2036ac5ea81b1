"""``leafkernel impute``: cells that are imputed, and cells that must not change."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from cli_runs import run, run_json, write_birds

FEW = ("--trees", "20")


@pytest.fixture
def birds(tmp_path):
    return write_birds(tmp_path / "birds.csv")


def test_impute_fills_gaps_and_changes_nothing_else(birds, tmp_path):
    out = tmp_path / "out.csv"
    run("impute", birds, "-t", "kind", "-o", out, *FEW)
    before, after = pd.read_csv(birds), pd.read_csv(out)
    assert list(before) == list(after)
    for name in ("weight", "eggs", "pond"):
        there = before[name].notna()
        assert (before[name][there] == after[name][there]).all()
        assert after[name].notna().all()
    assert (after["eggs"] % 1 == 0).all()  # whole numbers stay whole
    assert set(after["pond"]) == {"north", "south"}
    assert before["name"].equals(after["name"])
    assert after["kind"].isna().sum() == 1  # the target is not filled


def test_what_is_there_stays_to_the_letter(tmp_path):
    """Leading zeros, long numbers, trailing zeros, lowercase booleans, decimal commas."""
    rng = np.random.default_rng(0)
    lines = ["zip;long;price;wild;size;count"]
    for i in range(60):
        size = f"{rng.normal():.2f}".replace(".", ",")
        price = "" if i % 9 == 4 else f"{rng.gamma(3):.1f}0".replace(".", ",")
        wild = "" if i % 11 == 3 else ("true" if i % 2 else "false")
        count = "NA" if i % 13 == 5 else str(i % 7)
        lines.append(f"{i % 5:05};{2**60 + i};{price};{wild};{size};{count}")
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text("\n".join(lines) + "\n")
    result = run("impute", path, "-o", out, *FEW)
    assert "'NA' (5 times)" in result.stderr
    before = pd.read_csv(path, sep=";", dtype=str, keep_default_na=False)
    after = pd.read_csv(out, sep=";", dtype=str, keep_default_na=False)
    gaps = before.isin(["", "NA"])
    assert gaps.to_numpy().sum() == 18
    assert (after == before).to_numpy()[~gaps.to_numpy()].all()
    assert not after.isin(["", "NA"]).to_numpy().any()
    assert set(after["wild"]) == {"true", "false"}
    assert after["price"].str.fullmatch(r"\d+,\d+").all()
    assert after["count"].str.fullmatch(r"\d").all()


def test_impute_says_how_much(birds):
    document = run_json("impute", birds, *FEW)
    assert document["filled"] == {"eggs": 6, "pond": 9, "kind": 1}
    assert len(document["result"]) == 90
    assert None not in {line["kind"] for line in document["result"]}


def test_impute_leaves_text_ids_and_dates(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": np.arange(40),
            "when": [None, *[f"2024-01-{1 + i % 28:02}" for i in range(39)]],
            "remark": [None, *[f"remark number {i} of mine, in words" for i in range(39)]],
            "wild": [None, *[bool(x) for x in rng.integers(0, 2, 39)]],
            "price": [None, *[f"{x:.1f}".replace(".", ",") for x in rng.normal(5, 1, 39)]],
            "size": rng.normal(size=40),
        }
    )
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    frame.to_csv(path, index=False)
    result = run("impute", path, "-o", out, *FEW)
    after = pd.read_csv(out)
    assert after["wild"][0] in (True, False)
    assert "," in after["price"][0]
    assert after["when"].isna()[0]
    assert after["remark"].isna()[0]
    assert "'when', 'remark'" in result.stderr
    assert after["id"].tolist() == list(range(40))


def test_impute_of_a_complete_table(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": [1.5, 2.5, 3.5] * 4, "b": ["x", "y"] * 6}).to_csv(path, index=False)
    result = run("impute", path)
    assert pd.read_csv(io.StringIO(result.stdout)).equals(pd.read_csv(path))
    assert "Nothing was filled" in result.stderr


def test_impute_keeps_types(birds, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.read_csv(birds).astype({"weight": "float32", "pond": "category"})
    frame["ring"] = pd.array([None, *range(89)], dtype="Int16") % 7
    path, out = tmp_path / "t.parquet", tmp_path / "out.parquet"
    frame.to_parquet(path)
    run("impute", path, "-t", "kind", "-o", out, *FEW)
    after = pd.read_parquet(out)
    assert after.dtypes[["weight", "pond"]].tolist() == frame.dtypes[["weight", "pond"]].tolist()
    assert after["ring"].dtype == "Int16"
    assert after[["weight", "pond", "eggs", "ring"]].notna().all().all()


def test_impute_keeps_codes(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    zips = ["01000", "10115", "20095"] * 10
    sizes = ["", *[str(i / 4) for i in range(29)]]
    lines = [f"{code},{size}\n" for code, size in zip(zips, sizes, strict=True)]
    path.write_text("zip,size\n" + "".join([*lines, ",1.5\n"]))
    run("impute", path, "-o", out, *FEW)
    after = pd.read_csv(out, dtype=str)
    assert after["zip"].tolist()[:-1] == zips
    assert after["zip"].tolist()[-1] in zips
    assert after["size"].notna().all()


def test_impute_writes_large_numbers_in_full(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    prices = ["", *[f"{1_200_000 + 1000 * i}.5".replace(".", ",") for i in range(39)]]
    pd.DataFrame({"price": prices, "size": np.arange(40) / 8}).to_csv(path, index=False)
    run("impute", path, "-o", out, *FEW)
    filled = pd.read_csv(out)["price"][0]
    assert re.fullmatch(r"\d{7},\d", filled)  # as many decimals as in the column
    assert 1_200_000 <= int(filled[:-2]) <= 1_240_000


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["1e-05", "2.5e-05", "4E-5"], r"0\.0000[1-4]\d*"),
        (["1.5", "2", "3.25"], r"\d(\.\d{1,2})?"),
        (["1.50", "2.00", "3.25"], r"\d\.\d\d"),
        (["-0.01", "0.01", "0.00"], r"0\.00|-?0\.01"),
        (["7.0", "8.0", "9.0"], r"\d\.0"),
    ],
)
def test_filled_numbers_have_the_decimals_of_their_column(tmp_path, cells, form):
    path = tmp_path / "t.csv"
    lines = [f"{'' if i % 7 == 3 else cells[i % 3]},{i % 5}\n" for i in range(40)]
    path.write_text("x,y\n" + "".join(lines))
    filled = run("impute", path, *FEW).stdout.splitlines()[1:]
    for cell in (line.split(",")[0] for line in filled[3::7]):
        assert re.fullmatch(form, cell), cell


def test_impute_of_columns_with_one_name(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{i / 4},{40 - i if i else ''},{i % 3}\n" for i in range(40)]
    path.write_text("a,a,\n" + "".join(lines))
    document = run_json("impute", path, *FEW)
    assert list(document["filled"]) == ["a (2)"]
    assert list(document["result"][0]) == ["a", "a (2)", "column 3"]
    assert document["result"][0]["a (2)"] > 0
    assert run("impute", path, *FEW).stdout.startswith("a,a,\n")  # as it was
    pytest.importorskip("pyarrow")
    run("impute", path, "-o", tmp_path / "out.parquet", *FEW)
    assert pd.read_parquet(tmp_path / "out.parquet").columns.tolist() == ["a", "a (2)", "column 3"]


def test_impute_knows_the_columns_to_drop(birds):
    assert (
        "--drop 'pnod' is not a column"
        in run("impute", birds, "--drop", "pnod", exit_code=4).stderr
    )
    document = run_json("impute", birds, "--drop", "pond", *FEW)
    assert "pond" not in document["filled"]


def test_whole_numbers_of_parquet_stay_whole(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    long = [None if i % 9 == 2 else 2**60 + i % 3 for i in range(40)]
    small = [None if i % 7 == 1 else i % 4 for i in range(40)]
    table = pa.table(
        {
            "long": pa.array(long, pa.int64()),
            "small": pa.array(small, pa.int8()),
            "size": np.random.default_rng(0).normal(size=40),
        }
    )
    path, out = tmp_path / "t.parquet", tmp_path / "out.parquet"
    parquet.write_table(table, path)
    run("impute", path, "-o", out, *FEW)
    after = parquet.read_table(out)
    assert [after.schema.field(name).type for name in ("long", "small")] == [pa.int64(), pa.int8()]
    found = after["long"].to_pylist()
    assert [a for a, b in zip(found, long, strict=True) if b is not None] == [
        b for b in long if b is not None
    ]
    assert after["small"].null_count == 0
