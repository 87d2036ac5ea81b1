"""Save forests in the format of their own library or as a skops file, never as a pickle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leafkernel import forests
from leafkernel._optional import require
from leafkernel.forests.custom import CustomForest
from leafkernel.saving._folder import DamagedError, FolderReader, FolderWriter

# Types that skops does not trust, because damaged trees can cause invalid memory access. leafkernel
# checks every node before it uses these trees. Old versions of skops do not know the losses either.
_KNOWN = (
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn._loss.",
)

# Models that are written by their own library: the file, and the classes that can read it.
_OWN_FORMATS = {
    "lightgbm": ("forest.txt", ("Booster",)),
    "xgboost": (
        "forest.json",
        ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor", "XGBRanker"),
    ),
    "catboost": (
        "forest.cbm",
        ("CatBoostClassifier", "CatBoostRegressor", "CatBoostRanker", "CatBoost"),
    ),
}


def write_forest(
    writer: FolderWriter, estimator: Any, router: forests.FittedForest
) -> dict[str, Any]:
    """Write a fitted forest, and return the information needed to read it."""
    if isinstance(estimator, forests.RawLeaves):
        return {
            "kind": "leaves",
            "in_bag": _optional(writer, "forest_in_bag", estimator.in_bag),
            "tree_weights": _optional(writer, "forest_tree_weights", estimator.tree_weights),
            **_write_ids(writer, estimator.leaf_ids_),
        }
    if isinstance(router, CustomForest):
        return {
            "kind": "custom",
            "name": str(router),
            "n_features": router._n_features,
            **_write_ids(writer, router._ids),
        }
    library = type(estimator).__module__.partition(".")[0]
    if library in _OWN_FORMATS:
        name, classes = _OWN_FORMATS[library]
        kind = next((n for n in classes if type(estimator).__name__ == n), "Booster")
        model = estimator
        if library == "lightgbm":  # only boosters have a file format
            model = getattr(estimator, "booster_", estimator)
        model.save_model(str(writer.file(name)))
        return {"kind": library, "class": kind, "file": writer.add(name)}
    skops = require("skops.io", extra="save")
    try:
        skops.dump(estimator, writer.file("forest.skops"))
    except Exception as error:
        raise TypeError(
            f"forest cannot be saved: skops cannot write {estimator!r} ({error}). Use a model that "
            "skops can write, or build the proximity with ForestProximity.from_leaves."
        ) from error
    return {"kind": "skops", "file": writer.add("forest.skops")}


def read_forest(
    reader: FolderReader, told: dict[str, Any], given: Any, trusted: Sequence[str]
) -> tuple[Any, forests.FittedForest | None]:
    """Return the forest and, for custom forests, the adapter with their stored leaves."""
    kind = told.get("kind")
    if given is not None and kind != "custom":
        return given, None
    if kind == "leaves":
        raw = forests.RawLeaves(
            in_bag=reader.array(told["in_bag"]), tree_weights=reader.array(told["tree_weights"])
        )
        raw.leaf_ids_ = _read_ids(reader, told)
        raw.n_features_in_ = len(raw.leaf_ids_)
        return raw, None
    if kind in ("custom", "absent"):
        if given is None:
            raise ValueError(
                f"forest is missing: {told['name']}, the forest of the proximity, is not in the "
                "folder. Load it with forest=..., the fitted forest."
            )
        router = CustomForest(given)
        router._n_features = int(told["n_features"])
        router._ids = _read_ids(reader, told)
        sizes = [len(ids) + 1 for ids in router._ids]
        router.leaf_offsets = np.concatenate([[0], np.cumsum(sizes)])
        return given, router
    path = reader.path(told["file"])
    if kind == "skops":
        return load_skops(path, trusted), None
    if kind not in _OWN_FORMATS or told["class"] not in ("Booster", *_OWN_FORMATS[kind][1]):
        raise DamagedError(
            f"The saved proximity is damaged: {reader.folder} has a forest of the unknown kind "
            f"{kind!r}. Save it again."
        )
    library = require(kind, extra="boosting")
    if kind == "lightgbm":
        return library.Booster(model_file=str(path)), None
    model = getattr(library, told["class"])()
    model.load_model(str(path))
    return model, None


def load_skops(path: Path, trusted: Sequence[str] = ()) -> Any:
    """Return a model from a skops file, if all its types are known or trusted."""
    skops = require("skops.io", extra="save")
    try:
        found = set(skops.get_untrusted_types(file=path))
        unknown = {name for name in found - {*trusted} if not name.startswith(_KNOWN)}
        if not unknown:
            return skops.load(path, trusted=sorted(found))
    except Exception as error:
        raise DamagedError(
            f"{path} cannot be read as a model ({type(error).__name__}: {error}). It is damaged, "
            "or was written with another version of scikit-learn."
        ) from error
    raise TypeError(
        f"forest contains types that skops does not trust: {', '.join(sorted(unknown))}. If you "
        f"trust them, load it with trusted={sorted(unknown)}."
    )


def _optional(writer: FolderWriter, name: str, values: Any) -> str | None:
    return None if values is None else writer.array(name, np.asarray(values))


def _write_ids(writer: FolderWriter, ids: list[Any]) -> dict[str, Any]:
    sizes = np.cumsum([0, *map(len, ids)])
    return {
        "ids": writer.array("forest_ids", np.concatenate(ids)),
        "id_offsets": writer.array("forest_id_offsets", sizes),
    }


def _read_ids(reader: FolderReader, told: dict[str, Any]) -> list[Any]:
    return np.split(reader.need(told["ids"]), reader.need(told["id_offsets"])[1:-1])
