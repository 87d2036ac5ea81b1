"""Random products of every kind that the engines treat differently."""

import numpy as np
from hypothesis import strategies as st

from leafkernel.incidence import Coordinates, Incidence, WeighedRows
from leafkernel.leaf_index import LeafIndex
from leafkernel.product import Product
from leafkernel.weighting import Weighting


def random_weighting(rng, kind, n_samples, n_trees, n_leaves, *, factors, n_entries=None):
    """Weights of one side, of every kind that the engines treat differently."""
    shape = (n_samples, n_trees) if n_entries is None else (n_entries,)
    entries = {
        "ones": None,
        "flags": rng.random(shape) < 0.5,
        "counts": rng.integers(0, 4, shape).astype(np.uint8),
        "weights": np.where(rng.random(shape) < 0.5, rng.random(shape), 0),
    }
    return Weighting(
        scale=0.5,
        by_sample=rng.random(n_samples) if factors else None,
        by_leaf=rng.random(n_leaves) if factors else None,
        by_entry=entries[kind],
    )


def make_product(rng, n_rows, n_samples, n_trees, kinds=("weights", "weights"), **options):
    """Any product, not only those of forests. Leaves may be empty, and orders are random."""
    leaves_per_tree = options.pop("leaves_per_tree", 4)
    dtype = np.dtype(options.pop("dtype", np.float64))
    leaf_type = options.pop("leaf_type", np.int32)
    factors = options.pop("factors", False)
    ragged = options.pop("ragged", False)
    first = np.arange(n_trees + 1) * leaves_per_tree
    coordinates = Coordinates.of_leaves(first)

    def rows(kind, n):
        if ragged:
            has = rng.random((n, first[-1])) < rng.random()
            columns, offsets = np.nonzero(has)[1], np.concatenate([[0], np.cumsum(has.sum(axis=1))])
        else:
            columns, offsets = rng.integers(0, leaves_per_tree, (n, n_trees)) + first[:-1], None
        incidence = Incidence.of(columns.astype(leaf_type), coordinates, offsets)
        size = {"n_leaves": first[-1], "factors": factors}
        n_entries = len(columns) if ragged else None
        weights = random_weighting(rng, kind, n, n_trees, n_entries=n_entries, **size)
        return WeighedRows(incidence, weights.compact(dtype))

    order = rng.permutation(n_samples).astype(np.int32)
    return Product(
        query=rows(kinds[0], n_rows),
        reference=LeafIndex.of(rows(kinds[1], n_samples), order, n_threads=2),
        row_order=rng.permutation(n_rows),
        dtype=dtype,
        **options,
    )


@st.composite
def products(draw):
    n_rows, n_samples = draw(st.integers(0, 30)), draw(st.integers(1, 200))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    known = {}
    if draw(st.booleans()):
        known["own"] = rng.integers(0, n_samples, n_rows).astype(np.int32)
        if draw(st.booleans()):
            known["diagonal"] = rng.choice([0.0, 0.5, 1.0], n_rows)
    if draw(st.booleans()):
        words = draw(st.integers(1, 3))
        shape = (n_samples, words)
        known["reference_oob"] = rng.integers(0, 2**63, shape, dtype=np.uint64)
        known["reference_oob"][rng.random(n_samples) < 0.3] = 0
        known["query_oob"] = rng.integers(0, 2**63, (n_rows, words), dtype=np.uint64)
    kinds = st.sampled_from(["ones", "flags", "counts", "weights"])
    return make_product(
        rng,
        n_rows,
        n_samples,
        draw(st.integers(1, 12)),
        (draw(kinds), draw(kinds)),
        leaves_per_tree=draw(st.integers(1, 30)),
        dtype=draw(st.sampled_from([np.float32, np.float64])),
        leaf_type=draw(st.sampled_from([np.int32, np.int64])),
        factors=draw(st.booleans()),
        ragged=draw(st.booleans()),
        **known,
    )
