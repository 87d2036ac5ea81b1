"""The main estimator, :class:`ForestProximity`. It validates, delegates, and stores the kernel."""

from __future__ import annotations

import math
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from copy import copy, deepcopy
from functools import update_wrapper, wraps
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import MethodType
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin

import leafkernel._native as core
from leafkernel import forests, saving
from leafkernel._memory import available_bytes, format_bytes, parse_bytes
from leafkernel._optional import in_main_memory, is_dask, require
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
    check_same_lengths,
    check_values,
    count_threads,
    refuse_masked,
)
from leafkernel.batches import Batches
from leafkernel.engines import (
    NO_LIMIT,
    Engine,
    TooManyEntriesError,
    dense_rows,
    engine_for_paths,
    find_engine,
)
from leafkernel.forecast import TOO_LARGE_ADVICE, Forecast, csr_bytes, forecast, most_nonzeros
from leafkernel.incidence import WeighedRows
from leafkernel.inside import Inside, check_averages, no_maps, warn_of_nan, weighted_means
from leafkernel.kernel import Diagonal, LeafKernel
from leafkernel.leaf_index import ForestStats, Samples, list_by_leaf
from leafkernel.operator import ProximityOperator
from leafkernel.parts import cuts_of, cuts_with, parts_of
from leafkernel.product import Product
from leafkernel.schemes import Collapsed, Gradient, Learned, WeightScheme, find_scheme
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
    """Wrap a method so that it returns lazy Dask arrays for Dask data.

    This applies if the proximity was fitted on Dask data or if X is Dask data.
    """
    name, parameters = method.__name__, signature(method)

    @wraps(method)
    def call(self: ForestProximity, *args: Any, **params: Any) -> Any:
        if "dask" not in sys.modules:
            return method(self, *args, **params)
        try:
            given = dict(parameters.bind(self, *args, **params).arguments)
        except TypeError:  # call it anyway, because its own error names the method
            return method(self, *args, **params)
        del given["self"]
        kernel = vars(self).get("kernel_")
        on_dask = is_dask(given.get("X")) or not isinstance(kernel, LeafKernel)
        if not on_dask or kernel is None or not self._returns_lazily:
            return method(self, *args, **params)
        return getattr(import_module("leafkernel.dask"), name)(Inside.of(self), **given)

    return call  # type: ignore[return-value]


# Version of the pickled state. Increase it when the state changes, to reject older pickles.
_LAYOUT = 2


class ForestProximity(FittedRepr, InheritedTags, TransformerMixin, BaseEstimator):
    """Similarity between samples, learned by a tree ensemble.

    Two samples are similar if the trees of a forest send them to the same leaves. A weight scheme
    defines how much each shared leaf counts. The proximities of all pairs form a sparse matrix
    P = Q Wᵀ. They are exact, for training samples and for new data. Only :meth:`proximity` builds
    the full matrix in memory.

    Without ``X``, training samples are compared using their out-of-bag trees, if the scheme uses
    out-of-bag trees. Any ``X`` that you pass is treated as new data.

    Parameters
    ----------
    forest : estimator
        A tree ensemble from scikit-learn or a package that subclasses its forests, or a LightGBM,
        XGBoost or CatBoost model (the native boosters too). A Pipeline or a search that ends in
        one works as well, and so does any object with a method ``leaves(X)``; see
        :class:`leafkernel.forests.Forest`. A fitted forest is used as it is. An unfitted forest is
        cloned and fitted. As for every meta-estimator, :func:`sklearn.base.clone` of this object
        has an unfitted forest; use ``sklearn.frozen.FrozenEstimator`` to keep it fitted.
    weight_scheme : str, callable or WeightScheme, default="gap"
        The rule that weights shared leaves: ``"gap"``, ``"uniform"`` (or ``"original"``),
        ``"kerf"``, ``"oob"``, ``"oob_separable"``, ``"boosted"``, ``"ih"``, ``"gradient"``,
        ``"purity"``, ``"learned"``, ``"pbk"`` or ``"rpk"``; a function that takes
        ``(samples, forest)`` and returns weights of shape (n, T); or a :class:`WeightScheme`. See
        :mod:`leafkernel.schemes`.
    diagonal : {"scheme", "one", "zero", "adjusted"}, default="scheme"
        Proximity of a training sample to itself: the value of the scheme's formula (0 for "gap"),
        1, or 0. With "gap", "adjusted" is the mean reference weight of the sample over the trees
        that have it in bag.
    symmetrize : bool, default=False
        Whether to use (P + Pᵀ)/2. For a new sample, the transposed half uses its reference
        weights. With "gap" these are zero, so its proximities are halved.
    engine : {"auto", "native", "gpu", "reference"} or Engine, default="auto"
        The implementation. "native" is compiled and parallel. "gpu" uses an NVIDIA GPU (extra
        ``gpu``). "auto" selects "gpu" for large work if CuPy and a GPU are available, and "native"
        otherwise; :meth:`forecast` names the choice and the reason. "reference" is slow and easy to
        read. You can also pass an engine object, such as
        ``leafkernel.engines.gpu.GpuEngine(output="cupy")`` for results on the GPU, or your own
        :class:`leafkernel.engines.Engine`.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the weights and proximities. Rows of P are summed in float64 in both cases.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn: None means 1 unless in a joblib context, -1 means
        all cores. Results do not depend on it.
    max_memory : int or str, default=None
        Largest matrix that :meth:`proximity` may return, in bytes or as text like ``"4GB"``. By
        default, the available memory. If the estimated size exceeds the limit, an error is raised
        before the computation. If the actual size does, the computation stops with an error.
    progress : bool, default=False
        Whether to show progress bars (requires tqdm).

    Attributes
    ----------
    forest_ : estimator
        The fitted forest.
    scheme_ : WeightScheme
        The weight scheme in use.
    kernel_ : LeafKernel
        The weights of the training samples and their index.
    n_trees_, n_leaves_, n_samples_fit_ : int
        Number of trees, of leaves in all trees, and of training samples.
    y_ : ndarray or None
        The targets passed to :meth:`fit`. Tasks use them unless you pass others.
    base_score_ : float
        With "gradient", the raw score before the first tree. Each row of P sums to the raw score
        minus ``base_score_``.
    tree_weights_ : ndarray of shape (T,)
        With "learned", the weights of the trees. They sum to one.
    index_ : pandas.Index or range
        Labels of the training samples: the index of X if X is a pandas data frame with a
        non-default index, otherwise positions. Methods and tasks that take training samples take
        these labels. ``index_[3]`` is the label of the sample at position 3.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str
        Names of the features, if X has string column names.

    See Also
    --------
    sklearn.ensemble.RandomTreesEmbedding : Unsupervised leaf coordinates.

    Notes
    -----
    ``forest``, ``weight_scheme``, ``diagonal``, ``symmetrize`` and ``dtype`` define the kernel.
    Changes to them take effect with the next :meth:`fit`. Changes to other parameters take effect
    immediately.

    X may be a Dask array or a Dask data frame (extra ``dask``). If :meth:`fit` gets one, the
    samples stay on the workers. ``proximity``, ``kneighbors``, ``weighted_sums``,
    ``weighted_average``, ``transform``, ``query_map`` and ``reference_map`` then return lazy Dask
    arrays. They also do so if you pass them Dask data as X. Results are the same as in memory.
    See :mod:`leafkernel.dask`.

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
    #: Whether methods return lazy arrays for Dask data. Tasks turn this off.
    _returns_lazily: bool = True
    #: Whether an engine returns its results in main memory, even if it computes on a device.
    _results_in_memory: bool = False

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
        """Build a fitted proximity from leaf ids alone.

        Use it for trees that were grown elsewhere, such as in R or Spark. The methods of the result
        take leaf ids of shape (m, T) as X. If no training sample has an id in a tree, the id is
        sent to an extra, empty leaf of that tree. It then matches no training sample. ``n_leaves_``
        counts these extra leaves.

        Parameters
        ----------
        leaves : array-like of int of shape (n, T)
            Id of the leaf that each training sample reaches in each tree. Ids are nonnegative
            integers. They may be unique within each tree or over all trees.
        in_bag : array-like of shape (n, T), default=None
            In-bag weight of each sample in each tree, such as its bootstrap count; 0 means
            out-of-bag. Required by "gap", "oob" and "oob_separable".
        tree_weights : array-like of shape (T,), default=None
            Weight of each tree. Required by "boosted".
        y : array-like of shape (n,), default=None
            Targets of the training samples.
        weight_scheme : str, callable or WeightScheme, default="uniform"
            As in the constructor.
        **params
            Other parameters of the constructor.

        Returns
        -------
        ForestProximity
            The fitted proximity.

        Examples
        --------
        >>> from leafkernel import ForestProximity
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
        """Fit the forest if it is not fitted yet, and index the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            Training samples. If the forest is already fitted and the scheme uses in-bag weights,
            pass the samples that the forest was fitted on. Other schemes accept any reference
            samples. For data larger than memory, pass :class:`leafkernel.Batches` and a fitted
            forest.
        y : array-like of shape (n,) or (n, n_outputs), default=None
            Targets, in the form that the forest accepts.
        sample_weight : array-like of shape (n,), default=None
            Sample weights for fitting the forest. If the forest is already fitted, the weights that
            it was fitted with.
        folder : str or path-like, default=None
            Folder for large arrays, only for :class:`leafkernel.Batches`. By default, a temporary
            folder. You can read the folder with :meth:`load` afterwards. To resume an interrupted
            fit, call it again with the same folder.

        Returns
        -------
        ForestProximity
            The fitted object itself.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from leafkernel import ForestProximity
        >>> X, y = load_iris(return_X_y=True)
        >>> prox = ForestProximity(RandomForestClassifier(50, random_state=0)).fit(X, y)
        >>> prox.n_trees_, prox.n_samples_fit_
        (50, 150)
        """
        if isinstance(X, Batches):
            return self._fit_batches(X, y, sample_weight, folder)
        if folder is not None:
            raise ValueError(
                "folder can only be used if X is a Batches object. Call save(folder) after fit "
                "instead."
            )
        # Copied, so that later changes to the scheme do not affect this fit.
        scheme = deepcopy(find_scheme(self.weight_scheme))
        self._check_params()
        if any(map(is_dask, (X, y, sample_weight))):
            return self._fit_on_dask(scheme, X, y, sample_weight)
        n_threads = count_threads(self.n_jobs)
        y, sample_weight = in_main_memory(y), in_main_memory(sample_weight)
        refuse_masked("y", y)
        refuse_masked("sample_weight", sample_weight)
        check_same_lengths(X, y, None if np.isscalar(sample_weight) else sample_weight)
        estimator = forests.fit_if_needed(self.forest, X, y, sample_weight)
        forest = forests.adapt(estimator, n_threads=n_threads)
        route = getattr(find_engine(self.engine, n_threads=n_threads), "route", None)
        samples = read_samples(
            forest, scheme, X, y, sample_weight, n_threads=n_threads, route=route
        )
        fitted = copy(self)
        check_columns(fitted, X, reset=True)
        fitted._take_fit(estimator, forest, scheme, samples, y, sample_weight)
        fitted._weigh(None, n_threads)
        fitted._describe_fit(index_of(X, samples.n_samples))
        # Replace the state in one step. If fit fails, the earlier fit is unchanged. Other threads
        # see either the old fit or the new one.
        self.__dict__ = dict(vars(fitted))
        return self

    def _fit_batches(
        self, X: Batches, y: Any, sample_weight: Any, folder: str | os.PathLike[str] | None
    ) -> ForestProximity:
        scheme = deepcopy(find_scheme(self.weight_scheme))
        self._check_params()
        if not forests.is_fitted(self.forest):
            raise ValueError(
                "forest is not fitted, and it cannot be fitted on Batches. Fit it first, on a "
                "subset of the data that fits in memory or with a library that reads from disk."
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
        if identity is not None and saving.identity_of(place) == identity:  # already fitted
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
        if folder is None:  # delete the temporary folder once the kernel is no longer used
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
        """Return a proximity with another weight scheme for the same forest and training samples.

        Use it to compare schemes, or if one task needs another scheme. It reuses the leaves, in-bag
        weights and statistics of this object, so samples are not routed through the trees again.

        Parameters
        ----------
        weight_scheme, diagonal, symmetrize, dtype : default=None
            As in the constructor. None keeps the current value.
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features), default=None
            The training samples. Required only by "ih", and for the in-bag weights of your own
            :class:`leafkernel.forests.Forest`.

        Returns
        -------
        ForestProximity
            A new fitted object. This object does not change.

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
        fitted = copy(self)  # not the copy in `inside`, which never returns lazy arrays
        given = {
            "weight_scheme": weight_scheme,
            "diagonal": diagonal,
            "symmetrize": symmetrize,
            "dtype": dtype,
        }
        # Parameters that were changed after fit take effect only with the next fit.
        for name, value in fitted._fitted_with.items():
            setattr(fitted, name, value if given[name] is None else given[name])
        fitted._check_params()
        if weight_scheme is not None:
            fitted.scheme_ = deepcopy(find_scheme(weight_scheme))
        if X is not None:
            X = in_main_memory(X)
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
        """Add reference samples without refitting.

        The forest does not change. The new samples count as if they had been passed to :meth:`fit`
        together with the others. The existing samples are not routed or indexed again.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            New samples. They are appended to the existing ones.
        y : array-like of shape (m,) or (m, n_outputs), default=None
            Targets of the new samples. Required if :meth:`fit` got targets.

        Returns
        -------
        ForestProximity
            The object itself, with more reference samples.

        Raises
        ------
        ValueError
            If the scheme needs in-bag weights ("gap", "oob", "oob_separable"). New samples have
            none, because no tree was trained on them.

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
        # Parts on disk were made as large as the memory limit allows, so they must not grow.
        most = max(part.n_samples for part in parts) if parts[0].is_mapped else None
        cuts = cuts_with([part.n_samples for part in parts], new.n_samples, most)
        fitted._samples, fitted._sample_weight = samples, None
        for name, value in fitted._fitted_with.items():
            setattr(fitted, name, value)

        cells, before = inside.scheme.cells(stats), fitted.kernel_.cells
        same_cells = cells is None or (
            before is not None and np.array_equal(cells.of_leaf, before.of_leaf)
        )

        def list_part(i: int, rows: WeighedRows) -> core.LeafLists | None:
            # Lists store only the by_entry factor. Without one, existing lists stay valid.
            is_known = same_cells and i < len(cuts) - 1 and rows.weighting.by_entry is None
            if is_known or parts[0].listed is None:
                return parts[i].listed if is_known else None
            return list_by_leaf(rows, n_threads=n_threads)

        fitted._fit_kernel(stats, n_threads, cuts=cuts, list_part=list_part)
        fitted.n_samples_fit_ = samples.n_samples
        fitted.index_ = join_indexes(fitted.index_, index_of(X, new.n_samples))
        fitted._targets = Targets(targets)
        fitted.y_ = fitted._targets.values
        fitted._returns_lazily = self._returns_lazily
        self.__dict__ = dict(vars(fitted))
        return self

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the fitted object to a folder, as plain arrays.

        The forest is written as a skops file. LightGBM, XGBoost and CatBoost models are written in
        the format of their own library. If the folder holds an earlier save, it is replaced once
        the new one is complete. If this fails, the earlier save is unchanged.

        Parameters
        ----------
        folder : str or path-like
            A new folder, an empty folder, or a folder with an earlier save.

        Returns
        -------
        pathlib.Path
            The folder.

        See Also
        --------
        load : Read a saved object.

        Examples
        --------
        >>> import tempfile
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     prox.save(folder).is_dir()
        True
        """
        inside = Inside.of(self)
        inside.require_in_memory("save", "fit on data in memory instead")
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
        """Read a fitted object from a folder written by :meth:`save`.

        The arrays are memory-mapped: they are read when needed, and several processes can share
        them. No code from the folder is executed.

        Parameters
        ----------
        folder : str or path-like
            The folder.
        weight_scheme : WeightScheme or callable, default=None
            The weight scheme. Required if it is your own, because such schemes are not saved.
        forest : estimator, default=None
            The fitted forest, to use instead of the saved one. Required if its class is your own,
            because such forests are not saved.
        trusted : sequence of str, default=()
            Types in the forest that you trust and that skops does not know.
        verify : bool, default=True
            Whether to verify the checksums of all files first. Without it, loading is faster. You
            can call ``leafkernel.saving.verify(folder)`` later. Ids that index into memory are
            always checked.

        Returns
        -------
        ForestProximity
            The fitted object.

        Raises
        ------
        leafkernel.saving.DamagedError
            If the folder is damaged, incomplete, or was written by a newer version of leafkernel.

        Examples
        --------
        >>> import tempfile
        >>> from leafkernel import ForestProximity
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

        This builds the whole matrix. If it does not fit in memory, use :meth:`kneighbors`,
        :meth:`operator` or :meth:`iter_proximity`.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used. They are then compared using their
            out-of-bag trees, if the scheme uses out-of-bag trees. Any X that you pass is treated as
            new data.
        sort : bool, default=True
            Whether to sort the column indices of each row. Computing unsorted rows is faster. SciPy
            sorts them itself when an operation requires it.
        dense : bool, default=False
            Whether to return a dense array instead of a sparse one. Shallow trees and boosted
            models have mostly nonzero proximities; a sparse array then takes twice the memory.

        Returns
        -------
        csr_array or ndarray of shape (m, n)
            The proximities P. A sparse array stores no explicit zeros.

        Raises
        ------
        MemoryError
            If P would exceed ``max_memory``.

        Examples
        --------
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]], dtype="float64")
        >>> prox.proximity([[2, 4]]).toarray().round(3)
        array([[0.5, 0. , 0.5]])
        """
        check_flag("sort", sort)
        check_flag("dense", dense)
        if isinstance(X, Batches):
            on_host = Inside.of(self).prox
            return X.joined(lambda rows: on_host.proximity(rows, sort=sort, dense=dense))
        inside = Inside.of(self)
        product, prox, engine = inside.product(X), inside.prox, inside.own_engine
        limit = prox._limit(engine)
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
        """Yield the proximities in blocks of rows.

        Only one block is in memory at a time.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used; see :meth:`proximity`.
        block_size : int, default=4096
            Number of rows in a block.
        sort : bool, default=True
            Whether to sort the column indices of each row.

        Yields
        ------
        rows : slice
            The rows of P in the block.
        block : csr_array of shape (len(rows), n)
            The proximities ``proximity(X)[rows]``.

        Examples
        --------
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
        >>> for rows, block in prox.iter_proximity(block_size=2):
        ...     print(rows.start, rows.stop, block.shape)
        0 2 (2, 3)
        2 3 (1, 3)
        """
        check_flag("sort", sort)
        size = check_count("block_size", block_size)
        inside = Inside.of(self)
        if isinstance(X, Batches):
            return blocks_of_batches(inside, X, size, sort=sort)
        return inside.blocks(X, size, sort=sort, engine=inside.own_engine)

    def proximity_to(self, rows: npt.ArrayLike, X: Any = None) -> csr_array:
        """Return the proximities of samples to selected training samples.

        Use it for prototypes or landmarks, or to compare all samples with a single one. It computes
        only the selected columns of P.

        Parameters
        ----------
        rows : array-like of shape (k,)
            Labels of the training samples (see ``index_``).
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used; see :meth:`proximity`.

        Returns
        -------
        csr_array of shape (m, k)
            The columns ``proximity(X)[:, rows]``.

        Examples
        --------
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]], dtype="float64")
        >>> prox.proximity_to([2]).toarray().ravel().round(3)
        array([0. , 0.5, 1. ])
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
        """Find the most similar training samples of each sample.

        The full matrix P is never built.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used; see :meth:`proximity`. A training
            sample is never its own neighbor.
        n_neighbors : int, default=10
            Number of neighbors.
        by : {"value", "magnitude"}, default="value"
            Whether to rank by the proximity or by its absolute value. The two differ only for
            schemes with negative weights.

        Returns
        -------
        similarity : ndarray of shape (m, n_neighbors)
            Proximities, most similar first.
        neighbors : ndarray of int64 of shape (m, n_neighbors)
            Positions of the training samples. Ties are ordered by position. If a sample has fewer
            than ``n_neighbors`` nonzero proximities, its row is filled with training samples of
            proximity 0, in order of position.

        Examples
        --------
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]], dtype="float64")
        >>> similarity, neighbors = prox.kneighbors([[2, 5]], n_neighbors=2)
        >>> similarity.round(3)
        array([[1. , 0.5]])
        >>> neighbors.tolist()
        [[2, 1]]
        """
        check_choice("by", by, ("value", "magnitude"))
        if isinstance(X, Batches):
            on_host = Inside.of(self).prox
            return X.joined(lambda rows: on_host.kneighbors(rows, n_neighbors, by=by))
        inside = Inside.of(self)
        product = inside.product(X)
        n_neighbors = check_n_neighbors(n_neighbors, inside.n_samples, itself=X is None)
        enabled = inside.prox.progress
        with progress_bar("kneighbors", product.n_rows, enabled=enabled) as on_progress:
            return inside.own_engine.nearest(
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
        """Write the most similar training samples of each sample to a file.

        Only one block of rows is in memory at a time. To resume after an interruption, call this
        method again with the same arguments.

        Parameters
        ----------
        path : str or path-like
            The file. A ``.parquet`` file has one line for each pair, with the columns ``row``,
            ``neighbor`` (both positions, from 0) and ``proximity``. Pairs with proximity 0 are left
            out. A ``.npy`` file holds the neighbors, of shape (m, n_neighbors); a second file that
            ends in ``.proximity.npy`` holds the proximities. With Dask, the path is a folder of
            Parquet files that all workers can access.
        X : {Batches, array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used; see :meth:`kneighbors`. Samples in
            :class:`leafkernel.Batches` are never all in memory at once.
        n_neighbors : int, default=10
            Number of neighbors.
        by : {"value", "magnitude"}, default="value"
            As in :meth:`kneighbors`.

        Returns
        -------
        pathlib.Path
            The file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = prox.write_neighbors(Path(folder) / "neighbors.npy", n_neighbors=1)
        ...     np.load(path).tolist()
        [[1], [0], [1]]
        """
        check_choice("by", by, ("value", "magnitude"))
        inside = Inside.of(self)
        n_neighbors = check_n_neighbors(n_neighbors, inside.n_samples, itself=X is None)
        return write_neighbors(inside, path, X, n_neighbors, by)

    @_lazily
    def write_proximity(self, path: str | os.PathLike[str], X: Any = None) -> Path:
        """Write the proximities to a Parquet file, block by block.

        The file has one line for each nonzero entry of P, with the columns ``row``, ``neighbor``
        (the column of P) and ``proximity``. To resume after an interruption, call this method again
        with the same arguments.

        Parameters
        ----------
        path : str or path-like
            The file. Its name must end in ``.parquet``. With Dask, it is a folder of Parquet files.
        X : {Batches, array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used; see :meth:`proximity`. Samples in
            :class:`leafkernel.Batches` are never all in memory at once.

        Returns
        -------
        pathlib.Path
            The file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pandas as pd
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = prox.write_proximity(Path(folder) / "proximity.parquet")
        ...     pd.read_parquet(path).columns.tolist()
        ['row', 'neighbor', 'proximity']
        """
        return write_proximity(Inside.of(self), path, X)

    def neighbors_frame(self, X: Any = None, n_neighbors: int = 10) -> Any:
        """Return the most similar training samples of each sample as a data frame.

        Samples are identified by the index labels of your data frames.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used; see :meth:`kneighbors`.
        n_neighbors : int, default=10
            Number of neighbors. A sample with fewer positive proximities has fewer lines.

        Returns
        -------
        pandas.DataFrame
            One line for each pair, most similar first. The columns are ``sample`` (label of the
            sample), ``rank`` (from 1), ``neighbor`` (label of the training sample), ``position``
            (position of the neighbor in the training data), ``proximity``, and ``target`` if
            :meth:`fit` got one target for each sample.

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
        """Return the graph of nearest neighbors as a sparse matrix.

        With ``mode="distance"``, you can pass the graph to scikit-learn estimators that accept
        ``metric="precomputed"``. Choose ``n_neighbors`` large enough for them: several times
        ``min_samples`` for DBSCAN, and three times ``perplexity`` for t-SNE.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used; see :meth:`proximity`.
        n_neighbors : int, default=10
            Number of neighbors.
        mode : {"proximity", "distance"}, default="proximity"
            Whether the entries are proximities p or distances 1 - p. Distances are 0 if p > 1,
            which can occur with "oob_separable".

        Returns
        -------
        csr_array of shape (m, n)
            The graph. Each row stores ``n_neighbors`` entries, including zeros. With
            ``mode="proximity"``, they are sorted by column. With ``mode="distance"``, they are
            sorted by distance, and each training sample has an additional entry: itself, at
            distance 0.

        Examples
        --------
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]], dtype="float64")
        >>> prox.kneighbors_graph(n_neighbors=1).toarray().round(3)
        array([[0. , 0.5, 0. ],
               [0.5, 0. , 0. ],
               [0. , 0.5, 0. ]])
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
        """Return the query map Q: the samples in leaf coordinates.

        There is one column for each leaf, and each row has at most one nonzero for each tree. With
        schemes that compare whole paths ("pbk" and "rpk"), there is one column for each node, and
        each row has a nonzero for each node on its paths.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used; see :meth:`proximity`.

        Returns
        -------
        csr_array of shape (m, L)
            The map Q. P = Q Wᵀ, except for the diagonal. The shape is (m, 2L) if the kernel is
            symmetrized.

        Examples
        --------
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
        >>> prox.query_map().shape == (3, prox.n_leaves_)
        True
        """
        if isinstance(X, Batches):
            return X.joined(self.query_map)
        inside = Inside.of(self)
        samples = inside.route_if_given(X)
        inside.require_maps("query_map()")
        return inside.kernel.query_map(samples)

    @_lazily
    def reference_map(self) -> csr_array:
        """Return the reference map W of the training samples.

        Returns
        -------
        csr_array of shape (n, L)
            The map W. P = Q Wᵀ, except for the diagonal. The shape is (n, 2L) if the kernel is
            symmetrized.

        Examples
        --------
        >>> import numpy as np
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
        >>> P = prox.query_map() @ prox.reference_map().T
        >>> bool(np.allclose(P.toarray(), prox.proximity().toarray()))
        True
        """
        inside = Inside.of(self)
        inside.require_maps("reference_map()")
        return inside.kernel.reference_map()

    def operator(self, X: Any = None) -> ProximityOperator:
        """Return the proximity matrix as a linear operator.

        Products with the operator never build the matrix. Use it for solvers and eigenvalue
        problems.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used; see :meth:`proximity`.

        Returns
        -------
        scipy.sparse.linalg.LinearOperator of shape (m, n)
            An operator A. ``A @ V`` equals ``proximity(X) @ V``, and ``A.T`` is the adjoint. Use
            ``eigsh`` only for symmetric kernels, and ``svds`` or ``eigs`` for others.

        Examples
        --------
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]], dtype="float64")
        >>> (prox.operator() @ [1.0, 1.0, 1.0]).round(3)
        array([1.5, 2. , 1.5])
        """
        inside = Inside.of(self)
        samples, kernel = inside.route_if_given(X), inside.kernel
        inside.require_maps("operator()")
        return ProximityOperator(
            inside.engine,
            kernel.training_product() if samples is None else kernel.product(samples),
            lambda: kernel.transposed_product(samples, n_threads=inside.n_threads),
            kernel.diagonal_shift() if samples is None else None,
        )

    @_lazily
    def weighted_sums(self, values: npt.ArrayLike, X: Any = None) -> npt.NDArray[np.float64]:
        """Sum values of the training samples, weighted by proximity: ``P @ values``.

        The full matrix P is never built. Schemes with maps use the maps; other schemes compute the
        sums row by row.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, c)
            Values of the training samples.
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used; see :meth:`proximity`.

        Returns
        -------
        ndarray of float64 of shape (m,) or (m, c)
            The sums.

        Examples
        --------
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
        >>> prox.weighted_sums([1.0, 2.0, 3.0]).round(3)
        array([2., 4., 4.])
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
        """Average values of the training samples, weighted by proximity.

        With "gap" and the training targets, this is the forest's prediction: the out-of-bag
        prediction for the training samples, and the usual one for new samples.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, c)
            Values of the training samples, such as targets or class indicators.
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used; see :meth:`proximity`.

        Returns
        -------
        ndarray of float64 of shape (m,) or (m, c)
            The averages: each row of P, divided by its sum, times the values. If all proximities of
            a sample are 0, its average is NaN, and a warning is issued. With Dask, the result is
            lazy, and each block issues its own warning when it is computed. On a cluster, the
            worker prints the warning.

        Examples
        --------
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
        >>> prox.weighted_average([1.0, 2.0, 3.0]).round(3)
        array([1.333, 2.   , 2.667])
        """
        if isinstance(X, Batches):
            return X.joined(lambda rows: self.weighted_average(values, rows))
        inside = Inside.of(self)
        check_averages(inside.scheme)
        values = check_values(values, inside.n_samples)
        columns = values.reshape(inside.n_samples, -1)
        sums, mass = inside.sums_and_mass(inside.product(X), columns)
        warn_of_nan(mass)
        average = weighted_means(sums, mass, np.nan)
        return average.reshape(len(average), *values.shape[1:])

    def forecast(self, X: Any = None) -> Forecast:
        """Estimate the cost of :meth:`proximity` without building the matrix.

        Use it to find out whether P fits in memory.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
            New samples. If None, the training samples are used; see :meth:`proximity`.

        Returns
        -------
        Forecast
            Collisions, nonzeros, memory, time, and advice. Print it.

        Examples
        --------
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
        >>> prox.forecast().nonzeros
        7
        """
        inside = Inside.of(self)
        inside.require_in_memory("forecast", "P needs no forecast, as it is computed in blocks")
        return forecast(
            inside.product(X), inside.engine, limit=inside.prox._limit(inside.own_engine)
        )

    def explore(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Create an interactive HTML page of the training samples.

        The page shows a map of the samples, their neighbors, and explanations. A notebook displays
        the result. Elsewhere, save it and open it in a browser.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            The training samples, as passed to :meth:`fit`.
        y : array-like of shape (n,), default=None
            The targets: classes or numbers. By default, the targets passed to :meth:`fit`.
        **params
            Other parameters of :func:`leafkernel.explorer.build_report`: ``X_new`` for new samples
            on the map, ``shown`` for the values to display, ``ids``, ``title``, ``method``.

        Returns
        -------
        leafkernel.explorer.Report
            The page: a single HTML file that works offline. ``save(path)`` writes it.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from leafkernel import ForestProximity
        >>> X, y = load_iris(return_X_y=True)
        >>> prox = ForestProximity(RandomForestClassifier(50, random_state=0)).fit(X, y)
        >>> report = prox.explore(X, y, method="pca", title="Iris")
        """
        # Imported here because most uses do not need it.
        from leafkernel.explorer import build_report  # noqa: PLC0415

        advice = "fit another one on some of the samples, in memory"
        Inside.of(self).require_in_memory("explore", advice)
        return build_report(self, X, y, **params)

    def transform(self, X: Any) -> csr_array:
        """Return the leaf coordinates of samples.

        This is :meth:`query_map` with X treated as new data. With ``"oob"``, this method does not
        exist. Use ``"oob_separable"`` instead.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (m, n_features)
            Samples.

        Returns
        -------
        csr_array of shape (m, L)
            The query map.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from leafkernel import ForestProximity
        >>> X, y = load_iris(return_X_y=True)
        >>> prox = ForestProximity(RandomForestClassifier(20, random_state=0), "kerf").fit(X, y)
        >>> prox.transform(X).shape == (150, prox.n_leaves_)
        True
        """
        return self.query_map(X)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> csr_array:
        """Fit, and return the query map of the training samples.

        The result is ``fit(X, y).query_map()``. It differs from ``fit(X, y).transform(X)`` for
        schemes that use out-of-bag trees, because ``transform`` treats X as new data.

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

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from leafkernel import ForestProximity
        >>> X, y = load_iris(return_X_y=True)
        >>> prox = ForestProximity(RandomForestClassifier(20, random_state=0), "kerf")
        >>> prox.fit_transform(X, y).shape[0]
        150
        """
        return self.fit(X, y, sample_weight).query_map()

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the leaf coordinates, such as ``tree3_leaf17``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Checked against the feature names seen during fit, and not used otherwise.

        Returns
        -------
        ndarray of str of shape (L,)
            The names. If the kernel is symmetrized, there are 2L names, with the prefixes
            ``query_`` and ``reference_``.

        Examples
        --------
        >>> from leafkernel import ForestProximity
        >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
        >>> prox.get_feature_names_out()[:2].tolist()
        ['tree0_leaf0', 'tree0_leaf1']
        """
        inside = Inside.of(self)
        check_names_out(inside.prox, input_features)
        kernel = inside.kernel
        what = "leaf" if kernel.nodes is None else "node"
        offsets = kernel.stats.leaf_offsets if kernel.nodes is None else kernel.coordinates.first
        sizes = np.diff(offsets)
        names = [f"tree{t}_{what}{i}" for t, size in enumerate(sizes) for i in range(size)]
        if kernel.symmetrize:
            names = [f"{side}_{name}" for side in ("query", "reference") for name in names]
        return np.array(names, dtype=object)

    @property
    def base_score_(self) -> float:
        """Raw score of a boosted model before its first tree. Only with the scheme "gradient"."""
        scheme = vars(self).get("scheme_")
        if not isinstance(scheme, Gradient):
            raise AttributeError(
                "base_score_ is available only after fit with weight_scheme='gradient'."
            )
        return scheme.base_score(self.kernel_.forest)

    @property
    def tree_weights_(self) -> npt.NDArray[np.float64]:
        """Weight of each tree, shape (T,). Only with the scheme "learned"."""
        scheme = vars(self).get("scheme_")
        scheme = scheme.scheme if isinstance(scheme, Collapsed) else scheme
        if not isinstance(scheme, Learned):
            raise AttributeError(
                "tree_weights_ is available only after fit with weight_scheme='learned'."
            )
        return scheme.tree_weights(self.kernel_.forest)

    @property
    def _n_features_out(self) -> int:
        return self.kernel_.coordinates.n_columns

    def _figures(self) -> dict[str, str]:
        if not hasattr(self, "kernel_"):
            return {}
        n, n_trees, n_leaves = self.n_samples_fit_, self.n_trees_, self.n_leaves_
        cells = getattr(self.kernel_, "cells", None)
        merged = ""
        if cells is not None and len(cells.nodes) < n_leaves:
            n_leaves, merged = len(cells.nodes), f" of {n_leaves:,} after collapsing"
        symmetric = self.kernel_.is_symmetric
        return {
            "training samples": f"{n:,}",
            "features": f"{self.n_features_in_:,}",
            "trees": f"{n_trees:,}",
            "leaves": f"{n_leaves:,}{merged} ({n * n_trees / n_leaves:.3g} samples per leaf)",
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
                "This ForestProximity was pickled by another version of leafkernel (its layout is "
                f"{layout}; this version reads layout {_LAYOUT}). Fit again, or unpickle it with "
                "the version that wrote it."
            )
        super().__setstate__({name: value for name, value in state.items() if name != "_layout"})

    def _fit_on_dask(
        self, scheme: WeightScheme, X: Any, y: Any, sample_weight: Any
    ) -> ForestProximity:
        """Fit on Dask data, which stays on the workers."""
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
        """Store the inputs of fit and the routed training samples."""
        if hasattr(self, "feature_names_in_"):  # may share memory with the data frame
            self.feature_names_in_ = np.array(self.feature_names_in_)
        self.forest_, self._router, self.scheme_ = estimator, router, scheme
        self._samples = samples
        self._sample_weight = None if sample_weight is None else np.array(sample_weight)
        self._targets = Targets(y)
        self.y_ = self._targets.values

    def _describe_fit(self, index: Any) -> None:
        """Store the sizes of the fit and the parameters that define the kernel."""
        self.n_trees_ = self.kernel_.forest.n_trees
        self.n_leaves_ = self.kernel_.forest.n_leaves
        self.n_samples_fit_ = self.kernel_.n_samples
        self.index_ = index
        self._keep_params()

    def _weigh(self, stats: ForestStats | None, n_threads: int, **parts: Any) -> None:
        """Compute the weights of the training samples, and index them."""
        stats = read_stats(
            self._router,
            self.scheme_,
            self._samples,
            progress=self.progress,
            n_threads=n_threads,
            stats=stats,
            count=getattr(find_engine(self.engine, n_threads=n_threads), "count_leaves", None),
        )
        self._fit_kernel(stats, n_threads, **parts)
        self._keep_params()

    def _fit_kernel(self, stats: ForestStats, n_threads: int, **parts: Any) -> None:
        if getattr(find_engine(self.engine, n_threads=n_threads), "lists_samples", False):
            parts.setdefault("list_part", lambda *_: None)
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
        if self.kernel_.nodes is not None:
            engine_for_paths(self.engine, n_threads=1)  # raises if it cannot compare paths

    def _keep_params(self) -> None:
        """Store the parameters that define the kernel."""
        names = ("weight_scheme", "diagonal", "symmetrize", "dtype")
        self._fitted_with = {name: getattr(self, name) for name in names}

    def _limit(self, engine: Engine | None = None) -> int:
        """Return the memory that a matrix may take, where the engine returns it."""
        if self.max_memory is not None:
            return parse_bytes(self.max_memory)
        of_device = getattr(engine, "result_bytes", lambda: None)()
        return available_bytes() if of_device is None else of_device

    def _most_entries(self, product: Product, engine: Engine, limit: int) -> int:
        """Return the largest number of nonzeros allowed, or raise if more are expected."""
        most = most_nonzeros(product.n_rows, product.dtype.itemsize, limit)
        at_most = int(np.minimum(engine.collisions(product) + 1, product.shape[1]).sum())
        if at_most <= most:
            return at_most  # the upper bound fits, so no estimate is needed
        if not hasattr(product, "row_order"):
            return most  # no forecast for rows on other machines
        expected = forecast(product, engine, limit=limit)
        if csr_bytes(product.n_rows, expected.nonzeros_at_least, product.dtype.itemsize) > limit:
            size = f"about {format_bytes(expected.bytes)} ({expected.nonzeros:,} nonzeros), more"
            raise MemoryError(self._too_large(size, limit))
        return most

    def _too_large(self, size: str, limit: int) -> str:
        source = "max_memory" if self.max_memory is not None else "the available memory"
        more = "" if self.max_memory is None else " Or use a larger max_memory."
        why = ""
        if getattr(self.kernel_, "nodes", None) is not None:
            why = (
                f" With weight_scheme={self.scheme_.name!r} it has no zeros, because all samples "
                "share the roots of the trees."
            )
        return (
            f"The proximity matrix would take {size} than {source} ({format_bytes(limit)}).{why} "
            f"{TOO_LARGE_ADVICE}.{more}"
        )


class _WithMaps:
    """A method that exists only if the scheme has maps.

    Like scikit-learn's ``available_if``, but the error says why and what to use instead.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, instance: ForestProximity | None, owner: type) -> Any:
        if instance is None:
            return self._method
        try:
            scheme = find_scheme(instance.weight_scheme)
        except (TypeError, ValueError):
            scheme = None  # fit raises the error
        if scheme is not None and scheme.divides_by_shared_oob:
            raise AttributeError(no_maps(scheme, f"{self._method.__name__}()"))
        return MethodType(self._method, instance)


# scikit-learn wraps these methods for `set_output` when it creates the class, so they are replaced
# afterwards.
for _method in ("transform", "fit_transform", "get_feature_names_out"):
    setattr(ForestProximity, _method, _WithMaps(getattr(ForestProximity, _method)))
