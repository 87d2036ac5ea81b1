"""Helpers that run the command in this process."""

import inspect
import json
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from leafkernel.cli.app import app
from leafkernel.tables._writing import write_as, write_file

PENGUINS = str(files("leafkernel.cli") / "data" / "penguins.csv")

# Click before 8.2 mixes the two streams by default.
_APART = (
    {"mix_stderr": False}
    if "mix_stderr" in inspect.signature(CliRunner.__init__).parameters
    else {}
)


def run(*arguments, exit_code=0, **options):
    """Run a command and return its stdout and stderr."""
    result = CliRunner(**_APART).invoke(app, [str(each) for each in arguments], **options)
    assert result.exit_code == exit_code, (result.stdout, result.stderr, result.exception)
    return result


def run_json(*arguments, **options):
    """Run a command with --json and return the parsed output."""
    result = run(*arguments, "--json", **options)
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout, parse_constant=_refuse)


def _refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


def write_frame(frame, path):
    """Write a table to a file, as commands do."""
    write_file(Path(path), lambda suffix, file: write_as(suffix, frame, file))


def plain(text):
    """Return the output of Typer without colors, boxes and line breaks."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return " ".join(re.sub("[│╭╰╮╯─]", " ", text).split())


def write_birds(path):
    """Write 90 rows: two classes that a number predicts, a category with gaps, and row names."""
    rng = np.random.default_rng(0)
    kind = np.repeat(["duck", "goose"], 45)
    frame = pd.DataFrame(
        {
            "name": [f"bird {i}" for i in range(90)],
            "weight": np.where(kind == "duck", 1.0, 4.0) + rng.normal(0, 0.8, 90),
            "eggs": rng.integers(1, 9, 90).astype(float),
            "pond": rng.choice(["north", "south"], 90),
            "kind": kind,
        }
    )
    frame.loc[::10, "pond"] = None
    frame.loc[5::15, "eggs"] = np.nan
    frame.loc[7, "kind"] = None
    frame.to_csv(path, index=False)
    return path
