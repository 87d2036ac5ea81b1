"""A table as the forest sees it, on one page."""

from __future__ import annotations

import os
import sys
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Any

from leafkernel._memory import format_bytes
from leafkernel.cli._new import NewRows, read_new, taking_rows
from leafkernel.cli._options import ForestOptions, Map, TableOptions
from leafkernel.cli._output import Talk, check_place
from leafkernel.cli._train import fit, plan
from leafkernel.cli.errors import FileError, OptionError
from leafkernel.explorer import build_report
from leafkernel.explorer.report import MOST_ROWS
from leafkernel.tables._formats import suffix_of
from leafkernel.tables._room import explain_damage
from leafkernel.tables.files import call

# What is in the head of every page of ours.
_MARK = b'<meta name="generator" content="leafkernel"'
_HEAD_BYTES = 8192


def write_page(
    talk: Talk,
    source: TableOptions,
    forest: ForestOptions,
    page: Path | None,
    *,
    new: Path | None = None,
    embedding: Map,
    open_page: bool,
    force: bool,
) -> None:
    """Make the page, and say where it is; by default it has the name of the table."""
    page = page or Path(f"{_stem(source.table)}.html")
    _check_page(page, source.table, new, force=force)
    source = replace(source, max_rows=min(source.max_rows or MOST_ROWS, MOST_ROWS))
    planned = plan(talk, source, forest)
    others: NewRows | None = None
    added: dict[str, Any] = {}
    if new is not None:  # before the forest is grown, which may take long
        others = read_new(talk, planned, new, source)
        shown = others.shown(planned.prepared)
        added = {"X_new": others.X, "shown_new": shown, "ids_new": others.ids}
    study = fit(talk, source, forest, planned)
    prepared = study.prepared
    if others is not None:
        with taking_rows(others):
            study.prox.kneighbors(others.X, 1)
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
        method=embedding.value,
        random_state=forest.seed,
        on_step=talk.step,
    )
    talk.step(f"writing {page.name}")
    try:
        path = report.save(page)
    except OSError as error:
        raise FileError(
            f"--output {page} cannot be written: {error.strerror or error}. Give another name."
        ) from error
    size = path.stat().st_size
    talk.summary({**study.lines(), "page": f"{format_bytes(size)}, one file that works offline"})
    if talk.json:
        talk.document({**study.about(), "page": str(path), "bytes": size})
    else:
        talk.line(str(path))
    if open_page:
        webbrowser.open(path.as_uri())


def can_show_a_browser() -> bool:
    """Return whether a browser would open in a window, and not in this terminal."""
    on_screen = sys.platform in ("darwin", "win32")
    return on_screen or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _stem(table: Path) -> str:
    """Return a file's name without what says its format."""
    return "table" if str(table) == "-" else table.name[: len(table.name) - len(suffix_of(table))]


def _check_page(page: Path, table: Path, new: Path | None, *, force: bool) -> None:
    """Refuse a file that cannot be the page, before any work is done for it."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"--output {page}: a page is HTML; its name should end in .html.")
    check_place(page, table, new)
    if force or not page.is_file():
        return
    with explain_damage(f"--output {page}"), page.open("rb") as file:
        if _MARK not in file.read(_HEAD_BYTES):
            raise OptionError(
                f"--output {page}: there is a file of that name that is no page of leafkernel; "
                "give another name, or --force to overwrite it."
            )
