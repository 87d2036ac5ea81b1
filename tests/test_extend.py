"""Reference samples that are added count as if fit had been given them all."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leafkernel import ForestProximity, WeightScheme
from leafkernel.parts import cuts_with
from leafkernel.schemes import Boosted
from leafkernel.tasks import ProximityClassifier


class ByMass(WeightScheme):
    """Weights of entries that change with the masses of leaves."""

    def query(self, samples, forest):
        return 1.0 / np.sqrt(forest.leaf_mass[samples.leaf])


@pytest.fixture(scope="module")
def forest(iris):
    return RandomForestClassifier(40, random_state=0).fit(*iris)


def assert_same(found, expected, X):
    for rows in (None, X[::9] + 0.01):
        one, other = found.proximity(rows), expected.proximity(rows)
        for name in ("data", "indices", "indptr"):
            assert_array_equal(getattr(one, name), getattr(other, name))
        for one, other in zip(
            found.kneighbors(rows, 20), expected.kneighbors(rows, 20), strict=True
        ):
            assert_array_equal(one, other)
    assert_array_equal(found.kernel_.forest.leaf_mass, expected.kernel_.forest.leaf_mass)


@pytest.mark.parametrize("scheme", ["kerf", "uniform", "ih", ByMass()], ids=lambda s: str(s)[:7])
@pytest.mark.parametrize("options", [{}, {"dtype": "float64", "diagonal": "zero"}])
def test_extended_is_fitted_on_all(iris, forest, scheme, options):
    X, y = iris
    expected = ForestProximity(forest, scheme, **options).fit(X, y)
    prox = ForestProximity(forest, scheme, **options).fit(X[:90], y[:90])
    assert prox.extend(X[90:110], y[90:110]) is prox
    prox.extend(X[110:115], y[110:115]).extend(X[115:], y[115:])
    assert prox.n_samples_fit_ == 150
    assert_array_equal(prox.y_, y)
    assert_same(prox, expected, X)
    shares = [
        ProximityClassifier(p).fit(X, y).predict_proba(X[:9] + 0.01) for p in (prox, expected)
    ]
    assert_allclose(*shares, atol=1e-6)


def test_boosted_keeps_the_weights_of_its_trees(iris):
    X, y = iris
    model = GradientBoostingClassifier(n_estimators=8, random_state=0).fit(X, y)
    prox = ForestProximity(model, "boosted").fit(X[::2]).extend(X[1::2])
    weights = ForestProximity(model, "boosted").fit(X[::2]).kernel_.forest.tree_weights
    assert_array_equal(prox.kernel_.forest.tree_weights, weights)
    order = np.r_[0:150:2, 1:150:2]
    expected = ForestProximity(model, Boosted(tree_weights=weights)).fit(X[order])
    assert_allclose(prox.proximity().toarray(), expected.proximity().toarray(), atol=1e-6)


def test_a_pipeline_and_labels(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"), index=[f"r{i}" for i in range(150)])
    model = make_pipeline(StandardScaler(), RandomForestClassifier(9, random_state=0))
    model.fit(frame, y)
    prox = ForestProximity(model, "kerf").fit(frame[:100], y[:100]).extend(frame[100:], y[100:])
    assert list(prox.index_) == list(frame.index)
    assert_same(prox, ForestProximity(model, "kerf").fit(frame, y), frame)
    mixed = ForestProximity(model, "kerf").fit(frame[:100], y[:100])
    mixed.extend(frame[100:].reset_index(drop=True), y[100:])
    assert mixed.index_ == range(150)


@pytest.mark.parametrize("scheme", ["gap", "oob", "oob_separable"])
def test_schemes_of_draws_refuse(iris, forest, scheme):
    X, y = iris
    prox = ForestProximity(forest, scheme).fit(X, y)
    with pytest.raises(ValueError, match=f"{scheme}.*new samples have none. Use prox.reweigh"):
        prox.extend(X[:3], y[:3])


def test_what_is_wrong_is_said_and_nothing_changes(iris, forest):
    X, y = iris
    prox = ForestProximity(forest, "kerf").fit(X[:90], y[:90])
    before = prox.proximity().toarray()
    for args, error, words in [
        ((X[90:],), ValueError, "y is missing"),
        ((X[90:], y[90:99]), ValueError, r"must have shape \(60,\) for 60 new samples; got \(9,\)"),
        ((X[90:], y[90:].astype(str)), TypeError, "Pass the same type"),
        ((X[90:, :2], y[90:]), ValueError, "2 features"),
    ]:
        with pytest.raises(error, match=words):
            prox.extend(*args)
    assert_array_equal(prox.proximity().toarray(), before)
    plain = ForestProximity(forest, "kerf").fit(X)
    with pytest.raises(ValueError, match="fit got no targets"):
        plain.extend(X[:2], y[:2])
    with pytest.raises(ValueError, match=r"X has 152 samples, but .* was fitted on 150"):
        plain.extend(X[:2]).reweigh("gap", X=np.r_[X, X[:2]])


def test_leaves_that_nobody_knew_are_refused():
    prox = ForestProximity.from_leaves([[0, 1], [2, 1], [2, 3]])
    with pytest.raises(ValueError, match="X\\[1\\] reaches a leaf that no training sample reached"):
        prox.extend([[0, 3], [0, 7]])
    prox.extend([[0, 3]])
    expected = ForestProximity.from_leaves([[0, 1], [2, 1], [2, 3], [0, 3]])
    assert_array_equal(prox.proximity().toarray(), expected.proximity().toarray())


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40))
def test_there_are_few_parts(sizes):
    cuts = []
    for size in sizes:
        cuts = cuts_with([cut.stop - cut.start for cut in cuts], size)
    assert cuts[-1].stop == sum(sizes)
    assert len(cuts) <= 1 + np.log2(sum(sizes))
