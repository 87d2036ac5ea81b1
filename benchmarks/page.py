"""Measure the size of pages, the time to write them, and the time until they can be used.

    python benchmarks/page.py --data-dir DIR [--rows 1000 20000 100000] [--chromium PATH]

Pages of Covertype, with 54 columns and a forest of 100 trees, are opened as files in Chromium
through Playwright. Writes page.json and the table in docs/explorer.md. A machine without a graphics
card renders in software, which is slower than the machine of any reader.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import pandas as pd
from datasets import load
from playwright.sync_api import sync_playwright
from run import machine
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.explorer import build_report

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs" / "explorer.md"
BEGIN, END = "<!-- benchmarks/page.py writes from here -->", "<!-- to here -->"
SOFTWARE = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 20_000, 100_000])
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    parser.add_argument("--method", default="auto")
    parser.add_argument("--n-jobs", type=int, default=-1)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()

    X, y = load("covtype", args.data_dir)
    X = pd.DataFrame(X).add_prefix("column ")
    results = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=args.chromium, args=[*SOFTWARE])
        for rows in args.rows:
            path = Path(folder) / f"{rows}.html"
            found = make(X[:rows], y[:rows], path, args)
            found.update(open_page(browser, path, args.repeats))
            print(found, flush=True)
            results.append(found)
        browser.close()
    document = {"machine": machine(args), "results": results}
    (HERE / "page.json").write_text(json.dumps(document, indent=1) + "\n")
    write_table(results)


def make(X, y, path, args):
    begin = time.perf_counter()
    forest = RandomForestClassifier(random_state=0, n_jobs=args.n_jobs).fit(X, y)
    prox = ForestProximity(forest, n_jobs=args.n_jobs).fit(X, y)
    trained = time.perf_counter()
    steps = []
    report = build_report(
        prox,
        X,
        y,
        method=args.method,
        on_step=lambda step: steps.append((step, time.perf_counter())),
    )
    report.save(path)
    end = time.perf_counter()
    times = [when for _, when in steps] + [end]
    return {
        "rows": len(y),
        "train": trained - begin,
        "make": end - trained,
        "steps": {step: times[k + 1] - times[k] for k, (step, _) in enumerate(steps)},
        "bytes": path.stat().st_size,
    }


def open_page(browser, path, repeats):
    ready, answers, frames = [], [], []
    for _ in range(repeats):
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=true]", timeout=120_000)
        ready.append(page.evaluate("window.leafkernelReadyMs"))
        # From asking for a row until its neighbors stand in the panel and the frame is drawn.
        answers.append(page.evaluate(ASK))
        frames.append(page.evaluate(FRAME))
        page.close()
    return {
        "ready_ms": statistics.median(ready),
        "answer_ms": statistics.median(answers),
        "frame_ms": statistics.median(frames),
    }


ASK = """async () => {
  const begin = performance.now();
  window.leafkernel.select(7);
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - begin;
}"""

# The mean time between frames while the wheel zooms in and out.
FRAME = """async () => {
  const canvas = document.querySelector('canvas');
  const box = canvas.getBoundingClientRect();
  const at = { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 };
  const begin = performance.now();
  const count = 30;
  for (let k = 0; k < count; k += 1) {
    const deltaY = k < count / 2 ? -40 : 40;
    const turn = { ...at, deltaY, bubbles: true, cancelable: true };
    canvas.dispatchEvent(new WheelEvent('wheel', turn));
    await new Promise((done) => requestAnimationFrame(done));
  }
  return (performance.now() - begin) / count;
}"""


def write_table(results):
    lines = [
        "| rows | forest | page made in | of which the map | file | usable after | "
        "a row answers in | frame while zooming |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {r['rows']:,} | {r['train']:.1f} s | {r['make']:.1f} s | {r['steps']['map']:.1f} s "
        f"| {r['bytes'] / 2**20:.1f} MB | {r['ready_ms'] / 1000:.2f} s "
        f"| {r['answer_ms']:.0f} ms | {r['frame_ms']:.0f} ms |"
        for r in results
    ]
    text = DOCS.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    DOCS.write_text("\n".join([before + BEGIN, *lines, END + after]))


if __name__ == "__main__":
    main()
