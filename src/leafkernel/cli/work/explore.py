"""The ``explore`` command."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from pathlib import Path

from leafkernel._memory import format_bytes
from leafkernel.cli._output import Talk, check_place
from leafkernel.cli._train import begin, taking_rows
from leafkernel.cli.commands import Explore
from leafkernel.cli.errors import FileError, OptionError
from leafkernel.explorer import build_report
from leafkernel.explorer.report import MOST_ROWS
from leafkernel.tables._formats import suffix_of
from leafkernel.tables._room import explain_damage
from leafkernel.tables.files import call

# Part of the header of every page that leafkernel writes.
_MARK = b'<meta name="generator" content="leafkernel"'
_HEAD_BYTES = 8192


def explore(talk: Talk, options: Explore) -> None:
    """Make the page and print its path. By default it has the name of the table."""
    page = options.output or Path(f"{_stem(options.table)}.html")
    _check_page(page, options)
    options = replace(options, max_rows=min(options.max_rows or MOST_ROWS, MOST_ROWS))
    study = begin(talk, options)
    prepared, added = study.prepared, {}
    if study.new is not None:
        with taking_rows(study.new):
            study.prox.kneighbors(study.new.X, 1)
        new = study.new
        added = {"X_new": new.X, "shown_new": new.shown, "ids_new": new.ids}
    report = build_report(
        study.prox,
        study.X,
        study.y,
        shown=prepared.shown,
        ids=prepared.ids,
        id_name=prepared.id_name,
        positions=prepared.rows,  # rows keep the numbers that they have in the file
        **added,
        title=f"{call(study.path)}: {prepared.target_name}",
        target_name=prepared.target_name,
        notes=talk.notes,
        method=options.embedding.value,
        random_state=options.seed,
        on_step=talk.step,
    )
    study.judgement = report.judgement
    talk.step(f"writing {page.name}")
    try:
        path = report.save(page)
    except OSError as error:
        raise FileError(
            f"--output {page} cannot be written: {error.strerror or error}. Use another name."
        ) from error
    size = path.stat().st_size
    talk.summary({**study.lines(), "page": f"{format_bytes(size)}, one file that works offline"})
    if talk.json:
        talk.document({**study.about(), "page": str(path), "bytes": size})
    else:
        talk.text(str(path), is_path=True)
    if options.open_page:
        webbrowser.open(path.as_uri())


def _stem(table: Path) -> str:
    """Return the name of a file without its suffix."""
    return "table" if str(table) == "-" else table.name[: len(table.name) - len(suffix_of(table))]


def _check_page(page: Path, options: Explore) -> None:
    """Reject an invalid output file before the work starts."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"--output {page} is not an HTML file. The name must end in .html.")
    check_place(page, options)
    if options.force or not page.is_file():
        return
    with explain_damage(f"--output {page}"), page.open("rb") as file:
        if _MARK not in file.read(_HEAD_BYTES):
            raise OptionError(
                f"--output {page} already exists and was not written by leafkernel. Use another "
                "name, or --force to overwrite it."
            )
