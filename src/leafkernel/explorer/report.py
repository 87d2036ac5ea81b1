"""Build the report that an interactive page shows."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy.typing as npt
from scipy.sparse import issparse

from leafkernel._files import open_whole
from leafkernel._validation import check_choice, check_count, check_length
from leafkernel.explorer._blob import Blob
from leafkernel.explorer._columns import PageTable
from leafkernel.explorer._contributions import find_contributions, with_similarities
from leafkernel.explorer._forest import name_forest, read_splits
from leafkernel.explorer._judgement import Judgement
from leafkernel.explorer._map import ABOUT_MAPS, ABOUT_NEW_ROWS, MAP_LABELS, MAPS, draw_map
from leafkernel.explorer._names import RowNames
from leafkernel.explorer._page import make_page
from leafkernel.explorer._prototypes import prototypes
from leafkernel.explorer._rows import PageRows
from leafkernel.inside import Inside
from leafkernel.proximity import ForestProximity
from leafkernel.tasks import outlier_scores
from leafkernel.tasks._base import check_proximity, check_same_samples, without_self

Array = npt.NDArray[Any]

#: Largest number of rows on a page.
MOST_ROWS = 100_000


@dataclass(frozen=True, repr=False)
class Report:
    """An interactive page about a forest and its training rows, returned by ``build_report``.

    A notebook shows it as the result of a cell. Use ``save`` to write it to a file.

    Attributes
    ----------
    title : str
        Title of the page.
    score_text : str
        Score of the predictions, in one line.
    n_rows : int
        Number of training rows on the page.
    data : str
        The data of the page, compressed and encoded.
    judgement : Judgement
        Targets and predictions of the training rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.explorer import build_report
    >>> X, y = load_iris(return_X_y=True)
    >>> prox = ForestProximity(RandomForestClassifier(50, random_state=0)).fit(X, y)
    >>> report = build_report(prox, X, title="iris", method="pca")
    >>> report.html().startswith("<!doctype html>")
    True
    """

    title: str
    score_text: str
    n_rows: int
    data: str
    judgement: Judgement

    def html(self) -> str:
        """Return the page as HTML.

        Returns
        -------
        str
            A complete HTML document that works offline.
        """
        return make_page(self.title, self.data)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to a file.

        Parameters
        ----------
        path : str or path-like
            The file to write. An existing file is replaced when the page is complete.

        Returns
        -------
        pathlib.Path
            The absolute path of the file.
        """
        with open_whole(path) as file:
            file.write(self.html().encode())
        return Path(path).resolve()

    def __repr__(self) -> str:
        rows = "row" if self.n_rows == 1 else "rows"
        return f"Report({self.title!r}: {self.n_rows:,} {rows}, {self.score_text}; .save(path))"

    def _repr_html_(self) -> str:
        page = html.escape(self.html(), quote=True)
        title = html.escape(self.title, quote=True)
        return (
            f'<iframe srcdoc="{page}" title="{title}" width="100%" height="760" '
            'style="border: 1px solid #8884; border-radius: 6px" '
            'sandbox="allow-scripts allow-downloads"></iframe>'
        )


def build_report(
    prox: ForestProximity,
    X: Any,
    y: Any = None,
    *,
    shown: Any = None,
    ids: Any = None,
    id_name: str = "",
    positions: Any = None,
    X_new: Any = None,
    shown_new: Any = None,
    ids_new: Any = None,
    title: str = "",
    target_name: str = "",
    notes: Iterable[str] = (),
    method: str = "auto",
    n_neighbors: int = 10,
    random_state: int = 0,
    on_step: Callable[[str], None] | None = None,
) -> Report:
    """Build an interactive page that shows the training rows and their proximities.

    Use it to explore a table, or to show a model to others. The page has a map of the rows, the
    neighbors of each row, predictions, outliers, prototypes and columns. It is one HTML file that
    works offline.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity. With "gap", the proximities on the page are the exact shares of the
        out-of-bag predictions. For a boosted model with any scheme, the page shows the training
        rows that push its scores up and down. With "gradient", neighbors and map use "kerf".
    X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
        The training samples of ``prox``.
    y : array-like of shape (n,), default=None
        The targets: classes or numbers. By default, those that ``prox`` was fitted on.
    shown : dataframe of shape (n, d), default=None
        The rows in readable form, if X is encoded. Defaults to X.
    ids : array-like of shape (n,), default=None
        Names of the rows. Defaults to the index of X or ``shown``, or to the positions of the rows
        if there is no index or if it only counts the rows.
    id_name : str, default=""
        Name of the ids. Defaults to the name of the index, or "row".
    positions : array-like of shape (n,), default=None
        Row numbers to show. Defaults to the positions in X.
    X_new : {array-like, sparse matrix, dataframe} of shape (m, n_features), default=None
        New rows to show on the map, with their predictions and neighbors.
    shown_new : dataframe of shape (m, d), default=None
        The new rows in readable form. Required if ``shown`` is given.
    ids_new : array-like of shape (m,), default=None
        Names of the new rows. The default is the same as for ``ids``.
    title : str, default=""
        Title of the page. By default, it is derived from the target and the forest.
    target_name : str, default=""
        Name of the target. Defaults to the name of y, or "target".
    notes : iterable of str, default=()
        Notes on the data to show on the page.
    method : str, default="auto"
        Method that draws the map: "umap", "tsne", "phate", "pca", "spectral", "diffusion" or "mds".
        "auto" is "umap" if umap-learn is installed and there are at least 30 rows, else "pca".
    n_neighbors : int, default=10
        Number of neighbors to show for each row.
    random_state : int, default=0
        Seed of the map. For more than 20,000 rows, UMAP runs on all threads and results vary.
    on_step : callable, default=None
        Called with the name of each step when it starts.

    Returns
    -------
    Report
        The page. Show it in a notebook, or call its ``save``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from leafkernel import ForestProximity
    >>> from leafkernel.explorer import build_report
    >>> data = load_iris(as_frame=False)
    >>> prox = ForestProximity(RandomForestClassifier(50, random_state=0))
    >>> prox = prox.fit(data.data, data.target)
    >>> labels = data.target_names[data.target]
    >>> build_report(prox, data.data, labels, title="iris", method="pca").n_rows
    150
    """
    prox = check_proximity(prox)
    check_choice("method", method, MAPS)
    check_count("n_neighbors", n_neighbors)
    X = X.tocsr() if issparse(X) else X
    X_new = X_new.tocsr() if issparse(X_new) else X_new
    y = prox.y_ if y is None else y
    n = _check_rows(prox, X, y, shown=shown, ids=ids, positions=positions)
    n_new = _check_new_rows(n, X_new, shown, shown_new=shown_new, ids_new=ids_new)
    step = on_step or (lambda _: None)
    boosted, prox = prox, with_similarities(prox)

    step("predicting each row from the others")
    others = without_self(prox)
    judgement = Judgement.of(others, y)
    trees, feature_names = read_splits(prox)
    table = PageTable.of(prox, X, shown, feature_names)
    columns = table.columns
    if X_new is not None:  # include the categories of new rows
        shown_new = X_new if shown is None else shown_new
        columns = table.followed_by(shown_new, n_new, by_name=shown is not None)
    step("finding outliers and prototypes")
    outliers = outlier_scores(others, judgement.target, X=X)
    typical = prototypes(others, judgement, columns)
    step("finding neighbors")
    k = min(n_neighbors, n - 1)
    rows = PageRows.of(others, judgement, outliers, k, None)
    routed = Inside.of(others).route_if_given(X_new)
    new = None if routed is None else PageRows.of(others, judgement, None, k, routed)
    step("explaining similarities")
    rows = rows.explained(others, trees, len(feature_names), None)
    if new is not None:
        new = new.explained(others, trees, len(feature_names), routed)
    contributions, refused = find_contributions(boosted, k, routed, step)
    step("drawing the map")
    chosen, points = draw_map(prox, X, method, random_state, routed)

    step("building the page")
    blob = Blob()
    given = getattr(y, "name", None)
    name = target_name or (str(given) if isinstance(given, (str, int)) else "target")
    title = title or f"{name}: {name_forest(prox)}"
    score = judgement.score()
    names = RowNames.of(n, X, shown, ids=ids, name=id_name, positions=positions)
    new_names = None
    if new is not None:
        new_names = RowNames.of(n_new, X_new, shown_new, ids=ids_new, name="", positions=None)
    header = {
        "format": 2,
        "version": version("leafkernel"),
        "title": title,
        "task": "regression" if judgement.classes is None else "classification",
        "n": n + n_new,
        "n_new": n_new,
        "forest": name_forest(prox),
        "scheme": prox.scheme_.name,
        "shares": judgement.out_of_bag,
        "score": {key: value for key, value in score.items() if key != "value"},
        "notes": [*map(str, notes), *table.notes, *refused],
        "embedding": {
            "label": MAP_LABELS[chosen],
            "about": ABOUT_MAPS,
            "about_new": ABOUT_NEW_ROWS[chosen],
            "x": blob.add(points[:, 0], "float32"),
            "y": blob.add(points[:, 1], "float32"),
        },
        "id": names.describe(blob, new_names),
        **table.describe(blob, columns),
        **rows.followed_by(new).describe(blob, name, prox.n_trees_),
        "prototypes": typical,
        "contributions": contributions
        and contributions.describe(blob, has_classes=judgement.classes is not None),
    }
    line = judgement.line()
    return Report(title, line[0].lower() + line[1:], n, blob.encode(header), judgement)


def _check_rows(prox: ForestProximity, X: Any, y: Any, **given: Any) -> int:
    """Return the number of training rows."""
    n = prox.n_samples_fit_
    check_same_samples(prox, X)
    _check_lengths(n, y=y, **given)
    if y is None:
        raise ValueError(
            "y is required, because the proximity was fitted without targets. Pass the targets of "
            "the training rows."
        )
    if n < 3:
        raise ValueError(f"X has {n} rows, but a page needs at least 3. Pass more rows.")
    if n > MOST_ROWS:
        raise ValueError(
            f"X has {n:,} rows, but a page shows at most {MOST_ROWS:,}. Fit the proximity on a "
            "random sample of the rows."
        )
    return n


def _check_new_rows(n: int, X_new: Any, shown: Any, **given: Any) -> int:
    """Return the number of new rows."""
    if X_new is None:
        for name, values in given.items():
            if values is not None:
                raise ValueError(f"{name} requires X_new. Pass both or neither.")
        return 0
    m = X_new.shape[0] if hasattr(X_new, "shape") else len(X_new)
    if m == 0:
        raise ValueError("X_new has no rows. Omit it if there are no new rows.")
    if n + m > MOST_ROWS:
        raise ValueError(
            f"X_new has {m:,} rows, and there are {n:,} training rows, but a page shows at most "
            f"{MOST_ROWS:,} rows. Pass fewer rows."
        )
    if shown is not None and given["shown_new"] is None:
        raise ValueError("shown_new is missing. If you pass shown and X_new, pass shown_new too.")
    _check_lengths(m, **given)
    return int(m)


def _check_lengths(n: int, **given: Any) -> None:
    for name, values in given.items():
        if values is not None:
            check_length(name, values, n)
