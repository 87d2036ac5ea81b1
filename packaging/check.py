"""Check built packages, and install them where no compiler is found.

    python packaging/check.py dist python3.10 python3.13

This checks contents, metadata and platform tags of all packages in a folder. For each Python given,
pip installs a wheel of the folder into a new environment, and packaging/smoke.py runs there.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LARGEST = 3_000_000  # bytes; a package that grows past this holds something that it should not
SDIST_ENTRIES = {
    *("CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "CONTRIBUTING.md", "LICENSE", "PKG-INFO"),
    *("CODE_OF_CONDUCT.md", "README.md", "RELEASING.md", "SECURITY.md", "cpp", "docs"),
    *("pyproject.toml", "src", "tests", "web"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    options = parser.parse_args()
    folder = options.folder.resolve()
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if not wheels or len(sdists) != 1:
        sys.exit(f"{folder} must hold wheels and one source distribution")
    run(sys.executable, "-m", "twine", "check", "--strict", *wheels, *sdists)
    check_sdist(sdists[0])
    for wheel in wheels:
        check_wheel(wheel)
    version = re.fullmatch(r"leafkernel-(.+)\.tar\.gz", sdists[0].name)[1]
    for python in options.pythons:
        check_installed(python, folder, version)


def check_sdist(path: Path) -> None:
    with tarfile.open(path) as archive:
        entries = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    require(path, path.stat().st_size <= LARGEST, "is too large")
    unexpected = sorted(entries ^ SDIST_ENTRIES)
    require(path, not unexpected, f"lacks these entries, or should not have them: {unexpected}")


def check_wheel(path: Path) -> None:
    require(path, path.stat().st_size <= LARGEST, "is too large")
    names = zipfile.ZipFile(path).namelist()
    strange = [name for name in names if not re.match(r"leafkernel(-[^/]+\.dist-info)?/", name)]
    require(path, not strange, f"holds files of other packages: {strange}")
    for name in ("leafkernel/py.typed", "leafkernel/explorer/assets/scatterplot.js"):
        require(path, name in names, f"lacks {name}")
    if "abi3" in path.name:
        run(sys.executable, "-m", "abi3audit", "--strict", path)
    if "linux" in path.name:
        command = (sys.executable, "-m", "auditwheel", "show", path)
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        tag = re.search(r'platform tag:\s+"([^"]+)"', shown)[1]
        require(path, tag in path.name, f"is consistent with {tag} only")
        require(path, tag.startswith("manylinux"), f"runs on systems like this one only ({tag})")


def check_installed(python: str, folder: Path, version: str) -> None:
    """Install into a new environment, with no other programs on the path, and run there."""
    with tempfile.TemporaryDirectory() as temporary:
        environment = Path(temporary) / "environment"
        run(python, "-m", "venv", environment)
        programs = environment / "bin"
        only_these = {
            name: value for name, value in os.environ.items() if name not in {"CC", "CXX"}
        }
        only_these |= {"PATH": str(programs), "PYTHONPATH": ""}
        options = ("--quiet", "--only-binary", ":all:", "--find-links", folder)
        pip = (programs / "python", "-m", "pip", "install", *options)
        run(*pip, f"leafkernel=={version}", environment=only_these)
        run(programs / "python", HERE / "smoke.py", environment=only_these, cwd=temporary)


def require(path: Path, condition: bool, message: str) -> None:  # noqa: FBT001
    if not condition:
        sys.exit(f"{path.name} {message}")


def run(
    *command: str | Path, environment: dict[str, str] | None = None, cwd: str | None = None
) -> None:
    subprocess.run(command, check=True, env=environment, cwd=cwd)


if __name__ == "__main__":
    main()
