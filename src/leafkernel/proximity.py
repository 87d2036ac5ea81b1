"""The front door: an estimator that validates, delegates, and holds the fitted kernel."""

from __future__ import annotations

import math
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from copy import copy, deepcopy
from functools import wraps
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.metaestimators import available_if

import leafkernel._native as core
from leafkernel import forests, saving
from leafkernel._memory import available_bytes, format_bytes, is_mapped, parse_bytes
from leafkernel._optional import is_dask, require
from leafkernel._progress import progress_bar
from leafkernel._repr import FittedRepr
from leafkernel._row_labels import index_of, join_indexes, labels_at, positions_of
from leafkernel._tags import InheritedTags
from leafkernel._targets import Targets, join_targets
from leafkernel._validation import (
    check_choice,
    check_columns,
    check_count,
    check_dtype,
    check_flag,
    check_length,
    check_n_neighbors,
    check_names_out,
    check_values,
    count_threads,
    refuse_masked,
    warn,
)
from leafkernel.batches import Batches
from leafkernel.engines import (
    NO_LIMIT,
    Engine,
    TooManyEntriesError,
    dense_rows,
    find_engine,
)
from leafkernel.forecast import TOO_LARGE_ADVICE, Forecast, csr_bytes, forecast, most_nonzeros
from leafkernel.incidence import WeighedRows
from leafkernel.inside import Inside, check_averages, no_maps, weighted_means
from leafkernel.kernel import Diagonal, LeafKernel
from leafkernel.leaf_index import ForestStats, Samples, list_by_leaf
from leafkernel.operator import ProximityOperator
from leafkernel.parts import cuts_of, cuts_with, parts_of
from leafkernel.product import Product
from leafkernel.schemes import Gradient, WeightScheme, find_scheme
from leafkernel.streaming import (
    BatchFitter,
    blocks_of_batches,
    write_neighbors,
    write_proximity,
)
from leafkernel.training import (
    complete_samples,
    more_samples,
    read_samples,
    read_stats,
)

Array = npt.NDArray[Any]


Method = TypeVar("Method", bound=Callable[..., Any])


def _lazily(method: Method) -> Method:
    """Make a method return lazy Dask arrays if the proximity was fitted on Dask data or X is."""
    name, parameters = method.__name__, signature(method)

    @wraps(method)
    def call(self: ForestProximity, *args: Any, **params: Any) -> Any:
        if "dask" not in sys.modules:
            return method(self, *args, **params)
        given = dict(parameters.bind(self, *args, **params).arguments)
        del given["self"]
        kernel = vars(self).get("kernel_")
        on_dask = is_dask(given.get("X")) or not isinstance(kernel, LeafKernel)
        if not on_dask or kernel is None or not self._returns_lazily:
            return method(self, *args, **params)
        return getattr(import_module("leafkernel.dask"), name)(Inside.of(self), **given)

    return call  # type: ignore[return-value]


# What a fitted object holds. Raise it when that changes: an older pickle is then refused.
_LAYOUT = 2


class ForestProximity(FittedRepr, InheritedTags, TransformerMixin, BaseEstimator):
    """Supervised similarity of samples, learned by a tree ensemble.

    Two samples are alike when the trees of a forest send them to the same leaves. A weight scheme
    says how much each shared leaf counts, and the proximities of all pairs are a sparse matrix
    P = Q Wᵀ: exact, in and out of sample, and never formed unless you ask for it.

    Parameters
    ----------
    forest : estimator
        Any tree ensemble of scikit-learn or of packages that subclass its forests, LightGBM,
        XGBoost or CatBoost model, native or not; a Pipeline or search that ends in one; or any
        object with a method ``leaves(X)``: see :class:`leafkernel.forests.Forest`. A fitted forest
        is used as it is; an unfitted one is cloned and fitted. Note that
        :func:`sklearn.base.clone` of this object gives an unfitted forest, as for every
        meta-estimator; wrap it in ``sklearn.frozen.FrozenEstimator`` to keep it fitted.
    weight_scheme : str, callable or WeightScheme, default="gap"
        ``"gap"``, ``"uniform"`` (or ``"original"``), ``"kerf"``, ``"oob"``, ``"oob_separable"``,
        ``"boosted"``, ``"ih"``, ``"gradient"``; a function of ``(samples, forest)`` that returns
        weights of shape (n, T); or a :class:`WeightScheme`. See :mod:`leafkernel.schemes`.
    diagonal : {"scheme", "one", "zero", "adjusted"}, default="scheme"
        Proximity of a training sample to itself: what the formula gives (0 for "gap"), 1, 0, or,
        for "gap", the mean weight of the sample over the trees that drew it.
    symmetrize : bool, default=False
        Whether to use (P + Pᵀ)/2. For an unseen sample the transposed half is what it would lend
        to others as a reference; with "gap" that is nothing, so its proximities are halved.
    engine : {"auto", "native", "reference"} or Engine, default="auto"
        How to compute: compiled and parallel ("auto" picks it), or slow and obvious. An object of
        your own works too, with its own number of threads: see :class:`leafkernel.engines.Engine`.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of weights and proximities. Rows of P are summed in float64 either way.
    n_jobs : int, default=None
        Threads, as in scikit-learn: None is 1 unless in a joblib context, -1 is all. The numbers
        do not depend on it.
    max_memory : int or str, default=None
        Most memory that :meth:`proximity` may return, in bytes or as ``"4GB"``; the memory that is
        free by default. Where the matrix is expected to be larger, an error is raised before it is
        computed; where it proves to be larger, as soon as it would pass the limit.
    progress : bool, default=False
        Whether to show progress bars (needs tqdm).

    Attributes
    ----------
    forest_ : estimator
        The fitted forest.
    scheme_ : WeightScheme
        The scheme in use.
    kernel_ : LeafKernel
        The maps over the training samples.
    n_trees_, n_leaves_, n_samples_fit_ : int
        Trees, leaves over all trees, and training samples.
    y_ : ndarray or None
        The targets that were passed to :meth:`fit`. Tasks use them unless they are given others.
    base_score_ : float
        With "gradient", the raw score before the first tree. The rows of P sum to the rest.
    index_ : pandas.Index or range
        Labels of the training samples: the index of X if X is a pandas data frame with an index of
        its own, otherwise positions. Methods and tasks that take training samples take these
        labels: ``index_[3]`` is the label of the sample at position 3.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str
        Names of the features, where X has string column names.

    Notes
    -----
    Parameters that define the kernel (the first four and ``dtype``) take effect with the next
    :meth:`fit`; the others at once.

    X may be a Dask array or a Dask data frame (extra ``dask``). If :meth:`fit` is given one, the
    samples stay on the workers, and ``proximity``, ``kneighbors``, ``weighted_sums``,
    ``weighted_average``, ``transform`` and the maps return lazy Dask arrays. So they do if their X
    is one. Results are the same as in memory. See :mod:`leafkernel.dask`.

    See Also
    --------
    sklearn.ensemble.RandomTreesEmbedding : Unsupervised leaf coordinates.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(random_state=0)).fit(X, y)
    >>> prox.proximity().shape
    (150, 150)
    >>> similarity, neighbors = prox.kneighbors(X[:1] + 0.05, n_neighbors=3)
    >>> neighbors.shape
    (1, 3)
    """

    kernel_: LeafKernel
    forest_: Any
    scheme_: WeightScheme
    n_trees_: int
    n_leaves_: int
    n_samples_fit_: int
    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    y_: Any
    index_: Any
    _targets: Targets
    _samples: Samples
    _sample_weight: Array | None
    _fitted_with: dict[str, Any]
    _router: forests.FittedForest
    #: Whether results with Dask data are Dask arrays. Tasks need the numbers.
    _returns_lazily: bool = True

    def __init__(
        self,
        forest: Any,
        weight_scheme: Any = "gap",
        *,
        diagonal: Diagonal = "scheme",
        symmetrize: bool = False,
        engine: str | Engine = "auto",
        dtype: Any = np.float32,
        n_jobs: int | None = None,
        max_memory: float | str | None = None,
        progress: bool = False,
    ) -> None:
        self.forest = forest
        self.weight_scheme = weight_scheme
        self.diagonal = diagonal
        self.symmetrize = symmetrize
        self.engine = engine
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.max_memory = max_memory
        self.progress = progress

    @classmethod
    def from_leaves(
        cls,
        leaves: npt.ArrayLike,
        *,
        in_bag: npt.ArrayLike | None = None,
        tree_weights: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        weight_scheme: Any = "uniform",
        **params: Any,
    ) -> ForestProximity:
        """Build a fitted object from leaf ids alone, whatever grew the trees.

        Its methods then take leaf ids of shape (m, T) as X. An id that no training sample has in a
        tree goes to a leaf of that tree which is kept empty for it (``n_leaves_`` counts it), and
        collides with no training sample.

        Parameters
        ----------
        leaves : array-like of int of shape (n, T)
            Id of the leaf that each training sample reaches in each tree: any nonnegative
            integers, numbered within each tree or over all.
        in_bag : array-like of shape (n, T), default=None
            Weight with which each tree was trained on each sample (bootstrap counts, say); 0 means
            out of bag. Needed by "gap", "oob" and "oob_separable".
        tree_weights : array-like of shape (T,), default=None
            Weight of each tree. Needed by "boosted".
        y : array-like of shape (n,), default=None
            Labels of the training samples, for schemes that look at them.
        weight_scheme : str, callable or WeightScheme, default="uniform"
            As in the constructor.
        **params
            Other parameters of the constructor.

        Returns
        -------
        ForestProximity
            The fitted object.

        Examples
        --------
        >>> leaves = [[1, 4], [1, 5], [2, 5]]
        >>> ForestProximity.from_leaves(leaves, dtype="float64").proximity().toarray().round(3)
        array([[1. , 0.5, 0. ],
               [0.5, 1. , 0.5],
               [0. , 0.5, 1. ]])
        """
        stand_in = forests.RawLeaves(in_bag=in_bag, tree_weights=tree_weights)
        return cls(stand_in, weight_scheme, **params).fit(leaves, y)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        folder: str | os.PathLike[str] | None = None,
    ) -> ForestProximity:
        """Fit the forest if it is not fitted yet, and weigh and index the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            Training samples. For a fitted forest and a scheme with in-bag weights, the very samples
            that it was fitted on; for other schemes any reference samples will do. Samples that
            are larger than memory come as :class:`leafkernel.Batches`, with a fitted forest.
        y : array-like of shape (n,) or (n, n_outputs), default=None
            Targets, as the forest takes them.
        sample_weight : array-like of shape (n,), default=None
            Sample weights for (or of) the forest's fit.
        folder : str or path-like, default=None
            For batches alone: the folder to keep large arrays in, a temporary one by default. What
            lies there afterwards is a save that :meth:`load` reads. A fit that was interrupted goes
            on where it was when it is called again with the same folder.

        Returns
        -------
        ForestProximity
            Itself, fitted.
        """
        if isinstance(X, Batches):
            return self._fit_batches(X, y, sample_weight, folder)
        if folder is not None:
            raise ValueError("folder is for Batches; use save(folder) after fit.")
        # A copy: what happens to the scheme later must not change this fit.
        scheme = deepcopy(find_scheme(self.weight_scheme))
        self._check_params()
        if any(map(is_dask, (X, y, sample_weight))):
            return self._fit_on_dask(scheme, X, y, sample_weight)
        n_threads = count_threads(self.n_jobs)
        refuse_masked("y", y)
        refuse_masked("sample_weight", sample_weight)
        check_consistent_length(X, y, None if np.isscalar(sample_weight) else sample_weight)
        estimator = forests.fit_if_needed(self.forest, X, y, sample_weight)
        forest = forests.adapt(estimator, n_threads=n_threads)
        samples = read_samples(forest, scheme, X, y, sample_weight, n_threads=n_threads)
        fitted = copy(self)
        check_columns(fitted, X, reset=True)
        fitted._take_fit(estimator, forest, scheme, samples, y, sample_weight)
        fitted._weigh(None, n_threads)
        fitted._describe_fit(index_of(X, samples.n_samples))
        # Only now does anything change here, and all of it in one step. A fit that fails leaves an
        # earlier one as it was, and another thread sees the old fit or the new one, never a mix.
        self.__dict__ = dict(vars(fitted))
        return self

    def _fit_batches(
        self, X: Batches, y: Any, sample_weight: Any, folder: str | os.PathLike[str] | None
    ) -> ForestProximity:
        scheme = deepcopy(find_scheme(self.weight_scheme))
        self._check_params()
        if not forests.is_fitted(self.forest):
            raise ValueError(
                "the forest is not fitted, and it cannot be fitted on batches; fit it first, on a "
                "sample that fits in memory or with a library that reads from disk."
            )
        n_threads = count_threads(self.n_jobs)
        fitter = BatchFitter(
            forest=forests.adapt(self.forest, n_threads=n_threads),
            scheme=scheme,
            options={
                "diagonal": self.diagonal,
                "symmetrize": self.symmetrize,
                "dtype": check_dtype(self.dtype),
            },
            limit=self._limit(),
            progress=self.progress,
            n_threads=n_threads,
        )
        fitter.refuse_unsupported()
        refuse_masked("y", y)
        if folder is None:
            place, identity = Path(tempfile.mkdtemp(prefix="leafkernel-")), None
        else:
            place, identity = Path(folder), fitter.identity(X, y, sample_weight)
            saving.check_folder(place)
        if identity is not None and saving.identity_of(place) == identity:  # it was fitted before
            known = saving.read(place, weight_scheme=scheme, forest=self.forest)
            self.__dict__ = {**known, **self.get_params(deep=False)}
            return self
        try:
            found = fitter.fit(X, y, sample_weight, place, identity)
        except BaseException:
            if folder is None:
                shutil.rmtree(place, ignore_errors=True)
            raise
        fitted = copy(self)
        check_columns(fitted, found.first, reset=True)
        fitted._take_fit(self.forest, fitter.forest, scheme, found.samples, found.y, sample_weight)
        fitted.kernel_ = found.kernel
        fitted._describe_fit(range(found.samples.n_samples))
        saving.write(
            Inside.of(fitted),
            place,
            begun=found.work.folder,
            there=found.there,
            identity=identity or "",
            with_forest=folder is not None,
        )
        if folder is None:  # the arrays stay mapped while somebody has them
            weakref.finalize(found.kernel, shutil.rmtree, place, ignore_errors=True)
        self.__dict__ = dict(vars(fitted))
        return self

    def reweigh(
        self,
        weight_scheme: Any = None,
        *,
        diagonal: Diagonal | None = None,
        symmetrize: bool | None = None,
        dtype: Any = None,
        X: Any = None,
    ) -> ForestProximity:
        """Return another proximity of the same forest and training samples, without routing again.

        It shares the leaves, in-bag weights and statistics of this one, and computes only what its
        scheme needs beyond them. Use it to compare schemes, or for one task that needs another.

        Parameters
        ----------
        weight_scheme, diagonal, symmetrize, dtype : default=None
            As in the constructor. What is not given stays as it is.
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features), default=None
            The training samples. Only "ih" needs them, and in-bag weights of your own forests.

        Returns
        -------
        ForestProximity
            A new object, fitted. This one does not change.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from leafkernel import ForestProximity
        >>> data, y = load_iris(return_X_y=True)
        >>> prox = ForestProximity(RandomForestClassifier(random_state=0)).fit(data, y)
        >>> prox.reweigh("kerf").scheme_.name
        'kerf'
        """
        inside = Inside.of(self)
        fitted = copy(self)  # and not the copy inside, which is never lazy
        given = {
            "weight_scheme": weight_scheme,
            "diagonal": diagonal,
            "symmetrize": symmetrize,
            "dtype": dtype,
        }
        # Parameters that were changed since wait for the next fit, as everywhere else.
        for name, value in fitted._fitted_with.items():
            setattr(fitted, name, value if given[name] is None else given[name])
        fitted._check_params()
        if weight_scheme is not None:
            fitted.scheme_ = deepcopy(find_scheme(weight_scheme))
        if X is not None:
            check_columns(fitted, X, reset=False)
            check_length("X", X, fitted.n_samples_fit_)
        if weight_scheme is None and symmetrize is None and dtype is None:
            fitted.kernel_ = fitted.kernel_.with_diagonal(fitted.diagonal, fitted._samples)
            fitted._keep_params()
            fitted._returns_lazily = self._returns_lazily
            return fitted
        inside.require_in_memory("reweigh", "fit again with the other scheme")
        n_threads = count_threads(fitted.n_jobs)
        fitted._samples = complete_samples(
            fitted._samples,
            fitted._router,
            fitted.scheme_,
            X,
            fitted.y_,
            fitted._sample_weight,
            n_threads=n_threads,
        )
        cuts = cuts_of([part.n_samples for part in parts_of(fitted.kernel_.index)])
        fitted._weigh(fitted.kernel_.forest, n_threads, cuts=cuts)
        fitted._returns_lazily = self._returns_lazily
        return fitted

    def extend(self, X: Any, y: Any = None) -> ForestProximity:
        """Add reference samples, without routing or listing those that are there again.

        The forest stays as it is. The new samples count as if they had been passed to :meth:`fit`
        with the others.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            New samples. They come after those that are there.
        y : array-like of shape (m,) or (m, n_outputs), default=None
            Their targets. Needed if :meth:`fit` was given targets.

        Returns
        -------
        ForestProximity
            Itself, with more reference samples.

        Raises
        ------
        ValueError
            If the scheme needs in-bag weights ("gap", "oob", "oob_separable"): no tree was trained
            on new samples, so they have none.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from leafkernel import ForestProximity
        >>> X, y = load_iris(return_X_y=True)
        >>> prox = ForestProximity(RandomForestClassifier(random_state=0), "kerf")
        >>> prox.fit(X[::2], y[::2]).extend(X[1::2], y[1::2]).n_samples_fit_
        150
        """
        inside = Inside.of(self)
        inside.require_in_memory("extend", "fit again with all samples")
        fitted, n_threads = inside.prox, inside.n_threads
        new = more_samples(inside.forest, inside.scheme, inside.route(X), inside.stats)
        targets = join_targets(fitted.y_, y, new.n_samples)
        samples = complete_samples(
            Samples.joined([inside.samples, new]),
            inside.forest,
            inside.scheme,
            None,
            targets,
            None,
            n_threads=n_threads,
        )
        stats = inside.stats.plus(
            ForestStats.of(new, inside.stats.leaf_offsets, n_threads=n_threads)
        )
        parts = parts_of(fitted.kernel_.index)
        # Parts on disk are as large as the memory allowed; they do not grow.
        most = max(part.n_samples for part in parts) if is_mapped(parts[0].members) else None
        cuts = cuts_with([part.n_samples for part in parts], new.n_samples, most)
        fitted._samples, fitted._sample_weight = samples, None
        for name, value in fitted._fitted_with.items():
            setattr(fitted, name, value)

        def list_part(i: int, rows: WeighedRows) -> core.LeafLists:
            # Lists hold weights of entries, and no other factor.
            is_known = i < len(cuts) - 1 and rows.weighting.by_entry is None
            return parts[i].lists if is_known else list_by_leaf(rows, n_threads=n_threads)

        fitted._fit_kernel(stats, n_threads, cuts=cuts, list_part=list_part)
        fitted.n_samples_fit_ = samples.n_samples
        fitted.index_ = join_indexes(fitted.index_, index_of(X, new.n_samples))
        fitted._targets = Targets(targets)
        fitted.y_ = fitted._targets.values
        fitted._returns_lazily = self._returns_lazily
        self.__dict__ = dict(vars(fitted))
        return self

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write this fitted object to a folder, as plain arrays.

        The forest is written as a skops file, or in the format of its own library for LightGBM,
        XGBoost and CatBoost. A save that was there is replaced when all of the new one is written,
        and stays as it was if this fails.

        Parameters
        ----------
        folder : str or path-like
            The folder: a new one, an empty one, or one with an earlier save.

        Returns
        -------
        pathlib.Path
            The folder.

        See Also
        --------
        load : Read it again.
        """
        inside = Inside.of(self)
        inside.require_in_memory("save", "fit it on data in memory to save it")
        saving.write(inside, folder)
        return Path(folder)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        weight_scheme: Any = None,
        forest: Any = None,
        trusted: Sequence[str] = (),
        verify: bool = True,
    ) -> ForestProximity:
        """Return a fitted object from a folder that :meth:`save` wrote.

        The arrays are mapped into memory: they are read when they are used, and several processes
        share them. Nothing in the folder is run as code.

        Parameters
        ----------
        folder : str or path-like
            The folder.
        weight_scheme : WeightScheme or callable, default=None
            The scheme, where it is one of your own, which is not saved.
        forest : estimator, default=None
            The fitted forest, to use instead of the one in the folder; needed where its class is
            one of your own, which is not saved.
        trusted : sequence of str, default=()
            Types in the forest that skops does not know and that you trust.
        verify : bool, default=True
            Whether to compare the checksums of all files first. Without, opening takes less time;
            ``leafkernel.saving.verify(folder)`` does it later. Ids that point into memory are
            checked either way.

        Returns
        -------
        ForestProximity
            The fitted object.

        Raises
        ------
        leafkernel.saving.DamagedError
            If the folder is damaged, incomplete, or written by a newer leafkernel.

        Examples
        --------
        >>> import tempfile
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ForestProximity.load(prox.save(folder)).n_trees_
        2
        """
        check_flag("verify", verify)
        found = saving.read(
            folder, weight_scheme=weight_scheme, forest=forest, trusted=trusted, verify=verify
        )
        prox = cls(None)
        prox.__dict__.update(found)
        return prox

    @_lazily
    def proximity(
        self, X: Any = None, *, sort: bool = True, dense: bool = False
    ) -> csr_array | Array:
        """Return the proximities of samples to the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            Samples, all taken as unseen. By default the training samples in their training role
            (out-of-bag trees and all).
        sort : bool, default=True
            Whether columns are ascending in each row. Without, it takes less time; SciPy sorts
            such a matrix itself where it must.
        dense : bool, default=False
            Whether to return an ordinary array instead of a sparse one. Under shallow trees and
            boosted models most proximities are not zero, and a sparse array takes twice the
            memory.

        Returns
        -------
        csr_array or ndarray of shape (m, n)
            P. A sparse array holds no explicit zeros.

        Raises
        ------
        MemoryError
            If P would pass ``max_memory``.
        """
        check_flag("sort", sort)
        check_flag("dense", dense)
        if isinstance(X, Batches):
            return X.joined(lambda rows: self.proximity(rows, sort=sort, dense=dense))
        inside = Inside.of(self)
        product, prox, engine = inside.product(X), inside.prox, inside.engine
        limit = prox._limit()
        most = NO_LIMIT if dense else prox._most_entries(product, engine, limit)
        if dense and (size := math.prod(product.shape) * product.dtype.itemsize) > limit:
            raise MemoryError(prox._too_large(f"{format_bytes(size)}, more", limit))
        with progress_bar("proximity", product.n_rows, enabled=prox.progress) as on_progress:
            if dense:
                return dense_rows(engine, product, on_progress)
            try:
                return engine.rows(product, on_progress, sort=sort, most_entries=most)
            except TooManyEntriesError:
                raise MemoryError(prox._too_large("more", limit)) from None

    def iter_proximity(
        self, X: Any = None, *, block_size: int = 4096, sort: bool = True
    ) -> Iterator[tuple[slice, csr_array]]:
        """Yield the proximities in blocks of rows, so that only one block is in memory.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`proximity`.
        block_size : int, default=4096
            Rows in a block.
        sort : bool, default=True
            As in :meth:`proximity`.

        Yields
        ------
        rows : slice
            The rows of P that the block holds.
        block : csr_array of shape (len(rows), n)
            ``proximity(X)[rows]``.
        """
        check_flag("sort", sort)
        size = check_count("block_size", block_size)
        inside = Inside.of(self)
        if isinstance(X, Batches):
            return blocks_of_batches(inside, X, size, sort=sort)
        return inside.blocks(X, size, sort=sort)

    def proximity_to(self, rows: npt.ArrayLike, X: Any = None) -> csr_array:
        """Return the proximities of samples to some of the training samples: columns of P.

        For prototypes, landmarks, or one sample that all others are to be compared with.

        Parameters
        ----------
        rows : array-like of shape (k,)
            Labels of the training samples (see ``index_``).
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`proximity`.

        Returns
        -------
        csr_array of shape (m, k)
            ``proximity(X)[:, rows]``, at the cost of k columns.
        """
        inside = Inside.of(self)
        return inside.proximity_to(positions_of(inside.prox.index_, "rows", rows), X)

    @_lazily
    def kneighbors(
        self,
        X: Any = None,
        n_neighbors: int = 10,
        *,
        by: Literal["value", "magnitude"] = "value",
    ) -> tuple[Array, npt.NDArray[np.int64]]:
        """Find the training samples most similar to each sample, without forming P.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`proximity`. A training sample is never its own neighbor.
        n_neighbors : int, default=10
            Number of neighbors.
        by : {"value", "magnitude"}, default="value"
            Whether the largest proximities come first, or the largest magnitudes. This makes a
            difference only for schemes with negative weights.

        Returns
        -------
        similarity : ndarray of shape (m, n_neighbors)
            Proximities, most similar first.
        neighbors : ndarray of int64 of shape (m, n_neighbors)
            The training samples, ties by index. A row that is similar to fewer is filled up with
            samples of proximity 0, by index, as sorting its row of P would: look for zeros in
            ``similarity`` if you ask for many.
        """
        check_choice("by", by, ("value", "magnitude"))
        if isinstance(X, Batches):
            return X.joined(lambda rows: self.kneighbors(rows, n_neighbors, by=by))
        inside = Inside.of(self)
        product = inside.product(X)
        n_neighbors = check_n_neighbors(n_neighbors, inside.n_samples, itself=X is None)
        enabled = inside.prox.progress
        with progress_bar("kneighbors", product.n_rows, enabled=enabled) as on_progress:
            return inside.engine.nearest(
                product, n_neighbors, on_progress, by_magnitude=by == "magnitude"
            )

    @_lazily
    def write_neighbors(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        n_neighbors: int = 10,
        *,
        by: Literal["value", "magnitude"] = "value",
    ) -> Path:
        """Write the nearest training samples of each sample to a file, block by block.

        Only one block is in memory. If this is interrupted, call it again in the same way: it goes
        on where it was.

        Parameters
        ----------
        path : str or path-like
            The file. With ``.parquet`` it has a line for each pair: ``row``, ``neighbor`` (both are
            positions, from 0) and ``proximity``, without pairs of proximity 0. With ``.npy`` it
            holds the neighbors, shape (m, n_neighbors), and a second file, ``.proximity.npy``, the
            proximities. With Dask it is a folder of Parquet files, which all workers must see.
        X : {Batches, array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`kneighbors`; :class:`leafkernel.Batches` are never in memory as a whole.
        n_neighbors : int, default=10
            Number of neighbors.
        by : {"value", "magnitude"}, default="value"
            As in :meth:`kneighbors`.

        Returns
        -------
        pathlib.Path
            The file.
        """
        check_choice("by", by, ("value", "magnitude"))
        inside = Inside.of(self)
        n_neighbors = check_n_neighbors(n_neighbors, inside.n_samples, itself=X is None)
        return write_neighbors(inside, path, X, n_neighbors, by)

    @_lazily
    def write_proximity(self, path: str | os.PathLike[str], X: Any = None) -> Path:
        """Write P to a Parquet file, block by block: row, neighbor (the column) and proximity.

        If this is interrupted, call it again in the same way: it goes on where it was.

        Parameters
        ----------
        path : str or path-like
            The file, which ends in ``.parquet``. With Dask it is a folder of Parquet files.
        X : {Batches, array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`proximity`; :class:`leafkernel.Batches` are never in memory as a whole.

        Returns
        -------
        pathlib.Path
            The file.
        """
        return write_proximity(Inside.of(self), path, X)

    def neighbors_frame(self, X: Any = None, n_neighbors: int = 10) -> Any:
        """Return the nearest training samples as a table, with the labels of your data frames.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`kneighbors`.
        n_neighbors : int, default=10
            Number of neighbors. A sample that is similar to fewer has fewer lines.

        Returns
        -------
        pandas.DataFrame
            One line for each pair, most similar first: ``sample``, the label of the sample;
            ``rank`` from 1; ``neighbor``, the label of the training sample; ``position`` of the
            neighbor in the training data; ``proximity``; and ``target``, if :meth:`fit` was given
            one target for each sample.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from leafkernel import ForestProximity
        >>> X = pd.DataFrame({"height": [20.0, 21, 35, 36]}, index=["ant", "bee", "cat", "dog"])
        >>> forest = RandomForestClassifier(random_state=0)
        >>> prox = ForestProximity(forest, "uniform").fit(X, ["insect"] * 2 + ["mammal"] * 2)
        >>> prox.neighbors_frame(n_neighbors=1)[["sample", "neighbor", "target"]]
          sample neighbor  target
        0    ant      bee  insect
        1    bee      ant  insect
        2    cat      dog  mammal
        3    dog      cat  mammal
        """
        pandas = require("pandas", extra="cli")
        fitted = Inside.of(self).prox
        similarity, neighbors = fitted.kneighbors(X, n_neighbors)
        index = fitted.index_ if X is None else index_of(X, len(neighbors))
        sample, rank = np.nonzero(similarity > 0)
        position = neighbors[sample, rank]
        columns = {
            "sample": labels_at(index, sample),
            "rank": rank + 1,
            "neighbor": labels_at(fitted.index_, position),
            "position": position,
            "proximity": similarity[sample, rank],
        }
        if fitted.y_ is not None and fitted.y_.ndim == 1:
            columns["target"] = fitted.y_[position]
        return pandas.DataFrame(columns)

    def kneighbors_graph(
        self,
        X: Any = None,
        n_neighbors: int = 10,
        mode: Literal["proximity", "distance"] = "proximity",
    ) -> csr_array:
        """Return the graph of nearest neighbors.

        Each row has ``n_neighbors`` stored entries, columns ascending.

        With ``mode="distance"`` it is what scikit-learn takes for ``metric="precomputed"``: entries
        by growing distance, and for training samples one entry more, the sample itself at distance
        0. Clustering and embedding look at more neighbors than one thinks: give DBSCAN several
        times its ``min_samples``, and t-SNE three times its ``perplexity``.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`proximity`.
        n_neighbors : int, default=10
            Number of neighbors.
        mode : {"proximity", "distance"}, default="proximity"
            Whether edges hold the proximity p or the distance 1 - p (0 where p > 1, as
            "oob_separable" can give). Entries that are zero are stored.

        Returns
        -------
        csr_array of shape (m, n)
            The graph.
        """
        check_choice("mode", mode, ("proximity", "distance"))
        fitted = Inside.of(self).prox
        data, neighbors = fitted.kneighbors(X, n_neighbors)
        if mode == "distance":
            data = np.maximum(1 - data, 0)
            if X is None:
                data = np.insert(data, 0, 0, axis=1)
                neighbors = np.insert(neighbors, 0, np.arange(len(neighbors)), axis=1)
        n_rows, n_entries = neighbors.shape
        arrays = (data.ravel(), neighbors.ravel(), np.arange(n_rows + 1) * n_entries)
        graph = csr_array(arrays, shape=(n_rows, fitted.n_samples_fit_))
        if mode == "proximity":
            graph.sort_indices()
        return graph

    @_lazily
    def query_map(self, X: Any = None) -> csr_array:
        """Return the query map Q: samples in leaf coordinates, at most one nonzero a tree.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`proximity`.

        Returns
        -------
        csr_array of shape (m, L)
            Q, such that P = Q Wᵀ off the diagonal; (m, 2L) where the kernel is symmetrized.
        """
        if isinstance(X, Batches):
            return X.joined(self.query_map)
        inside = Inside.of(self)
        samples = inside.route_if_given(X)
        inside.require_maps("query map")
        return inside.kernel.query_map(samples)

    @_lazily
    def reference_map(self) -> csr_array:
        """Return the reference map W of the training samples.

        Returns
        -------
        csr_array of shape (n, L)
            W, such that P = Q Wᵀ off the diagonal; (n, 2L) where the kernel is symmetrized.
        """
        inside = Inside.of(self)
        inside.require_maps("reference map")
        return inside.kernel.reference_map()

    def operator(self, X: Any = None) -> ProximityOperator:
        """Return P as a linear operator, whose products never form it.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`proximity`.

        Returns
        -------
        scipy.sparse.linalg.LinearOperator of shape (m, n)
            ``A @ V`` equals ``proximity(X) @ V``, and ``A.T`` is its adjoint. ``eigsh`` is for
            symmetric kernels; for others use ``svds`` or ``eigs``.
        """
        inside = Inside.of(self)
        samples, kernel = inside.route_if_given(X), inside.kernel
        inside.require_maps("operator")
        return ProximityOperator(
            inside.engine,
            kernel.training_product() if samples is None else kernel.product(samples),
            lambda: kernel.transposed_product(samples, n_threads=inside.n_threads),
            kernel.diagonal_shift() if samples is None else None,
        )

    @_lazily
    def weighted_sums(self, values: npt.ArrayLike, X: Any = None) -> npt.NDArray[np.float64]:
        """Sum the training samples' values, weighted by each sample's proximities: P @ values.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, c)
            Numbers for the training samples.
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`proximity`.

        Returns
        -------
        ndarray of float64 of shape (m,) or (m, c)
            Sums, without forming P: through the maps where the scheme has maps, else row by row.
        """
        if isinstance(X, Batches):
            return X.joined(lambda rows: self.weighted_sums(values, rows))
        inside = Inside.of(self)
        product = inside.product(X)
        values = check_values(values, inside.n_samples)
        sums = inside.sums(product, values.reshape(inside.n_samples, -1))
        return sums.reshape(len(sums), *values.shape[1:])

    @_lazily
    def weighted_average(self, values: npt.ArrayLike, X: Any = None) -> npt.NDArray[np.float64]:
        """Average the training samples' values, weighted by each sample's proximities.

        With "gap" and the training targets this is the forest's own out-of-bag prediction, and for
        new samples its prediction.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, c)
            Numbers for the training samples: targets, class indicators, anything.
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`proximity`.

        Returns
        -------
        ndarray of float64 of shape (m,) or (m, c)
            Rows of P, each divided by its sum, times the values. A row without any proximity has
            no average: it is NaN, with a warning.
        """
        if isinstance(X, Batches):
            return X.joined(lambda rows: self.weighted_average(values, rows))
        inside = Inside.of(self)
        check_averages(inside.scheme)
        values = check_values(values, inside.n_samples)
        columns = values.reshape(inside.n_samples, -1)
        sums, mass = inside.sums_and_mass(inside.product(X), columns)
        n_empty = int((mass == 0).sum())
        if n_empty:
            warn(
                f"{n_empty} of {len(mass)} rows have no proximity to any training sample; their "
                "average is NaN."
            )
        average = weighted_means(sums, mass, np.nan)
        return average.reshape(len(average), *values.shape[1:])

    def forecast(self, X: Any = None) -> Forecast:
        """Tell what :meth:`proximity` would take, without computing it.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            As in :meth:`proximity`.

        Returns
        -------
        Forecast
            Collisions, nonzeros, bytes, seconds, and what to use instead; print it.
        """
        inside = Inside.of(self)
        inside.require_in_memory("forecast", "P is made block by block, when you compute it")
        return forecast(inside.product(X), inside.engine, limit=inside.prox._limit())

    def explore(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Make a page on which to see the training samples as the forest does.

        In a notebook the result shows itself; elsewhere, save it and open it in a browser.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            What this object was fitted on.
        y : array-like of shape (n,), default=None
            The targets: classes or numbers. By default those that were passed to :meth:`fit`.
        **params
            Further parameters of :func:`leafkernel.explorer.build_report`: ``X_new`` for new rows
            on the map, ``shown`` for the rows as people know them, ``ids``, ``title``, ``method``.

        Returns
        -------
        leafkernel.explorer.Report
            The page: one HTML file that needs nothing else. ``save(path)`` writes it.
        """
        # Only here: a kernel needs no page.
        from leafkernel.explorer import build_report  # noqa: PLC0415

        advice = "fit another one on some of the rows, in memory"
        Inside.of(self).require_in_memory("explore", advice)
        return build_report(self, X, y, **params)

    def transform(self, X: Any) -> csr_array:
        """Return the leaf coordinates of samples, all taken as unseen: :meth:`query_map`.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            Samples.

        Returns
        -------
        csr_array of shape (m, L)
            The query map.
        """
        return self.query_map(X)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> csr_array:
        """Fit, and return the training samples' query map in their training role.

        For schemes with in-bag weights this differs from ``fit(X, y).transform(X)``, which takes X
        as unseen.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            Training samples.
        y : array-like of shape (n,) or (n, n_outputs), default=None
            Targets.
        sample_weight : array-like of shape (n,), default=None
            Sample weights.

        Returns
        -------
        csr_array of shape (n, L)
            The query map.
        """
        return self.fit(X, y, sample_weight).query_map()

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return a name for each leaf coordinate: ``tree3_leaf17``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Only checked against the names seen during fit.

        Returns
        -------
        ndarray of str of shape (L,)
            Names; (2L,) with the prefixes ``query_`` and ``reference_`` where the kernel is
            symmetrized.
        """
        inside = Inside.of(self)
        check_names_out(inside.prox, input_features)
        sizes = np.diff(inside.stats.leaf_offsets)
        names = [f"tree{t}_leaf{leaf}" for t, size in enumerate(sizes) for leaf in range(size)]
        if inside.kernel.symmetrize:
            names = [f"{side}_{name}" for side in ("query", "reference") for name in names]
        return np.array(names, dtype=object)

    @property
    def base_score_(self) -> float:
        """Raw score of a boosted model before its first tree, with the scheme "gradient"."""
        scheme = vars(self).get("scheme_")
        if not isinstance(scheme, Gradient):
            raise AttributeError(
                "base_score_ exists once fit was called with weight_scheme='gradient'."
            )
        return scheme.base_score(self.kernel_.forest)

    @property
    def _n_features_out(self) -> int:
        return self.kernel_.coordinates.n_columns

    def _figures(self) -> dict[str, str]:
        if not hasattr(self, "kernel_"):
            return {}
        n, n_trees, n_leaves = self.n_samples_fit_, self.n_trees_, self.n_leaves_
        symmetric = self.kernel_.is_symmetric
        return {
            "training rows": f"{n:,}",
            "features": f"{self.n_features_in_:,}",
            "trees": f"{n_trees:,}",
            "leaves": f"{n_leaves:,} ({n * n_trees / n_leaves:.3g} rows in each)",
            "proximities": f"{self.scheme_.name}, {'symmetric' if symmetric else 'not symmetric'}",
        }

    def __copy__(self) -> ForestProximity:
        other = type(self).__new__(type(self))
        other.__dict__ = dict(vars(self))
        return other

    def __getstate__(self) -> Any:
        return {**super().__getstate__(), "_layout": _LAYOUT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        layout = state.get("_layout")
        if "kernel_" in state and layout != _LAYOUT:
            raise ValueError(
                "this fitted ForestProximity was pickled by another version of leafkernel, which "
                f"kept other things (layout {layout}; this version reads layout {_LAYOUT}); fit it "
                "again, or unpickle it with the version that wrote it."
            )
        super().__setstate__({name: value for name, value in state.items() if name != "_layout"})

    def _fit_on_dask(
        self, scheme: WeightScheme, X: Any, y: Any, sample_weight: Any
    ) -> ForestProximity:
        """Fit on Dask data, which stays where it is."""
        dask = import_module("leafkernel.dask")
        fitted = copy(self)
        check_columns(fitted, dask.meta_of(X), reset=True)
        fitted.scheme_ = scheme
        fitted.__dict__.update(dask.fit(self, scheme, X, y, sample_weight))
        fitted._keep_params()
        self.__dict__ = dict(vars(fitted))
        return self

    def _check_params(self) -> None:
        check_choice("diagonal", self.diagonal, ("scheme", "one", "zero", "adjusted"))
        find_engine(self.engine, n_threads=1)
        check_flag("symmetrize", self.symmetrize)
        check_flag("progress", self.progress)
        if self.max_memory is not None:
            parse_bytes(self.max_memory)
        check_dtype(self.dtype)

    def _take_fit(
        self,
        estimator: Any,
        router: forests.FittedForest,
        scheme: WeightScheme,
        samples: Samples,
        y: Any,
        sample_weight: Any,
    ) -> None:
        """Keep what a fit was given and what it found of the samples."""
        if hasattr(self, "feature_names_in_"):  # it may be the very array of the data frame
            self.feature_names_in_ = np.array(self.feature_names_in_)
        self.forest_, self._router, self.scheme_ = estimator, router, scheme
        self._samples = samples
        self._sample_weight = None if sample_weight is None else np.array(sample_weight)
        self._targets = Targets(y)
        self.y_ = self._targets.values

    def _describe_fit(self, index: Any) -> None:
        """Keep the figures of a fit, and the parameters that it was made with."""
        self.n_trees_ = self.kernel_.forest.n_trees
        self.n_leaves_ = self.kernel_.forest.n_leaves
        self.n_samples_fit_ = self.kernel_.n_samples
        self.index_ = index
        self._keep_params()

    def _weigh(self, stats: ForestStats | None, n_threads: int, **parts: Any) -> None:
        """Weigh the training samples by the scheme, and index them."""
        stats = read_stats(
            self._router,
            self.scheme_,
            self._samples,
            progress=self.progress,
            n_threads=n_threads,
            stats=stats,
        )
        self._fit_kernel(stats, n_threads, **parts)
        self._keep_params()

    def _fit_kernel(self, stats: ForestStats, n_threads: int, **parts: Any) -> None:
        self.kernel_ = LeafKernel.fit(
            self.scheme_,
            self._samples,
            stats,
            diagonal=self.diagonal,
            symmetrize=self.symmetrize,
            dtype=check_dtype(self.dtype),
            n_threads=n_threads,
            **parts,
        )

    def _keep_params(self) -> None:
        """Note the parameters that the kernel was made with."""
        names = ("weight_scheme", "diagonal", "symmetrize", "dtype")
        self._fitted_with = {name: getattr(self, name) for name in names}

    def _limit(self) -> int:
        return available_bytes() if self.max_memory is None else parse_bytes(self.max_memory)

    def _most_entries(self, product: Product, engine: Engine, limit: int) -> int:
        """Return how many nonzeros P may have; refuse it now if more are expected."""
        most = most_nonzeros(product.n_rows, product.dtype.itemsize, limit)
        at_most = int(np.minimum(engine.collisions(product) + 1, product.shape[1]).sum())
        if at_most <= most:
            return at_most  # the bound alone shows that it fits
        if not hasattr(product, "row_order"):
            return most  # rows on other machines cannot be timed
        expected = forecast(product, engine, limit=limit)
        if csr_bytes(product.n_rows, expected.nonzeros_at_least, product.dtype.itemsize) > limit:
            size = f"about {format_bytes(expected.bytes)} ({expected.nonzeros:,} nonzeros), more"
            raise MemoryError(self._too_large(size, limit))
        return most

    def _too_large(self, size: str, limit: int) -> str:
        source = "max_memory" if self.max_memory is not None else "the memory that is free"
        return (
            f"this proximity matrix would take {size} than {source} ({format_bytes(limit)}); "
            f"{TOO_LARGE_ADVICE}."
        )


def _transforms(self: ForestProximity) -> bool:
    try:
        scheme = find_scheme(self.weight_scheme)
    except (TypeError, ValueError):
        return True  # fit says what is wrong
    if scheme.divides_by_shared_oob:
        raise AttributeError(no_maps(scheme, "leaf coordinates to transform to"))
    return True


# A kernel without maps does not transform. scikit-learn wraps these methods for set_output when
# the class is made, so the condition goes around what it made of them.
for _method in ("transform", "fit_transform", "get_feature_names_out"):
    setattr(ForestProximity, _method, available_if(_transforms)(getattr(ForestProximity, _method)))
