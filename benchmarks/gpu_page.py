"""Write the tables and the picture of docs/gpu.md from ``benchmarks/gpu.json``.

python benchmarks/gpu_page.py
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
from report import table

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "gpu.json"
PAGE = HERE.parent / "docs" / "gpu.md"
BYTES_PER_MS = 4.8e9  # of the memory of an H200, by its data sheet
KERNELS = """\
**Proximities and neighbors.** The training samples are already on the GPU, and the results stay
there. The bound is the time to write P once at 4.8 TB/s, the bandwidth in the data sheet."""
CUSPARSE = """\
**cuSPARSE.** CuPy computes the same matrix with cuSPARSE, as the sparse product P = Q Wᵀ of the
query map and the transposed reference map."""
BOOSTED = """\
**Large leaves.** LightGBM, 100 trees of 31 leaves. The results are copied to main memory."""
WHOLE = """\
**From X to the answer.** The time from a fitted forest and X in main memory. forestgeom is the
package of the paper's authors. The ten million rows are synthetic and resemble HIGGS. Their forest
has 100 trees of 60,000 rows each."""
BEGIN, END = "<!-- measured -->\n\n", "\n\n<!-- end -->"


def main():
    results = json.loads(RESULTS.read_text())
    before, _, after = split(PAGE.read_text())
    PAGE.write_text(before + tables(results) + after)
    draw(results["kernels"])


def draw(kernels):
    """Draw the times of neighbors on the processor and on the GPU."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    for ax, n_rows in zip(axes, (65_536, 262_144), strict=True):
        found = [r for r in kernels if r["rows"] == n_rows]
        place = range(len(found))
        for shift, key, label, color in (
            (-0.2, "native_nearest_ms", "16 cores", "#9aa5b1"),
            (0.2, "nearest_ms", "H200", "#2a7f4f"),
        ):
            bars = ax.bar([p + shift for p in place], [r[key] for r in found], 0.4, color=color)
            bars.set_label(label)
            ax.bar_label(bars, fmt="%.0f", fontsize=8)
        ax.set_xticks(list(place), [r["scheme"] for r in found])
        ax.set_yscale("log")
        ax.set_ylim(1, 3000)
        ax.set_title(f"{n_rows:,} rows", fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("time, ms")
    axes[0].legend(frameon=False, fontsize=8, loc="upper right")
    figure.savefig(PAGE.parent / "images" / "gpu-time.png", dpi=120)


def split(page):
    """Return the text before the tables, the tables, and the text after them."""
    before, measured, rest = page.partition(BEGIN)
    inside, end, after = rest.partition(END)
    return before + measured, inside, end + after


def bound(record):
    """Return the milliseconds to write P once: 8 bytes for each entry."""
    return 8 * record["nonzeros"] / BYTES_PER_MS


def tables(results):
    """Return the tables of the page."""
    names = ["rows", "scheme", "nonzeros of P", "all of P", "ten nearest", "bound"]
    names += ["all of P / bound", "ten nearest, 16 cores", "cores / GPU"]
    kernels = [
        [
            f"{r['rows']:,}",
            r["scheme"],
            f"{r['nonzeros']:,}",
            f"{r['csr_ms']:.1f} ms",
            f"{r['nearest_ms']:.1f} ms",
            f"{bound(r):.2f} ms",
            f"{r['csr_ms'] / bound(r):.0f}",
            f"{r['native_nearest_ms']:.0f} ms",
            f"**{r['native_nearest_ms'] / r['nearest_ms']:.0f}**",
        ]
        for r in results["kernels"]
    ]
    cusparse = [
        [
            f"{r['rows']:,}",
            r["scheme"],
            f"{r['csr_ms']:.1f} ms",
            f"{r['cusparse_ms']:.1f} ms",
            f"**{r['cusparse_ms'] / r['csr_ms']:.1f}**",
        ]
        for r in results["kernels"]
        if "cusparse_ms" in r
    ]
    boosted = [
        [f"{r['rows']:,}", r["scheme"], f"{r['nearest_ms']:.0f} ms"] for r in results["boosted"]
    ]
    return "\n\n".join(
        [
            KERNELS,
            table(names, kernels),
            CUSPARSE,
            table(["rows", "scheme", "all of P", "cuSPARSE", "cuSPARSE / GPU"], cusparse),
            BOOSTED,
            table(["rows", "scheme", "ten nearest"], boosted),
            WHOLE,
            table(["work", "time"], list(whole(results["whole"], results["many"]))),
        ]
    )


def whole(record, many):
    """Yield the lines of the work that starts and ends in main memory."""
    places = {"GPU": "gpu_s", "GPU, first call": "gpu_first_s", "16 cores": "native_s"}
    for place, key in places.items():
        work = f"{record['rows']:,} rows, `gap`, 50 nearest of all rows, {place}"
        yield [work, seconds(*record[key])]
    ours, theirs = record["kerf_matrix_s"], record["forestgeom_kerf_s"]
    yield ["262,144 rows, `kerf`, X in main memory to P on the GPU", f"{ours:.2f} s"]
    ratio = f"{theirs:.0f} s (**{theirs / ours:.0f}** times)"
    yield ["the same with forestgeom, P in main memory", ratio]
    work = f"{many['rows']:,} synthetic rows, `gap`, 30 nearest of all rows"
    yield [work, seconds(many["fit_s"], many["nearest_s"])]


def seconds(fit, query):
    return f"{fit + query:.2g} s (fit {fit:.2g} s)"


if __name__ == "__main__":
    main()
