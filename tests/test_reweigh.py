"""Another kernel of the same forest and samples, without routing them again."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingRegressor, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leafkernel import ForestProximity
from leafkernel.inside import Inside
from leafkernel.schemes import Uniform

SCHEMES = ["gap", "uniform", "kerf", "oob", "oob_separable", "purity", "learned", "ih"]


def assert_same(found, expected, X):
    assert found.scheme_.name == expected.scheme_.name
    for queries in (None, X[:9] + 0.05):
        one, other = found.proximity(queries), expected.proximity(queries)
        assert one.dtype == other.dtype
        assert_array_equal(one.toarray(), other.toarray())
    assert_array_equal(found.kneighbors()[1], expected.kneighbors()[1])
    found = found.weighted_sums(np.arange(len(X)), X[:9])
    assert_array_equal(found, expected.weighted_sums(np.arange(len(X)), X[:9]))


@pytest.mark.parametrize("first", SCHEMES)
@pytest.mark.parametrize("second", SCHEMES)
def test_every_scheme_from_every_other(iris, first, second):
    X, y = iris
    forest = RandomForestClassifier(40, random_state=0).fit(X, y)
    prox = ForestProximity(forest, first).fit(X, y)
    before = prox.proximity().toarray()
    found = prox.reweigh(second, X=X if second == "ih" else None)
    assert_same(found, ForestProximity(forest, second).fit(X, y), X)
    assert_array_equal(prox.proximity().toarray(), before)
    assert prox.scheme_.name == first


@given(
    st.sampled_from(SCHEMES[:-1]),
    st.sampled_from(["scheme", "one", "zero"]),
    st.booleans(),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
)
def test_every_parameter(iris, scheme, diagonal, symmetrize, dtype, weighted):
    X, y = iris
    weights = np.arange(1, 151) % 7 + 1 if weighted else None
    forest = RandomForestClassifier(40, class_weight="balanced", random_state=0)
    forest.fit(X, y, sample_weight=weights)
    given = {"diagonal": diagonal, "symmetrize": symmetrize, "dtype": dtype}
    found = ForestProximity(forest, "uniform").fit(X, y, weights).reweigh(scheme, **given)
    expected = ForestProximity(forest, scheme, **given).fit(X, y, weights)
    assert_same(found, expected, X)
    assert found.get_params(deep=False) == expected.get_params(deep=False)


def test_nothing_is_routed_again(iris, monkeypatch):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(40, random_state=0), "uniform").fit(X, y)

    def refuse(*args, **kwargs):
        raise AssertionError("routed again")

    for method in ("leaves", "training_leaves"):
        monkeypatch.setattr(type(Inside.of(prox).forest), method, refuse)
    again = prox.reweigh("gap")
    assert np.shares_memory(Inside.of(again).samples.leaf, Inside.of(prox).samples.leaf)
    assert np.shares_memory(
        Inside.of(again.reweigh("oob")).samples.in_bag, Inside.of(again).samples.in_bag
    )
    assert prox.reweigh(diagonal="zero").proximity().diagonal().sum() == 0


def test_other_forests(iris):
    X, y = iris
    boosted = GradientBoostingRegressor(n_estimators=5, random_state=0)
    prox = ForestProximity(boosted, "uniform").fit(X, y)
    assert_same(prox.reweigh("boosted"), ForestProximity(prox.forest_, "boosted").fit(X, y), X)
    piped = make_pipeline(StandardScaler(), RandomForestClassifier(40, random_state=0))
    prox = pickle.loads(pickle.dumps(ForestProximity(piped, "kerf").fit(X, y)))
    assert_same(prox.reweigh("gap"), ForestProximity(prox.forest_, "gap").fit(X, y), X)
    leaves = ForestProximity.from_leaves([[0, 1], [0, 2], [3, 2]], in_bag=[[1, 0], [0, 1], [1, 0]])
    assert leaves.reweigh("gap").proximity().shape == (3, 3)


def test_what_the_forest_does_not_have_is_refused(iris):
    X, y = iris
    prox = ForestProximity(ExtraTreesClassifier(10, random_state=0), "kerf").fit(X, y)
    with pytest.raises(ValueError, match=r"'gap' needs bootstrap samples .*, but ExtraTrees"):
        prox.reweigh("gap")
    with pytest.raises(ValueError, match="'ih' needs the features of the training"):
        prox.reweigh("ih")
    with pytest.raises(ValueError, match="X has 20 rows, but there are 150 training samples"):
        prox.reweigh("ih", X=X[:20])
    with pytest.raises(ValueError, match="diagonal must be one of"):
        prox.reweigh(diagonal="two")
    with pytest.raises(ValueError, match="dtype must be"):
        prox.reweigh(dtype=np.int32)
    with pytest.raises(ValueError, match="not fitted"):
        ForestProximity(ExtraTreesClassifier(), Uniform()).reweigh("kerf")


def test_parameters_that_were_set_wait_for_the_next_fit(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(30, random_state=0), "gap").fit(X, y)
    prox.set_params(dtype=np.float64, symmetrize=True, weight_scheme="kerf")
    again = prox.reweigh(diagonal="one")
    assert again.proximity().dtype == np.float32
    assert (again.scheme_.name, again.weight_scheme) == ("gap", "gap")
    assert (again.symmetrize, again.dtype) == (False, np.float32)
    both = prox.reweigh(symmetrize=True)
    assert (both.scheme_.name, both.weight_scheme, both.dtype) == ("gap", "gap", np.float32)
    assert both.kernel_.symmetrize
