"""Leaf schemes on trees whose lower splits are removed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from leafkernel import Batches, ForestProximity
from leafkernel.schemes import Boosted, Collapsed, InstanceHardness
from tests.oracles import Side, bootstrap_counts, disagreeing_neighbors, features_on_path, proximity
from tests.strategies import bootstrapped
from tests.test_paths import nodes_at_depth, trees_of

X, y = load_breast_cancer(return_X_y=True)
X, y, X_new = X[:150], y[:150], X[150:170]
FROM_LEAVES = ("uniform", "kerf", "gap", "oob", "oob_separable")


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(30, random_state=0).fit(X, y)


def cut_at(forest, rows, max_depth):
    """The node of each row in each tree, shape (n, T)."""
    return np.stack([nodes_at_depth(tree, rows, max_depth) for tree in trees_of(forest)], axis=1)


def cut_by_size(forest, rows, training, min_samples):
    """The node of each row if splits with a small side are removed, shape (n, T)."""
    columns = []
    for estimator in trees_of(forest):
        tree = estimator.tree_
        sizes = estimator.decision_path(np.float32(training)).toarray().sum(axis=0)
        found = []
        for row in np.float32(rows):
            node = 0
            while tree.children_left[node] >= 0:
                sides = tree.children_left[node], tree.children_right[node]
                if min(sizes[side] for side in sides) < min_samples:
                    break
                node = sides[int(row[tree.feature[node]] > tree.threshold[node])]
            found.append(node)
        columns.append(found)
    return np.array(columns).T


def sides_of(forest, leaf, n_samples):
    in_bag = bootstrap_counts(forest, n_samples)
    return Side(leaf, in_bag, in_bag == 0, np.ones(leaf.shape))


@pytest.mark.parametrize("scheme", FROM_LEAVES)
@pytest.mark.parametrize("options", [{"max_depth": 2}, {"max_depth": 0}, {"min_samples": 12}])
def test_schemes_see_the_larger_leaves(forest, scheme, options):
    if "max_depth" in options:
        leaf, leaf_new = (cut_at(forest, rows, **options) for rows in (X, X_new))
    else:
        leaf, leaf_new = (cut_by_size(forest, rows, X, **options) for rows in (X, X_new))
    training = sides_of(forest, leaf, len(X))
    prox = ForestProximity(forest, Collapsed(scheme, **options), dtype=np.float64).fit(X, y)
    few = slice(0, 25)
    asked = Side(leaf[few], training.in_bag[few], training.oob[few])
    expected = proximity(scheme, asked, training, training)
    np.testing.assert_allclose(prox.proximity().toarray()[few], expected, rtol=0, atol=1e-12)
    unseen = Side.unseen(leaf_new)
    expected = proximity(scheme, unseen, training, training)
    np.testing.assert_allclose(prox.proximity(X_new).toarray(), expected, rtol=0, atol=1e-12)


@given(bootstrapped(), st.sampled_from(FROM_LEAVES), st.integers(0, 4))
def test_any_forest(case, scheme, depth):
    with np.errstate(all="raise"):
        leaf, leaf_new = (cut_at(case.forest, rows, depth) for rows in (case.X, case.X_new))
    in_bag = bootstrap_counts(case.forest, len(case.X))
    training = Side(leaf, in_bag, in_bag == 0)
    rule = Collapsed(scheme, max_depth=depth)
    prox = ForestProximity(case.forest, rule, dtype=np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leafkernel.training.warn", lambda _: None)  # samples that are never OOB
        prox.fit(case.X, case.y)
    expected = proximity(scheme, training, training, training)
    np.testing.assert_allclose(prox.proximity().toarray(), expected, rtol=0, atol=1e-12)
    expected = proximity(scheme, Side.unseen(leaf_new), training, training)
    np.testing.assert_allclose(prox.proximity(case.X_new).toarray(), expected, rtol=0, atol=1e-12)


def test_both_limits_apply(forest):
    prox = ForestProximity(forest, Collapsed("uniform", max_depth=3, min_samples=5)).fit(X, y)
    by_size = cut_by_size(forest, X, X, 5)
    depth = [nodes_at_depth(tree, X, 3) for tree in forest.estimators_]
    for t in range(30):
        coarser = np.minimum(by_size[:, t], depth[t])  # ancestors have smaller numbers
        together = coarser[:, None] == coarser[None]
        cells = prox.kernel_.query.incidence.columns[:, t]
        np.testing.assert_array_equal(cells[:, None] == cells[None], together)


def test_boosted_and_instance_hardness():
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, y)
    plain = ForestProximity(model, "boosted").fit(X, y)
    prox = plain.reweigh(Collapsed(Boosted(), max_depth=1))
    leaf = cut_at(model, X, 1)
    weights = plain.kernel_.forest.tree_weights
    expected = proximity("boosted", *[Side.unseen(leaf)] * 3, tree_weights=weights)
    np.testing.assert_allclose(prox.proximity().toarray(), expected, atol=1e-6)
    # Columns of the same size, so that neighbors depend on the features of the path.
    few = np.random.default_rng(0).normal(size=(40, 6))
    labels = (few[:, 0] + few[:, 1] > 0).astype(int)
    model = RandomForestClassifier(3, random_state=0).fit(few, labels)
    rule = Collapsed(InstanceHardness(k=3), max_depth=2)
    prox = ForestProximity(model, rule, dtype=np.float64).fit(few, labels)
    leaf = cut_at(model, few, 2)

    def path(t, i):
        tree = model.estimators_[t]
        above = tree.decision_path(np.float32(few[i : i + 1])).indices[:2]  # nodes above the cut
        split = tree.tree_.feature[above]
        return sorted({int(f) for f in split if f >= 0})

    assert path(0, 0) == [
        f for f in path(0, 0) if f in features_on_path(model.estimators_[0], few[0])
    ]
    kdn = disagreeing_neighbors(few, labels, leaf, path, 3, "all")
    side = Side(leaf, None, None, 1 - kdn)
    np.testing.assert_allclose(
        prox.proximity().toarray(), proximity("ih", side, side, side), rtol=0, atol=1e-12
    )


def test_cut_random_forests_average_the_samples_of_larger_leaves(forest):
    prox = ForestProximity(forest, Collapsed("gap", max_depth=1), dtype=np.float64).fit(X, y)
    assert not prox.scheme_.predicts
    leaf, leaf_new = (cut_at(forest, rows, 1) for rows in (X, X_new))
    counts = bootstrap_counts(forest, len(X))
    means = np.zeros(len(X_new))
    for t in range(30):
        for i in range(len(X_new)):
            weights = counts[:, t] * (leaf[:, t] == leaf_new[i, t])
            means[i] += weights @ y / weights.sum() / 30
    np.testing.assert_allclose(prox.weighted_average(y, X_new), means, atol=1e-12)
    adjusted = prox.reweigh(diagonal="adjusted").proximity().diagonal()
    assert adjusted.shape == (150,)
    assert (adjusted > 0).all()


def test_saved_extended_symmetrized_and_batched(forest, tmp_path):
    for scheme, options in [("kerf", {"min_samples": 9}), ("gap", {"max_depth": 3})]:
        rule = Collapsed(scheme, **options)
        prox = ForestProximity(forest, rule, dtype=np.float64).fit(X, y)
        both = prox.reweigh(symmetrize=True)
        loaded = ForestProximity.load(prox.save(tmp_path / scheme))
        assert loaded.scheme_ == rule
        batched = ForestProximity(forest, rule, dtype=np.float64, max_memory="1MB")
        batched.fit(Batches.from_arrays(X, y, batch_rows=40), folder=tmp_path / f"{scheme}2")
        others = [loaded, batched]
        if scheme == "kerf":
            parts = ForestProximity(forest, rule, dtype=np.float64).fit(X[:50], y[:50])
            others.append(parts.extend(X[50:], y[50:]))
            again = ForestProximity.load(both.save(tmp_path / "both"))
            assert (abs(again.proximity() - both.proximity()) > 1e-15).nnz == 0
        else:
            again = ForestProximity.load(both.save(tmp_path / "both2"))
            P = prox.proximity()
            assert abs(again.proximity() - (P + P.T) / 2).max() < 1e-12
        for other in others:
            assert abs(other.proximity() - prox.proximity()).max() < 1e-12
            assert abs(other.proximity(X_new) - prox.proximity(X_new)).max() < 1e-12


def test_your_own_function_can_be_collapsed_and_loaded(forest, tmp_path):
    def small(samples, forest):
        return (forest.leaf_mass[samples.leaf] <= 40) / np.sqrt(forest.n_trees)

    rule = Collapsed(small, max_depth=2)
    prox = ForestProximity(forest, rule, dtype=np.float64).fit(X, y)
    for known in (small, rule):
        folder = prox.save(tmp_path / "own")
        loaded = ForestProximity.load(folder, weight_scheme=known)
        assert abs(loaded.proximity(X_new) - prox.proximity(X_new)).max() < 1e-15
    with pytest.raises(ValueError, match="has other limits than the saved proximity"):
        ForestProximity.load(folder, weight_scheme=Collapsed(small, max_depth=3))


def test_the_text_of_a_fit_counts_the_larger_leaves(forest):
    prox = ForestProximity(forest, Collapsed("kerf", max_depth=1)).fit(X, y)
    assert f"leaves: 60 of {prox.n_leaves_} after collapsing (75 samples per leaf)" in str(prox)


def test_wrong_parameters_are_refused(forest):
    with pytest.raises(ValueError, match="max_depth and min_samples are both None"):
        Collapsed("gap")
    with pytest.raises(ValueError, match="'collapsed_gap' cannot be collapsed"):
        Collapsed(Collapsed("gap", max_depth=3), max_depth=2)
    with pytest.raises(ValueError, match="'gradient' cannot be collapsed, because its weights"):
        Collapsed("gradient", max_depth=3)
    with pytest.raises(ValueError, match="max_depth must be at least 0"):
        ForestProximity(forest, Collapsed("gap", max_depth=-1)).fit(X, y)
    with pytest.raises(TypeError, match="min_samples must be an integer"):
        ForestProximity(forest, Collapsed("gap", min_samples=2.5)).fit(X, y)
    with pytest.raises(ValueError, match="'collapsed_kerf' needs the nodes of the trees"):
        ForestProximity.from_leaves(
            [[1, 4], [1, 5], [2, 5]], weight_scheme=Collapsed("kerf", max_depth=1)
        )


@pytest.mark.parametrize("scheme", ["purity", "learned"])
def test_schemes_that_learn_see_the_larger_leaves(forest, scheme, tmp_path):
    # The same trees, cut at this depth, as leaves without a forest.
    leaf, leaf_new = (cut_at(forest, rows, 2) for rows in (X, X_new))
    in_bag = bootstrap_counts(forest, len(X))
    cut = ForestProximity.from_leaves(
        leaf, in_bag=in_bag, y=y, weight_scheme=scheme, dtype=np.float64
    )
    prox = ForestProximity(forest, Collapsed(scheme, max_depth=2), dtype=np.float64).fit(X, y)
    loaded = ForestProximity.load(prox.save(tmp_path / scheme))
    for other in (prox, loaded):
        assert abs(other.proximity() - cut.proximity()).max() < 1e-12
        assert abs(other.proximity(X_new) - cut.proximity(leaf_new)).max() < 1e-12
    plain = prox.reweigh(scheme).proximity()
    assert abs(plain - prox.proximity()).max() > 0.01
