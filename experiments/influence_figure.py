"""Draw means over libraries with intervals: one panel per data set, one line per method."""

from experiments import figures
from experiments.intervals import over_seeds
from experiments.names import METHODS, name


def draw(rows, value, label, path):
    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    methods = sorted({row["method"] for row in rows}, key=METHODS.index)
    n_columns = min(3, len(sets))
    n_rows = -(-len(sets) // n_columns)
    size = (1.5 + 3.1 * n_columns, 0.6 + n_rows * (0.7 + 0.21 * len(methods)))
    figure, axes = figures.start(n_rows, n_columns, size, squeeze=False, sharey=True)
    for ax in axes.flat[len(sets) :]:
        ax.set_axis_off()
    for ax, dataset in zip(axes.flat, sets, strict=False):
        for at, method in enumerate(methods):
            found = [row for row in rows if (row["dataset"], row["method"]) == (dataset, method)]
            if not found:
                continue
            mean, half = over_seeds(found, value)
            color = figures.COLORS[1] if method.startswith("gradient") else figures.COLORS[0]
            color = "#888888" if method.startswith("random") else color
            ax.errorbar(mean, at, xerr=half, fmt="o", ms=5, color=color, lw=1.5)
        ax.set_title(name(dataset))
        ax.grid(axis="x", color="#dddddd", lw=0.6)
        ax.set_axisbelow(True)
        ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
    axes[0, 0].set_yticks(range(len(methods)), [name(method) for method in methods])
    axes[0, 0].set_ylim(len(methods) - 0.5, -0.5)
    figure.supxlabel(label, fontsize=10.5)
    figures.save(figure, path)
