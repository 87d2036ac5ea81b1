"""The compiled module called directly with damaged arguments: it raises, and never crashes.

``cpp/tests/test_damaged.cpp`` tests the checks of the arrays. This file tests the Python bindings:
types, shapes, objects of the wrong kind, and arrays that nobody else keeps alive. ``.ci/run`` runs
it again with the module built with the address sanitizer.
"""

import contextlib
import copy
import gc
import pickle
from array import array
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from products import make_product
from sklearn.ensemble import RandomForestClassifier

import leafkernel._native as core
from leafkernel.engines import NativeEngine
from leafkernel.forests._routing import RouteTable
from leafkernel.incidence import Coordinates, Incidence, WeighedRows
from leafkernel.leaf_index import LeafIndex
from leafkernel.product import Product
from leafkernel.weighting import Weighting

REFUSALS = (ValueError, TypeError, MemoryError, OverflowError, AttributeError, RuntimeError)
HUGE = 2**60
N_CASES = 2000
LISTS = ("offsets", "members", "weights", "sample_at")
PARTS = ("nodes", "missing_go_left", "leaf_of_node", "tree_offsets", "leaf_offsets")


def rows_as_namespace(rows):
    """Return weighted rows as plain objects. New ids are created, so that they are checked."""
    ids = rows.incidence.ids
    return SimpleNamespace(
        incidence=SimpleNamespace(columns=ids.columns, first=ids.first, offsets=ids.offsets),
        present=rows.present,
        weights=rows.weights,
        by_row=rows.by_row,
    )


def with_ids(rows):
    """Return plain rows with ids as the core takes them, or raise."""
    incidence = SimpleNamespace(ids=core.Incidence(**vars(rows.incidence), n_threads=2))
    return SimpleNamespace(**{**vars(rows), "incidence": incidence})


ROWS = {
    "sort": True,
    "most_entries": 10**6,
    "loop": "planes",
    "n_threads": 2,
    "wide_indices": False,
    "on_progress": None,
}
NEAREST = {"by_magnitude": False, "loop": "bounds", "n_threads": 2, "on_progress": None}
BY_PLANES = {**NEAREST, "loop": "planes"}


def call(name, plain, *args, **known):
    """Call the core with a plain product, of which it has checked nothing yet."""
    product = SimpleNamespace(**{**vars(plain), "query": with_ids(plain.query)})
    rows = with_ids(plain.reference.rows)
    index = core.LeafIndex(plain.reference.lists, plain.reference.by_place, rows)
    return getattr(core, name)(product, index, *args, **known)


def as_namespace(product):
    """Return a product as plain objects, whose attributes can be overwritten."""
    return SimpleNamespace(
        query=rows_as_namespace(product.query),
        reference=SimpleNamespace(
            lists=product.reference.lists,
            by_place=product.reference.by_place,
            rows=rows_as_namespace(product.reference.rows),
        ),
        by_leaf=product.by_leaf,
        scale=product.scale,
        row_order=product.row_order,
        dtype=product.dtype,
        own=product.own,
        diagonal=product.diagonal,
        query_oob=product.query_oob,
        reference_oob=product.reference_oob,
        nodes=None,
    )


def random_product(rng):
    n_rows, n_samples = int(rng.integers(1, 12)), int(rng.integers(2, 30))
    known = {}
    if rng.random() < 0.5:
        known["own"] = rng.integers(0, n_samples, n_rows).astype(np.int32)
        known["diagonal"] = rng.choice([0.0, 1.0], n_rows)
    if rng.random() < 0.5:
        known["reference_oob"] = rng.integers(0, 2**63, (n_samples, 2), dtype=np.uint64)
        known["query_oob"] = rng.integers(0, 2**63, (n_rows, 2), dtype=np.uint64)
    kinds = rng.choice(["ones", "flags", "counts", "weights"], 2)
    return make_product(
        rng,
        n_rows,
        n_samples,
        int(rng.integers(1, 6)),
        kinds,
        dtype=rng.choice([np.float32, np.float64]),
        leaf_type=rng.choice([np.int32, np.int64]),
        factors=rng.random() < 0.5,
        ragged=rng.random() < 0.3,
        **known,
    )


def damage(rng, value):
    """Return an array with other numbers, another shape or another type, or no array at all."""
    if not isinstance(value, np.ndarray):
        return rng.choice([-1, 0, HUGE, 0.5])
    way = rng.integers(8)
    if way == 0:
        return [None, "text", 7, [1, 2], np.float64(1), object()][rng.integers(6)]
    if way == 1:
        return value.astype(rng.choice(["int8", "int64", "float32", "float64", "complex64", "O"]))
    if way == 2:
        return value[: len(value) // 2]
    if way == 3:
        return np.concatenate([value, value])
    if way == 4:
        return [value[None], value.ravel(), value.T, value[..., ::-1]][rng.integers(4)]
    value = value.copy()
    if value.size:
        numbers = [-1, 0, 1, 7, 2**31 - 1, -(2**31), rng.integers(value.size)]
        with np.errstate(all="ignore"):
            spoilt = np.array(rng.choice(numbers)).astype(value.dtype)
        value.flat[rng.integers(value.size)] = spoilt
    return value


def spoil(rng, holder):
    name = rng.choice(list(vars(holder)))
    value = getattr(holder, name)
    if isinstance(value, SimpleNamespace):
        spoil(rng, value)
    else:
        setattr(holder, name, damage(rng, value))


def rows_of(plain):
    return call("csr_rows", plain, **ROWS)


CALLS = {
    "csr_rows": lambda p, n: rows_of(p),
    "nearest": lambda p, n: call("nearest", p, k=min(3, n - 1), **NEAREST),
    "nearest by planes": lambda p, n: call("nearest", p, k=min(3, n - 1), **BY_PLANES),
    "dense_rows": lambda p, n: call("dense_rows", p, "planes", 2, None),
    "sums": lambda p, n: call("sums", p, np.ones((n, 2)), "planes", 2, None),
    "apply": lambda p, n: call("apply", p, np.ones((n, 2)), 2),
    "nonzeros": lambda p, n: call("nonzeros", p, "auto", 2, None),
    "collisions": lambda p, n: call("collisions", p, 2),
}


def count(run):
    """Return whether a call was refused."""
    try:
        run()
    except REFUSALS:
        return True
    return False


def test_damaged_products():
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(N_CASES):
        product = random_product(rng)
        plain = as_namespace(product)
        for _ in range(rng.integers(1, 3)):
            spoil(rng, plain)
        run = CALLS[rng.choice(list(CALLS))]
        refused += count(lambda run=run, plain=plain, n=product.shape[1]: run(plain, n))
    assert N_CASES / 4 < refused < N_CASES


def test_damaged_lists():
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(N_CASES):
        product = random_product(rng)
        lists = product.reference.lists
        arrays = SimpleNamespace(
            **{
                name: getattr(lists, name)
                for name in ("offsets", "members", "weights", "sample_at")
            }
        )
        spoil(rng, arrays)

        def use(product=product, arrays=arrays):
            plain = as_namespace(product)
            plain.reference.lists = core.LeafLists(**vars(arrays))
            call("nearest", plain, k=1, **NEAREST)

        refused += count(use)
    assert N_CASES / 4 < refused < N_CASES


def test_damaged_rows_to_list():
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(N_CASES):
        product = random_product(rng)
        plain = rows_as_namespace(product.query)
        order = SimpleNamespace(sample_at=rng.permutation(product.n_rows).astype(np.int32))
        n_threads = int(rng.choice([-5, 0, 1, 3]))
        spoil(rng, plain if rng.random() < 0.8 else order)

        first = plain.incidence.first
        if isinstance(first, np.ndarray) and first.dtype == np.int64 and first.max() > 2**20:
            continue  # this many leaves are valid, but take gigabytes

        def make_lists(plain=plain, order=order, n_threads=n_threads):
            core.list_by_leaf(with_ids(plain), order.sample_at, n_threads)

        refused += count(make_lists)
        refused += count(lambda plain=plain, n=n_threads: core.leaf_masses(with_ids(plain), n))
        if rng.random() < 0.5:  # rows with weights are always refused
            plain.weights = plain.by_row = None
        refused += count(
            lambda plain=plain, n=n_threads: core.centered_tree_products(with_ids(plain), n)
        )
    assert N_CASES / 4 < refused < 3 * N_CASES


@pytest.fixture(scope="module")
def packed():
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    forest = RandomForestClassifier(4, random_state=0).fit(X, X[:, 0] > 0)
    trees = [member.tree_ for member in forest.estimators_]
    return X, trees, RouteTable.pack(trees, 3).packed


def test_damaged_packed_trees(packed):
    X, _, good = packed
    rng = np.random.default_rng(3)
    refused = 0
    for _ in range(N_CASES):
        parts = SimpleNamespace(
            **{name: getattr(good, name) for name in PARTS},
            left_bits=good.left_bits,
            n_features=good.n_features,
        )
        spoil(rng, parts)

        def use(parts=parts):
            trees = core.PackedTrees(**vars(parts))
            core.route_dense(trees, X, bool(rng.integers(2)), 2)

        refused += count(use)
    assert N_CASES / 4 < refused < N_CASES


def test_damaged_trees_and_samples(packed):
    X, trees, good = packed
    rng = np.random.default_rng(4)
    refused = 0
    names = ("children_left", "children_right", "feature", "threshold", "missing_go_to_left")
    for _ in range(N_CASES):
        tree = trees[rng.integers(len(trees))]
        parts = SimpleNamespace(
            node_count=tree.node_count, **{name: getattr(tree, name).copy() for name in names}
        )
        spoil(rng, parts)
        refused += count(lambda parts=parts: core.pack_trees([parts], 3, 1))
        sparse = SimpleNamespace(
            data=X.ravel(),
            columns=np.tile(np.arange(3, dtype=np.int32), 50),
            offsets=np.arange(0, 151, 3, dtype=np.int32),
            n_features=3,
        )
        spoil(rng, sparse)
        refused += count(
            lambda sparse=sparse: core.route_sparse(
                good, *vars(sparse).values(), wide_leaves=False, n_threads=1
            )
        )
    assert N_CASES / 4 < refused < 2 * N_CASES


def test_damaged_draws():
    refused = 0
    for n_samples in (-1, 0, 3, HUGE, 2**62):
        for draw in ([0, 1, 2], [3], [-1], []):
            drawn = [np.array(draw, dtype=np.int32)] * 4
            refused += count(lambda n=n_samples, drawn=drawn: core.count_draws(drawn, n, 2))
    assert 5 < refused < 20


def test_damaged_seeds():
    seeds = np.arange(3, dtype=np.uint32)
    refused = 0
    for n_samples in (-1, 0, 3, HUGE, 2**62):
        for n_draws in (-1, 0, 5):
            refused += count(lambda n=n_samples, m=n_draws: core.count_seeded_draws(seeds, n, m, 2))
    for damaged in (seeds.astype(np.int64), seeds.astype(float), [1, 2], None):
        refused += count(lambda damaged=damaged: core.count_seeded_draws(damaged, 3, 3, 2))
    assert refused == 16


def test_damaged_leaf_masses(packed):
    _, trees, good = packed
    rng = np.random.default_rng(6)
    masses = np.concatenate([t.weighted_n_node_samples[t.children_left < 0] for t in trees])
    assert core.find_other_masses(trees, masses, good.leaf_offsets, 2) == -1
    refused = 0
    for _ in range(N_CASES):
        tree = trees[0]
        arrays = SimpleNamespace(
            children_left=tree.children_left.copy(),
            weighted_n_node_samples=tree.weighted_n_node_samples.copy(),
        )
        given = SimpleNamespace(masses=masses.copy(), leaf_offsets=good.leaf_offsets.copy())
        spoil(rng, arrays if rng.random() < 0.5 else given)
        some = [SimpleNamespace(node_count=tree.node_count, **vars(arrays)), *trees[1:]]
        refused += count(
            lambda some=some, given=given: core.find_other_masses(
                some, given.masses, given.leaf_offsets, 2
            )
        )
    assert N_CASES / 4 < refused < N_CASES


def test_arrays_that_nobody_else_keeps():
    """Each attribute is a new array when it is read, and was freed before it was used."""
    rng = np.random.default_rng(5)

    class Fresh:
        def __init__(self, holder):
            self._holder = holder

        def __getattr__(self, name):
            gc.collect(0)
            value = getattr(self._holder, name)
            if isinstance(value, SimpleNamespace):
                return Fresh(value)
            return value.copy() if isinstance(value, np.ndarray) else value

    for _ in range(100):
        product = random_product(rng)
        plain = as_namespace(product)
        index = core.LeafIndex(product.reference.lists, product.reference.by_place)
        plain.query = with_ids(plain.query)
        fresh = core.csr_rows(Fresh(plain), index, **ROWS)
        for a, b in zip(fresh, core.csr_rows(product, index, **ROWS), strict=True):
            assert_array_equal(a, b)
        order = rng.permutation(product.n_rows).astype(np.int32)
        lists = core.list_by_leaf(Fresh(plain.query), order, 2)
        assert_array_equal(lists.members, core.list_by_leaf(product.query, order, 2).members)


def test_sizes_that_overflow(packed):
    good = packed[2]
    one, zero = np.ones(1, np.float32), np.zeros(1, np.int32)
    offsets = np.array([0, 1], np.int32)
    huge = {"n_features": 2**61, "wide_leaves": False, "n_threads": 1}
    assert count(lambda: core.route_sparse(good, one, zero, offsets, **huge))
    for shape, n_groups in (((2**60, 0), 16), ((2**56, 0), 256), ((0, 2**60), 3)):
        columns, first = np.empty(shape, np.int32), np.arange(n_groups + 1)
        assert count(lambda c=columns, f=first: core.Incidence(c, f, None, 1))
    lists = core.LeafLists(np.array([0, 0]), np.zeros(0, np.int32), None, np.zeros(0, np.int32))
    plain = as_namespace(make_product(np.random.default_rng(0), 32, 9, 1, leaves_per_tree=1))
    plain.reference.lists, plain.reference.by_place = lists, None
    for name, more in (("apply", (1,)), ("sums", ("auto", 1, None))):
        assert count(lambda name=name, more=more: call(name, plain, np.empty((0, 2**59)), *more))
    empty = [np.zeros(0, kind) for kind in (np.uint64, np.uint8, np.int32)]
    none = core.PackedTrees(*empty, np.zeros(1, np.int64), np.zeros(1, np.int64), 5, 0)
    X = np.empty((2**40, 0), np.float32)
    assert count(lambda: core.route_dense(none, X, wide_leaves=False, n_threads=1))


def test_buffers_that_their_owner_lets_go(packed):
    """An array.array cannot be resized while somebody reads it."""
    members = array("i", range(9))
    lists = core.LeafLists(np.array([0, 9]), members, None, np.arange(9, dtype=np.int32))
    del members[:]  # a copy was made, because this could be written to
    assert_array_equal(lists.members, np.arange(9))
    plain = as_namespace(make_product(np.random.default_rng(0), 8, 9, 2))

    class Shrinking(SimpleNamespace):
        @property
        def own(self):
            with contextlib.suppress(BufferError):
                del self.row_order[:]

    plain = {name: value for name, value in vars(plain).items() if name != "own"}
    plain["row_order"] = array("q", range(8))
    plain["query"] = with_ids(plain["query"])
    index = core.LeafIndex(plain["reference"].lists, plain["reference"].by_place)
    count(lambda: core.csr_rows(Shrinking(**plain), index, **ROWS))


def test_checked_arrays_stay_as_they_are(packed):
    """Also after a pickle or a copy, and where the caller keeps the arrays."""
    trees, lists = packed[2], make_product(np.random.default_rng(0), 3, 9, 2).reference.lists
    for copied in (pickle.loads(pickle.dumps(lists)), copy.deepcopy(lists)):
        assert not any(getattr(copied, name).flags.writeable for name in LISTS)
    assert not copy.deepcopy(trees).nodes.flags.writeable
    mine = {name: np.array(getattr(lists, name)) for name in LISTS}
    made = core.LeafLists(**mine)
    mine["members"][:] = 10**9
    assert_array_equal(made.members, lists.members)


def test_lists_and_trees_survive_a_pickle(packed):
    _, _, trees = packed
    again = pickle.loads(pickle.dumps(trees))
    for name in PARTS:
        assert_array_equal(getattr(again, name), getattr(trees, name))
    lists = make_product(np.random.default_rng(0), 3, 9, 2).reference.lists
    state = list(lists.__getstate__())
    assert_array_equal(pickle.loads(pickle.dumps(lists)).members, lists.members)
    state[1] = state[1] + np.int32(100)
    with pytest.raises(ValueError, match="ascending places"):
        core.LeafLists.__new__(core.LeafLists).__setstate__(tuple(state))
    with pytest.raises(ValueError, match="invalid pickle"):
        core.LeafLists.__new__(core.LeafLists).__setstate__(())


def test_the_arrays_of_lists_and_trees_are_read_only(packed):
    lists = make_product(np.random.default_rng(0), 3, 9, 2).reference.lists
    for held in (lists.offsets, lists.members, lists.weights, lists.sample_at, packed[2].nodes):
        with pytest.raises(ValueError, match="read-only"):
            held[:] = 0


@pytest.mark.filterwarnings("ignore:Exception ignored in")
def test_an_object_without_its_arrays_is_refused():
    """Objects created with ``__new__`` only are not initialized."""
    empty = core.LeafLists.__new__(core.LeafLists)
    plain = as_namespace(make_product(np.random.default_rng(0), 3, 9, 2))
    plain.reference.lists = empty
    assert count(lambda: call("nearest", plain, k=1, **NEAREST))
    trees = core.PackedTrees.__new__(core.PackedTrees)
    assert count(
        lambda: core.route_dense(
            trees, np.zeros((1, 1), np.float32), wide_leaves=False, n_threads=1
        )
    )


def test_damaged_nodes():
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(N_CASES // 4):
        n_trees = int(rng.integers(1, 4))
        # Trees with three nodes: a root and two leaves.
        leaf = 2 * np.arange(n_trees) + rng.integers(0, 2, (8, n_trees))
        rows = WeighedRows(
            Incidence.of(leaf, Coordinates.of_leaves(2 * np.arange(n_trees + 1))), Weighting()
        )
        arrays = {
            "first": 3 * np.arange(n_trees + 1),
            "parent": np.concatenate([[-1, 3 * t, 3 * t] for t in range(n_trees)]).astype(np.int32),
            "weights": np.ones(3 * n_trees),
            "decay": 0.5,
        }
        name = rng.choice([*arrays])
        arrays[name] = damage(rng, arrays[name])
        product = Product(rows, LeafIndex.of(rows), np.arange(8), np.dtype(np.float32))
        try:
            held = SimpleNamespace(native=core.WeightedNodes(**arrays))
            product = replace(product, nodes=held)
            index = product.index.prepared(NativeEngine())
            core.apply(product, index, np.ones((8, 2)), 1)
            core.nearest_by_paths(product, index, 3, 1, None)
        except (ValueError, TypeError, OverflowError):
            refused += 1
    assert N_CASES / 16 < refused < N_CASES / 4
