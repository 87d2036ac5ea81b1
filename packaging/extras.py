"""Install each extra alone, and check that its features work and that others name their extra.

    python packaging/extras.py dist/leafkernel-0.1.0-cp312-abi3-linux_x86_64.whl

Environments are made by uv, which shares files between them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import zipfile
from email import message_from_bytes
from pathlib import Path

FEATURES = Path(__file__).resolve().parent / "features.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--extra", action="append", help="try only this one; default: none and all")
    options = parser.parse_args()
    # "gpu-cuda12" differs from "gpu" only in the version of CUDA.
    all_extras = [extra for extra in extras_of(options.wheel) if extra != "gpu-cuda12"]
    for extra in options.extra or ["none", *all_extras]:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            uv("venv", "--python", options.python, folder)
            python = Path(folder) / "bin" / "python"
            wheel = f"{options.wheel.resolve()}{'' if extra == 'none' else f'[{extra}]'}"
            uv("pip", "install", "--python", python, wheel)
            subprocess.run([python, FEATURES, extra], check=True, cwd=folder)
        print(f"{extra}: {time.monotonic() - start:.0f} s", flush=True)


def extras_of(wheel: Path) -> list[str]:
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    return message_from_bytes(archive.read(name)).get_all("Provides-Extra") or []


def uv(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "uv", *arguments, "--quiet"], check=True)


if __name__ == "__main__":
    main()
