"""The style of the experiments' figures."""

import matplotlib as mpl
import matplotlib.ticker

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np

NO_TICKS = mpl.ticker.NullLocator()
NO_LABELS = mpl.ticker.NullFormatter()
# Okabe and Ito's colors, which color-blind readers can distinguish.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8B6914")


def start(n_rows, n_columns, size, **options):
    """Return a figure and its axes, with light frames."""
    style = {"axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context({**style, "axes.titlesize": 12, "font.size": 10.5}):
        return plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", **options)


def shades(count):
    """Return colors from light to dark for an increasing quantity."""
    return plt.get_cmap("viridis_r")(np.linspace(0.12, 0.95, count))


def save(figure, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
