"""From any table to features: each rule, and junk of all kinds."""

import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import leafkernel.cli
from leafkernel.cli.errors import CommandError, TableError
from leafkernel.tables.files import read_file
from leafkernel.tables.preparation import Column, prepare

N = 40
CLASSES = ["a", "b", "b", "a", "a", "b", "a", "b"] * (N // 8)


def table(**columns):
    """Return a table of 40 rows with a useful number, a target of two classes, and more."""
    useful = np.random.default_rng(0).normal(size=N)
    return pd.DataFrame({"useful": useful, **columns, "target": CLASSES})


def made(**columns):
    return prepare(table(**columns), "target")


def noted(prepared, *parts):
    found = [note for note in prepared.notes if all(part in note for part in parts)]
    assert len(found) == 1, prepared.notes
    return found[0]


def kind_of(values, name="x"):
    """Return the kind of a column of values, which is repeated to fill the table."""
    prepared = made(**{name: pd.Series(list(values) * (N // len(values)))})
    return {column.name: column for column in prepared.columns}.get(name)


def refused(frame, target="target", **options):
    with pytest.raises(TableError) as caught:
        prepare(frame, target, **options)
    return str(caught.value)


# --- kinds of columns


def test_numbers_stay():
    prepared = made(x=pd.Series([1.5, None, 3.0, -1.0] * 10))
    assert prepared.columns[1] == Column("x", "number")
    np.testing.assert_array_equal(prepared.features["x"][:4], [1.5, np.nan, 3.0, -1.0])
    np.testing.assert_array_equal(prepared.shown["x"][:4], [1.5, np.nan, 3.0, -1.0])
    assert (prepared.features.dtypes == np.float64).all()


def test_text_becomes_categories():
    prepared = made(x=[" red ", "blue", None, "red"] * 10)
    assert prepared.columns[1] == Column("x", "category", ("blue", "red"))
    np.testing.assert_array_equal(prepared.features["x"][:4], [1, 0, np.nan, 1])
    assert prepared.shown["x"].tolist()[:4] == ["red", "blue", None, "red"]


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([True, False] * 20),
        pd.Series([True, None] * 20, dtype="boolean"),
        pd.Series([True, False, None, None] * 10, dtype=object),
        pd.Categorical([True, False] * 20),
    ],
)
def test_booleans_are_categories(values):
    prepared = made(x=values)
    assert prepared.columns[1].kind == "category"
    assert set(prepared.shown["x"]) <= {"True", "False", None}
    assert set(prepared.columns[1].categories) <= {"False", "True"}


def test_declared_categories_keep_their_order():
    sizes = pd.Categorical(
        ["small", "large", "medium", None] * 10, ["small", "medium", "large", "x"]
    )
    prepared = made(x=sizes)
    assert prepared.columns[1].categories == ("small", "medium", "large")
    np.testing.assert_array_equal(prepared.features["x"][:4], [0, 2, 1, np.nan])


def test_categories_of_numbers_are_labels():
    column = made(x=pd.Categorical([3, 1, 3, 2] * 10)).columns[1]
    assert column == Column("x", "category", ("1", "2", "3"))


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1, 2, None, 4] * 10, dtype="Int64"),
        pd.Series([1.0, 2.0, None, 4.0] * 10, dtype="Float32"),
        pd.Series([Decimal("1"), Decimal("2"), None, Decimal("4")] * 10, dtype=object),
        pd.Series([1, 2.0, None, np.int8(4)] * 10, dtype=object),
        pd.Series([1, "2", None, "4 "] * 10, dtype=object),
        pd.Series(["1", "2", "?", "4"] * 10),
    ],
)
def test_numbers_of_any_type(values):
    prepared = made(x=values)
    assert prepared.columns[1] == Column("x", "number")
    np.testing.assert_array_equal(prepared.features["x"][:4], [1, 2, np.nan, 4])


def test_arrow_types():
    pyarrow = pytest.importorskip("pyarrow")
    day = datetime.date(1970, 1, 3)
    prepared = made(
        i=pd.Series([1, None] * 20, dtype="int64[pyarrow]"),
        b=pd.Series([True, False] * 20, dtype="bool[pyarrow]"),
        s=pd.Series(["x", None] * 20, dtype="string[pyarrow]"),
        a=pd.Series(["x", None] * 20, dtype=pd.ArrowDtype(pyarrow.string())),
        d=pd.Series([day, None] * 20, dtype=pd.ArrowDtype(pyarrow.date32())),
    )
    kinds = [(column.name, column.kind) for column in prepared.columns[1:]]
    expected = ["number", "category", "category", "category", "number"]
    assert kinds == list(zip("ibsad", expected, strict=True))
    np.testing.assert_array_equal(prepared.features["d"][:2], [2, np.nan])


def test_infinite_and_huge_numbers_are_missing():
    prepared = made(x=[1.0, np.inf, 1e39, 3e38] * 10)
    np.testing.assert_array_equal(prepared.features["x"][:4], [1, np.nan, np.nan, 3e38])
    noted(prepared, "'x' (20 values)", "too large", "missing")


def test_text_among_numbers_is_missing():
    values = [str(i / 4) for i in range(36)] + ["n/a", "unknown", "unknown", "NA"]
    prepared = made(x=values)
    assert prepared.features["x"].isna().sum() == 4
    noted(prepared, "'x' (2 values: 'unknown' (2 times))", "Text among the numbers")


def test_too_much_text_among_numbers_makes_categories():
    assert kind_of(["1", "2", "3", "low"]).kind == "category"


@pytest.mark.parametrize(
    ("values", "numbers", "said"),
    [
        (["1,5", "2", "-3,25", "1.000,5"], [1.5, 2, -3.25, 1000.5], "decimal commas"),
        (["1,500", "2", "-3,250,000", "1,000.5"], [1500, 2, -3.25e6, 1000.5], "thousands"),
    ],
)
def test_commas_in_numbers(values, numbers, said):
    prepared = made(x=values * 10)
    assert prepared.features["x"].tolist()[:4] == numbers
    noted(prepared, "'x'", said)


@pytest.mark.parametrize("values", [["007", "012", "7", "8"], ["01234", "2", "2", "4"]])
def test_digits_with_zeros_in_front_are_codes(values):
    assert kind_of(values).kind == "category"


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(
            pd.to_datetime(
                ["1970-01-02", None, "1970-01-03 12:00", "1969-12-31"] * 10, format="ISO8601"
            )
        ),
        pd.Series(
            pd.to_datetime(
                ["1970-01-02", None, "1970-01-03 12:00", "1969-12-31"] * 10, format="ISO8601"
            )
        )
        .dt.tz_localize("UTC")
        .dt.tz_convert("Asia/Tokyo"),
        pd.Series(["1970-01-02", None, "1970-01-03T12:00:00", "1969-12-31"] * 10),
    ],
)
def test_dates_are_days(values):
    prepared = made(x=values)
    np.testing.assert_allclose(prepared.features["x"][:4], [1, np.nan, 2.5, -1])
    assert prepared.columns[1].form == "dates"
    noted(prepared, "'x' has dates", "days since 1970")


def test_date_objects_are_days():
    prepared = made(x=pd.Series([datetime.date(1970, 1, 2), None] * 20, dtype=object))
    np.testing.assert_array_equal(prepared.features["x"][:2], [1, np.nan])


def test_lengths_of_time_are_days():
    prepared = made(x=pd.to_timedelta([36, 12] * 20, unit="h"))
    assert prepared.features["x"].tolist()[:2] == [1.5, 0.5]
    noted(prepared, "'x' has durations")


@pytest.mark.parametrize(
    "values", [[[1, 2], [3]], [{"a": 1}, {}], [b"ab", b"c"], [np.zeros(3), np.ones(2)], [("a",), 1]]
)
def test_nested_values_are_only_shown(values):
    frame = table()
    frame["x"] = pd.Series(values * 20, dtype=object)
    prepared = prepare(frame, "target")
    assert prepared.features.columns.tolist() == ["useful"]
    assert prepared.shown["x"].tolist()[:2] == [str(value) for value in values]
    noted(prepared, "'x' has lists")


def test_long_nested_values_are_cut():
    prepared = made(x=pd.Series([[1] * 1000, [2]] * 20, dtype=object))
    assert len(prepared.shown["x"][0]) == 200


def test_free_text_is_only_shown():
    prepared = made(x=[f"note {i % 30}" for i in range(N)])
    assert prepared.shown.columns.tolist() == ["useful", "x"]
    assert prepared.features.columns.tolist() == ["useful"]
    note = noted(prepared, "'x'", "shown but not used as a feature")
    assert "1,000" in note
    assert "half" in note


def test_ten_thousand_categories_are_no_feature():
    x = [f"c{i % 10_000}" for i in range(30_000)]
    y = (["a", "b", "a"] * 10_000)[::-1]
    frame = pd.DataFrame({"x": x, "few": np.arange(30_000) % 7, "y": y})
    prepared = prepare(frame, "y")
    assert prepared.features.columns.tolist() == ["few"]
    noted(prepared, "'x'", "more than 1,000")


def test_empty_and_constant_columns_are_left_out():
    prepared = made(e=[None] * N, f=[np.nan] * N, g=[""] * N, c=[5] * N, d=["x"] * N)
    assert prepared.shown.columns.tolist() == ["useful"]
    noted(prepared, "3 columns are empty", "'e', 'f', 'g'")
    noted(prepared, "2 columns have the same value in all rows", "'c', 'd'")


def test_one_value_or_none_is_a_feature():
    assert kind_of(["x", None]).kind == "category"
    assert kind_of([1.0, None]).kind == "number"


def test_many_columns_are_listed_in_one_note():
    note = noted(made(**{f"e{i}": [None] * N for i in range(30)}), "30 columns are empty")
    assert "'e4', … (30 in all)" in note


# --- names of rows


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("x", range(5, 45)),
        ("x", np.arange(40.0)),
        ("x", [f"p{i}" for i in range(40)]),
        ("x", [2**60 + 7 * (i % 40) for i in range(40)]),
        ("patient_id", [(7 * i) % 40 for i in range(40)]),
        ("PatientID", [(7 * i) % 40 for i in range(40)]),
        ("ID", [(7 * i) % 40 for i in range(40)]),
    ],
)
def test_names_of_rows_are_found(name, values):
    prepared = made(**{name: list(values)})
    assert prepared.id_name == name
    assert prepared.ids.tolist() == [
        str(int(v)) if isinstance(v, float) else str(v) for v in values
    ]
    assert prepared.features.columns.tolist() == ["useful"]
    assert prepared.shown[name].tolist() == prepared.ids.tolist()
    noted(prepared, repr(name), "row names")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("x", [(7 * i) % 40 for i in range(40)]),
        ("humid", [(7 * i) % 40 for i in range(40)]),
        ("id", [i / 2 for i in range(40)]),
        ("day", pd.date_range("2020-01-01", periods=40)),
    ],
)
def test_other_numbers_are_no_names(name, values):
    prepared = made(**{name: values})
    assert prepared.ids is None
    assert prepared.id_name == "row"
    assert name in prepared.features


def test_row_numbers_are_found_in_a_sample():
    frame = table(x=list(range(40))).iloc[::2]
    prepared = prepare(frame, "target")
    assert prepared.id_name == "x"
    assert prepared.rows.tolist() == list(range(0, 40, 2))


def test_a_second_column_of_names_is_shown():
    prepared = made(first=[f"p{i}" for i in range(N)], second=list(range(N)))
    assert prepared.id_name == "first"
    assert "second" in prepared.shown
    noted(prepared, "2 columns", "'first', 'second'")


def test_names_of_rows_may_be_chosen():
    frame = table(who=["x", None, "y", "z"] * 10, other=list(range(N)))
    prepared = prepare(frame, "target", id_column="who")
    assert prepared.id_name == "who"
    assert prepared.ids.tolist()[:4] == ["x", "row 1", "y", "z"]
    assert prepared.features.columns.tolist() == ["useful"]
    noted(prepared, "'who'", "are duplicates")


# --- names of columns


def test_names_of_columns_are_made_different():
    frame = pd.concat([table()] * 2, axis=1)
    frame.columns = ["a", "target", "a", "a (2)"]
    frame.insert(0, "", np.arange(N) % 7)
    frame.insert(0, 3, np.arange(N) % 6)
    frame.columns = [3, None, *frame.columns[2:]]
    prepared = prepare(frame, "target")
    assert prepared.features.columns.tolist() == ["3", "column 2", "a", "a (3)", "a (2)"]
    noted(prepared, "'a (3)'", "duplicate name")
    noted(prepared, "'column 2'", "without a name")


def test_the_targets_namesake_is_a_column():
    frame = table(x=CLASSES).rename(columns={"x": "target"})[["target", "useful"]]
    prepared = prepare(frame, "target")
    assert "target (2)" in prepared.features
    noted(prepared, "'target (2)' determines the target alone")


@pytest.mark.parametrize("name", ["Target", " target", "targte"])
def test_a_column_that_is_not_there(name):
    message = refused(table(), name)
    assert f"--target {name!r} is not a column" in message
    assert "Did you mean 'target'?" in message
    assert "Its columns are 'useful', 'target'." in message


def test_names_with_blanks_are_suggested():
    frame = table().rename(columns={"target": " Target "})
    assert "Did you mean ' Target '?" in refused(frame, "target")


def test_many_columns_are_not_all_listed():
    frame = pd.concat([table().add_prefix(f"c{i}_") for i in range(20)], axis=1)
    assert "(40 in all)" in refused(frame)


def test_columns_to_drop():
    frame = table(x=CLASSES)
    assert prepare(frame, "target", drop=["x"]).shown.columns.tolist() == ["useful"]
    assert "--drop 'y' is not a column" in refused(frame, drop=["y"])
    assert "--id 'y' is not a column" in refused(frame, id_column="y")
    assert "cannot also be dropped" in refused(frame, drop=["target"])


# --- target


@pytest.mark.parametrize(
    ("target", "task", "first"),
    [
        (["x", "y"] * 20, "classification", "x"),
        ([True, False] * 20, "classification", "True"),
        ([0, 1] * 20, "classification", "0"),
        ([0.0, 1.0] * 20, "classification", "0"),
        (["0", "1"] * 20, "classification", "0"),
        (list(range(40)), "regression", 0.0),
        ([0.5, 1.5] * 20, "regression", 0.5),
        (["0,5", "1,5"] * 20, "regression", 0.5),
        (pd.date_range("1970-01-02", periods=40), "regression", 1.0),
        (pd.Categorical([3, 4] * 20), "classification", "3"),
        ([3, 4, 5, 6, 7, 8, 9, 10] * 5, "classification", "3"),
        ([3, 4, 5, 6, 7, 8, 9, 10, 11, 12] * 4, "regression", 3.0),
    ],
)
def test_tasks(target, task, first):
    frame = table().assign(target=target)
    prepared = prepare(frame, "target")
    assert prepared.task == task
    assert prepared.target[0] == first
    assert prepared.target.dtype.kind == ("U" if task == "classification" else "f")
    assert any("target" in note for note in prepared.notes)


def test_a_task_that_is_said():
    frame = table().assign(target=[1.5, 2] * 20)
    prepared = prepare(frame, "target", task="classification")
    assert set(prepared.target) == {"1.5", "2"}
    frame["target"] = [0, 1] * 20
    assert prepare(frame, "target", task="regression").target.tolist()[:2] == [0.0, 1.0]
    assert "has text ('a', 'b')" in refused(table(), task="regression")


def test_rows_without_a_target_are_left_out():
    frame = table(x=["u", "v"] * 20)
    frame.loc[[0, 5], "target"] = [None, ""]
    prepared = prepare(frame, "target")
    assert len(prepared.target) == len(prepared.features) == len(prepared.shown) == 38
    assert prepared.rows.tolist() == [i for i in range(N) if i not in {0, 5}]
    assert prepared.features.index.tolist() == list(range(38))
    assert prepared.features["useful"].tolist() == frame["useful"].drop([0, 5]).tolist()
    noted(prepared, "2 rows were left out", "'target'")


def test_infinite_targets_are_missing():
    frame = table().assign(target=np.where(np.arange(N) == 3, np.inf, np.arange(N) / 3))
    assert 3 not in prepare(frame, "target").rows


def test_targets_that_cannot_be_used():
    frame = table()
    assert "missing in all 40 rows" in refused(frame.assign(target=None))
    assert "missing in all 40 rows" in refused(frame.assign(target=["NA", "?"] * 20))
    assert "only one class, 'a'" in refused(frame.assign(target="a"))
    assert "is 2 in all 40 usable rows" in refused(frame.assign(target=2), task="regression")
    assert "a different class in each" in refused(frame.assign(target=[f"c{i}" for i in range(N)]))
    nested = frame.assign(target=pd.Series([[1], [2]] * 20, dtype=object))
    assert "nested" in refused(nested)


def test_too_many_classes():
    many = pd.concat([table()] * 10, ignore_index=True)
    texts = [f"c{i % 101}" for i in range(400)]
    assert "101 classes" in refused(many.assign(target=texts))
    message = refused(many.assign(target=np.arange(400) % 200), task="classification")
    assert "--task regression" in message


def test_a_class_with_a_single_row_is_kept():
    frame = table().assign(target=["rare", *CLASSES[1:]])
    prepared = prepare(frame, "target")
    assert "rare" in prepared.target
    noted(prepared, "Class 'rare' has only one row")


def test_tables_that_cannot_be_used():
    assert "column names but no rows" in refused(table().iloc[:0])
    assert "5 usable rows" in refused(table().iloc[:5])
    few = table().assign(target=["a", "b"] + [None] * 38)
    assert "2 usable rows of 40" in refused(few)
    assert "no column except the target" in refused(table()[["target"]])
    message = refused(table(x=range(N))[["x", "target"]])
    assert "The table has no features" in message
    assert "'x'" in message
    same = table().iloc[[0] * 20]
    assert "only one class" in refused(same)


def test_columns_that_tell_the_target_are_noted():
    prepared = made(x=["u" if c == "a" else "v" for c in CLASSES])
    noted(prepared, "'x' determines the target alone", "--drop")
    y = np.random.default_rng(1).normal(size=N)
    other = np.random.default_rng(2).normal(size=N)
    frame = pd.DataFrame({"x": 32 + 1.8 * y, "near": y + 1e-3 * other, "other": other, "y": y})
    noted(prepare(frame, "y"), "'x' determines the target alone")
    assert not any("alone" in note for note in made(x=np.arange(N) ** 2.5).notes)


def test_notes_of_the_file_come_first():
    frame = table()
    frame.attrs["notes"] = ["The file was odd."]
    assert prepare(frame, "target").notes[0] == "The file was odd."


# --- another table


def test_another_table_is_encoded_alike():
    frame = table(
        color=["red", "blue"] * 20,
        comma=["1,5", "2,25"] * 20,
        day=["2020-01-01", "2020-01-02"] * 20,
        number=[1.0, 2.5] * 20,
    )
    prepared = prepare(frame, "target")
    pd.testing.assert_frame_equal(prepared.read(frame).features, prepared.features)
    new = pd.DataFrame(
        {
            "number": ["1", "low"],
            "day": ["1970-01-02", None],
            "comma": ["1,500", "2"],
            "color": ["green", "red"],
            "useful": [1, np.inf],
        }
    )
    rows = prepared.read(new)
    encoded = rows.features
    assert encoded.columns.tolist() == prepared.features.columns.tolist()
    np.testing.assert_array_equal(encoded["color"], [np.nan, 1])
    np.testing.assert_array_equal(encoded["comma"], [1.5, 2])
    np.testing.assert_array_equal(encoded["day"], [1, np.nan])
    np.testing.assert_array_equal(encoded["number"], [1, np.nan])
    np.testing.assert_array_equal(encoded["useful"], [1, np.nan])
    notes = " ".join(rows.notes)
    for part in ["'color' (1 value)", "'number' (1 value: 'low')", "'useful' (1 value)"]:
        assert part in notes
    with pytest.raises(TableError, match="needs column 'color'"):
        prepared.read(new.drop(columns="color"))


def test_categories_that_another_table_reads_as_numbers():
    prepared = made(x=["1", "2", "other", "3"] * 10)
    assert prepared.read(pd.DataFrame({"x": [2.0, None], "useful": 0.0})).features["x"][0] == 1


# --- whole files


def test_penguins():
    folder = Path(leafkernel.cli.__file__).parent / "data"
    prepared = prepare(read_file(folder / "penguins.csv"), "species")
    assert prepared.task == "classification"
    assert prepared.ids is None
    kinds = {column.name: column.kind for column in prepared.columns}
    assert kinds["island"] == kinds["sex"] == "category"
    assert kinds["bill_length_mm"] == "number"
    assert len(prepared.features) == 344
    assert prepared.features.isna().to_numpy().sum() == 19


cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(0, 5),
    st.floats(),
    st.dates(),
    st.datetimes(),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=6),
    st.sampled_from(["NA", "1,5", "1,000", "=1", "<b>", '"', "2020-01-01", "007", "-", "inf", " "]),
)
junk_columns = st.one_of(
    st.lists(cells, min_size=12, max_size=12),
    cells.map(lambda cell: [cell] * 12),
    st.lists(cells, min_size=2, max_size=3).map(lambda few: (few * 6)[:12]),
)
names = st.sampled_from(["target", "id", "a", "b", "", "x y", '"', "a,b", "1"])


@given(st.lists(st.tuples(names, junk_columns), min_size=1, max_size=5), st.booleans())
def test_junk_gives_features_or_a_message(tmp_path_factory, columns, through_file):
    frame = pd.concat([pd.Series(cells, dtype=object) for _, cells in columns], axis=1)
    frame.columns = ["target", *(name for name, _ in columns[1:])]
    try:
        if through_file:
            path = tmp_path_factory.getbasetemp() / "junk.csv"
            frame.to_csv(path, index=False)
            frame = read_file(path)
        prepared = prepare(frame, "target")
        encoded = prepared.read(frame).features
    except CommandError:
        return
    n = len(prepared.target)
    assert prepared.features.shape == (n, len(prepared.columns))
    assert (prepared.features.dtypes == np.float64).all()
    assert np.isfinite(prepared.features.fillna(0).to_numpy(np.float32)).all()
    assert len(prepared.shown) == len(prepared.rows) == n >= 10
    assert prepared.ids is None or len(prepared.ids) == n
    assert prepared.target.shape == (n,)
    np.testing.assert_array_equal(
        encoded.iloc[prepared.rows].to_numpy(), prepared.features.to_numpy()
    )
    for column in prepared.columns:
        codes = prepared.features[column.name].dropna()
        if column.kind == "category":
            assert codes.between(0, len(column.categories) - 1).all()
    for note in prepared.notes:
        assert note[0].isupper() or note[0].isdigit()
        assert note.endswith(".")


@pytest.mark.parametrize("word", ["-", "none", ".", "unknown"])
def test_one_word_among_many_numbers_stands_for_gaps(word):
    """Regression test: with one such cell in eight, the column became a category without a note."""
    prepared = made(n=[word if k % 8 == 0 else str(k * 37 % 89) for k in range(N)])
    assert prepared.features["n"].isna().sum() == 5
    assert any("'n'" in note or "missing" in note for note in prepared.notes)
    sizes = ["3+" if k % 8 == 0 else str(k % 3) for k in range(N)]
    assert "3+" in set(made(n=sizes).shown["n"])
