"""Custom engines: any object that computes, and may store prepared data."""

import copy
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.engines import NativeEngine
from leafkernel.inside import Inside
from leafkernel.leaf_maps import leaf_map

pytestmark = pytest.mark.filterwarnings("ignore:.*are in bag in every tree")

LEAVES = np.random.default_rng(0).integers(0, 5, (60, 8))


@dataclass
class SparseEngine:
    """Multiplies sparse matrices with SciPy. It makes Wᵀ once, and counts how often it does."""

    n_threads: int = 1
    made: list = field(default_factory=list)
    key = "sparse"

    def prepare(self, index):
        self.made.append(index)
        n_leaves = len(index.offsets) - 1
        by_leaf = 1.0 if index.by_leaf is None else np.repeat(index.by_leaf, index.leaf_sizes)
        by_place = 1.0 if index.by_place is None else index.by_place[index.members]
        weights = 1.0 if index.weights is None else index.weights
        data = np.ones(len(index.members)) * index.scale * by_leaf * by_place * weights
        samples = index.sample_at[index.members]
        return csr_array((data, samples, index.offsets), shape=(n_leaves, index.n_samples))

    def on_one_thread(self):
        return self

    def _maps(self, product):
        return leaf_map(product.query, np.dtype(float)), product.reference.prepared(self)

    def _matrix(self, product):
        if product.reference_oob is not None:
            raise NotImplementedError("this engine multiplies maps")
        Q, transposed = self._maps(product)
        P = csr_array(Q @ transposed)
        if product.diagonal is not None:
            P = P.tolil()
            P[np.arange(len(product.own)), product.reference.sample_at[product.own]] = (
                product.diagonal
            )
            P = csr_array(P)
        P.eliminate_zeros()
        return P

    def rows(self, product, on_progress=None, *, sort=True, most_entries=2**62):
        P = self._matrix(product).astype(product.dtype)
        P.sort_indices()
        return P

    def nearest(self, product, k, on_progress=None, *, by_magnitude=False):
        P = self._matrix(product).toarray()
        if product.own is not None:
            P[np.arange(len(P)), product.reference.sample_at[product.own]] = -np.inf
        order = np.argsort(-(np.abs(P) if by_magnitude else P), axis=1, kind="stable")[:, :k]
        return np.take_along_axis(P, order, axis=1).astype(product.dtype), order

    def sums(self, product, values, on_progress=None):
        return self._matrix(product) @ values

    def apply(self, product, values):
        Q, transposed = self._maps(product)  # without the diagonal
        return Q @ (transposed @ values)

    def collisions(self, product):
        has = leaf_map(product.query, np.dtype(float)) != 0
        return np.asarray(csc_array(has) @ product.reference.leaf_sizes)

    def nonzeros(self, product, on_progress=None):
        return np.diff(self._matrix(product).indptr)


@pytest.mark.parametrize("symmetrize", [False, True])
@pytest.mark.parametrize("scheme", ["uniform", "kerf", "gap", "oob_separable", "boosted"])
@pytest.mark.parametrize("diagonal", ["scheme", "zero"])
def test_every_result_of_an_own_engine(scheme, diagonal, symmetrize):
    engine = SparseEngine()
    known = {"weight_scheme": scheme, "diagonal": diagonal, "symmetrize": symmetrize}
    known["in_bag"] = np.random.default_rng(1).integers(0, 3, LEAVES.shape)
    known["tree_weights"] = np.arange(1, 9)
    known["dtype"] = np.float64
    ours = ForestProximity.from_leaves(LEAVES, engine=engine, **known)
    native = ForestProximity.from_leaves(LEAVES, **known)
    values = np.arange(60.0)
    for X in (None, LEAVES[:7]):
        assert_allclose(ours.proximity(X).toarray(), native.proximity(X).toarray(), atol=1e-15)
        assert_allclose(ours.kneighbors(X, 4)[0], native.kneighbors(X, 4)[0], atol=1e-15)
        assert_allclose(ours.weighted_sums(values, X), native.weighted_sums(values, X))
        assert_allclose(ours.operator(X) @ values, native.operator(X) @ values)
        assert ours.forecast(X).collisions == native.forecast(X).collisions
    assert len(engine.made) == 1  # for any number of results


def test_what_was_prepared_stays_with_its_index():
    engine = SparseEngine()
    prox = ForestProximity.from_leaves(LEAVES, engine=engine)
    prox.proximity()
    prox.reweigh(diagonal="one").proximity()
    assert len(engine.made) == 1  # the same index
    prox.reweigh("kerf").proximity()
    assert len(engine.made) == 2  # another one
    prox.proximity()
    assert len(engine.made) == 2
    index = prox.kernel_.index
    assert "_prepared" not in pickle.loads(pickle.dumps(index)).__dict__  # a device has no pickle
    assert "_prepared" not in copy.deepcopy(index).__dict__


def test_results_in_blocks_prepare_an_index_once():
    engine = SparseEngine()
    prox = ForestProximity.from_leaves(LEAVES, weight_scheme="kerf", engine=engine)
    others = np.random.default_rng(0).permutation(60)
    assert len(list(Inside.of(prox).blocks(None, 7, columns=others))) == 9
    assert len(engine.made) == 1


def test_the_transpose_is_prepared_once():
    engine = SparseEngine()
    in_bag = np.random.default_rng(1).integers(0, 3, LEAVES.shape)
    prox = ForestProximity.from_leaves(LEAVES, in_bag=in_bag, weight_scheme="gap", engine=engine)
    for _ in range(3):
        prox.operator().T @ np.ones(60)
    assert len(engine.made) == 1


def test_a_kind_of_the_native_engine_keeps_its_own():
    class Mine(NativeEngine):
        def prepare(self, index):
            return super().prepare(index), "more"

        def _index(self, product):
            return super()._index(product)[0]

    prox = ForestProximity.from_leaves(LEAVES, engine=Mine())
    found = prox.proximity()
    prox.set_params(engine="native")
    assert (found != prox.proximity()).nnz == 0


def test_a_clone_has_an_engine_of_its_own():
    prox = ForestProximity.from_leaves(LEAVES, engine=SparseEngine())
    again = clone(prox).fit(LEAVES)
    assert_array_equal(again.proximity().toarray(), prox.proximity().toarray())
    assert again.engine is not prox.engine


@pytest.mark.parametrize("given", [object(), SparseEngine, 3, None])
def test_what_is_no_engine_is_refused(given):
    with pytest.raises(TypeError, match=r"or an engine object \(see leafkernel.engines.Engine\)"):
        ForestProximity.from_leaves(LEAVES, engine=given)


def test_the_error_says_what_an_engine_lacks():
    class Half:
        key = "half"

        def prepare(self, index):
            return index

    with pytest.raises(TypeError, match="which has no apply, collisions, n_threads, nearest"):
        ForestProximity.from_leaves(LEAVES, engine=Half())


class OnDevice(np.ndarray):
    """An array that only the user should see, as if it were on a device."""


class DeviceEngine(NativeEngine):
    """Returns neighbors as if they were on a device, and routes samples itself."""

    routed = 0

    def on_host(self):
        return NativeEngine()

    def nearest(self, *args, **params):
        return tuple(array.view(OnDevice) for array in super().nearest(*args, **params))

    def result_bytes(self):
        return 100

    def route(self, table, X):
        type(self).routed += len(X)
        return table.leaves(X, n_threads=1)


def test_the_user_gets_results_on_the_device_and_tasks_in_memory():
    prox = ForestProximity.from_leaves(LEAVES, engine=DeviceEngine())
    assert type(prox.kneighbors()[1]) is OnDevice
    inside = Inside.of(prox)
    assert type(inside.prox.kneighbors()[1]) is np.ndarray  # as tasks call it
    assert type(inside.engine.nearest(inside.product(), 3)[1]) is np.ndarray
    with pytest.raises(MemoryError, match="100 bytes"):
        prox.proximity()
    assert prox.set_params(max_memory="1MB").proximity().shape == (60, 60)


def test_an_engine_can_route_samples(iris):
    X, y = iris
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    DeviceEngine.routed = 0
    prox = ForestProximity(forest, "kerf", engine=DeviceEngine()).fit(X, y)
    assert DeviceEngine.routed == 150
    found = prox.kneighbors(X[:9])[1]
    native = ForestProximity(forest, "kerf").fit(X, y)
    assert_array_equal(found, native.kneighbors(X[:9])[1])
