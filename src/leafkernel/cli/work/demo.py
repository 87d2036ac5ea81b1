"""The ``demo`` command."""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from importlib.resources import as_file, files

from leafkernel.cli._output import Talk
from leafkernel.cli.commands import Demo, Explore
from leafkernel.cli.work.explore import explore


def demo(talk: Talk, options: Demo) -> None:
    """Make the page of the penguins data set."""
    given = {field.name: getattr(options, field.name) for field in fields(options)}
    if options.open_page is None:
        given["open_page"] = talk.lively and _can_show_a_browser()
    with as_file(files("leafkernel.cli") / "data" / "penguins.csv") as path:
        explore(talk, Explore(table=path, target="species", **given))


def _can_show_a_browser() -> bool:
    """Return whether a browser would open in a window, not in the terminal."""
    on_screen = sys.platform in ("darwin", "win32")
    return on_screen or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
