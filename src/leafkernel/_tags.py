"""Estimator tags. ForestProximity accepts the same input as its forest."""

from __future__ import annotations

from typing import Any

from leafkernel.schemes import find_scheme

try:
    from sklearn.utils import get_tags
except ImportError:  # scikit-learn < 1.6
    get_tags = None
    from sklearn.utils._tags import _safe_tags


class InheritedTags:
    """Mixin that takes the tags of inputs and targets from ``self.forest``."""

    forest: Any
    weight_scheme: Any

    def _measures_distances(self) -> bool:
        try:
            return "paths" in find_scheme(self.weight_scheme).needs
        except (TypeError, ValueError):
            return False  # fit raises the error

    def __sklearn_tags__(self) -> Any:  # scikit-learn >= 1.6
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.transformer_tags.preserves_dtype = []  # the output type is the parameter `dtype`
        if hasattr(self.forest, "__sklearn_tags__") and not isinstance(self.forest, type):
            inherited = get_tags(self.forest)
            tags.target_tags.required = inherited.target_tags.required
            tags.input_tags.sparse = inherited.input_tags.sparse
            tags.input_tags.allow_nan = (
                inherited.input_tags.allow_nan and not self._measures_distances()
            )
        return tags

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn < 1.6
        inherited = {
            key: _safe_tags(self.forest, key)
            for key in ("requires_y", "allow_nan")
            if hasattr(self.forest, "_get_tags")
        }
        if self._measures_distances():
            inherited["allow_nan"] = False
        return {"preserves_dtype": [], **inherited}
