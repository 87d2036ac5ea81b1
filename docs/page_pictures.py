"""Make the pictures of pages in docs/images.

    python docs/page_pictures.py [--data-dir DIR] [--chromium PATH]

Without DIR, only the page of the penguins is made; they come with leafkernel. DIR holds titanic.csv
(891 passengers, with a column ``survived``) and diamonds.csv (53,940 stones, with ``price``).
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
SOFTWARE = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
# Each picture: the command that writes its page, and what a reader has done there.
PENGUINS = ("explorer", ["demo", "--no-open"], "#row=182")
OTHERS = (
    ("explorer-titanic", ["explore", "titanic.csv", "-t", "survived"], "#color=sex&row=264"),
    (
        "explorer-diamonds",
        ["explore", "diamonds.csv", "-t", "price", "--max-rows", "20000"],
        "#tab=mistakes",
    ),
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    args = parser.parse_args()
    wanted = [PENGUINS] if args.data_dir is None else [PENGUINS, *OTHERS]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=args.chromium, args=[*SOFTWARE])
        for name, command, view in wanted:
            page = Path(folder) / f"{name}.html"
            subprocess.run(
                [sys.executable, "-m", "leafkernel", *command, "-o", page],
                cwd=args.data_dir,
                check=True,
            )
            tab = browser.new_page(viewport={"width": 1360, "height": 860})
            tab.goto(page.as_uri() + view)
            tab.wait_for_selector("html[data-ready=true]")
            tab.wait_for_timeout(1000)
            tab.screenshot(path=IMAGES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
