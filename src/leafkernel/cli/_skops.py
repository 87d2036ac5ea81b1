"""Files of skops, and the trees in them.

skops makes no object whose type it does not know to be harmless. Since 0.16 it holds scikit-learn's
trees for harmful: not for the code in them, for there is none, but because a tree with wrong node
numbers reads memory that is not its own. So trees are loaded here, and every number in them is
looked at before any row is sent through.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.tree._tree import Tree

from leafkernel.cli._options import OptionError
from leafkernel.cli.errors import FileError

_TREE = ("sklearn.tree._tree", "Tree")
_LOOKED_AT = ".".join(_TREE)


def load_skops(path: Path, *, trusted: bool) -> Any:
    """Load a model from a file of skops.

    Parameters
    ----------
    path : Path
        The file.
    trusted : bool
        Whether types that skops does not know may be made.

    Returns
    -------
    object
        What the file holds.
    """
    try:
        skops: Any = import_module("skops.io")
    except ImportError:
        raise OptionError(
            f"--model {path}: to read it, skops is needed: pip install skops"
        ) from None
    try:
        unknown = list(map(str, skops.get_untrusted_types(file=path)))
        harmful = [name for name in unknown if name != _LOOKED_AT]
        model = skops.load(path, trusted=unknown) if trusted or not harmful else None
        promised = _count_trees(path)
    except Exception as error:  # a file that is none of skops fails in many ways
        raise FileError(
            f"--model {path} could not be loaded ({type(error).__name__}: {error}); is it a file "
            "that skops.io.dump wrote?"
        ) from error
    if trusted:
        return model
    if harmful:
        raise OptionError(
            f"--model {path} holds types that skops does not know to be harmless: "
            f"{', '.join(harmful)}. If you trust them, add --trust-model."
        )
    trees = list(_trees(model, None))
    if len({id(tree) for tree, _ in trees}) != promised or not all(
        _is_sound(tree, n_features) for tree, n_features in trees
    ):
        raise OptionError(
            f"--model {path} holds trees that could not be checked, or that send rows to nodes or "
            "features that are not there. If you trust it, add --trust-model."
        )
    return model


def _count_trees(path: Path) -> int:
    """Return how many trees the file says it holds."""
    with zipfile.ZipFile(path) as file:
        found, rest = set(), [json.loads(file.read("schema.json"))]
    while rest:
        node = rest.pop()
        if isinstance(node, dict):
            named = (node.get("__module__"), node.get("__class__")) == _TREE
            if named or node.get("__loader__") == "TreeNode":
                found.add(node.get("__id__"))
            rest.extend(node.values())
        elif isinstance(node, list):
            rest.extend(node)
    return len(found)


def _trees(part: Any, n_features: int | None) -> Iterator[tuple[Any, int | None]]:
    """Yield the trees in a model, each with the number of features that it will be given."""
    if isinstance(part, Tree):
        yield part, n_features
    elif isinstance(part, dict):
        for each in part.values():
            yield from _trees(each, n_features)
    elif isinstance(part, (list, tuple)) or (
        isinstance(part, np.ndarray) and part.dtype.kind == "O"
    ):
        for each in np.ravel(part) if isinstance(part, np.ndarray) else part:
            yield from _trees(each, n_features)
    elif isinstance(part, BaseEstimator):
        given = vars(part).get("n_features_in_")
        if isinstance(given, (int, np.integer)) and n_features is not None:
            given = min(int(given), n_features)
        # What stands around a pipeline says nothing of the features that its last step is given.
        yield from _trees(vars(part), None if hasattr(part, "steps") else given)


def _is_sound(tree: Any, n_features: int | None) -> bool:
    """Return whether rows of so many features stay within a tree, and come to an end."""
    n = tree.node_count
    if n_features is None or not 0 < n <= tree.capacity:
        return False
    node = np.arange(n)
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    inner = left != -1
    below = (left > node) & (left < n) & (right > node) & (right < n)
    known = (feature >= 0) & (feature < n_features)
    return bool(((~inner & (right == -1)) | (inner & below & known)).all())
