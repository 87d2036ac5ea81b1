"""Offer each tutorial as a notebook file."""

from pathlib import Path

import nbformat
from myst_nb.core.read import read_myst_markdown_notebook


def is_tutorial(docname):
    return docname.startswith("tutorials/") and docname != "tutorials/index"


def write(app):
    """Write a notebook without outputs beside each tutorial."""
    for page in (Path(app.srcdir) / "tutorials").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        if "file_format: mystnb" in text:
            nbformat.write(read_myst_markdown_notebook(text), page.with_suffix(".ipynb"))


def add_link(app, docname, source):
    if is_tutorial(docname):
        name = docname.rpartition("/")[2]
        source[0] += f"\n\n{{download}}`Download this tutorial as a notebook <{name}.ipynb>`\n"


def setup(app):
    app.connect("builder-inited", write)
    app.connect("source-read", add_link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
