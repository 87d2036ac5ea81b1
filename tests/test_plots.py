"""Plots: the drawn data are correct, on any Axes, for any type of labels."""

import itertools
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from leafkernel import ForestProximity, plots
from leafkernel.plots import (
    plot_contributions,
    plot_embedding,
    plot_imputation,
    plot_neighbors,
    plot_outliers,
    plot_prototypes,
    plot_proximity,
)
from leafkernel.plots._colors import OKABE_ITO, Target
from leafkernel.plots._ordering import bin_edges, seriate
from leafkernel.plots._style import number
from leafkernel.plots.proximity import block_means
from leafkernel.tasks import (
    LeafEmbedding,
    class_prototypes,
    explain_prediction,
    medoids,
    outlier_scores,
    select_prototypes,
)

NAMES = np.array(["setosa", "versicolor", "virginica"])
SCHEMES = ("gap", "kerf", "uniform", "oob")


@pytest.fixture(scope="module")
def plt():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


@pytest.fixture(autouse=True)
def nothing_is_left_behind(plt):
    """Draw every picture to the end, and see that no setting was changed."""
    before = dict(plt.rcParams)
    yield
    for figure in map(plt.figure, plt.get_fignums()):
        figure.canvas.draw()
    plt.close("all")
    assert dict(plt.rcParams) == before


@pytest.fixture(scope="module")
def fitted(iris):
    X, y = iris
    forest = RandomForestClassifier(25, max_samples=0.7, random_state=0).fit(X, y)
    return {s: ForestProximity(forest, s, dtype=np.float64).fit(X, y) for s in SCHEMES}


def collection(ax, gid):
    (found,) = [part for part in ax.collections if part.get_gid() == gid]
    return found


def same_points(found, expected):
    return np.array_equal(np.sort(found, axis=0), np.sort(expected, axis=0))


# --- Embeddings


def test_embedding_draws_every_sample_in_its_color(plt, iris, rng):
    from matplotlib.colors import to_rgba_array

    points, y = rng.normal(size=(150, 3)), NAMES[iris[1]]
    ax = plot_embedding(points, y, components=(2, 0))
    drawn = collection(ax, "samples")
    colors = to_rgba_array(OKABE_ITO)
    for c, name in enumerate(NAMES):
        mine = (drawn.get_facecolors()[:, :3] == colors[c, :3]).all(axis=1)
        assert same_points(drawn.get_offsets()[mine], points[y == name][:, [2, 0]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("coordinate 3", "coordinate 1")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(NAMES)
    # No class lies above the others: all are among the first that are drawn.
    assert len(np.unique(drawn.get_facecolors()[:30], axis=0)) == 3


def test_embedding_marks_prototypes_new_and_highlighted(plt, iris, fitted):
    X, y = iris
    model = LeafEmbedding(fitted["kerf"]).fit(X, y)
    chosen = select_prototypes(fitted["uniform"], y, n_prototypes=2)
    new = model.transform(X[::10])
    _, ax = plt.subplots()
    found = plot_embedding(
        model, y, prototypes=chosen, new=new, y_new=y[::10], highlight=[3, 60], ax=ax, title="Iris"
    )
    assert found is ax
    assert same_points(collection(ax, "prototypes").get_offsets(), model.embedding_[chosen.rows])
    assert same_points(collection(ax, "new").get_offsets(), new)
    assert same_points(collection(ax, "highlight").get_offsets(), model.embedding_[[3, 60]])
    assert {text.get_text() for text in ax.texts} == {"3", "60"}
    assert ax.get_title() == "Iris"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["0", "1", "2", "new samples", "prototypes"]


@pytest.mark.parametrize("kind", ["cases", "dict", "mask"])
def test_prototypes_of_any_kind(kind, iris, fitted, rng):
    X, y = iris
    points = rng.normal(size=(150, 2))
    found = medoids(fitted["uniform"], y)
    given = found
    if kind == "cases":
        given = class_prototypes(fitted["uniform"], X, y)
        found = dict(enumerate(given.cases))
    if kind == "mask":
        given = np.isin(np.arange(150), list(found.values()))
    ax = plot_embedding(points, y, prototypes=given)
    assert same_points(collection(ax, "prototypes").get_offsets(), points[list(found.values())])


def test_the_same_class_has_the_same_color_in_new_samples(rng):
    points = rng.normal(size=(40, 2))
    ax = plot_embedding(points, ["a", "c"] * 20, new=points[:3], y_new=["c", "b", "c"])
    found, fresh = collection(ax, "samples"), collection(ax, "new")
    assert len(np.unique(found.get_facecolors()[:, :3], axis=0)) == 2
    of_c = fresh.get_facecolors()[np.isclose(fresh.get_offsets()[:, 0], points[0, 0])]
    at = np.isclose(found.get_offsets()[:, 0], points[1, 0])  # also of class c
    assert np.allclose(of_c[0, :3], found.get_facecolors()[at][0, :3])


def test_numbers_have_a_color_bar(rng):
    values = pd.Series(rng.normal(size=60), name="height")
    ax = plot_embedding(rng.normal(size=(60, 2)), values)
    assert ax.get_legend() is None
    (bar,) = [other for other in ax.figure.axes if other is not ax]
    assert bar.get_ylabel() == "height"
    assert bar.get_ylim() == pytest.approx((values.min(), values.max()))


@pytest.mark.parametrize("k", [1, 2, 8, 9, 20, 21, 59, 90])
def test_any_number_of_classes(k, rng):
    y = [f"class {i % k}" for i in range(180)]
    target = Target.of(y, 180)
    assert len(np.unique(target.palette, axis=0)) == k
    ax = plot_embedding(rng.normal(size=(180, 2)), y)
    assert (ax.get_legend() is None) == (k > 60)


def test_points_shrink_as_they_become_many(rng):
    few = collection(plot_embedding(rng.normal(size=(150, 2))), "samples")
    many = collection(plot_embedding(rng.normal(size=(50_000, 2))), "samples")
    assert many.get_sizes()[0] < few.get_sizes()[0] / 10
    assert many.get_alpha() < few.get_alpha()
    assert many.get_rasterized()
    assert not few.get_rasterized()


@pytest.mark.parametrize(
    ("y", "is_classes"),
    [
        ([True, False, True], True),
        ([1, 2, 3], True),
        ([1.0, 2.0, 2.0], True),
        ([0.5, 1.0, 2.0], False),
        (["1.5", "2", "3"], True),
    ],
)
def test_what_counts_as_classes(y, is_classes):
    assert (Target.of(y, 3).classes is not None) == is_classes
    assert Target.of(np.arange(21), 21).classes is None


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.zeros((5, 1)),), {}, r"at least two columns; got shape \(5, 1\)"),
        ((np.zeros(5),), {}, "shape"),
        ((np.full((5, 2), np.nan),), {}, "finite"),
        ((np.zeros((5, 2)), [1, 2]), {}, "y has 2 entries, but there are 5 samples"),
        ((np.zeros((5, 2)), [1, 2, 3, 4, np.nan]), {}, "y has NaN"),
        ((np.zeros((5, 2)),), {"components": (0, 2)}, "components must be two of the 2"),
        ((np.zeros((5, 2)),), {"prototypes": [5]}, "prototypes must be between 0 and 4"),
        ((np.zeros((5, 2)),), {"highlight": [True]}, "highlight is a mask of shape"),
        ((np.zeros((5, 2)),), {"y_new": [1]}, "y_new requires new and y"),
        (
            (np.zeros((5, 2)), np.ones(5)),
            {"new": np.zeros((2, 2)), "y_new": [1]},
            "y_new has 1 entries, but there are 2 new samples",
        ),
    ],
)
def test_embedding_errors(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        plot_embedding(*arguments, **options)


def test_axes_errors(plt):
    _, several = plt.subplots(1, 2)
    with pytest.raises(TypeError, match="ax must be a matplotlib Axes; got ndarray"):
        plot_embedding(np.zeros((5, 2)), ax=several)
    with pytest.raises(TypeError, match="cannot be sorted"):
        plot_embedding(np.zeros((2, 2)), np.array(["a", 1], dtype=object))


# --- Proximities


@pytest.mark.parametrize("scheme", SCHEMES)
def test_blocks_are_means_of_p(scheme, fitted, rng, monkeypatch):
    monkeypatch.setattr(plots.proximity, "_AT_ONCE", 8 * 150 * 4)  # four columns at a time
    prox, rows = fitted[scheme], rng.permutation(150)
    ax = plot_proximity(prox, order=rows, n_bins=7)
    edges = bin_edges(np.array([150]), 7)
    P = prox.proximity().toarray()
    expected = [
        [P[np.ix_(rows[a:b], rows[c:d])].mean() for c, d in itertools.pairwise(edges)]
        for a, b in itertools.pairwise(edges)
    ]
    np.testing.assert_allclose(ax.images[0].get_array(), expected, atol=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_small_matrix_is_drawn_entry_by_entry(scheme, fitted, iris):
    y = NAMES[iris[1]]
    ax = plot_proximity(fitted[scheme], y)
    drawn, P = np.asarray(ax.images[0].get_array()), fitted[scheme].proximity().toarray()
    assert drawn.shape == (150, 150)
    for a in range(3):
        for b in range(3):
            block = drawn[50 * a : 50 * a + 50, 50 * b : 50 * b + 50]
            expected = P[np.ix_(iris[1] == a, iris[1] == b)]
            np.testing.assert_allclose(np.sort(block, None), np.sort(expected, None), atol=1e-12)
    assert [text.get_text() for text in ax.get_yticklabels()] == list(NAMES)
    np.testing.assert_allclose(ax.get_yticks(), [24.5, 74.5, 124.5])
    lines = sorted(float(line.get_ydata()[0]) for line in ax.lines[::2])
    assert lines == [49.5, 99.5]
    expected = "as query" if scheme == "gap" else "training samples"
    assert ax.get_ylabel() == expected


def test_cluster_order_brings_the_similar_together(fitted, iris, rng):
    prox, y = fitted["kerf"], NAMES[iris[1]]
    near = np.asarray(plot_proximity(prox, y, order="cluster").images[0].get_array())
    mixed = np.asarray(plot_proximity(prox, order=rng.permutation(150)).images[0].get_array())
    assert np.diagonal(near, 1).mean() > 3 * np.diagonal(mixed, 1).mean()


def test_an_order_of_ones_own_that_is_by_class_is_marked(fitted, iris):
    y = NAMES[iris[1]]
    order = np.concatenate([np.flatnonzero(y == name) for name in NAMES[::-1]])
    ax = plot_proximity(fitted["gap"], y, order=order, n_bins=30)
    assert [text.get_text() for text in ax.get_xticklabels()] == list(NAMES[::-1])
    assert sorted(float(line.get_ydata()[0]) for line in ax.lines[::2]) == [9.5, 19.5]
    ax = plot_proximity(fitted["gap"], y, order=np.arange(150)[::-1] * 7 % 150)
    assert not ax.lines
    assert len(ax.get_legend().get_texts()) == 3


def test_numbers_are_ordered_by_size(diabetes):
    X, y = diabetes
    y = pd.Series(y, name="progress")
    prox = ForestProximity(RandomForestRegressor(10, random_state=0), "uniform").fit(X, y)
    ax = plot_proximity(prox, y, colorbar=False)
    order = np.argsort(y.to_numpy(), kind="stable")
    expected = prox.proximity().toarray()[np.ix_(order, order)]
    np.testing.assert_allclose(ax.images[0].get_array(), expected, atol=1e-6)
    assert ax.get_xlabel() == "training samples, by progress"
    assert ax.get_xticklabels()[0].get_text() == number(y.min())
    plot_proximity(prox, y, order="cluster", n_bins=50)


def test_bins_respect_classes_and_show_small_ones():
    sizes = np.array([9000, 3, 40, 957])
    edges = bin_edges(sizes, 100)
    assert set(np.append(0, sizes.cumsum())) <= set(edges)
    assert (np.diff(edges) > 0).all()
    per_class = np.diff(np.searchsorted(edges, np.append(0, sizes.cumsum())))
    assert per_class[1] == 3
    assert per_class[2] == 4
    assert abs(per_class.sum() - 100) <= 10
    assert np.array_equal(bin_edges(np.array([3, 2]), 5), np.arange(6))


@pytest.mark.parametrize("n", [1, 2, 5, 400])
def test_seriation_is_an_order(n, rng):
    points = rng.normal(size=(n, 1))
    order = seriate(points)
    assert np.array_equal(np.sort(order), np.arange(n))
    steps = np.abs(np.diff(points[order, 0]))
    assert steps.sum() <= 1.5 * np.ptp(points) + 1e-12
    assert np.array_equal(np.sort(seriate(np.zeros((n, 2)))), np.arange(n))


def test_proximity_errors(fitted):
    with pytest.raises(ValueError, match="order='class' requires y"):
        plot_proximity(fitted["gap"], order="class")
    with pytest.raises(ValueError, match="each of the row numbers 0 to 149 once"):
        plot_proximity(fitted["gap"], order=[1, 2, 3])
    with pytest.raises(ValueError, match=r"order must be one of .* Did you mean 'cluster'"):
        plot_proximity(fitted["gap"], order="clusters")
    with pytest.raises(ValueError, match="y has 2 entries, but there are 150 training samples"):
        plot_proximity(fitted["gap"], [0, 1])
    with pytest.raises(TypeError, match="must be a fitted ForestProximity"):
        plot_proximity(np.eye(3))


def test_a_norm_of_ones_own_is_used(fitted, iris):
    from matplotlib.colors import Normalize

    norm = Normalize(0, 0.5)
    ax = plot_proximity(fitted["uniform"], iris[1], norm=norm)
    assert ax.images[0].norm is norm


def test_block_means_of_one_bin(fitted):
    found = block_means(fitted["gap"], np.arange(150), np.array([0, 150]))
    assert found.item() == pytest.approx(fitted["gap"].proximity().mean())


# --- Outliers


def test_outliers_are_drawn_at_their_scores(fitted, iris):
    y = NAMES[iris[1]]
    scores = outlier_scores(fitted["oob"], y)
    ax = plot_outliers(scores, y, threshold=4, n_labels=3, highlight=[0])
    inside, outside = collection(ax, "samples"), collection(ax, "outliers")
    assert np.array_equal(np.sort(inside.get_offsets()[:, 1]), np.sort(scores[scores <= 4]))
    assert np.array_equal(np.sort(outside.get_offsets()[:, 1]), np.sort(scores[scores > 4]))
    across = np.concatenate([inside.get_offsets()[:, 0], outside.get_offsets()[:, 0]])
    assert np.array_equal(np.bincount(across.round().astype(int)), [50, 50, 50])
    top = np.argsort(-scores)[:3]
    assert {text.get_text() for text in ax.texts} == {str(row) for row in top}
    assert [text.get_text() for text in ax.get_xticklabels()] == list(NAMES)
    assert (np.asarray(ax.lines[0].get_ydata()) == 4).all()
    assert collection(ax, "highlight").get_offsets()[0, 1] == scores[0]


def test_outliers_far_out_get_a_logarithmic_scale(rng):
    scores = np.append(rng.normal(size=500), [900.0, 20.0])
    names = [f"sample {i}" for i in range(502)]
    ax = plot_outliers(scores, names=names, n_labels=2)
    assert ax.get_yscale() == "symlog"
    assert {text.get_text() for text in ax.texts} == {"sample 500", "sample 501"}
    assert plot_outliers(scores[:500]).get_yscale() == "linear"
    assert plot_outliers(np.append(np.ones(9), 99), threshold=None).get_yscale() == "log"


def test_outliers_by_a_number_and_without_a_line(rng):
    scores, y = rng.normal(size=80), rng.normal(size=80)
    ax = plot_outliers(scores, y, threshold=None, n_labels=0)
    assert same_points(collection(ax, "samples").get_offsets(), np.column_stack([y, scores]))
    assert not ax.texts
    assert not ax.lines


def test_outliers_of_many_and_of_constant_scores(rng):
    plot_outliers(rng.gamma(1, 3, size=50_000), rng.choice(list("abcdefghijklmnop"), size=50_000))
    plot_outliers(np.zeros(5), ["a"] * 5)
    plot_outliers([1.0])


def test_names_of_outliers_do_not_overlap(plt):
    scores = np.append(np.zeros(50), np.linspace(11, 11.2, 5))
    ax = plot_outliers(scores)
    ax.figure.canvas.draw()
    # Of the text alone: the extent of an annotation takes in its line too.
    boxes = [super(type(text), text).get_window_extent() for text in ax.texts]
    boxes.sort(key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 + 2 for below, above in itertools.pairwise(boxes))


def test_outlier_errors():
    with pytest.raises(ValueError, match="finite numbers"):
        plot_outliers([1.0, np.nan])
    with pytest.raises(ValueError, match="names has 1 entries, but there are 2 scores"):
        plot_outliers([1.0, 2.0], names=["a"])
    with pytest.raises(ValueError, match="y has 3 entries, but there are 2 scores"):
        plot_outliers([1.0, 2.0], ["a", "b", "c"])


# --- Neighbors


def test_bars_are_proximities(fitted, iris):
    X, y = iris
    ax = plot_neighbors(fitted["gap"], X, NAMES[y], row=77, n_neighbors=6, title="Row 77")
    bars, table = ax.child_axes
    row = fitted["gap"].proximity().toarray()[77]
    order = np.argsort(-row, kind="stable")[:6]
    np.testing.assert_allclose([bar.get_width() for bar in bars.patches], row[order])
    labels = [text.get_text() for text in bars.get_yticklabels()]
    assert labels == ["row 77", *(f"row {i}: {NAMES[y[i]]}" for i in order)]
    differences = np.asarray(table.images[0].get_array())
    shown = [int(text.get_text()[1:]) for text in table.get_xticklabels()]
    expected = (X[order] - X[77]) / X.std(axis=0)
    np.testing.assert_allclose(differences[1:], expected[:, shown], atol=1e-12)
    assert (differences[0] == 0).all()
    texts = [text.get_text() for text in table.texts[:7]]
    assert texts == [number(value) for value in X[[77, *order], shown[0]]]


def test_neighbors_of_a_new_sample(fitted, iris, plt):
    X, y = iris
    _, ax = plt.subplots(layout="constrained")
    new = X[120] + 0.05
    found = plot_neighbors(fitted["kerf"], X, y, x=new, n_neighbors=4, features=[3, 0], ax=ax)
    assert found is ax
    bars, table = ax.child_axes
    similarity, near = fitted["kerf"].kneighbors(new[None], 4)
    np.testing.assert_allclose([bar.get_width() for bar in bars.patches], similarity[0])
    assert [text.get_text() for text in table.get_xticklabels()] == ["x3", "x0"]
    expected = (X[near[0]] - new)[:, [3, 0]] / X.std(axis=0)[[3, 0]]
    np.testing.assert_allclose(np.asarray(table.images[0].get_array())[1:], expected, atol=1e-12)


def test_neighbors_show_what_they_have_in_common(rng):
    X = rng.normal(size=(200, 5))
    y = X[:, 3].argsort().argsort() // 20
    X[:, 0] *= 0.01  # a small scale is no advantage: ranges are normalized
    forest = RandomForestClassifier(20, max_features=None, random_state=0)
    prox = ForestProximity(forest, "uniform").fit(X, y)
    ax = plot_neighbors(prox, X, y, row=0, n_features=1)
    assert ax.child_axes[1].get_xticklabels()[0].get_text() == "x3"
    ax = plot_neighbors(prox, X, y, row=0, n_features=1, importance=[0, 0, 5, 1, 1])
    assert ax.child_axes[1].get_xticklabels()[0].get_text() == "x2"


def test_neighbors_in_a_table_with_categories(table):
    X, y = table
    numbers = X.assign(kind=X["kind"].cat.codes, size=X["size"].fillna(0))
    prox = ForestProximity(RandomForestRegressor(10, random_state=0), "kerf").fit(numbers, y)
    ax = plot_neighbors(prox, X, y, row=0, features=["size", "kind"])
    _, cells = ax.child_axes
    texts = [text.get_text() for text in cells.texts]
    assert texts[0] == "-"  # missing in row 0
    assert set(texts[len(texts) // 2 :]) <= set("abcd")
    ax = plot_neighbors(prox, X, row=1, feature_names=["a", "b", "c"])
    assert {text.get_text() for text in ax.child_axes[1].get_xticklabels()} <= set("abc")


def test_neighbor_errors(fitted, iris):
    X, y = iris
    prox = fitted["gap"]
    with pytest.raises(ValueError, match="got neither"):
        plot_neighbors(prox, X, y)
    with pytest.raises(ValueError, match="got both"):
        plot_neighbors(prox, X, y, row=0, x=X[0])
    with pytest.raises(ValueError, match="X has 3 rows, but there are 150 training samples"):
        plot_neighbors(prox, X[:3], y, row=0)
    with pytest.raises(ValueError, match=r"features='weight' is not a column. The columns are x0"):
        plot_neighbors(prox, X, y, row=0, features=["weight"])
    with pytest.raises(ValueError, match="features must be between 0 and 3; got 4"):
        plot_neighbors(prox, X, y, row=0, features=[4])
    with pytest.raises(ValueError, match="importance has 2 entries, but X has 4 columns"):
        plot_neighbors(prox, X, y, row=0, importance=[1, 2])
    with pytest.raises(ValueError, match="feature_names has 1 entries, but X has 4 columns"):
        plot_neighbors(prox, X, y, row=0, feature_names=["a"])


# --- Contributions


@pytest.mark.parametrize("classes", [True, False])
def test_bars_are_contributions(diabetes, classes):
    X, y = diabetes
    kind = GradientBoostingClassifier if classes else GradientBoostingRegressor
    target = np.where(y > 100, "high", "low") if classes else y
    model = kind(n_estimators=10, random_state=0).fit(X, target)
    prox = ForestProximity(model, "gradient").fit(X, target)
    ax = plot_contributions(prox, X[3], n=4)
    row = prox.proximity(X[3:4]).toarray()[0]
    shown = np.r_[np.argsort(-row, kind="stable")[:4], np.argsort(row, kind="stable")[:4][::-1]]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], row[shown])
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == [
        f"row {i}: {target[i] if classes else number(target[i])}" for i in shown.tolist()
    ]
    title = ax.get_title()
    assert ("score" if classes else "prediction") in title
    assert ("probability of low" in title) == classes
    texts = " ".join(text.get_text() for text in ax.texts)
    assert f"{(row > 0).sum()} rows push up" in texts
    assert f"{(row < 0).sum()} rows push down" in texts
    low, high = ax.get_xlim()
    assert low < row.min() < 0 < row.max() < high


def test_contributions_of_an_explanation(diabetes, plt):
    X, y = diabetes
    prox = ForestProximity(GradientBoostingRegressor(n_estimators=5), "gradient").fit(X, y)
    _, ax = plt.subplots()
    found = plot_contributions(explain_prediction(prox, row=3, n=9), n=2, title="Three", ax=ax)
    assert found is ax
    assert (len(ax.patches), ax.get_title()) == (4, "Three")


def test_contributions_of_one_direction(plt):
    X = np.arange(8.0)[:, None]
    model = GradientBoostingRegressor(n_estimators=1, max_depth=1)
    prox = ForestProximity(model, "gradient").fit(X, [0.0] * 4 + [1.0] * 4)
    ax = plot_contributions(prox, X[0])
    assert [text.get_text() for text in ax.texts][-1].startswith("4 rows push down")
    # All trees add nothing.
    same = ForestProximity(model, "gradient").fit(X, np.ones(8))
    with pytest.raises(ValueError, match="no contributions of training rows"):
        plot_contributions(same, X[0])


def test_contribution_errors(fitted, iris, diabetes):
    X, y = diabetes
    with pytest.raises(ValueError, match=r"weight_scheme='gap' cannot be used.*'gradient'"):
        plot_contributions(fitted["gap"], iris[0][0])
    prox = ForestProximity(GradientBoostingRegressor(n_estimators=5), "gradient").fit(X, y)
    with pytest.raises(ValueError, match="got neither"):
        plot_contributions(prox)
    with pytest.raises(ValueError, match="cannot be combined with a ScoreExplanation"):
        plot_contributions(explain_prediction(prox, row=3), X[0])


# --- Prototypes


def test_cards_show_medians_and_quartiles(fitted, iris):
    X, y = iris
    found = class_prototypes(fitted["uniform"], X, NAMES[y])
    ax = plot_prototypes(found, X, features=[0, 1, 2, 3], feature_names=list("abcd"))
    assert [card.get_title() for card in ax.child_axes] == list(NAMES)
    low, size = X.min(axis=0), np.ptp(X, axis=0)
    for c, card in enumerate(ax.child_axes):
        _, spans, medians = card.collections
        np.testing.assert_allclose(medians.get_offsets()[:, 0], (found.median[c] - low) / size)
        ends = np.array([segment[:, 0] for segment in spans.get_segments()]).T
        np.testing.assert_allclose(ends[0], (found.lower[c] - low) / size)
        np.testing.assert_allclose(ends[1], (found.upper[c] - low) / size)
        assert [text.get_text() for text in card.texts] == [number(m) for m in found.median[c]]
    names = [text.get_text() for text in ax.child_axes[0].get_yticklabels()]
    assert names == list("abcd")


def test_cards_of_selected_rows(fitted, iris, plt):
    X, y = iris
    chosen = select_prototypes(fitted["uniform"], y, n_prototypes=3)
    _, ax = plt.subplots()
    plot_prototypes(chosen, X, n_features=2, ax=ax, title="Iris")
    first = ax.child_axes[1].collections[-1].get_offsets()
    row = chosen.rows[chosen.labels == 1][0]
    values = (X[row] - X.min(axis=0)) / np.ptp(X, axis=0)
    assert set(first[:, 0]) <= set(values)
    assert len(first) == 2
    plot_prototypes(chosen.rows, X, y)
    assert len(plot_prototypes([0, 99], X).child_axes) == 1


@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 3)])
def test_images(shape, rng):
    X, y = rng.uniform(size=(60, int(np.prod(shape)))), np.arange(60) % 2
    prox = ForestProximity(RandomForestClassifier(10, random_state=0), "uniform").fit(X, y)
    chosen = select_prototypes(prox, y, n_prototypes=3)
    ax = plot_prototypes(chosen, X, images=shape, max_images=2)
    assert len(ax.child_axes) == 4
    row = chosen.rows[chosen.labels == 0][0]
    image = np.asarray(ax.child_axes[0].images[0].get_array())
    if len(shape) == 2:
        np.testing.assert_allclose(image, X[row].reshape(shape))
    assert ax.child_axes[0].texts[0].get_text().startswith("0\nproximity 0.")
    assert ax.child_axes[1].texts[-1].get_text() == "+ 1"
    middles = class_prototypes(prox, X, y)
    ax = plot_prototypes(middles, X, images=shape)
    assert len(ax.child_axes) == 2
    plot_prototypes(medoids(prox, y), X, images=shape)


def test_prototype_errors(fitted, iris, table):
    X, y = iris
    with pytest.raises(ValueError, match="requires 9 columns, but X has 4"):
        plot_prototypes([0], X, images=(3, 3))
    with pytest.raises(ValueError, match="prototypes is empty"):
        plot_prototypes([], X)
    with pytest.raises(ValueError, match="column 'kind' has categories"):
        plot_prototypes([0], table[0])
    with pytest.raises(ValueError, match="y has 2 entries, but there are 150"):
        plot_prototypes([0], X, y[:2])


# --- Imputation


@pytest.fixture
def holes(rng):
    truth = pd.DataFrame({"size": rng.normal(size=90), "kind": rng.choice(list("abc"), size=90)})
    missing, filled = truth.copy(), truth.copy()
    missing.loc[::3, ["size", "kind"]] = [np.nan, None]
    filled.loc[::3, "size"] = truth["size"][::3] + 0.1
    filled.loc[::3, "kind"] = "a"
    return missing, filled, truth


def test_imputed_numbers(holes, plt):
    missing, filled, truth = holes
    _, ax = plt.subplots()
    found = plot_imputation(missing, filled, column="size", ax=ax)
    assert found is ax
    observed, imputed = ax.patches[:-1], ax.patches[-1]
    values = missing["size"].dropna()
    counts, _ = np.histogram(values, np.append([b.get_x() for b in observed], np.inf))
    np.testing.assert_allclose([bar.get_height() for bar in observed], counts / 60)
    assert ax.get_xlabel() == "size"
    assert imputed.get_xy()[:, 1].max() <= 1
    left, right = plot_imputation(missing, filled, column=0, X_true=truth).child_axes
    points = right.collections[0].get_offsets()
    np.testing.assert_allclose(points, np.column_stack([truth["size"], filled["size"]])[::3])
    assert "mean absolute error 0.1" in right.texts[0].get_text()
    assert len(left.get_legend().get_texts()) == 3


def test_imputed_categories(holes):
    missing, filled, truth = holes
    ax = plot_imputation(missing, filled, column="kind", title="kinds")
    shares = [bar.get_height() for bar in ax.patches]
    expected = missing["kind"].value_counts(normalize=True).sort_index()
    np.testing.assert_allclose(shares, [*expected, 1, 0, 0])
    _, right = plot_imputation(missing, filled, column="kind", X_true=truth).child_axes
    counts = truth["kind"][::3].value_counts().sort_index()
    assert [text.get_text() for text in right.texts[::3]] == [str(count) for count in counts]
    right_share = (truth["kind"][::3] == "a").mean()
    assert f"{right_share:.0%} correct" in right.get_xlabel()


def test_imputation_of_arrays_with_a_truth_that_has_holes(rng):
    truth = rng.normal(size=(50, 2))
    missing, filled = truth.copy(), truth.copy()
    missing[:10, 1], truth[:3, 1] = np.nan, np.nan
    ax = plot_imputation(missing, filled, column=1, X_true=truth)
    assert len(ax.child_axes[1].collections[0].get_offsets()) == 7


def test_imputation_errors(holes):
    missing, filled, truth = holes
    with pytest.raises(ValueError, match="no missing values"):
        plot_imputation(truth, truth, column="size")
    with pytest.raises(ValueError, match="still has missing values"):
        plot_imputation(missing, missing, column="size")
    with pytest.raises(ValueError, match="column='weight' is not a column"):
        plot_imputation(missing, filled, column="weight")
    with pytest.raises(ValueError, match=r"X_imputed has shape \(9, 2\), but X_missing has"):
        plot_imputation(missing, filled[:9], column="size")
    with pytest.raises(ValueError, match="only missing values"):
        plot_imputation(missing[::3], filled[::3], column="size")


# --- All


def test_numbers_are_written_as_one_would():
    values = (0, 0.00002, 0.12345, 3.14159, 99.99, 1234.5, 2e7, np.nan)
    expected = ["0", "2e-5", "0.123", "3.14", "100", "1234", "2e7", "-"]
    assert [number(value) for value in values] == expected


def test_without_matplotlib_the_extra_is_named():
    code = """
import sys
sys.modules["matplotlib"] = None  # as where it is not installed
import leafkernel.plots
try:
    leafkernel.plots.plot_embedding([[0.0, 1.0], [1.0, 0.0]])
except ImportError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "leafkernel[plot]"' in found.stdout
