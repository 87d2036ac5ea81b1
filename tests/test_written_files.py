"""How files are written: through links, into pipes, with the permissions that they had."""

import os
import stat
import sys
import threading

import pandas as pd
import pytest
from cli_runs import write_frame

from leafkernel import _files
from leafkernel._files import open_whole
from leafkernel.explorer.report import Report
from leafkernel.tables.files import read_file

FRAME = pd.DataFrame({"a": [1, 2]})

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")


@pytest.fixture
def umask():
    """Set the usual umask, under which other people may read new files."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(params=["table", "page"])
def write(request):
    """Write a table or a page to a path; return the bytes that should be there."""
    report = Report("title", "score", 1, "data", None)

    def write_table(path):
        write_frame(FRAME, path)
        return b"a\n1\n2\n"

    def write_page(path):
        report.save(path)
        return report.html().encode()

    return write_table if request.param == "table" else write_page


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def is_alone(path):
    return [each.name for each in path.parent.iterdir()] == [path.name]


@posix
@pytest.mark.parametrize("there", [False, True])
def test_a_link_is_written_through(tmp_path, write, there):
    (tmp_path / "far").mkdir()
    (tmp_path / "near").mkdir()
    target, link = tmp_path / "far" / "t.csv", tmp_path / "near" / "link.csv"
    if there:
        target.write_text("before")
    link.symlink_to(os.path.relpath(target, link.parent))
    content = write(link)
    assert link.is_symlink()
    assert target.read_bytes() == content
    assert is_alone(target)
    assert is_alone(link)


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666])
def test_a_file_keeps_its_permissions(tmp_path, write, mode, umask):
    path = tmp_path / "t.csv"
    path.write_text("before")
    path.chmod(mode)
    content = write(path)
    assert path.read_bytes() == content
    assert mode_of(path) == mode


@posix
def test_a_new_file_has_the_usual_permissions(tmp_path, write, umask):
    write(tmp_path / "t.csv")
    assert mode_of(tmp_path / "t.csv") == 0o644


@posix
def test_nobody_reads_a_private_file_while_it_is_written(tmp_path, umask):
    path = tmp_path / "t.csv"
    path.write_text("before")
    path.chmod(0o600)
    with open_whole(path) as file:
        (part,) = [each for each in tmp_path.iterdir() if each != path]
        file.write(b"x" * 100_000)
        assert mode_of(part) == 0o600
    assert mode_of(path) == 0o600


@posix
def test_a_file_keeps_its_owner_and_group(tmp_path, monkeypatch):
    path, given = tmp_path / "t.csv", []
    path.write_text("before")
    monkeypatch.setattr(_files.os, "fchown", lambda file, *ids: given.append(ids))
    write_frame(FRAME, path)
    assert given == [(path.stat().st_uid, -1), (-1, path.stat().st_gid)]


@posix
@pytest.mark.parametrize(("before", "after"), [(0o660, 0o600), (0o664, 0o644), (0o604, 0o604)])
def test_another_group_gets_no_permissions(tmp_path, monkeypatch, before, after):
    """The process may not give the file to its old group."""
    path = tmp_path / "t.csv"
    path.write_text("before")
    path.chmod(before)

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(_files.os, "fchown", refuse)
    write_frame(FRAME, path)
    assert mode_of(path) == after


@posix
def test_a_pipe_is_written_into(tmp_path, write):
    path, found = tmp_path / "pipe.csv", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()), daemon=True)
    reader.start()
    content = write(path)
    reader.join(30)
    assert found == [content]
    assert path.is_fifo()
    assert is_alone(path)


@posix
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".feather"])
def test_a_device_is_written_into(tmp_path, suffix):
    link = tmp_path / f"null{suffix}"
    link.symlink_to(os.devnull)
    write_frame(FRAME, link)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@posix
def test_a_name_that_is_as_long_as_can_be(tmp_path, write):
    path = tmp_path / ("x" * 251 + ".csv")
    content = write(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("there", [False, True])
def test_nothing_changes_when_writing_fails(tmp_path, there):
    path = tmp_path / "t.csv"
    if there:
        path.write_text("before")

    def fail():
        with open_whole(path) as file:
            file.write(b"half")
            raise RuntimeError("the moon")

    with pytest.raises(RuntimeError, match="moon"):
        fail()
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"] * there


def test_packed_tables_are_the_same_at_any_time(tmp_path, monkeypatch):
    write_frame(FRAME, tmp_path / "a.csv.gz")
    monkeypatch.setattr("time.time", lambda: 2e9)
    write_frame(FRAME, tmp_path / "b.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert read_file(tmp_path / "a.csv.gz")["a"].tolist() == [1, 2]
