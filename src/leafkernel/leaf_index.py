"""Arrays that describe samples and leaves after routing. They are read-only.

*Leaf* ids are global: they are numbered tree after tree. The *in-bag weight* is the weight of a
sample in the training of a tree. A sample is *out-of-bag* (OOB) in a tree whose training never drew
it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import leafkernel._native as core
from leafkernel._lazy import lazy
from leafkernel._memory import is_mapped
from leafkernel._progress import track
from leafkernel._state import FieldsState
from leafkernel.incidence import Coordinates, Incidence, WeighedRows
from leafkernel.tree_nodes import TreeNodes
from leafkernel.weighting import Weighting

Array = npt.NDArray[Any]
Track = Callable[..., Iterator[Any]]
#: Returns the sizes and the weights of leaves, or None to use the processor.
CountLeaves = Callable[[WeighedRows], "tuple[Array, Array | None] | None"]


class Undeclared(AttributeError):  # noqa: N818 - the name describes the scheme
    """A scheme uses information that it did not declare in ``needs``."""


def _undeclared(name: str, need: str) -> Undeclared:
    return Undeclared(
        f"{name!r} is not available, because the weight scheme did not declare it. Add needs = "
        f"frozenset({{{need!r}}}) to the scheme (or as an attribute of the function)."
    )


def _lock_arrays(holder: Any) -> None:
    """Make the arrays of a dataclass read-only, so that a scheme cannot modify them."""
    for field in fields(holder):
        value = getattr(holder, field.name)
        if isinstance(value, np.ndarray):
            object.__setattr__(holder, field.name, _locked(value))
        elif isinstance(value, tuple):
            object.__setattr__(holder, field.name, tuple(map(_locked, value)))


def _lock_whole(array: Array) -> None:
    """Make an array and all its base arrays read-only.

    The compiled core uses the ids without further checks.
    """
    base: Any = array
    while isinstance(base, np.ndarray):
        base.flags.writeable = False
        base = base.base


def _locked(array: Array) -> Array:
    locked: Array = array.view()
    locked.flags.writeable = False
    return locked


@dataclass(frozen=True)
class Samples(FieldsState):
    """Samples after routing: their leaves, in-bag weights and other data for schemes.

    A weight scheme gets it as ``samples``. It has the attributes ``leaf``, ``in_bag``, ``is_oob``,
    ``n_oob_trees``, ``features``, ``labels``, ``targets`` and ``contributions``. Most of them must
    be declared in ``needs``; see ``WeightScheme``.

    Parameters
    ----------
    leaf : ndarray of shape (n, T)
        Global id of the leaf that each sample reaches in each tree.
    in_bag_weights : ndarray of shape (n, T), optional
        In-bag weight of each sample in each tree; 0 for new samples.
    oob_flags : ndarray of bool of shape (n, T), optional
        Whether each sample is out-of-bag in each tree. This is ``in_bag == 0``, except for samples
        drawn with weight zero, which the forest does not count as out-of-bag.
    feature_values : ndarray of shape (n, n_features), optional
        The features of the samples.
    labels : ndarray of int of shape (n,), optional
        Class indices; None for new samples.
    leaf_parts : ndarray of shape (n, T) or (n, T, K), optional
        Contribution of each sample to the value of its leaf in each tree of a boosted model, for
        each of K outputs if leaves have several values. 0 for new samples.
    targets : ndarray of shape (n,), optional
        The targets: class indices (integers) if the forest classifies, float64 if it predicts
        numbers. None for new samples.

    Examples
    --------
    >>> import numpy as np
    >>> from leafkernel.schemes import Samples
    >>> samples = Samples.unseen(np.array([[0, 2], [1, 2]]))
    >>> samples.n_oob_trees.tolist()
    [[2], [2]]
    """

    leaf: Array
    in_bag_weights: Array | None = None
    oob_flags: Array | None = None
    feature_values: Array | None = None
    labels: Array | None = None
    leaf_parts: Array | None = None
    targets: Array | None = None

    def __post_init__(self) -> None:
        _lock_arrays(self)

    @classmethod
    def unseen(cls, leaf: Array, *, feature_values: Array | None = None) -> Samples:
        """Return new samples: their in-bag weights are 0, and they are out-of-bag in all trees."""
        return cls(
            leaf,
            # Broadcast scalars behave like (n, T) arrays and take no memory.
            in_bag_weights=np.broadcast_to(np.uint8(0), leaf.shape),
            oob_flags=np.broadcast_to(np.True_, leaf.shape),
            feature_values=feature_values,
            leaf_parts=np.broadcast_to(np.uint8(0), leaf.shape),
        )

    def rows(self, rows: slice) -> Samples:
        """Return selected samples."""
        taken: dict[str, Any] = {
            name: None if array is None else array[rows] for name, array in self._arrays()
        }
        return replace(self, **taken)

    def _arrays(self) -> list[tuple[str, Array | None]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]

    @classmethod
    def joined(cls, parts: Sequence[Samples]) -> Samples:
        """Concatenate samples. Information that some parts lack is dropped."""
        if not parts:
            raise ValueError("X has no rows.")
        known: dict[str, Any] = {}
        for field in fields(cls):
            arrays = [getattr(part, field.name) for part in parts]
            has_all = all(array is not None for array in arrays)
            known[field.name] = np.concatenate(arrays) if has_all else None
        return cls(**known)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return int(self.leaf.shape[0])

    @property
    def in_bag(self) -> Array:
        """In-bag weights c_t(x), shape (n, T)."""
        if self.in_bag_weights is None:
            raise _undeclared("in_bag", "in_bag")
        return self.in_bag_weights

    @property
    def is_oob(self) -> Array:
        """Out-of-bag flags o_t(x), shape (n, T), bool."""
        if self.oob_flags is None:
            raise _undeclared("is_oob", "in_bag")
        return self.oob_flags

    @property
    def contributions(self) -> Array:
        """Contribution of each sample to the value of its leaf, shape (n, T) or (n, T, K)."""
        if self.leaf_parts is None:
            raise _undeclared("contributions", "gradients")
        return self.leaf_parts

    @property
    def features(self) -> Array:
        """The features of the samples, shape (n, n_features)."""
        if self.feature_values is None:
            raise _undeclared("features", "features")
        return self.feature_values

    def incidence_in(self, coordinates: Coordinates, *, n_threads: int = 1) -> Incidence:
        """Return the leaves as columns of the maps. They are checked once."""
        known: Incidence | None = vars(self).get("incidence")
        if known is None or not np.array_equal(known.coordinates.first, coordinates.first):
            _lock_whole(self.leaf)
            known = Incidence.of(self.leaf, coordinates, n_threads=n_threads)
            vars(self)["incidence"] = known
        return known

    @lazy
    def n_oob_trees(self) -> Array:
        """Count the out-of-bag trees: S(x) = Σ_t o_t(x), shape (n, 1) to divide (n, T) arrays."""
        counts: Array = np.count_nonzero(self.is_oob, axis=1, keepdims=True)
        return counts

    def count_oob_trees(self, *, n_threads: int) -> None:
        """Compute :attr:`n_oob_trees` in advance, on several threads."""
        flags = self.is_oob
        if flags.dtype == bool and flags.flags.c_contiguous:
            vars(self).setdefault("n_oob_trees", core.count_flags(flags, n_threads))

    def packed_oob(self) -> npt.NDArray[np.uint64]:
        """Return the out-of-bag flags as bits, 64 trees per word, shape (n, ceil(T / 64))."""
        n_samples, n_trees = self.leaf.shape
        n_words = -(-n_trees // 64)
        packed = np.zeros((n_samples, n_words * 8), dtype=np.uint8)
        as_bits = np.packbits(self.is_oob, axis=1, bitorder="little")
        packed[:, : as_bits.shape[1]] = as_bits
        return packed.view(np.uint64)


@dataclass(frozen=True)
class ForestStats(FieldsState):
    """Statistics of the leaves and trees of a fitted forest.

    A weight scheme gets it as ``forest``. It has the attributes ``n_trees``, ``n_leaves``,
    ``leaf_mass``, ``in_bag_mass``, ``tree_weights``, ``nodes``, ``base_scores``, ``tree_outputs``,
    ``output_labels`` and ``learned``, and the method ``path_features``. Most of them must be
    declared in ``needs``; see ``WeightScheme``.

    Parameters
    ----------
    leaf_offsets : ndarray of int64 of shape (T + 1,)
        First leaf id of each tree, followed by the number of leaves, L.
    leaf_mass : ndarray of int64 of shape (L,)
        M(ℓ): number of training samples in each leaf.
    in_bag_masses : ndarray of float64 of shape (L,), optional
        M_in(ℓ): sum of the in-bag weights of the training samples in each leaf.
    weights_of_trees : ndarray of float64 of shape (T,), optional
        Weight of each tree in the ensemble.
    features_on_paths : tuple of (offsets, features), optional
        The distinct features on the path to each leaf. Those of leaf ℓ are
        ``features[offsets[ℓ]:offsets[ℓ + 1]]``.
    nodes_of_trees : TreeNodes, optional
        The nodes of all trees.
    base_scores_of_outputs : ndarray of float64 of shape (K,), optional
        Raw score of each output of a boosted model before its first tree.
    outputs_of_trees : ndarray of int64 of shape (T,), optional
        Output that each tree of a boosted model adds to; -1 for all outputs.
    labels_of_outputs : ndarray of shape (K,), optional
        Label of each output: a class, or the index of the output.
    link_of_outputs : ndarray of str of shape (1,), optional
        Link function from raw scores to predictions; empty if unknown.
    learned : ndarray, optional
        The result of the scheme's method ``learn``.
    track : callable
        Wraps an iterable in a progress bar, if enabled.
    n_threads : int
        Number of threads that ``learn`` may use.

    Examples
    --------
    >>> import numpy as np
    >>> from leafkernel.schemes import ForestStats, Samples
    >>> samples = Samples(np.array([[0, 2], [1, 2]]))
    >>> ForestStats.of(samples, np.array([0, 2, 3])).leaf_mass.tolist()
    [1, 1, 2]
    """

    leaf_offsets: Array
    leaf_mass: Array
    in_bag_masses: Array | None = None
    weights_of_trees: Array | None = None
    features_on_paths: tuple[Array, Array] | None = None
    nodes_of_trees: TreeNodes | None = None
    base_scores_of_outputs: Array | None = None
    outputs_of_trees: Array | None = None
    labels_of_outputs: Array | None = None
    link_of_outputs: Array | None = None
    learned: Array | None = None
    track: Track = track
    n_threads: int = 1

    def __post_init__(self) -> None:
        _lock_arrays(self)

    @classmethod
    def of(
        cls,
        samples: Samples,
        leaf_offsets: Array,
        *,
        n_threads: int = 1,
        count: CountLeaves | None = None,
        **known: Any,
    ) -> ForestStats:
        """Compute the statistics of the training samples, with ``count`` if it is able to."""
        in_bag = samples.in_bag_weights
        if in_bag is not None:
            is_count = in_bag.dtype == np.uint8
            in_bag = np.ascontiguousarray(in_bag, dtype=np.uint8 if is_count else np.float64)
        incidence = samples.incidence_in(Coordinates.of_leaves(leaf_offsets), n_threads=n_threads)
        rows = WeighedRows(incidence, Weighting(by_entry=in_bag))
        masses = None if count is None else count(rows)
        if masses is None:
            masses = core.leaf_masses(rows, n_threads)
        return cls(leaf_offsets, *masses, **known)

    def plus(self, other: ForestStats) -> ForestStats:
        """Return the statistics of these and other training samples together."""
        if not np.array_equal(self.leaf_offsets, other.leaf_offsets):
            raise ValueError("The samples were routed by different forests.")
        in_bag = None
        if self.in_bag_masses is not None and other.in_bag_masses is not None:
            in_bag = self.in_bag_masses + other.in_bag_masses
        mass = self.leaf_mass + other.leaf_mass
        return replace(self, leaf_mass=mass, in_bag_masses=in_bag, learned=None)

    @lazy
    def coordinates(self) -> Coordinates:
        """Return the leaves as columns of the maps."""
        return Coordinates.of_leaves(self.leaf_offsets)

    @property
    def n_trees(self) -> int:
        """T: number of trees."""
        return len(self.leaf_offsets) - 1

    @property
    def n_leaves(self) -> int:
        """L: number of leaves over all trees."""
        return int(self.leaf_offsets[-1])

    @property
    def in_bag_mass(self) -> Array:
        """In-bag weight of each leaf, M_in(ℓ), shape (L,)."""
        if self.in_bag_masses is None:
            raise _undeclared("in_bag_mass", "in_bag")
        return self.in_bag_masses

    @property
    def tree_weights(self) -> Array:
        """Weight of each tree in the ensemble, shape (T,)."""
        if self.weights_of_trees is None:
            raise _undeclared("tree_weights", "tree_weights")
        return self.weights_of_trees

    @property
    def nodes(self) -> TreeNodes:
        """The nodes of all trees."""
        if self.nodes_of_trees is None:
            raise _undeclared("nodes", "trees")
        return self.nodes_of_trees

    @property
    def base_scores(self) -> Array:
        """Raw score of each output before the first tree, shape (K,)."""
        if self.base_scores_of_outputs is None:
            raise _undeclared("base_scores", "gradients")
        return self.base_scores_of_outputs

    @property
    def tree_outputs(self) -> Array:
        """Output that each tree adds to, shape (T,); -1 for all outputs."""
        if self.outputs_of_trees is None:
            raise _undeclared("tree_outputs", "gradients")
        return self.outputs_of_trees

    @property
    def output_labels(self) -> Array:
        """Label of each output, shape (K,): a class, or the index of the output."""
        if self.labels_of_outputs is None:
            raise _undeclared("output_labels", "gradients")
        return self.labels_of_outputs

    def once(self, name: str, compute: Callable[[], Array]) -> Array:
        """Return an array that depends only on this forest. It is computed once.

        Use it in a scheme to compute a factor for each leaf. Queries then cost only as much as
        their own leaves, not all leaves.

        Parameters
        ----------
        name : str
            Name of the array.
        compute : callable
            Returns the array.

        Returns
        -------
        ndarray
            The array, read-only.
        """
        key = f"once {name}"
        if key not in vars(self):
            vars(self)[key] = _locked(np.asarray(compute()))
        found: Array = vars(self)[key]
        return found

    def path_features(self, leaf: int) -> Array:
        """Return the distinct features on the path to a leaf, ascending."""
        if self.features_on_paths is None:
            raise _undeclared("path_features", "paths")
        offsets, features = self.features_on_paths
        return features[offsets[leaf] : offsets[leaf + 1]]


# With this average number of shared columns, nearly all pairs of rows share a leaf.
_FULL_ROWS = 4.0


def list_by_leaf(
    rows: WeighedRows, sample_at: npt.NDArray[np.int32] | None = None, *, n_threads: int = 1
) -> core.LeafLists:
    """List samples by leaf, in a given order or in one that is good for locality."""
    if sample_at is None:
        # If rows of P are nearly full, the original order avoids sorting their columns.
        keep_order = rows.incidence.shared_columns() > _FULL_ROWS
        order = np.arange(rows.n_rows) if keep_order else rows.incidence.locality_order()
        sample_at = order.astype(np.int32)
    return core.list_by_leaf(rows, sample_at, n_threads)


class Preparer(Protocol):
    """The methods of an engine that an index uses."""

    @property
    def key(self) -> Hashable:
        """Engines with the same key share their prepared objects."""

    def prepare(self, index: LeafIndex) -> Any:
        """Prepare an index for the engine, for example by copying it to a device."""


@dataclass(frozen=True)
class LeafIndex(FieldsState):
    """The reference samples and weights of every leaf: the reference map W, listed by leaf.

    Samples are ordered so that samples with shared leaves are neighbors. If rows of P are computed
    in this order, their leaves and sums are in the cache.

    Parameters
    ----------
    listed : leafkernel._native.LeafLists or None
        The samples of each leaf, and the factor of each member's weight. The compiled core checks
        the arrays when it creates this object, and does not check them again. If None, samples are
        listed when :attr:`lists` is first used. An engine that lists them on a device never needs
        it.
    place_of : ndarray of int32 of shape (n,)
        The place of each sample in the order.
    by_place : ndarray of float64 of shape (n,), optional
        Factor of the sample at each place.
    by_leaf : ndarray of float64 of shape (L,), optional
        Factor of each leaf.
    scale : float
        Factor of all weights.
    rows : WeighedRows, optional
        The same samples by row, if available.
    n_threads : int
        Number of threads that list the samples.
    """

    listed: core.LeafLists | None
    place_of: npt.NDArray[np.int32]
    by_place: npt.NDArray[np.float64] | None
    by_leaf: npt.NDArray[np.float64] | None
    scale: float
    rows: WeighedRows | None = None
    n_threads: int = 1

    @classmethod
    def of(
        cls,
        rows: WeighedRows,
        sample_at: npt.NDArray[np.int32] | None = None,
        *,
        n_threads: int = 1,
    ) -> LeafIndex:
        """List samples by leaf, in a given order or in one that is good for locality."""
        return cls.from_lists(rows, list_by_leaf(rows, sample_at, n_threads=n_threads))

    @classmethod
    def from_lists(cls, rows: WeighedRows, lists: core.LeafLists) -> LeafIndex:
        """Return the index of rows with existing lists."""
        sample_at, by_row = lists.sample_at, rows.by_row
        n_leaves = rows.incidence.coordinates.n_columns
        if len(sample_at) != rows.n_rows or len(lists.offsets) != n_leaves + 1:
            raise ValueError(
                f"lists has {len(lists.offsets) - 1} leaves and {len(sample_at)} samples, but rows "
                f"has {n_leaves} leaves and {rows.n_rows} samples."
            )
        place_of = np.empty(len(sample_at), dtype=np.int32)
        place_of[sample_at] = np.arange(len(sample_at), dtype=np.int32)
        _lock_whole(place_of)
        return cls(
            lists,
            place_of,
            by_place=None if by_row is None else by_row[sample_at],
            by_leaf=rows.weighting.by_leaf,
            scale=rows.weighting.scale,
            rows=rows,
        )

    @classmethod
    def unlisted(cls, rows: WeighedRows, *, n_threads: int = 1) -> LeafIndex:
        """Return the index of rows in their own order, without lists."""
        places = np.arange(rows.n_rows, dtype=np.int32)
        _lock_whole(places)
        weighting = rows.weighting
        return cls(None, places, rows.by_row, weighting.by_leaf, weighting.scale, rows, n_threads)

    @property
    def lists(self) -> core.LeafLists:
        """The samples of each leaf. They are listed once."""
        if self.listed is not None:
            return self.listed
        found: core.LeafLists | None = vars(self).get("_lists")
        if found is None:
            assert self.rows is not None
            found = list_by_leaf(self.rows, self.place_of, n_threads=self.n_threads)
            vars(self)["_lists"] = found
        return found

    def like(self, rows: WeighedRows, *, n_threads: int = 1) -> LeafIndex:
        """Return an index of the same number of other rows, in the same order."""
        return LeafIndex.of(rows, self.sample_at, n_threads=n_threads)

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Start of the members of each leaf, shape (L + 1,)."""
        return self.lists.offsets

    @property
    def members(self) -> npt.NDArray[np.int32]:
        """Places of the samples of each leaf, ascending within a leaf."""
        return self.lists.members

    @property
    def weights(self) -> Array | None:
        """Factor of each member's weight, or None if all are one."""
        return self.lists.weights

    @property
    def sample_at(self) -> npt.NDArray[np.int32]:
        """The reference sample at each place, shape (n,)."""
        # Without lists, samples are in their own order.
        return self.place_of if self.listed is None else self.listed.sample_at

    @property
    def is_mapped(self) -> bool:
        """Whether the lists are in a file."""
        return self.listed is not None and is_mapped(self.members)

    @property
    def n_samples(self) -> int:
        """Number of reference samples, n."""
        return len(self.sample_at)

    @property
    def leaf_sizes(self) -> npt.NDArray[np.int64]:
        """Number of reference samples with a nonzero weight in each leaf, shape (L,)."""
        return np.diff(self.offsets)

    def with_samples(self, sample_at: npt.NDArray[np.int32]) -> LeafIndex:
        """Return the same index with renumbered samples."""
        return replace(self, listed=self.lists.with_samples(sample_at), rows=None)

    def is_prepared(self, engine: Preparer) -> bool:
        """Return whether an engine has prepared this index."""
        return (type(engine), engine.key) in vars(self).get("_prepared", {})

    def prepared(self, engine: Preparer) -> Any:
        """Return the object that an engine prepared for this index. It is created once."""
        kept = vars(self).setdefault("_prepared", {})
        key = type(engine), engine.key
        if key not in kept:
            # Two threads may prepare it at the same time. This only costs time.
            kept.setdefault(key, engine.prepare(self))
        return kept[key]
