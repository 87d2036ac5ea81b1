"""``leafkernel impute`` for text files: cells that are not missing do not change."""

import csv
import gzip
import io
import re

import pytest
from cli_runs import run, run_json
from hypothesis import given, settings
from hypothesis import strategies as st

from leafkernel.tables._copying import change_cells, quote_cell, split_records
from leafkernel.tables._layout import Dialect

FEW = ("--trees", "5")
SEPARATORS = [",", ";", "\t", "|"]
ENCODINGS = ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-be", "utf-32"]


def encode(text, encoding):
    """Return bytes, with a byte order mark if the encoding needs one."""
    return (
        ("\ufeff" + text).encode("utf-16-be") if encoding == "utf-16-be" else text.encode(encoding)
    )


def parse(content, encoding, separator, *, spaced=False):
    """Return the records of a file as the csv module reads them."""
    text = content.decode(encoding).removeprefix("\ufeff")
    lines = io.StringIO(text, newline="")
    return list(csv.reader(lines, delimiter=separator, skipinitialspace=spaced))


# --- cells


@given(
    st.text(st.sampled_from(list('ab "",;\r\n\té')), max_size=40),
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
)
@settings(max_examples=400)
def test_cells_are_those_of_the_csv_module(text, separator, spaced):
    dialect = Dialect(separator, spaced, "utf-8")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=spaced)
    expected = [each for each in reader if len(each) > 1 or "".join(each).strip(" \t")]
    records = [[cell.value for cell in record] for record in split_records(text, dialect)]
    assert [each for each in records if len(each) > 1 or each[0]] == expected
    for record in split_records(text, dialect):
        assert all(text.startswith(cell.written, cell.start) for cell in record)
    assert "".join(change_cells(text, dialect, lambda *_: None)) == text


# --- files

cells = st.text(
    st.characters(codec="cp1252", exclude_characters="\0\x81\x8d\x8f\x90\x9d\ufeff"), max_size=6
)


@st.composite
def tables(draw):
    """Draw a table with gaps in a column of numbers and one of categories, and how to write it."""
    n = draw(st.integers(12, 20))
    separator = draw(st.sampled_from(SEPARATORS))
    comma = separator != ","
    remarks = draw(st.lists(cells, min_size=n, max_size=n))
    kinds = draw(st.lists(st.sampled_from(["=cmd", "+é", "a b", 'q"']), min_size=n, max_size=n))
    sizes = [f"{draw(st.integers(0, 99))}{',' if comma else '.'}{i % 10}5" for i in range(n)]
    records = [["id", "remark", "kind", "size"]]
    records += [
        [f"-x{i}", f"r{remark}", kind, size]
        for i, (remark, kind, size) in enumerate(zip(remarks, kinds, sizes, strict=True))
    ]
    gaps = draw(st.sets(st.tuples(st.integers(1, 3), st.sampled_from([2, 3]))))
    for row, column in gaps:
        records[row][column] = draw(st.sampled_from(["", "NA", "?"]))
    return records, gaps, separator


@given(
    tables(),
    st.sampled_from(ENCODINGS),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([".csv", ".txt", ".csv.gz"]),
)
@settings(max_examples=40, deadline=None)
def test_only_the_gaps_change(
    tmp_path_factory, table, encoding, ends, always, spaced, final, suffix
):
    records, gaps, separator = table
    between = f"{separator} " if spaced else separator
    lines = [
        between.join(quote_cell(x, separator, always=always) for x in each) for each in records
    ]
    content = encode(ends.join([*lines, ""] if final else lines), encoding)
    folder = tmp_path_factory.mktemp("copies")
    path, out = folder / f"t{suffix}", folder / f"out{suffix}"
    pack, unpack = (gzip.compress, gzip.decompress) if suffix.endswith("gz") else (bytes, bytes)
    path.write_bytes(pack(content))
    run("impute", path, "-o", out, "--trees", 2)
    written = unpack(out.read_bytes())
    if not gaps:
        assert written == content
    before, after = (parse(each, encoding, separator, spaced=spaced) for each in (content, written))
    assert [len(record) for record in after] == [len(record) for record in before]
    for i, record in enumerate(before):
        for j, cell in enumerate(record):
            assert (after[i][j] != cell) == ((i, j) in gaps), (i, j)


def write_table(path, separator=";", encoding="cp1252", ends="\r\n"):
    """Write 30 rows with a gap in each of two columns; return the lines."""
    lines = [f"name{separator} größe{separator} art"]
    lines += [
        f"=n{i}{separator} {'' if i == 4 else f'{i},50'}{separator} "
        f"{'?' if i == 7 else '+süß' if i % 2 else '-rot'}"
        for i in range(30)
    ]
    path.write_bytes(encode(ends.join([*lines, ""]), encoding))
    return lines


def test_a_pipe_gets_the_dialect_of_the_file(tmp_path):
    path = tmp_path / "t.csv"
    lines = write_table(path)
    for result in (
        run("impute", path, *FEW),
        run("impute", "-", *FEW, input=path.read_bytes()),
    ):
        after = result.stdout_bytes.decode("cp1252").split("\r\n")
        assert after[-1] == ""
        changed = [i for i, line in enumerate(lines) if after[i] != line]
        assert changed == [5, 8]
        assert after[5].startswith("=n4; ")
        assert after[8] in ("=n7; 7,50; +süß", "=n7; 7,50; -rot")
    assert "A cell with the text '?' is treated as missing." in result.stderr


def test_another_ending_is_another_format(tmp_path):
    path = tmp_path / "t.csv"
    write_table(path)
    result = run("impute", path, "-o", tmp_path / "out.tsv", *FEW)
    assert "in UTF-8 with tabs as separators" in result.stderr
    before = parse(path.read_bytes(), "cp1252", ";", spaced=True)
    after = parse((tmp_path / "out.tsv").read_bytes(), "utf-8", "\t")
    assert [i for i in range(31) if before[i] != after[i]] == [5, 8]
    back = run("impute", tmp_path / "out.tsv", "-o", tmp_path / "back.csv", *FEW)
    assert "with commas as separators" in back.stderr
    assert parse((tmp_path / "back.csv").read_bytes(), "utf-8", ",") == after
    run("impute", path, "-o", tmp_path / "out.txt", *FEW)
    assert (tmp_path / "out.txt").read_bytes().startswith("name; größe; art\r\n".encode("cp1252"))


def test_tables_of_r_keep_their_layout(tmp_path):
    """An unnamed column of row names, text in quotes, NA without quotes."""
    path = tmp_path / "t.csv"
    lines = ['"size","kind"', *[f'"{i}",{i % 6},"{"ab"[i % 2]}"' for i in range(30)]]
    lines[5], lines[8] = '"4",NA,"a"', '"7",1,NA'
    path.write_text("\n".join([*lines, ""]))
    after = run("impute", path, *FEW).stdout.split("\n")
    assert after.pop() == ""
    assert [i for i in range(31) if after[i] != lines[i]] == [5, 8]
    assert re.fullmatch(r'"4",\d,"a"', after[5])
    assert re.fullmatch(r'"7",1,"[ab]"', after[8])


def test_separators_at_the_ends_of_lines_stay(tmp_path):
    path = tmp_path / "t.csv"
    text = "a;b;\n\n" + "".join(f"{i % 5};{'xy'[i % 2]};\n" for i in range(30)) + ";x;\n\n"
    path.write_text(text)
    after = run("impute", path, *FEW).stdout
    assert re.fullmatch(re.escape(text[:-5]) + r"\d;x;\n\n", after)


def test_json_does_not_change_the_file(tmp_path):
    path = tmp_path / "t.csv"
    write_table(path)
    run("impute", path, "-o", tmp_path / "a.csv", *FEW)
    run_json("impute", path, "-o", tmp_path / "b.csv", *FEW)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_formulas_are_escaped_if_wanted(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    write_table(path)
    said = run("impute", path, "-o", out, *FEW).stderr
    assert "Columns: 'name' (30 cells), 'art' (30 cells)." in said
    said = run("impute", path, "-o", out, "--escape-formulas", *FEW).stderr
    assert "formula" not in said
    for record in parse(out.read_bytes(), "cp1252", ";", spaced=True)[1:]:
        assert record[0].startswith("'=")
        assert record[2] in ("'+süß", "'-rot")


def test_text_without_gaps_keeps_its_missing_words(tmp_path):
    """Row names and free text are not imputed: NA stays NA."""
    path = tmp_path / "t.csv"
    lines = ["code,remark,size", *[f"c{i},{'NA' if i % 3 else f'text {i}'},{i}" for i in range(30)]]
    path.write_text("\n".join(lines))
    assert run("impute", path, *FEW).stdout == "\n".join(lines)


def test_unused_bytes_of_windows_stay(tmp_path):
    path = tmp_path / "t.csv"
    content = b"a,b\n" + b"".join(b"\x81\xe4,%d\n" % i for i in range(20)) + b",5\n"
    path.write_bytes(content)
    out = run("impute", path, *FEW).stdout_bytes
    assert out == content[:-3] + b"\x81\xe4,5\n"


@pytest.mark.parametrize("word", ["?", " NA ", "null"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_words_for_missing_are_named(tmp_path, word, suffix):
    path = tmp_path / "t.csv"
    path.write_text(
        "a,b,y\n" + "".join(f"{i},{word if i < 3 else 'x'},{i % 2}\n" for i in range(30))
    )
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
        import pandas as pd

        frame = pd.read_csv(path, keep_default_na=False)
        path = tmp_path / "t.parquet"
        frame.to_parquet(path)
    for command in ("outliers", "impute", "neighbors"):
        said = run(command, path, "-t", "y", *FEW).stderr
        assert f"texts are treated as missing: {word.strip()!r} (3 times)." in said


def test_text_among_numbers_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{'-' if i in (3, 5) else i},{i % 2}\n" for i in range(30)))
    said = run("outliers", path, "-t", "y").stderr
    assert "numbers of column 'a' (2 values: '-' (2 times)) is treated as missing" in said
