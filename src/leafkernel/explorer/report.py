"""A report: all that a page shows of a forest and its training rows."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from leafkernel._files import open_whole
from leafkernel._validation import check_choice, check_count, check_length, column_names
from leafkernel.explorer._blob import Blob
from leafkernel.explorer._columns import PageColumn, as_text, read_columns
from leafkernel.explorer._forest import (
    count_makers,
    link_features,
    name_forest,
    read_importances,
    read_splits,
    without_self,
)
from leafkernel.explorer._judgement import Judgement
from leafkernel.explorer._map import ABOUT_MAPS, MAP_LABELS, MAPS, draw_map
from leafkernel.explorer._page import make_page
from leafkernel.explorer._prototypes import prototypes
from leafkernel.explorer._why import Reasons, explain_neighbors
from leafkernel.forests import RawLeaves
from leafkernel.forests._base import numbered_names
from leafkernel.proximity import ForestProximity
from leafkernel.tasks import outlier_scores
from leafkernel.tasks._base import check_proximity, check_same_samples

Array = npt.NDArray[Any]

#: Most rows that a page shows.
MOST_ROWS = 100_000
# Columns that a page shows, the most important first: more make it slow to open.
_MOST_COLUMNS = 300
# Shares of more classes than these are not shown one by one.
_MOST_SHARES = 20


@dataclass(frozen=True, repr=False)
class Report:
    """A page about a forest and its training rows. Show it in a notebook, or save it.

    Attributes
    ----------
    title : str
        What it is about.
    score_text : str
        How well the rows predict each other, in one line.
    n_rows : int
        Rows on the page.
    data : str
        All that the page shows, packed.
    """

    title: str
    score_text: str
    n_rows: int
    data: str

    def html(self) -> str:
        """Return the page.

        Returns
        -------
        str
            One HTML document that needs nothing else, and no network.
        """
        return make_page(self.title, self.data)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to a file.

        Parameters
        ----------
        path : str or path-like
            The file to write. It is replaced only when the page is complete.

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
    y: Any,
    *,
    shown: Any = None,
    ids: Any = None,
    id_name: str = "row",
    title: str = "",
    target_name: str = "",
    notes: Iterable[str] = (),
    method: str = "auto",
    n_neighbors: int = 10,
    random_state: int = 0,
    on_step: Callable[[str], None] | None = None,
) -> Report:
    """Make a page on which a person sees the training rows as the forest does.

    Parameters
    ----------
    prox : ForestProximity
        A fitted proximity. With "gap", what the page says of neighbours is exactly what makes the
        forest's out-of-bag predictions.
    X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
        What it was fitted on.
    y : array-like of shape (n,)
        The targets: classes or numbers.
    shown : dataframe of shape (n, d), default=None
        The rows as people know them, where the forest was given something else; X by default.
    ids : array-like of shape (n,), default=None
        Names of the rows; by default their numbers.
    id_name : str, default="row"
        What those names are.
    title : str, default=""
        Title of the page; by default made from the forest.
    target_name : str, default=""
        What the target is called; by default the name of y, or "target".
    notes : iterable of str, default=()
        What a reader should know of the data.
    method : str, default="auto"
        How to draw the map: "umap", "tsne", "phate", "pca", "spectral", "diffusion" or "mds". By
        default UMAP where umap-learn is installed and there are 30 rows, else principal components.
    n_neighbors : int, default=10
        Neighbours to show for a row.
    random_state : int, default=0
        Seed of the map. Above 20,000 rows UMAP runs on all threads and does not repeat itself.
    on_step : callable, default=None
        Called with the name of each step as it begins.

    Returns
    -------
    Report
        The page: ``save`` it, or show it in a notebook.

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
    n = _check_rows(prox, X, y, shown, ids)
    step = on_step or (lambda _: None)

    step("predictions of each row by the others")
    others = without_self(prox, X, y)
    judgement = Judgement.of(others, y)
    trees, feature_names = read_splits(prox)
    table = X if shown is None else shown
    names = _column_names(prox, table)
    importances = read_importances(prox, len(feature_names))
    links = link_features(prox, feature_names, X, names, columns_are_x=shown is None)
    kept, left_out = _most_important(len(names), links, importances)
    columns = read_columns(table, {j: names[j] for j in kept})
    place = {j: k for k, j in enumerate(kept)}
    links = [None if j is None else place.get(j) for j in links]
    step("nearest rows")
    k = min(n_neighbors, n - 1)
    similarity, neighbors = others.kneighbors(n_neighbors=k)
    neighbors = np.where(similarity > 0, neighbors, -1)
    makers = count_makers(others)
    step("outliers and prototypes")
    outliers = outlier_scores(others, judgement.target, X=X)
    typical = prototypes(others, judgement, columns)
    reasons = None
    if trees is not None:
        step("why they are alike")
        reasons = explain_neighbors(
            others, trees, np.maximum(neighbors, 0), len(feature_names), most=3
        )
    step("map")
    chosen, points = draw_map(prox, X, y, method, random_state)

    step("page")
    blob = Blob()
    given = getattr(y, "name", None)
    name = target_name or (str(given) if isinstance(given, (str, int)) else "target")
    title = title or f"{name}, as {name_forest(prox)} sees it"
    score = judgement.score()
    header = {
        "format": 1,
        "version": version("leafkernel"),
        "title": title,
        "task": "regression" if judgement.classes is None else "classification",
        "n": n,
        "forest": name_forest(prox),
        "scheme": prox.scheme_.name,
        "shares": judgement.out_of_bag,
        "score": {key: value for key, value in score.items() if key != "value"},
        "notes": [*map(str, notes), *left_out],
        "embedding": {
            "label": MAP_LABELS[chosen],
            "about": ABOUT_MAPS,
            "x": blob.add(points[:, 0], "float32"),
            "y": blob.add(points[:, 1], "float32"),
        },
        "id": {"name": as_text(id_name), "values": None if ids is None else _texts(ids)},
        "columns": [
            column.describe(blob, is_feature=_is_feature(j, links))
            for j, column in enumerate(columns)
        ],
        "target": judgement.target_column(name).describe(blob),
        "prediction": judgement.prediction_column().describe(blob),
        "outlier": PageColumn("outlier score", "number", outliers).describe(blob),
        "error": PageColumn("error", "number", judgement.errors).describe(blob),
        "probabilities": _shares(blob, judgement),
        "features": [
            {
                "name": as_text(feature if link is None else columns[link].name),
                "column": link,
                "importance": None if importances is None else float(importances[j]),
            }
            for j, (feature, link) in enumerate(zip(feature_names, links, strict=True))
        ],
        "neighbors": {
            "k": k,
            "rows": blob.add(neighbors, "int32"),
            "proximity": blob.add(similarity, "float32"),
            "makers": None if makers is None else blob.add(makers, "int32"),
        },
        "why": None if reasons is None else _why(blob, reasons, neighbors, prox.n_trees_),
        "prototypes": typical,
    }
    baseline = score.get("baseline")
    beside = f" ({baseline['label']}: {baseline['text']})" if baseline else ""
    line = f"{score['label'][0].lower()}{score['label'][1:]} {score['text']}{beside}"
    return Report(title, line, n, blob.encode(header))


def _check_rows(prox: ForestProximity, X: Any, y: Any, shown: Any, ids: Any) -> int:
    n = prox.n_samples_fit_
    check_same_samples(prox, X)
    for name, values in (("y", y), ("shown", shown), ("ids", ids)):
        if values is not None:
            check_length(name, values, n)
    if y is None:
        raise ValueError("y is None, but a page shows how the forest predicts; give the targets.")
    if n < 3:
        raise ValueError(f"a page needs at least 3 rows; the proximity was fitted on {n}.")
    if n > MOST_ROWS:
        raise ValueError(
            f"a page shows at most {MOST_ROWS:,} rows, but the proximity was fitted on {n:,}; fit "
            "it on a random sample of them."
        )
    return n


def _column_names(prox: ForestProximity, table: Any) -> list[str]:
    names = column_names(table)
    if names:
        return names
    if isinstance(prox.forest_, RawLeaves):
        return []  # ids of leaves are nothing to look at
    known = getattr(prox, "feature_names_in_", None)
    n_columns = np.shape(table)[1]
    if known is None or len(known) != n_columns:
        known = numbered_names(n_columns)
    return [str(name) for name in known]


def _most_important(
    n_columns: int, links: list[int | None], importances: Array | None
) -> tuple[list[int], list[str]]:
    """Return the columns to show, and a note where that is not all of them."""
    if n_columns <= _MOST_COLUMNS:
        return list(range(n_columns)), []
    weight = np.zeros(n_columns)
    if importances is not None:
        for link, importance in zip(links, importances, strict=True):
            if link is not None:
                weight[link] += importance
    kept = np.sort(np.argsort(-weight, kind="stable")[:_MOST_COLUMNS])
    which = "most important" if weight.any() else "first"
    return kept.tolist(), [f"The page shows the {which} {_MOST_COLUMNS} of {n_columns} columns."]


def _is_feature(column: int, links: list[int | None]) -> bool | None:
    """Return whether the forest splits on a column; None where that is not known."""
    if column in links:
        return True
    return None if None in links or not links else False


def _texts(values: Any) -> list[str]:
    return [as_text(value) for value in np.asarray(values, dtype=object)]


def _shares(blob: Blob, judgement: Judgement) -> dict[str, Any] | None:
    if judgement.classes is None or len(judgement.classes) > _MOST_SHARES:
        return None
    column = judgement.target_column("")
    return {"classes": list(column.categories), "data": blob.add(judgement.averages, "float32")}


def _why(blob: Blob, reasons: Reasons, neighbors: Array, n_trees: int) -> dict[str, Any]:
    none = neighbors < 0
    features = np.where(none[:, :, None], -1, reasons.features)
    trees = np.where(none, 0, reasons.trees)
    return {
        "m": features.shape[2],
        "feature": blob.add_codes(features, int(features.max()) + 1),
        "percent": blob.add(np.round(100 * reasons.shares), "uint8"),
        "trees": blob.add(np.minimum(trees, np.iinfo(np.uint16).max), "uint16"),
        "n_trees": n_trees,
    }
