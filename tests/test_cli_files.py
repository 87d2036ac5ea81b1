"""Reading and writing tables: realistic files, and errors for bad ones."""

import csv
import gzip
import io
import os
import stat
import sys

import numpy as np
import pandas as pd
import pytest
from cli_runs import write_frame
from hypothesis import given
from hypothesis import strategies as st

from leafkernel import _memory
from leafkernel.cli.errors import CommandError, FileError, TableError
from leafkernel.tables._writing import defuse
from leafkernel.tables.files import read_file
from leafkernel.tables.preparation import prepare

PLAIN = "name,size\nMünchen,1\nBonn,2\n"


@pytest.fixture
def put(tmp_path):
    """Write bytes or text to a file and return its path."""

    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def refused(path, **options):
    with pytest.raises(FileError) as caught:
        read_file(path, **options)
    return str(caught.value)


def arrow_or_skip():
    return pytest.importorskip("pyarrow")


def test_exit_codes():
    assert (FileError.exit_code, TableError.exit_code) == (3, 4)
    assert issubclass(FileError, CommandError)
    assert issubclass(TableError, CommandError)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_encodings(put, encoding):
    frame = read_file(put(PLAIN.encode(encoding)))
    assert frame.columns.tolist() == ["name", "size"]
    assert frame["name"].tolist() == ["München", "Bonn"]
    assert frame.attrs["notes"] == []


def test_another_encoding_is_read_with_a_note(put):
    frame = read_file(put(PLAIN.encode("cp1252")))
    assert frame["name"].tolist() == ["München", "Bonn"]
    (note,) = frame.attrs["notes"]
    assert "not UTF-8 (see line 2)" in note
    assert "Windows-1252" in note


def test_a_late_letter_decides_the_encoding(put):
    frame = read_file(put(b"a,b\n" + b"1,x\n" * 300_000 + b"2,\xfc\n"))
    assert frame["b"].iloc[-1] == "ü"
    assert "line 300,002" in frame.attrs["notes"][0]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.csv.gz", "T.CSV"])
def test_separators(put, separator, name):
    text = "\n".join(separator.join(line) for line in ["abc", "123", "456"])
    content = gzip.compress(text.encode()) if name.endswith("gz") else text
    frame = read_file(put(content, name))
    assert frame.to_numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert frame.columns.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a;b\n1,5;x, y\n2,5;z\n", [[1.5, "x, y"], [2.5, "z"]]),
        ("a\tb\n1,5\tx\n", [[1.5, "x"]]),
        ('a, "b"\n1, "x, y"\n2, z\n', [[1, "x, y"], [2, "z"]]),
        ("\n\na,b\n\n1,2\n  \n3,4\n\n", [[1, 2], [3, 4]]),
        ("a,b\r1,2\r3,4\r", [[1, 2], [3, 4]]),
        ("a,b\r\n1,2\r\n3,4", [[1, 2], [3, 4]]),
        ('a,b\n"x\ny",1\n', [["x\ny", 1]]),
        ('a,b\n"say ""hi""",1\n', [['say "hi"', 1]]),
        ("a,b,\n1,2,\n3,4,\n", [[1, 2], [3, 4]]),
        ("a,b\n1,2,\n3,4,,\n", [[1, 2], [3, 4]]),
        ("a,b\nx,y;z\nu,v;w\n", [["x", "y;z"], ["u", "v;w"]]),
        ("a\nx, y\nz\n", [["x, y"], ["z"]]),
    ],
)
def test_layouts(put, text, rows):
    assert read_file(put(text)).to_numpy().tolist() == rows


def test_decimal_commas_are_noted(put):
    frame = read_file(put("a;b\n" + "1,5;x\n2,5;y\n" * 10))
    assert "Column 'a' was read as numbers with decimal commas." in prepare(frame, "b").notes


def test_row_names_of_r_have_no_header(put):
    frame = read_file(put("a\tb\nr1\t1\t2\nr2\t3\t4\n", "t.tsv"))
    assert frame.columns.tolist() == ["", "a", "b"]
    assert frame["b"].tolist() == [2, 4]


@pytest.mark.parametrize(
    ("header", "noted"), [("5.1,3.5", True), ("0,1", False), ("1,2", False), ("a,2", False)]
)
def test_a_first_line_of_data_is_noted(put, header, noted):
    notes = read_file(put(f"{header}\n4.9,3.0\n")).attrs["notes"]
    assert any("looks like data" in note for note in notes) is noted


def test_same_names_are_kept(put):
    assert read_file(put("a,a,,b\n1,2,3,4\n")).columns.tolist() == ["a", "a", "", "b"]


def test_a_header_alone_is_a_table_without_rows(put):
    assert read_file(put("a,b\n")).shape == (0, 2)


def test_a_very_long_line(put):
    frame = read_file(put("a,b\n" + "x" * 500_000 + ",1\ny,2\n"))
    assert frame["a"].str.len().tolist() == [500_000, 1]
    assert csv.field_size_limit() == 131_072  # as it was


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b,c\n1,2,3\n1,2", ["truncated", "line 3 has 2 cells", "has 3 column names"]),
        ("a,b\n1,2\n1,2,3\n1,2\n", ["line 3 has 3 cells", "has 2 column names", "quoted"]),
        ("a,b\n1,2\n1\n1,2\n", ["line 3 has 1 cell,"]),
        ('a,b\n"x\ny",2\n1,2,3\n', ["line 4 has 3 cells"]),
        ('a,b,c\n1,2,3\n1,"2,3\n1,2,3\n', ["line 3", "quote", "not closed"]),
        ('a,b,c\n1,2,3\n1,2,"3\n', ["quote is opened but not closed"]),
        ("# made today\na,b\n1,2\n", ["line 2 has 2 cells", "above the column names"]),
        (b"a,b\n1,2\n1,\x002\n", ["zero byte on line 3"]),
        (PLAIN.encode("utf-16")[:-1], ["UTF-16", "truncated"]),
        ("", ["is empty (0 bytes)"]),
        (" \n\n", ["is empty"]),
        ("<!DOCTYPE html><html></html>", ["a web page"]),
        ("\n <HTML>", ["a web page"]),
        ('[{"a": 1}]', ["JSON"]),
        (b"PK\x03\x04rest", ["zip archive or an Excel workbook", "save the table as CSV"]),
        (b"\xd0\xcf\x11\xe0rest", ["old Excel workbook"]),
        (b"%PDF-1.7", ["PDF"]),
        (b"PAR1rest", ["Parquet", "rename it to end in .parquet"]),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), ["gzip", "rename it to end in .csv.gz"]),
    ],
)
def test_bad_text_files(put, content, said):
    message = refused(put(content))
    assert "table.csv" in message
    for part in said:
        assert part in message


def test_bad_gzip_files(put):
    whole = gzip.compress(os.urandom(5000).hex().encode() + b",b\n1,2\n")
    assert "truncated or damaged gzip" in refused(put(whole[:-12], "t.csv.gz"))
    assert "truncated or damaged gzip" in refused(
        put(whole[:2000] + b"xxxx" + whole[2004:], "t.csv.gz")
    )
    assert "plain text, not a gzip file" in refused(put(PLAIN, "t.csv.gz"))


def test_names_that_cannot_be_read(put, tmp_path):
    put(PLAIN, "birds.csv")
    assert "Did you mean 'birds.csv'?" in refused(tmp_path / "bird.csv")
    assert "is a folder" in refused(tmp_path)
    assert "does not exist" in refused(tmp_path / "no" / "birds.csv")
    assert "Download it first" in refused("https://example.org/birds.csv")
    message = refused(put(b"PK\x03\x04rest", "birds.xlsx"))
    assert ".parquet" in message
    assert "Excel" in message
    assert "Rename it" in refused(put(PLAIN, "birds.dat"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_pipe_is_not_read(tmp_path):
    """A pipe can be read only once, and waiting for more data would never end."""
    os.mkfifo(tmp_path / "pipe.csv")
    assert "write - instead of a file name" in refused(tmp_path / "pipe.csv")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="all may be read")
def test_no_permission(put):
    path = put(PLAIN)
    path.chmod(0)
    assert "cannot be read" in refused(path)
    path.chmod(stat.S_IRWXU)


def test_standard_input(monkeypatch):
    def give(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    give(PLAIN.encode())
    assert read_file("-")["size"].tolist() == [1, 2]
    give(gzip.compress(PLAIN.encode()))
    assert read_file("-", max_rows=1).shape == (1, 2)
    give(b"")
    assert "Standard input is empty" in refused("-")
    give(b"PAR1")
    assert "must be CSV" in refused("-")


def test_digits_that_name_something_stay_as_they_are(put):
    """Also if only a late row shows it, and if a gap would turn integers into floats."""
    lines = "".join(f"{10000 + i},{i},0.5,{i}\n" for i in range(100))
    path = put("007,zip,share,long\n" + lines + "01000,100,00.5,\n 02,,0,123456789012345678\n")
    frame = read_file(path)
    assert frame["007"].tolist()[-3:] == ["10099", "01000", " 02"]
    assert frame["long"].tolist()[-3] == "99"
    assert frame["long"].tolist()[-1] == "123456789012345678"
    assert frame["long"].isna().sum() == 1
    assert frame["zip"].dtype == frame["share"].dtype == np.float64
    sample = read_file(path, max_rows=50)
    assert sample["007"].tolist() == frame["007"][sample.index].tolist()


# --- samples and memory


def test_a_sample_has_the_rows_it_says(put):
    lines = "".join(f'{i},"text\n{i}",{i / 8}\n' for i in range(200))
    path = put("number,text,value\n" + lines)
    whole, sample = read_file(path), read_file(path, max_rows=50, random_state=3)
    assert sample.shape == (50, 3)
    assert sample.index.tolist() == sorted(set(sample.index))
    pd.testing.assert_frame_equal(sample, whole.loc[sample.index])
    assert sample["number"].tolist() == sample.index.tolist()
    assert "200 rows. A random sample of 50" in sample.attrs["notes"][0]
    assert read_file(path, max_rows=50, random_state=4).index.tolist() != sample.index.tolist()
    pd.testing.assert_frame_equal(read_file(path, max_rows=200), whole)


def test_samples_are_of_all_rows_alike(put):
    path = put("a,b\n" + "1,2\n" * 20)
    drawn = [i for seed in range(100) for i in read_file(path, max_rows=5, random_state=seed).index]
    counts = np.bincount(drawn, minlength=20)
    assert (abs(counts - 25) < 4 * np.sqrt(25)).all()


def test_a_table_that_does_not_fit_is_refused(put, monkeypatch):
    path = put("a,b\n" + "1.25,2.5\n" * 20_000)
    monkeypatch.setattr(_memory, "available_bytes", lambda: 500_000)
    message = refused(path)
    for part in ["about 20,000 rows", "MB of memory", "only 488.3 kB is free", "--max-rows"]:
        assert part in message
    fitting = int(message.rsplit(" ", 1)[1].rstrip("."))
    assert len(read_file(path, max_rows=fitting)) == fitting
    assert "for 19,000 rows" in refused(path, max_rows=19_000)


def test_packed_tables_are_measured_unpacked(put, monkeypatch):
    path = put(gzip.compress(b"a,b\n" + b"1.25,2.5\n" * 20_000, mtime=0), "t.csv.gz")
    assert path.stat().st_size < 5000
    monkeypatch.setattr(_memory, "available_bytes", lambda: 500_000)
    assert "MB of memory" in refused(path)


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_arrow_tables_that_do_not_fit_are_refused(tmp_path, monkeypatch, suffix):
    arrow_or_skip()
    path = tmp_path / f"t.{suffix}"
    write_frame(pd.DataFrame({"a": np.arange(20_000.0), "b": ["x"] * 20_000}), path)
    monkeypatch.setattr(_memory, "available_bytes", lambda: 500_000)
    assert "about 20,000 rows" in refused(path)
    assert len(read_file(path, max_rows=1000)) == 1000


# --- Arrow


@pytest.mark.parametrize("suffix", ["parquet", "feather", "arrow"])
def test_arrow_files(tmp_path, suffix):
    pyarrow = arrow_or_skip()
    frame = pd.DataFrame({"a": np.arange(300), "b": [f"t{i}" for i in range(300)]})
    path = tmp_path / f"t.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path, row_group_size=70)
    elif suffix == "feather":
        frame.to_feather(path, chunksize=70)
    else:
        table = pyarrow.Table.from_pandas(frame)
        with (
            pyarrow.OSFile(str(path), "wb") as sink,
            pyarrow.ipc.new_stream(sink, table.schema) as writer,
        ):
            writer.write_table(table, max_chunksize=70)
    assert read_file(path)["b"].tolist() == frame["b"].tolist()
    sample = read_file(path, max_rows=40)
    assert sample["a"].tolist() == sample.index.tolist()
    assert "sample of 40" in sample.attrs["notes"][0]


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_arrow_files_that_are_cut_off(tmp_path, suffix):
    arrow_or_skip()
    path = tmp_path / f"t.{suffix}"
    write_frame(pd.DataFrame({"a": range(100)}), path)
    content = path.read_bytes()
    for length in (10, len(content) // 2, len(content) - 5):
        path.write_bytes(content[:length])
        assert "truncated, damaged" in refused(path)
    path.write_bytes(b"a,b\n1,2\n")
    assert "is plain text" in refused(path)


def test_an_index_in_a_parquet_file_is_a_column(tmp_path):
    arrow_or_skip()
    frame = pd.DataFrame({"1": [1.0, 2.0]}, index=pd.Index(["x", "y"], name="who"))
    frame.to_parquet(tmp_path / "t.parquet")
    read = read_file(tmp_path / "t.parquet")
    assert sorted(read.columns) == ["1", "who"]
    assert read["who"].tolist() == ["x", "y"]


def test_same_names_in_a_feather_file(tmp_path):
    pyarrow = arrow_or_skip()
    table = pyarrow.table([[1, 2], [3, 4]], names=["a", "a"])
    with (
        pyarrow.OSFile(str(tmp_path / "t.feather"), "wb") as sink,
        pyarrow.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    read = read_file(tmp_path / "t.feather")
    assert read.columns.tolist() == ["a", "a"]
    assert read.to_numpy().tolist() == [[1, 3], [2, 4]]


# --- writing


def test_formulas_are_defused():
    texts = ["=1+1", "+a", "-a", "@a", "\ta", "\ra", " =a", "fine", "a=b", "-5", "+1.5e3", None]
    texts[-1:-1] = ["-", "--", "-$5.00", "+8 %"]
    safe = defuse(pd.DataFrame({"=name": texts, "number": np.arange(16.0) - 6}))
    assert safe.columns.tolist() == ["'=name", "number"]
    assert safe.iloc[:-1, 0].tolist() == [
        "'=1+1", "'+a", "'-a", "'@a", "'\ta", "'\ra", "' =a", "fine", "a=b", "-5", "+1.5e3",
        "-", "--", "-$5.00", "+8 %",
    ]  # fmt: skip
    assert safe.iloc[:, 0].isna().tolist() == [False] * 15 + [True]
    assert safe["number"].tolist() == (np.arange(16.0) - 6).tolist()


def test_categories_and_mixed_cells_are_defused():
    frame = pd.DataFrame(
        {"c": pd.Categorical(["=a", "b"]), "m": pd.Series(["=a", 1], dtype=object)}
    )
    assert defuse(frame).to_numpy().tolist() == [["'=a", "'=a"], ["b", 1]]


@pytest.mark.parametrize(
    "name", ["t.csv", "t.csv.gz", "t.tsv", "t.tsv.gz", "t.parquet", "t.feather"]
)
def test_written_tables_are_read_again(tmp_path, name):
    if name.endswith(("parquet", "feather")):
        arrow_or_skip()
    frame = pd.DataFrame({"a": [0.1, 1e300, -2.0], "b": ["x,\ty", 'say "hi"\n', "a\rb"]})
    write_frame(frame, tmp_path / name)
    read = read_file(tmp_path / name)
    assert read["a"].tolist() == frame["a"].tolist()
    assert read["b"].tolist() == frame["b"].tolist()
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_zero_bytes_are_not_written(tmp_path):
    write_frame(pd.DataFrame({"a": ["x\0y", "\0=z"], "b": [1, 2]}), tmp_path / "t.csv")
    assert read_file(tmp_path / "t.csv")["a"].tolist() == ["xy", "=z"]


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_arrow_takes_mixed_cells(tmp_path, suffix):
    arrow_or_skip()
    frame = pd.DataFrame({"m": pd.Series([1, "x", None], index=[5, 6, 7], dtype=object)})
    write_frame(frame, tmp_path / f"t.{suffix}")
    assert read_file(tmp_path / f"t.{suffix}")["m"].tolist()[:2] == ["1", "x"]


def test_output_that_cannot_be_written(tmp_path, monkeypatch):
    frame = pd.DataFrame({"a": [1]})
    for path, said in [
        (tmp_path / "t.xlsx", "must end in one of .csv"),
        (tmp_path / "no" / "t.csv", "does not exist"),
    ]:
        with pytest.raises(FileError, match=said):
            write_frame(frame, path)
    (tmp_path / "t.csv").write_text("before")

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(FileError, match="No space left"):
        write_frame(frame, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


letters = st.characters(exclude_categories=("Cs",), exclude_characters="\0\ufeff")
words = st.text(letters, min_size=1, max_size=8).map(lambda text: f"t{text}.")


@given(
    st.lists(
        st.tuples(words, st.floats(allow_nan=False, allow_infinity=False), words),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([".csv", ".tsv", ".csv.gz"]),
)
def test_text_and_numbers_survive(tmp_path_factory, rows, suffix):
    path = tmp_path_factory.getbasetemp() / f"survive{suffix}"
    frame = pd.DataFrame(rows, columns=["first", "number", "last"])
    write_frame(frame, path)
    read = read_file(path)
    for name in frame:
        assert read[name].tolist() == frame[name].tolist()


def test_lines_end_alike_on_all_systems(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "linesep", "\r\n")
    write_frame(pd.DataFrame({"a": [1, 2]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == b"a\n1\n2\n"


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_arrow_files_name_each_column_once(tmp_path, suffix):
    arrow_or_skip()
    path = tmp_path / f"t.{suffix}"
    write_frame(pd.DataFrame([[1, 2, 3]], columns=["a", "a", ""]), path)
    assert read_file(path).columns.tolist() == ["a", "a (2)", "column 3"]
    write_frame(pd.DataFrame([[1, 2]], columns=["Unnamed: 0", "a"]), path)
    assert read_file(path).columns.tolist() == ["Unnamed: 0", "a"]  # nothing was wrong with it
