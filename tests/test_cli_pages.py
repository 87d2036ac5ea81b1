"""``leafkernel explore`` and ``demo``: the page, and files that must not be overwritten."""

import os
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest
from cli_runs import run, run_json, write_birds

from leafkernel.cli.work import explore
from leafkernel.explorer import Report

PAGE = ("--embedding", "pca", "--trees", "20")


@pytest.fixture
def birds(tmp_path):
    return write_birds(tmp_path / "birds.csv")


def test_explore_writes_one_page(birds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("explore", birds, "-t", "kind", *PAGE)
    page = tmp_path / "birds.html"
    assert result.stdout.strip() == str(page.resolve())
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    # A page of ours may be written again.
    document = run_json("explore", birds, "-t", "kind", *PAGE)
    assert document["bytes"] == page.stat().st_size
    assert document["page"] == str(page.resolve())


def test_explore_overwrites_nothing_else(birds, tmp_path):
    other = tmp_path / "other.html"
    other.write_text("<p>my own page")
    options = ("explore", birds, "-t", "kind", "-o", other, *PAGE)
    assert "--force" in run(*options, exit_code=2).stderr
    assert other.read_text() == "<p>my own page"
    run(*options, "--force")
    assert "leafkernel" in other.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["page.csv", "page", "no/folder/page.html"])
def test_pages_that_cannot_be_written(birds, tmp_path, name):
    exit_code = 3 if "/" in name else 2
    run("explore", birds, "-t", "kind", "-o", tmp_path / name, *PAGE, exit_code=exit_code)


def test_pages_that_may_not_be_written(birds, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    options = ("explore", birds, "-t", "kind", "-o", page, *PAGE)

    def full(*_):
        raise OSError(28, "No space left on device")

    def closed(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
        patch.setattr(explore, "begin", None)  # nothing is done before
        assert "is read-only" in run(*options, exit_code=3).stderr
    with monkeypatch.context() as patch:
        patch.setattr(Report, "save", full)
        assert "No space left" in run(*options, exit_code=3).stderr
    page.write_text("closed")
    monkeypatch.setattr(Path, "open", closed)
    assert "cannot be read" in run(*options, exit_code=3).stderr


@pytest.mark.parametrize(
    ("name", "stem"),
    [("s.2023.csv", "s.2023"), ("s.v1.CSV.gz", "s.v1"), ("s.parquet", "s"), ("-", "table")],
)
def test_pages_are_named_after_their_table(name, stem):
    assert explore._stem(Path("folder") / name if name != "-" else Path(name)) == stem


def test_the_title_of_a_table_from_a_pipe(birds, tmp_path):
    page = tmp_path / "page.html"
    options = ("explore", "-", "-t", "kind", "-o", page, *PAGE)
    run(*options, input=birds.read_bytes())
    assert "<title>standard input: kind" in page.read_text(encoding="utf-8")


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Return the arguments of a page without creating it."""
    seen = {}

    def build_report(prox, X, y, **options):
        seen.update(options)
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(explore, "build_report", build_report)
    return seen


def test_positions_are_row_numbers_of_the_file(birds, tmp_path, asked):
    path = tmp_path / "t.csv"
    pd.read_csv(birds).drop(columns="name").to_csv(path, index=False)
    run("explore", path, "-t", "kind", *PAGE, exit_code=130)
    assert asked["ids"] is None
    assert asked["positions"].tolist() == [i for i in range(90) if i != 7]
    assert not (tmp_path / "t.html").exists()
    run("explore", birds, "-t", "kind", *PAGE, exit_code=130)
    assert asked["ids"][7] == "bird 8"
    assert asked["positions"][7] == 8


def test_new_rows_are_read_as_the_table_was(birds, tmp_path, asked):
    new = tmp_path / "new.csv"
    new.write_text("name,pond,eggs,weight\nguest 1,north,,1.5\nguest 2,east,3,4\n")
    result = run("explore", birds, "-t", "kind", "--new", new, *PAGE, exit_code=130)
    assert "new.csv: Column 'pond'" in result.stderr
    assert asked["ids_new"].tolist() == ["guest 1", "guest 2"]
    assert asked["shown_new"]["pond"].tolist() == ["north", "east"]
    assert asked["X_new"]["weight"].tolist() == [1.5, 4.0]
    new.write_text("name,pond\nguest 1,north\n")
    result = run("explore", birds, "-t", "kind", "--new", new, *PAGE, exit_code=4)
    assert "new.csv: the forest needs columns" in result.stderr
    options = ("explore", birds, "-t", "kind", "--new", birds, *PAGE)
    run(*options, "-o", tmp_path / "page.csv", exit_code=2)


def test_a_page_with_new_rows(birds, tmp_path):
    page, new = tmp_path / "page.html", tmp_path / "new.csv"
    pd.read_csv(birds).drop(columns="kind")[:5].to_csv(new, index=False)
    document = run_json("explore", birds, "-t", "kind", "--new", new, "-o", page, *PAGE)
    assert document["bytes"] == page.stat().st_size


def test_a_page_has_no_more_rows_than_it_can_show(birds, tmp_path, monkeypatch):
    monkeypatch.setattr(explore, "MOST_ROWS", 40)
    options = ("explore", birds, "-t", "weight", "-o", tmp_path / "page.html", *PAGE)
    document = run_json(*options, "--max-rows", 50)
    assert document["rows"] == 40
    assert any("random sample of 40" in note for note in document["notes"])


def test_demo(tmp_path):
    page = tmp_path / "demo.html"
    result = run("demo", "-o", page, *PAGE)
    assert result.stdout.strip() == str(page.resolve())
    assert page.stat().st_size > 100_000


def test_pages_are_opened_when_asked(birds, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    page = tmp_path / "page.html"
    run("explore", birds, "-t", "kind", "-o", page, *PAGE)
    assert opened == []
    run("explore", birds, "-t", "kind", "-o", page, "--open", *PAGE)
    assert opened == [page.resolve().as_uri()]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_page_goes_into_a_pipe(birds, tmp_path):
    pipe, found = tmp_path / "pipe.html", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    run("explore", birds, "-t", "kind", "-o", pipe, *PAGE)
    reader.join(30)
    assert found[0].startswith(b"<!doctype html>")
    assert pipe.is_fifo()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_a_name_that_is_not_text(birds):
    path = Path(os.fsdecode(os.fsencode(birds.parent) + b"/b\xffrds.csv"))
    birds.rename(path)
    page = path.with_suffix(".html")
    result = run("explore", path, "-t", "kind", "-o", page, *PAGE)
    assert result.stdout_bytes == os.fsencode(page.resolve()) + b"\n"
    assert "b\N{REPLACEMENT CHARACTER}rds.csv: kind" in page.read_text(encoding="utf-8")
