"""Draw mean ranks as a heat map, and critical differences as diagrams (Demšar, JMLR 2006)."""

import numpy as np

from experiments import comparison_ranks as ranks
from experiments import figures
from experiments.comparison_schemes import ENSEMBLES, FEATURES, MODEL, label
from experiments.names import name


def draw(rows, folder):
    heat_map(rows, folder / "comparison-ranks.png")
    for ensemble in ENSEMBLES:
        differences(rows, ensemble, folder / f"comparison-differences-{ensemble.lower()}.png")


def title(task, kind):
    return name(task) if task in ranks.FOR_CLASSES else f"{name(task)}, {kind}"


def heat_map(rows, path):
    """Draw one panel per ensemble: a line per method and a column per ranking.

    Ranks are divided by the number of methods, so that 0 is the best and 1 the worst.
    """
    found = {}
    for ensemble in ENSEMBLES:
        for column in ranks.COLUMNS:
            each = ranks.ranking(rows, *column, ensemble)
            if each and len(each.methods) > 1:
                found[ensemble, column] = each
    columns = [column for column in ranks.COLUMNS if any(key[1] == column for key in found)]
    methods = {
        ensemble: [
            method
            for method in ranks.methods_of(rows)
            if any(key[0] == ensemble and method in each.methods for key, each in found.items())
        ]
        for ensemble in ENSEMBLES
    }
    heights = [len(methods[ensemble]) for ensemble in ENSEMBLES]
    size = (10.5, 2.6 + 0.34 * sum(heights))
    figure, axes = figures.start(len(ENSEMBLES), 1, size, height_ratios=heights, sharex=True)
    for ax, ensemble in zip(axes, ENSEMBLES, strict=True):
        shape = (len(methods[ensemble]), len(columns))
        shades, texts = np.full(shape, np.nan), {}
        for j, column in enumerate(columns):
            each = found.get((ensemble, column))
            for i, method in enumerate(methods[ensemble]):
                rank = each.rank_of(method) if each else None
                if rank is not None:
                    shades[i, j] = (rank - 1) / (len(each.methods) - 1)
                    texts[i, j] = f"{rank:.1f}"
        ax.imshow(shades, cmap="RdYlBu_r", vmin=0.0, vmax=1.0, aspect="auto")
        for (i, j), text in texts.items():
            dark = abs(shades[i, j] - 0.5) > 0.38
            ax.text(j, i, text, ha="center", va="center", fontsize=9, color="w" if dark else "k")
        ax.set_yticks(range(shape[0]), [label(method) for method in methods[ensemble]])
        ax.set_title(name(ensemble), loc="left")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    labels = [title(*column) for column in columns]
    axes[-1].set_xticks(range(len(columns)), labels, rotation=35, ha="right")
    figures.save(figure, path)


def differences(rows, ensemble, path):
    """Draw one critical-difference diagram for each ranking of an ensemble."""
    found = {column: ranks.ranking(rows, *column, ensemble) for column in ranks.COLUMNS}
    found = {column: each for column, each in found.items() if each and len(each.methods) > 2}
    n_columns = 2
    n_rows = -(-len(found) // n_columns)
    most = max(len(each.methods) for each in found.values())
    size = (11.0, n_rows * (1.15 + 0.13 * most))
    figure, axes = figures.start(n_rows, n_columns, size, squeeze=False)
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, (column, each) in zip(axes.flat, found.items(), strict=False):
        diagram(ax, each, title(*column))
    figures.save(figure, path)


def diagram(ax, found, heading):
    """Draw mean ranks on a line, with bars over methods that do not differ significantly."""
    k, half = len(found.methods), -(-len(found.methods) // 2)
    bars = ranks.cliques(found.ranks, found.difference)
    below = 0.45 + 0.32 * len(bars)  # the first label is below all bars
    ax.set_xlim(1 - 0.45 * (k - 1), k + 0.45 * (k - 1))
    ax.set_ylim(-below - 0.62 * half, 1.9)
    ax.plot([1, k], [0, 0], color="k", lw=1.2)
    for tick in range(1, k + 1):
        ax.plot([tick, tick], [0, 0.15], color="k", lw=1)
        ax.text(tick, 0.22, str(tick), ha="center", va="bottom", fontsize=8.5)
    for at, (method, rank) in enumerate(zip(found.methods, found.ranks, strict=True)):
        left = at < half
        y = -below - 0.62 * (at if left else k - 1 - at)
        end = 1 - 0.08 * (k - 1) if left else k + 0.08 * (k - 1)
        color = "#777777" if method in (MODEL, FEATURES) else figures.COLORS[0]
        ax.plot([rank, rank, end], [0, y, y], color=color, lw=1)
        text = f"{label(method)} {rank:.1f}"
        shift = -0.02 * (k - 1) if left else 0.02 * (k - 1)
        ax.text(end + shift, y, text, ha="right" if left else "left", va="center", fontsize=9)
    for line, (first, last) in enumerate(bars):
        y = -0.25 - 0.32 * line
        ends = [found.ranks[first] - 0.04, found.ranks[last] + 0.04]
        ax.plot(ends, [y, y], color=figures.COLORS[1], lw=3, solid_capstyle="butt")
    wide = min(found.difference, k - 1)
    ax.plot([k - wide, k], [1.15, 1.15], color="k", lw=1.2)
    for end in (k - wide, k):
        ax.plot([end, end], [1.05, 1.25], color="k", lw=1.2)
    told = f"CD {found.difference:.1f}"
    ax.text(k + 0.03 * (k - 1), 1.15, told, ha="left", va="center", fontsize=8.5)
    heading = f"{heading} ({found.n_data} data sets)"
    ax.text(0.0, 1.0, heading, transform=ax.transAxes, ha="left", va="top", fontsize=10.5)
