"""Figures of the scaling experiment: time above, memory below, slopes in the legends."""

import numpy as np
from matplotlib.legend import Legend

from experiments import figures, table
from experiments.names import name
from experiments.paper import SCALING as PAPER
from experiments.scaling import MANY, PLAIN, SCHEMES, SIZES

VARIED = {
    "ensemble": "by kind of forest",
    "min_leaf": "by smallest leaf",
    "depth": "by depth limit",
}

FIELDS = {"seconds": "seconds", "peak_gb": "peak memory, GB"}


def draw(rows, folder):
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    ablated = [each for each in names if of(rows, dataset=each, ensemble="ET")]
    kernels = of(rows, what="kernel")
    plain = of(kernels, **PLAIN)
    draw_panels(
        [("GAP, by data set", by(of(plain, scheme="gap"), "dataset", names))]
        + [
            (f"{name(each)}, by proximity", by(of(plain, dataset=each), "scheme", SCHEMES))
            for each in ablated
        ],
        folder / "scaling.png",
        paper=True,
    )
    # Forests with limits were grown on few rows. Compare the plain forest on the same sizes.
    few = [row for row in of(kernels, library="leafkernel", scheme="gap") if row["rows"] <= MANY]
    for each in ablated:
        panels = []
        for key, title in VARIED.items():
            others = {other: value for other, value in PLAIN.items() if other != key}
            chosen = of(few, dataset=each, **others)
            values = sorted({row[key] for row in chosen}, key=lambda v: (v != PLAIN[key], v))
            panels.append((f"{name(each)}, GAP, {title}", by(chosen, key, values)))
        draw_panels(panels, folder / f"scaling-forests-{each}.png")
    if ablated:
        gap = of(rows, library="leafkernel", scheme="gap", **PLAIN)
        whats = ("kernel", "neighbors", "product")
        panels = [
            (f"{name(each)}, GAP", by(of(gap, dataset=each), "what", whats)) for each in ablated
        ]
        draw_panels(panels, folder / "scaling-beyond.png")


def of(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def by(rows, key, values):
    """Return {(value, library): rows} of the curves of a panel, in the order of `values`."""
    return {
        (value, library): found
        for value in values
        for library in ("leafkernel", "forestgeom")
        if (found := of(rows, **{key: value, "library": library}))
    }


def draw_panels(panels, path, *, paper=False):
    """Draw one column per panel, with time above and memory below."""
    figure, axes = figures.start(
        2, len(panels), (4.9 * len(panels), 8.4), sharex="col", squeeze=False
    )
    for column, (title, curves) in enumerate(panels):
        values = list(dict.fromkeys(value for value, _ in curves))
        for ax, (field, ylabel) in zip(axes[:, column], FIELDS.items(), strict=True):
            for (value, library), rows in curves.items():
                draw_curve(ax, rows, field, value, library, figures.COLORS[values.index(value) % 8])
            columns = legend(ax)
            guides(ax, curves, field)
            ax.set(xscale="log", yscale="log", ylabel=ylabel if column == 0 else None)
            sizes = {row["rows"] for rows in curves.values() for row in rows}
            ticks = [size for size in SIZES[::2] if size in sizes] or sorted(sizes)
            ax.set_xticks(ticks, [f"{size / 1000:,.0f}k" for size in ticks])
            ax.xaxis.set_minor_locator(figures.NO_TICKS)
            ax.yaxis.set_minor_formatter(figures.NO_LABELS)
            ax.grid(alpha=0.25, lw=0.6)
            low, high = ax.get_ylim()
            lines = max(map(len, columns))
            ax.set_ylim(low, high * (high / low) ** (0.1 * lines))  # room for the legend
        if paper and column == 0:
            mark_paper(axes[:, 0])
        axes[0, column].set_title(title, loc="left")
        axes[1, column].set_xlabel("training rows")
    figures.save(figure, path)


def legend(ax):
    """Add legends of our curves (left) and forestgeom's (right), and return both columns."""
    lines = ax.get_lines()
    columns = [[each for each in lines if each.is_dashed() == dashed] for dashed in (False, True)]
    for column, at in zip(columns, (0.0, 0.5), strict=True):
        if column:
            names = [line.get_label() for line in column]
            options = {"loc": "upper left", "bbox_to_anchor": (at, 1), "frameon": False}
            ax.add_artist(Legend(ax, column, names, fontsize=8, **options))
    return columns


def draw_curve(ax, rows, field, value, library, color):
    found = {key[0]: spread for key, spread in table.means(rows, ("rows",), field).items()}
    if not found:
        return
    sizes = np.array(sorted(found))
    mean = np.array([found[size].mean for size in sizes])
    sd = np.array([found[size].sd for size in sizes])
    ours = library == "leafkernel"
    text = ("no limit" if value == 0 else name(value)) if ours else "forestgeom"
    if len(sizes) > 2:
        text += f" (slope {table.slope(sizes, mean):.2f})"
    ax.plot(sizes, mean, "-o" if ours else "--s", ms=3.5, lw=1.5, color=color, label=text)
    ax.fill_between(sizes, np.maximum(mean - sd, mean / 3), mean + sd, color=color, alpha=0.2, lw=0)


def mark_paper(axes):
    """Draw the one point in the paper's text, an upper bound on time and memory with 32 cores."""
    for ax, level in zip(axes, (PAPER["seconds"], PAPER["peak_gb"]), strict=True):
        ax.plot(PAPER["rows"], level, "kv", ms=6)
        told = "paper: HIGGS,\nunder this"
        ax.annotate(
            told,
            (PAPER["rows"], level),
            (0, -8),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=8,
        )


def guides(ax, curves, field):
    """Draw lines of linear and quadratic growth, from the lowest point on the left."""
    points = [
        (row["rows"], row[field])
        for rows in curves.values()
        for row in rows
        if row[field] not in ("", None) and np.isfinite(row[field])
    ]
    if not points:
        return
    start, end = min(size for size, _ in points), max(size for size, _ in points)
    low = min(value for size, value in points if size == start)
    high = max(value for _, value in points)
    for power in (1, 2):
        far = min(end, start * (high / low) ** (1 / power))
        level = low * (far / start) ** power
        ax.plot([start, far], [low, level], color="0.6", lw=1, ls=":")
        # The label of the linear line is placed beyond the curves.
        place = {"ha": "right"} if power == 2 else {"ha": "left", "va": "center"}
        text = f"slope {power}" if power == 2 else f"  slope {power}"
        ax.annotate(text, (far, level), color="0.45", fontsize=8, **place)
