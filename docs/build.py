"""Build the documentation site; every warning is an error.

pip install . --group docs
python docs/build.py                 # writes docs/_build/html/index.html
python docs/build.py --clean         # from nothing: examples and notebooks run again
python docs/build.py --pictures      # also copy the gallery's pictures to docs/images
python docs/build.py --links         # only ask the web whether links to it still work
"""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

from sphinx.cmd.build import build_main

HERE = Path(__file__).parent
BUILD = HERE / "_build"
MADE = (BUILD, HERE / "gallery", HERE / "api" / "generated")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clean", action="store_true", help="start from nothing")
    parser.add_argument("--pictures", action="store_true", help="copy pictures to docs/images")
    parser.add_argument("--links", action="store_true", help="check links to the web instead")
    args = parser.parse_args()
    if args.clean:
        for folder in MADE:
            shutil.rmtree(folder, ignore_errors=True)
    os.environ.setdefault("PYTHONHASHSEED", "0")
    builder = "linkcheck" if args.links else "html"
    begin = time.perf_counter()
    options = ["-b", builder, "-W", "--keep-going", "-q", "-d", str(BUILD / "doctrees")]
    failed = build_main([*options, str(HERE), str(BUILD / builder)])
    if failed:
        sys.exit(failed)
    if args.pictures:
        copy_pictures()
    print(f"{BUILD / builder / 'index.html'} in {time.perf_counter() - begin:.0f} s")


def copy_pictures():
    """Copy the first picture of each example to docs/images, for readers of the repository."""
    for picture in (HERE / "gallery" / "images").glob("sphx_glr_*_001.png"):
        name = picture.stem.removeprefix("sphx_glr_").removesuffix("_001")
        name = name.removeprefix("plot_").replace("_", "-")
        shutil.copy(picture, HERE / "images" / f"{name}.png")


if __name__ == "__main__":
    main()
