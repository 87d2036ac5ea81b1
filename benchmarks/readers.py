"""Test how the readers of other libraries handle messy text files, with default settings.

    pip install duckdb pandas polars pyarrow
    python benchmarks/readers.py

Prints a Markdown table with one line per file and one column per library. A cell is "right", the
error, or a description of the wrong result.
"""

import tempfile
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
from pyarrow import csv

# The bytes of a file, and its table as a person would read it, with None for missing values.
FILES = {
    "semicolons": (b"a;b\n1;x\n2;y\n", {"a": [1, 2], "b": ["x", "y"]}),
    "decimal commas": (b"a;b\n1,5;x\n2,5;y\n", {"a": [1.5, 2.5], "b": ["x", "y"]}),
    "codes with zeros": (b"zip,b\n01000,1\n02000,2\n", {"zip": ["01000", "02000"], "b": [1, 2]}),
    "words for missing": (b"a,b\n1,x\n?,y\nNA,z\n", {"a": [1, None, None], "b": ["x", "y", "z"]}),
    "row names of R": (b'"a","b"\n"r1",1,2\n"r2",3,4\n', {"a": [1, 3], "b": [2, 4]}),
    "Windows-1252": ("a,b\né,1\nü,2\n".encode("cp1252"), {"a": ["é", "ü"], "b": [1, 2]}),
    "UTF-16": ("a,b\né,1\nü,2\n".encode("utf-16"), {"a": ["é", "ü"], "b": [1, 2]}),
    "blank lines": (b"a,b\n\n1,2\n\n3,4\n", {"a": [1, 3], "b": [2, 4]}),
    "a short row": (b"a,b,c\n1,2,3\n4,5\n6,7,8\n", None),
    "a long row": (b"a,b\n1,2\n3,4,5\n6,7\n", None),
    "a quote never closed": (b'a,b\n1,"x\n2,y\n3,z\n', None),
}
READERS = {
    "DuckDB": lambda path: duckdb.sql(f"from read_csv('{path}')").df(),
    "pandas": lambda path: pd.read_csv(path, sep=None, engine="python"),
    "polars": lambda path: pl.read_csv(path).to_pandas(),
    "pyarrow": lambda path: csv.read_csv(path).to_pandas(),
}


def judge(read, path, expected):
    """Return the result for a file. A file without an expected table must raise an error."""
    try:
        frame = read(path)
    except Exception as error:
        return "refused" if expected is None else f"error ({type(error).__name__})"
    found = {
        str(name): [None if pd.isna(value) else value for value in column]
        for name, column in frame.to_dict("list").items()
    }
    if found == expected:
        return "right"
    return f"read as {found}"


def main():
    lines = [["file", *READERS], ["---"] * (len(READERS) + 1)]
    with tempfile.TemporaryDirectory() as folder:
        for name, (raw, expected) in FILES.items():
            path = Path(folder) / "table.csv"
            path.write_bytes(raw)
            lines.append([name, *(judge(read, path, expected) for read in READERS.values())])
    print("\n".join("| " + " | ".join(line) + " |" for line in lines))


if __name__ == "__main__":
    main()
