"""Draw six embeddings: pixels above, leaf coordinates below, with one image per class."""

import itertools

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from PIL import Image
from scipy import ndimage

from experiments import table
from experiments.names import name

NAMES = {
    "fashion_mnist": (
        *("T-shirt", "trouser", "pullover", "dress", "coat"),
        *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
    ),
    "sign_mnist_ak": tuple("ABCDEFGHIK"),
    "digits": tuple("0123456789"),
}
# Invert drawings to dark on light. Photographs are not inverted.
MAPS = {"fashion_mnist": "gray_r", "sign_mnist_ak": "gray", "digits": "gray_r"}
# Petroff's colors, for color-blind readers, with green and black instead of the two grays.
COLORS = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#00a087", "#832db6"),
    *("#8c564b", "#e76300", "#b9ac70", "#222222", "#92dadd"),
)
# Sizes relative to a panel: an image with its border, and the text in the top left corner.
IMAGE = 0.09
TEXT = (0.5, 0.16)
# The number of points to draw. More points would hide one another.
MOST_TRAIN, MOST_TEST = 20_000, 2_000


def draw(name, panels, X, y, y_test):
    """Return the figure. A panel is (row of the table, training and test coordinates)."""
    classes, codes = np.unique(y, return_inverse=True)
    codes_test = np.searchsorted(classes, y_test)
    side = round(X.shape[1] ** 0.5)
    images = X.reshape(-1, side, side)
    figure = Figure(figsize=(12, 8.9), layout="constrained")
    axes = figure.subplots(2, len(panels) // 2)
    for ax, letter, (row, *parts) in zip(axes.flat, "abcdef", panels, strict=False):
        placed, placed_test = to_unit_square(*parts)
        points(ax, placed, codes, placed_test, codes_test)
        medoids(ax, placed, codes, images, MAPS[name])
        label(ax, row, letter)
    legend(figure, NAMES[name])
    return figure


def to_unit_square(placed, placed_test):
    """Scale to the unit square, flipped so that few points lie behind the text.

    Signs of coordinates have no meaning in these methods. A few distant points are omitted.
    """
    low, high = np.quantile(placed, (0.002, 0.998), axis=0)
    pad = 0.06 * (high - low)
    low, high = low - pad, high + pad
    placed, placed_test = ((part - low) / (high - low) for part in (placed, placed_test))

    def turn(part, flips):
        return np.where(flips, 1 - part, part)

    def in_corner(flips):
        x, y = turn(placed, flips).T
        return np.count_nonzero((x < TEXT[0]) & (y > 1 - TEXT[1]))

    best = min(itertools.product((False, True), repeat=2), key=in_corner)
    return turn(placed, best), turn(placed_test, best)


def points(ax, placed, codes, placed_test, codes_test):
    """Draw pale training samples with test samples on top, in random order of classes."""
    rng = np.random.default_rng(0)
    shade = mpl.colors.to_rgba_array(COLORS)
    size = float(np.clip(60_000 / len(codes), 3, 12))
    train = rng.permutation(len(codes))[:MOST_TRAIN]
    test = rng.permutation(len(codes_test))[:MOST_TEST]
    ax.scatter(*placed[train].T, s=size, c=shade[codes[train]], alpha=0.25, lw=0)
    ax.scatter(
        *placed_test[test].T,
        s=size + 7,
        c=shade[codes_test[test]],
        marker="^",
        ec="white",
        lw=0.3,
        zorder=2,
    )
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])


def medoids(ax, placed, codes, images, colors):
    """Draw the medoid of each class: the training sample nearest to the class median."""
    middles = []
    for c in range(codes.max() + 1):
        members = np.flatnonzero(codes == c)
        apart = np.linalg.norm(placed[members] - np.median(placed[members], axis=0), axis=1)
        middles.append(members[apart.argmin()])
    # The width of an image in points, from the width of a panel in inches.
    width = IMAGE * 72 * ax.figure.get_figwidth() / 3
    for c, (middle, beside) in enumerate(zip(middles, free_places(placed, middles), strict=True)):
        ax.plot(*np.transpose([placed[middle], beside]), color=COLORS[c], lw=1.5, zorder=3)
        ax.scatter(*placed[middle], s=42, color=COLORS[c], ec="white", lw=1.2, zorder=4)
        image = OffsetImage(images[middle], zoom=width / images.shape[1], cmap=colors)
        box = {"edgecolor": COLORS[c], "linewidth": 2}
        ax.add_artist(AnnotationBbox(image, beside, pad=0.08, bboxprops=box, zorder=5))


def free_places(placed, middles):
    """Return a position for each image: near its medoid, hiding few points and no image."""
    n_cells, half = 120, 0.6 * IMAGE
    taken, *_ = np.histogram2d(*placed.T, n_cells, ((0, 1), (0, 1)))
    hidden = ndimage.uniform_filter((taken > 0).astype(float), round(2 * half * n_cells))
    grid = (np.arange(n_cells) + 0.5) / n_cells
    x, y = np.meshgrid(grid, grid, indexing="ij")
    outside = np.maximum(abs(x - 0.5), abs(y - 0.5)) > 0.49 - half
    outside |= (x < TEXT[0] + half) & (y > 1 - TEXT[1] - half)
    for middle in middles:
        outside |= np.maximum(abs(x - placed[middle, 0]), abs(y - placed[middle, 1])) < half
    places = []
    for middle in middles:
        far = np.hypot(x - placed[middle, 0], y - placed[middle, 1])
        cost = hidden + 3 * far + 100 * outside
        best = np.unravel_index(cost.argmin(), cost.shape)
        places.append((x[best], y[best]))
        outside |= np.maximum(abs(x - x[best]), abs(y - y[best])) < 2 * half
    return places


def label(ax, row, letter):
    ax.set_title(
        f"({letter}) {name(row['method'])} of {name(row['space'])}", fontsize=13, loc="left"
    )
    took = table.seconds(row["fit_s"])
    if row["space"] == "leaf":
        took += f" + forest {table.seconds(row['forest_s'])}"
    ax.text(
        0.02,
        0.98,
        f"{took}\ntest k-NN {row['accuracy']:.1%}",
        fontsize=11.5,
        va="top",
        transform=ax.transAxes,
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 2},
        zorder=6,
    )


def save(figure, path):
    """Write a file with 256 colors, which looks the same and is a third of the size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(256)
    small.save(path, optimize=True)


def legend(figure, names):
    def sign(marker, color, text, **more):
        return Line2D([], [], ls="", marker=marker, color=color, label=text, **more)

    handles = [sign("s", *entry, ms=9) for entry in zip(COLORS, names, strict=False)]
    handles += [
        sign("o", "#555555", "train", ms=7, alpha=0.45, mew=0),
        sign("^", "#333333", "test", ms=8, mew=0),
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=6,
        fontsize=12.5,
        frameon=False,
        handletextpad=0.3,
        columnspacing=1.6,
    )
