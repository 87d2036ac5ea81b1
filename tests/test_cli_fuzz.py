"""Damaged tables: each gives a usable frame or an error message, within a time limit."""

import gzip
import io
import os
import random
import signal
import sys
from contextlib import contextmanager, suppress

import numpy as np
import pandas as pd
import pytest
from cli_runs import write_frame

from leafkernel.cli.errors import CommandError
from leafkernel.tables._copying import TextCopy, split_records
from leafkernel.tables._gaps import GappyColumn
from leafkernel.tables._kinds import read_as
from leafkernel.tables._notation import Stated
from leafkernel.tables._values import read_feature
from leafkernel.tables.files import open_source, read_file, read_source
from leafkernel.tables.preparation import prepare

CASES = int(os.environ.get("LEAFKERNEL_FUZZ_CASES", "150"))  # of each format
LONGEST = 20  # seconds that one table may take

CELLS = [
    *("", " ", "NA", "?", "-", "inf", "-inf", "nan", "1e999", "-0", "007", "1.", ".5", "1,5"),
    *("33.932", "1.234.567", "1,234,567", "1.234,5", "1 234", "0x1F", "1_000", "١٢٣", "½"),
    *("=1+1", '"', '""', '"open', "a\nb", "a\rb", "a\0b", "\ufeff", "é" * 300, "9" * 400),
    *("2024-02-30", "2024-12-31", "0001-01-01", "9999-12-31T23:59:59Z", "12.05.2024", "True"),
    *("$5.00", "(5)", "5 %", "-€1.234,50", "CHF 1'234.50", "5 kr", "31/12/2024", "1/2/2024", "$"),
    *("\U0001f600", "\u202e", "[1, 2]", "{}", "NULL", "1e-400", "+5", "--5", "1e", "12:30"),
]
BYTES = [b'"', b"'", b",", b";", b"\t", b"|", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xfe\xff"]
BYTES += [b"\xef\xbb\xbf", b" ", b"\\", b"#", b"\xc3", b"\x80", b".", b"-", b"\x1a", b"\x1f\x8b"]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "cp037"]


def make_frame(rows=30):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": np.arange(rows),
            "size": rng.normal(20, 5, rows).round(3),
            "count": rng.integers(0, 9, rows),
            "kind": rng.choice(["ant", "bee", "Käfer"], rows),
            "day": pd.date_range("2024-01-01", periods=rows).astype(str),
            "label": rng.choice(["yes", "no"], rows),
        }
    )
    frame.loc[3, "size"] = np.nan
    return frame


def make_text(separator):
    decimal = "," if separator == ";" else "."
    return make_frame().to_csv(index=False, sep=separator, decimal=decimal, lineterminator="\n")


def make_bytes(suffix):
    file = io.BytesIO()
    write = pd.DataFrame.to_parquet if suffix == ".parquet" else pd.DataFrame.to_feather
    write(make_frame(), file)
    return file.getvalue()


def mutate_text(text, separator, rng):
    """Change cells and lines of a table."""
    lines = text.split("\n")
    for _ in range(rng.randint(0, 6)):
        i = rng.randrange(len(lines))
        cells = lines[i].split(separator)
        j = rng.randrange(len(cells))
        change = rng.randrange(9)
        if change == 0:
            del lines[i]
        elif change == 1:
            lines.insert(i, rng.choice([lines[i], "", " ", separator * 3, "# note"]))
        elif change == 2:
            rng.shuffle(lines)
        elif change == 3:  # a whole column of one odd cell
            odd = rng.choice(CELLS)
            rows = [line.split(separator) for line in lines]
            lines = [separator.join([*row[:j], odd, *row[j + 1 :]]) for row in rows]
        elif change == 4:
            cells[j] = '"' + cells[j].replace('"', '""') + rng.choice(['"', "", '""', '"x'])
        elif change == 5:
            del cells[j]
        elif change == 6:
            cells.insert(j, rng.choice(CELLS))
        else:
            cells[j] = rng.choice(CELLS)
        if change >= 4:
            lines[i] = separator.join(cells)
        lines = lines or [""]
    return rng.choice(["\n", "\n", "\r\n", "\r"]).join(lines)


def mutate_bytes(content, rng):
    """Overwrite, insert, delete, repeat or cut off bytes."""
    content = bytearray(content)
    for _ in range(rng.randint(0, 5)):
        i = rng.randrange(len(content) + 1)
        change = rng.randrange(6)
        if change == 0:
            content[i : i + 1] = rng.randbytes(1)
        elif change == 1:
            content[i:i] = rng.choice(BYTES)
        elif change == 2:
            del content[i : i + rng.randint(1, 40)]
        elif change == 3:
            content[i:i] = content[i : i + rng.randint(1, 200)] * rng.randint(1, 3)
        elif change == 4 and rng.random() < 0.3:
            del content[i:]
        else:
            content[i : i + 4] = rng.randbytes(4)
    return bytes(content)


@contextmanager
def soon():
    """Fail if the block takes too long."""
    if sys.platform == "win32":
        yield
        return

    def stop(*_):
        raise AssertionError(f"not done after {LONGEST} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def read(path, rng):
    """Read a table as the commands do."""
    stated = Stated(rng.choice([None, ".", ","]), rng.choice([None, None, "space", "none"]))
    options = {"max_rows": rng.choice([None, 12]), "as_text": rng.random() < 0.3}
    try:
        frame = read_file(path, stated=stated, **options)
        for j, name in enumerate(frame.columns):
            signs, kind = frame.attrs["signs"].get(j), rng.choice(["number", "category", "date"])
            GappyColumn.of(str(name), frame.iloc[:, j], signs)
            with suppress(CommandError):
                read_as(read_feature(frame.iloc[:, j]), kind, str(name), signs)
        write_frame(frame, path.with_name("again.csv"))
        target = rng.choice([*map(str, frame.columns), "label", "size"])
        prepared = prepare(frame, target, task=rng.choice([None, None, "regression"]))
        prepared.read(frame)
    except CommandError as error:
        return None if str(error).strip() else pytest.fail("an error without a message")
    assert len(prepared.target) == len(prepared.features) >= 10
    return prepared


def check_copy(path):
    """Check that a readable text is copied byte for byte, with the same rows."""
    try:
        with open_source(path) as source:
            frame = read_source(source, as_text=True, max_rows=None, random_state=0)
            copy = TextCopy.of(source, frame.attrs["dialect"])
            with source.bytes() as file:
                content = file.read()
    except CommandError:
        return
    written = io.BytesIO()
    copy.write("", written)
    assert written.getvalue() == content
    _, *rows = split_records(copy.text, copy.dialect)
    assert len(rows) == len(frame)
    for j in range(frame.shape[1]):
        for cell, row in zip(frame.iloc[:, j], rows, strict=True):
            assert cell in (row[j].value, None)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_damaged_text(tmp_path, separator):
    usable = 0
    for case in range(CASES):
        rng = random.Random(f"{separator} {case}")
        text = mutate_text(make_text(separator), separator, rng)
        content = text.encode(rng.choice(ENCODINGS[:1] * 6 + ENCODINGS), errors="replace")
        suffix = rng.choice([".csv", ".csv", ".tsv", ".txt", ".csv.gz"])
        if suffix.endswith(".gz"):
            content = gzip.compress(content)
        if rng.random() < 0.5:
            content = mutate_bytes(content, rng)
        path = tmp_path / f"table{suffix}"
        path.write_bytes(content)
        with soon():
            usable += read(path, rng) is not None
            check_copy(path)
    assert usable > CASES / 20  # else nothing was tested behind the first message


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_damaged_arrow_files(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    whole, usable = make_bytes(suffix), 0
    for case in range(CASES):
        rng = random.Random(f"{suffix} {case}")
        path = tmp_path / f"table{suffix}"
        path.write_bytes(mutate_bytes(whole, rng))
        with soon():
            usable += read(path, rng) is not None
    assert usable > CASES / 50
