"""Columns have the same values and gaps for every type of table."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cli_runs import write_frame

from leafkernel import LeafkernelWarning
from leafkernel.explorer._columns import read_column
from leafkernel.plots._columns import Columns
from leafkernel.tables._frames import wrap_table
from leafkernel.tables._missing import MISSING, is_missing
from leafkernel.tables._values import read_values
from leafkernel.tables.files import read_file
from leafkernel.tables.preparation import prepare
from leafkernel.tasks import ProximityImputer

WORDS = sorted(MISSING)
N = 40


def frame_with(word):
    kinds = [word if i % 8 == 3 else "ab"[i % 2] for i in range(N)]
    return pd.DataFrame({"kind": kinds, "size": np.arange(N) % 7 + 0.5, "y": ["u", "v"] * (N // 2)})


@pytest.mark.parametrize("word", ["None", "NA", " n/a ", "?", ""])
def test_a_word_for_missing_means_the_same_everywhere(tmp_path, word):
    frame = frame_with(word)
    gaps = (np.arange(N) % 8 == 3).tolist()
    for table in (frame, pl.DataFrame(frame), frame.to_numpy(dtype=object)):
        assert wrap_table(table).values[0].missing().tolist() == gaps
    assert read_column("kind", frame["kind"]).missing.tolist() == gaps
    assert Columns(frame)[0].missing.tolist() == gaps
    for suffix in ("csv", "parquet", "feather"):
        path = tmp_path / f"t.{suffix}"
        write_frame(frame, path)
        prepared = prepare(read_file(path), "y")
        assert prepared.features["kind"].isna().tolist() == gaps
        said = f"{word.strip()!r} ({sum(gaps)} times)"
        assert any(said in note for note in prepared.notes) is bool(word)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_the_imputer_fills_words_for_missing_and_says_so(kind):
    frame = kind(frame_with("None"))
    imputer = ProximityImputer(n_estimators=5, max_iter=1, random_state=0)
    with pytest.warns(LeafkernelWarning, match=r"'None' \(5 times\)"):
        filled = imputer.fit_transform(frame)
    assert set(filled["kind"]) == {"a", "b"}
    assert imputer._schema.columns[0].categories == ("a", "b")


def test_numbers_in_a_column_of_objects_are_numbers():
    X = pd.DataFrame({"n": pd.Series([1, 5, None, 9] * 10, dtype=object), "x": np.arange(40.0)})
    imputer = ProximityImputer(n_estimators=5, max_iter=1, random_state=0)
    filled = imputer.fit_transform(X)
    assert imputer.is_categorical_.tolist() == [False, False]
    assert filled["n"].dtype == object
    assert all(value % 1 == 0 for value in filled["n"])


def test_polars_keeps_its_types():
    n = [1, 5, None, 9] * 10
    X = pl.DataFrame(
        [
            pl.Series("n", n, dtype=pl.Int16),
            pl.Series("s", n, dtype=pl.Float32),
            pl.Series("e", ["b", None, "a", "b"] * 10, dtype=pl.Enum(["b", "a"])),
        ]
    )
    imputer = ProximityImputer(n_estimators=5, max_iter=1, random_state=0)
    filled = imputer.fit_transform(X)
    assert filled.schema == X.schema
    assert not any(filled[name].null_count() for name in X.columns)
    imputer.fit(X.with_columns(X["n"].cast(pl.Float64) + 0.3))
    assert imputer.transform(X)["n"].dtype == pl.Float64


def test_what_is_missing():
    nothing = [None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "s"), *WORDS, " NA\t"]
    assert all(map(is_missing, nothing))
    assert not any(map(is_missing, [0, "0", False, "none", "Nan Madol", [], {}, np.zeros(0), "-"]))


DAY = datetime.date(1970, 1, 3)


@pytest.mark.parametrize(
    ("column", "numbers", "form"),
    [
        (pd.Series([1, None], dtype="Int8"), [1, np.nan], ""),
        (pd.Series([1.5, None], dtype="double[pyarrow]"), [1.5, np.nan], ""),
        (pl.Series([1, None]), [1, np.nan], ""),
        (np.array([1, None], dtype=object), [1, np.nan], ""),
        (pd.Series([DAY, None], dtype=object), [2, np.nan], "dates"),
        (pd.Series(pd.to_datetime(["1970-01-03", None])), [2, np.nan], "dates"),
        (pd.Series(pd.to_datetime(["1970-01-03", None], utc=True)), [2, np.nan], "dates"),
        (pl.Series([DAY, None]), [2, np.nan], "dates"),
        (np.array(["1970-01-03", "NaT"], dtype="datetime64[D]"), [2, np.nan], "dates"),
        (pd.Series(pd.to_timedelta(["36h", None])), [1.5, np.nan], "durations"),
        (pl.Series([datetime.timedelta(hours=36), None]), [1.5, np.nan], "durations"),
    ],
)
def test_numbers_and_dates_of_any_library(column, numbers, form):
    values = read_values(column)
    np.testing.assert_array_equal(values.numbers, numbers)
    assert values.form == form


@pytest.mark.parametrize(
    ("column", "objects", "order"),
    [
        (pd.Series([True, None], dtype="boolean"), [True, None], None),
        (pd.Categorical(["b", None], ["b", "a"]), ["b", None], ("b", "a")),
        (pl.Series(["b", None], dtype=pl.Enum(["b", "a"])), ["b", None], ("b", "a")),
        (pl.Series(["b", None], dtype=pl.Categorical), ["b", None], None),
        (np.array(["b", "NA"]), ["b", None], None),
        (np.array([True, False]), [True, False], None),
        (pd.Series([1, "b"], dtype=object), [1, "b"], None),
    ],
)
def test_categories_of_any_library(column, objects, order):
    values = read_values(pd.Series(column) if isinstance(column, pd.Categorical) else column)
    assert values.numbers is None
    assert values.objects.tolist() == objects
    assert values.order == order


def test_a_sample_is_the_same_in_all_formats(tmp_path):
    found = []
    for suffix in ("csv", "csv.gz", "parquet", "feather"):
        write_frame(pd.DataFrame({"a": np.arange(5000)}), tmp_path / f"t.{suffix}")
        found.append(read_file(tmp_path / f"t.{suffix}", max_rows=7, random_state=1)["a"].tolist())
    assert len(found[0]) == 7
    assert all(each == found[0] for each in found)


def test_a_cell_that_no_one_closes(tmp_path):
    """Also if it is in the last row, where the number of cells is right."""
    path = tmp_path / "t.csv"
    for text in ('a,b\n1,"2\n', 'a,b\n1,"2', 'a,b\n1,"2\n3,4\n'):
        path.write_text(text)
        with pytest.raises(Exception, match="line 2: a quote is opened but not closed"):
            read_file(path)


def test_plain_numbers_are_those_that_people_write(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d,e\n0x1F,1_000,1e3,5,1.5\n0x2F,2_000,2E-1,,2\n")
    frame = read_file(path)
    assert frame[["a", "b"]].to_numpy().tolist() == [["0x1F", "1_000"], ["0x2F", "2_000"]]
    assert frame["c"].tolist() == [1000, 0.2]
    assert frame["d"].isna().tolist() == [False, True]
    assert frame["e"].dtype == np.float64
