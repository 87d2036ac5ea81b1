"""Messages and exit codes of the command for bad input and closed pipes."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from cli_runs import PENGUINS, plain, run

from leafkernel import _memory
from leafkernel.cli import _options, _train, main
from leafkernel.cli._output import clean
from leafkernel.cli.work import impute, outliers
from leafkernel.tables import _delimited

COMMAND = [sys.executable, "-m", "leafkernel"]
FEW = ["--trees", "20"]


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "numbers.csv"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)).round(2), columns=["a", "b", "y"])
    frame.assign(one="same", c=frame["a"] > 0).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["nowhere.csv", "-t", "y"], 3, "'nowhere.csv' was not found"),
        (["{table}", "-t", "z"], 4, "'z' is not a column"),
        (["{table}", "-t", "one"], 4, "'one'"),
        (["{table}"], 2, "--target"),
        (["{table}", "-t", "y", "--trees", "0"], 2, "--trees"),
        (["{table}", "-t", "y", "--tres", "9"], 2, "No such option"),
        (["{table}", "-t", "y", "-o", "out.xlsx"], 2, ".parquet"),
        (["{table}", "-t", "y", "-o", "no/such/out.csv"], 3, "does not exist"),
        (["{table}", "-t", "y", "-o", "{table}"], 2, "the input table"),
        (["{table}", "-t", "y", "--jobs", "0"], 2, "must not be 0. Use -1 for all cores."),
        (["{table}", "-t", "y", "--scheme", "boosted"], 2, "boosted"),
        (["{table}", "-t", "y", "--scheme", "gapp"], 2, "Did you mean 'gap'?"),
        (
            ["{table}", "-t", "y", "--scheme", "gap", "--forest", "hist"],
            2,
            "--scheme gap cannot be combined with --forest hist",
        ),
        (["{table}", "-t", "y", "--model", "m.joblib"], 2, "--trust-model"),
    ],
)
def test_errors_name_the_reason(numbers, arguments, exit_code, said):
    filled = [each.format(table=numbers) for each in arguments]
    result = run("outliers", *filled, exit_code=exit_code)
    assert said in plain(result.stderr)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_json_errors_are_json(numbers):
    result = run("outliers", numbers, "-t", "z", "--json", exit_code=4)
    document = json.loads(result.stdout)
    assert document["exit_code"] == 4
    assert "'z' is not a column" in document["error"]
    assert "'z' is not a column" in result.stderr


def unexpected(*_, **__):
    raise RuntimeError("the moon")


@pytest.mark.parametrize(
    ("error", "exit_code", "said"),
    [
        (RuntimeError("the moon"), 1, "RuntimeError: the moon"),
        (ValueError("not from us"), 1, "--traceback"),
        (MemoryError(), 3, "--max-rows"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ImportError("Install it with: pip install 'leafkernel[embedding]'"), 1, "[embedding]"),
    ],
)
def test_what_was_not_expected(numbers, monkeypatch, error, exit_code, said):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(outliers, "outlier_scores", fail)
    result = run("outliers", numbers, "-t", "y", *FEW, exit_code=exit_code)
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    shown = run("outliers", numbers, "-t", "y", *FEW, "--traceback", exit_code=exit_code)
    assert "Traceback" in shown.stderr


def test_advice_is_of_options_that_there_are(numbers, tmp_path, monkeypatch):
    gappy = tmp_path / "gappy.csv"
    pd.read_csv(numbers).mask(lambda frame: frame["a"] > 1).to_csv(gappy, index=False)
    with monkeypatch.context() as patch:
        patch.setattr(_memory, "available_bytes", lambda: 10)
        assert "--max-rows" in run("outliers", numbers, "-t", "y", exit_code=3).stderr
        assert "Split the file into parts" in run("impute", gappy, exit_code=3).stderr

    def fail(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(_delimited, "find_layout", fail)
        assert "Split the file into parts" in run("impute", gappy, exit_code=3).stderr
    with monkeypatch.context() as patch:
        patch.setattr(impute, "_fill", fail)
        assert "Use a smaller table" in run("impute", gappy, exit_code=3).stderr
    real = _train.read_table

    def read_table(*arguments):
        prepared = real(*arguments)
        monkeypatch.setattr(_memory, "available_bytes", lambda: 10)
        return prepared

    monkeypatch.setattr(_train, "read_table", read_table)
    options = ("neighbors", numbers, "-t", "y", "--new", numbers, *FEW)
    assert "at a time with --new" in run(*options, exit_code=3).stderr


def test_nothing_is_half_written(numbers, tmp_path, monkeypatch):
    monkeypatch.setattr(pd.DataFrame, "to_csv", unexpected)
    run("outliers", numbers, "-t", "y", "-o", tmp_path / "out.csv", *FEW, exit_code=1)
    assert [path.name for path in tmp_path.iterdir()] == ["numbers.csv"]


def test_control_characters_do_nothing():
    assert clean("a\x1b[31mb\rc\u202e") == "a�[31mb�c�"
    assert clean("grün\nund 森") == "grün\nund 森"


# --- as a process


def test_pipes_give_tables_and_get_plain_csv(numbers):
    done = subprocess.run(
        [*COMMAND, "outliers", "-", "-t", "y", *FEW],
        input=numbers.read_bytes(),
        capture_output=True,
        check=True,
        env={**os.environ, "FORCE_COLOR": "1"},  # as in much of CI, where a pipe is still a pipe
    )
    assert done.stdout.startswith(b"row,target,prediction,score,is_outlier")
    assert done.stdout.count(b"\n") == 41
    assert b"\x1b" not in done.stdout + done.stderr
    assert all(line.startswith(b"note: ") for line in done.stderr.splitlines())


def test_a_reader_who_leaves_early(tmp_path):
    """The output exceeds the buffer of a pipe, and only its first bytes are read."""
    command = [*COMMAND, "neighbors", PENGUINS, "-t", "species", "-k", "50", "-q", *FEW]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.read(4) == b"row,"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


RESULT = ["outliers", PENGUINS, "-t", "species", "-q", *FEW]


def run_in_shell(redirection, *arguments):
    """Run the command in a shell, because Python cannot start a process with closed streams."""
    command = ["sh", "-c", f'"$@" {redirection}', "sh", *COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such shell")
@pytest.mark.parametrize("arguments", [RESULT, [*RESULT, "--json"], ["--help"], ["--version"]])
@pytest.mark.parametrize(
    ("redirection", "reason"),
    [(">&-", "it is closed"), (">/dev/full", "No space left on device")],
)
def test_an_output_that_cannot_be_written(arguments, redirection, reason):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no full device")
    done = run_in_shell(redirection, *arguments)
    assert done.stderr == f"error: standard output cannot be written: {reason}.\n"
    assert done.returncode == 3


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such shell")
@pytest.mark.parametrize(
    ("redirection", "arguments", "exit_code", "said"),
    [
        (">&-", ["no.csv", "-t", "y"], 3, "error: 'no.csv' was not found."),
        (">&-", ["no.csv", "-t", "y", "--jobs", "0"], 2, "must not be 0"),
        ("2>&-", ["no.csv", "-t", "y"], 3, ""),
    ],
)
def test_the_first_error_is_told(redirection, arguments, exit_code, said):
    done = run_in_shell(redirection, "outliers", *arguments, "--json")
    assert done.returncode == exit_code
    assert said in plain(done.stderr)
    if redirection == "2>&-":
        assert json.loads(done.stdout)["exit_code"] == exit_code


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such shell")
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "<&-"])
def test_streams_that_are_not_needed(redirection):
    done = run_in_shell(redirection, *[each for each in RESULT if each != "-q"])
    assert done.returncode == 0
    assert done.stdout.startswith("row,")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such shell")
def test_an_input_that_is_closed():
    done = run_in_shell("<&-", "outliers", "-", "-t", "species")
    assert done.stderr == "error: Standard input could not be read: it is closed.\n"
    assert done.returncode == 3


def test_threads_are_counted_in_one_place(numbers, monkeypatch):
    counted = []
    monkeypatch.setattr(_options, "count_threads", lambda jobs: counted.append(jobs) or 1)
    run("outliers", numbers, "-t", "y", *FEW, "--jobs", 100_000_000)
    assert {*counted} == {100_000_000}


def test_exit_code_of_the_process(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["leafkernel", "explore", "no.csv", "-t", "y"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3
    assert capsys.readouterr().out == ""


WITHOUT = """
import sys
from leafkernel.cli import main
sys.argv = ["leafkernel", "outliers", "t.csv", "-t", "y"]
sys.modules["typer"] = None
try:
    main()
except SystemExit as ended:
    assert ended.code == 1
del sys.modules["typer"]
sys.modules["pandas"] = None
main()
"""


def test_without_the_extra():
    command = [sys.executable, "-c", WITHOUT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    for missing, line in zip(["typer", "pandas"], done.stderr.splitlines(), strict=True):
        assert f"needs {missing}" in line
        assert 'pip install "leafkernel[cli]"' in line


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_a_terminal_gets_progress_and_a_table(numbers):
    import pty

    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "90"}
    command = [*COMMAND, "outliers", numbers, "-t", "y", *FEW]
    with subprocess.Popen(command, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                part = os.read(master, 65536)
            except OSError:  # message of Linux
                break
            if not part:
                break
            shown += part
        assert process.wait(60) == 0
    os.close(master)
    text = shown.decode()
    assert "training 20 trees" in text
    assert "\x1b[" in text
    assert "Out-of-bag R²" in text
    assert "─────" in text
    assert "20 more rows" in text
