"""Prepare a release, or check that all files agree on its version.

    python packaging/release.py prepare 0.2.0    # write the version and the date
    python packaging/release.py check 0.2.0      # compare; nothing is written
    python packaging/release.py recipe 0.2.0     # write the version and checksum to the recipe

The version is defined in src/leafkernel/__init__.py. CITATION.cff and CHANGELOG.md repeat it.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import re
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "leafkernel" / "__init__.py"
CITATION = ROOT / "CITATION.cff"
CHANGELOG = ROOT / "CHANGELOG.md"
RECIPE = ROOT / "packaging" / "conda-forge" / "recipe.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("prepare", "check", "recipe"))
    parser.add_argument("version")
    options = parser.parse_args()
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", options.version):
        sys.exit(f"version={options.version} is not of the form 1.2.3 or 1.2.3rc1")
    steps = {"prepare": prepare, "check": check, "recipe": pin_recipe}
    steps[options.step](options.version)


def prepare(version: str) -> None:
    today = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    replace(SOURCE, r'(?m)^__version__ = ".*"$', f'__version__ = "{version}"')
    replace(CITATION, r"(?m)^version: .*$", f"version: {version}")
    dated = f"## {version} ({today})"
    replace(CHANGELOG, r"(?m)^## (\S+ \(unreleased\)|" + re.escape(version) + r" \(.*\))$", dated)
    check(version)


def check(version: str) -> None:
    found = versions()
    wrong = {name: value for name, value in found.items() if value != version}
    if wrong:
        sys.exit(f"expected version {version}, found {wrong}")
    if "unreleased" in latest_heading():
        sys.exit("CHANGELOG.md: the latest version has no date yet")


def versions() -> dict[str, str]:
    """Return the version that each file gives."""
    return {
        SOURCE.name: find(SOURCE, r'(?m)^__version__ = "(.*)"$'),
        CITATION.name: find(CITATION, r"(?m)^version: (.*)$"),
        CHANGELOG.name: latest_heading().split()[1],
    }


def latest_heading() -> str:
    return find(CHANGELOG, r"(?m)^(## .*)$")


def pin_recipe(version: str) -> None:
    """Write the version and the checksum of the archive on PyPI to the recipe."""
    url = f"https://pypi.org/pypi/leafkernel/{version}/json"
    with urllib.request.urlopen(url) as reply:
        files = json.load(reply)["urls"]
    archive = next(file for file in files if file["packagetype"] == "sdist")
    with urllib.request.urlopen(archive["url"]) as reply:
        checksum = hashlib.sha256(reply.read()).hexdigest()
    if checksum != archive["digests"]["sha256"]:
        sys.exit("the archive differs from its checksum on PyPI")
    replace(RECIPE, r'(?m)^  version: ".*"$', f'  version: "{version}"')
    replace(RECIPE, r"(?m)^  sha256: .*$", f"  sha256: {checksum}")


def find(path: Path, pattern: str) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"))
    if match is None:
        sys.exit(f"{path.name}: no line matches {pattern}")
    return match[1]


def replace(path: Path, pattern: str, line: str) -> None:
    text, n_found = re.subn(pattern, lambda _: line, path.read_text(encoding="utf-8"), count=1)
    if n_found == 0:
        sys.exit(f"{path.name}: no line matches {pattern}")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
