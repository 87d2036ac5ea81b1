"""Build the HTML page around the data. It makes no network requests."""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files

_ASSETS = files("leafkernel.explorer") / "assets"


def make_page(title: str, data: str) -> str:
    """Return the page with a title and the encoded data of a blob."""
    library, script = _asset("scatterplot.js"), _script()
    parts = {
        "csp": _content_security_policy(library, script),
        "css": _asset("page.css"),
        "library": library,
        "script": script,
        "title": html.escape(title),
        "data": data,
    }
    page = _asset("page.html")
    pieces = page.split("{{")
    # Fill the template in one pass, so that inserted text is not searched for placeholders.
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, rest = piece.split("}}", 1)
        filled += [parts[name], rest]
    return "".join(filled)


def _content_security_policy(*scripts: str) -> str:
    """Allow only these scripts, and no network requests.

    The plotting library compiles its draw commands, which requires "unsafe-eval".
    """
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")


@cache
def _asset(name: str) -> str:
    # A browser hashes scripts with "\n" line ends, but a checkout may have others.
    return (_ASSETS / name).read_text(encoding="utf-8").replace("\r\n", "\n")


@cache
def _script() -> str:
    names = _asset("scripts.txt").split()
    return "\n".join(_asset(name) for name in names)
