"""Asymptotic separability of OOB proximities (the paper's Fig. 2 and its proposition).

R(x, x') = S(x, x') / (S(x) S(x') / T) compares the number of trees that saw neither of two samples
with its separable approximation. The experiment measures the mean and spread of R over all pairs of
distinct samples with S(x, x') > 0, for growing numbers of trees T and training samples N, and the
limit r_N / p_N². Not in the paper: the error of the separable proximity, and how many of the ten
nearest neighbors it shares with the exact one.
"""

import copy

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from experiments import datasets, figures, table
from leafkernel import ForestProximity

SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
TREES = tuple(range(60, 151, 15))
N_NEIGHBORS = 10


def cells(options):
    names = ("digits",) if options.quick else options.chosen(("sign_mnist_ak",))
    shares = (0.1, 0.2, 0.5) if options.quick else SHARES
    repeats = 2 if options.quick else options.repeats
    return [
        {"dataset": name, "share": share, "repeat": repeat}
        for name in names
        for share in shares
        for repeat in range(repeats)
    ]


def compute(cell, path, options):
    seed = options.seed_of(cell["repeat"])
    X, y, _, _ = datasets.load(cell["dataset"], options.data)
    X, _, y, _ = train_test_split(X, y, train_size=cell["share"], stratify=y, random_state=seed)
    forest = RandomForestClassifier(max(TREES), random_state=seed, n_jobs=options.n_jobs).fit(X, y)
    records = []
    for n_trees in TREES[:: 3 if options.quick else 1]:
        # The first trees of a forest are a forest too, so one forest serves for all T.
        smaller = copy.copy(forest).set_params(n_estimators=n_trees)
        smaller.estimators_ = forest.estimators_[:n_trees]
        records.append({"n": len(y), "trees": n_trees, **compare(smaller, X, y, options.n_jobs)})
    return records


def compare(forest, X, y, n_jobs):
    """Return the numbers of one forest: counts first, then proximities."""
    exact, separable = (
        ForestProximity(forest, scheme, dtype=np.float64, n_jobs=n_jobs).fit(X, y)
        for scheme in ("oob", "oob_separable")
    )
    oob = np.zeros((len(y), len(forest.estimators_)), np.float32)
    for tree, drawn in enumerate(forest.estimators_samples_):
        oob[:, tree] = 1
        oob[drawn, tree] = 0
    counts = oob.sum(axis=1, dtype=np.float64)
    ratios, differences, squares = [], [], []
    zeros = 0
    for (rows, block), (_, block_separable) in zip(
        exact.iter_proximity(), separable.iter_proximity(), strict=True
    ):
        shared = oob[rows] @ oob.T
        other = np.ones(shared.shape, dtype=bool)
        other[np.arange(len(shared)), np.arange(rows.start, rows.stop)] = False
        known = other & (shared > 0)
        zeros += int((other & (shared == 0)).sum())
        proxy = counts[rows, None] * counts / oob.shape[1]
        ratios.append((shared[known] / proxy[known]).astype(np.float32))
        p, p_separable = block.toarray()[known], block_separable.toarray()[known]
        differences.append(np.abs(p - p_separable)[p > 0].astype(np.float32))
        squares.append([np.square(p - p_separable).sum(), np.square(p).sum()])
    ratio, difference = np.concatenate(ratios), np.concatenate(differences)
    gap, whole = np.sum(squares, axis=0)
    near, near_separable = (
        prox.kneighbors(n_neighbors=N_NEIGHBORS)[1] for prox in (exact, separable)
    )
    n = len(y)
    return {
        "ratio_mean": float(ratio.mean(dtype=np.float64)),
        "ratio_sd": float(ratio.std(dtype=np.float64)),
        "limit": float((1 - 2 / n) ** n / (1 - 1 / n) ** (2 * n)),
        "pairs_never_out_together": zeros / (n * (n - 1)),
        "error_mean": float(difference.mean(dtype=np.float64)),
        "error_max": float(difference.max()),
        "error_frobenius": float(np.sqrt(gap / whole)),
        "neighbors_shared": float(
            np.mean([np.isin(a, b).mean() for a, b in zip(near, near_separable, strict=True)])
        ),
    }


def draw(rows, folder, options):
    rows = [{**row, "below": 1 - row["ratio_mean"], "all_below": 1 - over_all(row)} for row in rows]
    figure, axes = figures.start(1, 3, (13.5, 4.8))
    panels = [
        ("below", "The mean of R is below one", "1 − mean of R"),
        ("ratio_sd", "R spreads over pairs", "standard deviation of R"),
        ("error_frobenius", "Separable against exact proximity", "relative error of P (Frobenius)"),
    ]
    sizes = sorted({row["n"] for row in rows})
    for n, color in zip(sizes, figures.shades(len(sizes)), strict=True):
        of_size = [row for row in rows if row["n"] == n]
        for ax, (field, _, _) in zip(axes, panels, strict=True):
            draw_curve(ax, of_size, field, "-o", color, label=f"{n:,}")
        draw_curve(axes[0], of_size, "all_below", "--", color)
        axes[0].axhline(1 - of_size[0]["limit"], color=color, lw=1, ls=":")
    for ax, (_, title, ylabel) in zip(axes, panels, strict=True):
        ax.set_title(title, loc="left")
        ax.set(xlabel="trees T", ylabel=ylabel)
    axes[0].set_yscale("log")
    told = "dotted: the limit, 1 − r/p²\ndashed: with pairs never out of bag\ntogether, as R = 0"
    axes[0].text(0.98, 0.03, told, transform=axes[0].transAxes, ha="right", fontsize=9.5)
    trees = np.array(sorted({row["trees"] for row in rows}))
    axes[1].plot(trees, (np.e - 1) / np.sqrt(trees), "k:", label="_", lw=1.2)
    axes[1].text(0.97, 0.9, "dotted: (e − 1)/√T", transform=axes[1].transAxes, ha="right")
    axes[1].set_ylim(bottom=0)
    axes[2].set_ylim(bottom=0)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside right center",
        title="training\nsamples N",
        frameon=False,
    )
    figures.save(figure, options.figures / "separability.png")


def draw_curve(ax, rows, field, style, color, label=None):
    found = table.means(rows, ("trees",), field)
    trees = sorted(t for (t,) in found)
    mean, sd = (np.array([getattr(found[t,], what) for t in trees]) for what in ("mean", "sd"))
    ax.plot(trees, mean, style, ms=3.5, lw=1.4, color=color, label=label)
    ax.fill_between(trees, mean - sd, mean + sd, color=color, alpha=0.15, lw=0)


def over_all(row):
    """Return the mean of R over all pairs, where pairs with S(x, x') = 0 count as zero."""
    return row["ratio_mean"] * (1 - row["pairs_never_out_together"])


def claims(rows, options):
    most = max(row["trees"] for row in rows)
    ends = {
        n: spread.mean
        for (n, t), spread in table.means(rows, ("n", "trees"), "ratio_mean").items()
        if t == most
    }
    told = ", ".join(f"{mean:.5f} at N = {n:,}" for n, mean in sorted(ends.items()))
    by_size = [ends[n] for n in sorted(ends)]
    yield f"the mean ratio is below one ({told})", max(by_size) < 1
    yield "it comes nearer to one with more samples", by_size == sorted(by_size)
    gap = max(abs(over_all(row) - row["limit"]) * row["n"] for row in rows)
    yield f"over all pairs it is within 1/(2N) of its limit (at most {gap:.2f}/N off)", gap < 0.5
    spread = {t: s.mean for (t,), s in table.means(rows, ("trees",), "ratio_sd").items()}
    fewest = min(spread)
    rate = spread[most] / spread[fewest] / np.sqrt(fewest / most)
    yield f"its spread falls as 1/sqrt(T) (times {rate:.3f})", abs(rate - 1) < 0.05
