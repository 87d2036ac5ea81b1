"""Forests of every library that is installed, each with what its own library says of it.

Nothing here uses leafkernel: leaves, draws and contributions come from the libraries' own methods,
to hold leafkernel against.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import oracles
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeRegressor

# Old versions of these warn while they are imported.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for library in ("lightgbm", "xgboost", "catboost", "imblearn", "sksurv", "quantile_forest"):
        if find_spec(library):
            import_module(library)

SCHEMES = ("uniform", "kerf", "gap", "oob", "oob_separable", "boosted", "ih")
NO_DRAWS = "has none|saw every sample|does not keep"
ALL_ALIKE = "averages its trees|is one tree"
NO_LABELS = "needs class labels"
Array = np.ndarray


def iris():
    """60 flowers, 20 of each kind."""
    X, y = load_iris(return_X_y=True)
    rows = np.concatenate([np.arange(k, k + 20) for k in (0, 50, 100)])
    return X[rows], y[rows]


def two_kinds():
    X, y = iris()
    return X[20:], y[20:] - 1


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:60], y[:60]


def survival():
    from sksurv.util import Surv

    X, y = diabetes()
    return X, Surv.from_arrays(np.arange(60) % 3 > 0, y)


def ranking():
    X, y = iris()
    return X, y, {"group": [30, 30]}


@dataclass(frozen=True)
class Animal:
    """A kind of forest.

    `leaves(model, X)` are ids of any kind, shape (n, T); `in_bag(model, n)` the weights that its
    trees were trained with, or None; `adds(model, X)` what each tree adds to the model, shape
    (n, T) or (n, T, n_outputs), or None where trees are averaged; `paths(model, X)(t, i)` the
    features on the path of sample i in tree t.
    """

    name: str
    make: Callable[[], Any]
    data: Callable[[], tuple]
    leaves: Callable[[Any, Array], Array]
    in_bag: Callable[[Any, int], Array] | None = None
    adds: Callable[[Any, Array], Array] | None = None
    paths: Callable[[Any, Array], Callable] | None = None
    tree_weights: Callable[[Any], Array] | None = None
    seen: Callable[[Any, Array], Array] = lambda model, X: X
    labels: bool = True
    library: str = "scikit-learn"

    def fitted(self):
        X, y, *more = self.data()
        return fit(self.make(), X, y, **(more[0] if more else {})), X, y

    def weights(self, model, X):
        """The weight of each tree in the model, or None."""
        if self.tree_weights is not None:
            return self.tree_weights(model)
        if self.adds is None:
            return None
        adds = self.adds(model, X)
        return adds.reshape(*adds.shape[:2], -1).var(axis=0).sum(axis=1)

    def refusal(self, scheme):
        """What the message says where a scheme cannot work, or None where it can."""
        if scheme in ("gap", "oob", "oob_separable") and self.in_bag is None:
            return NO_DRAWS
        if scheme == "boosted" and self.adds is None and self.tree_weights is None:
            return ALL_ALIKE
        if scheme == "ih" and not self.labels:
            return NO_LABELS
        return None


def fit(model, X, y, **more):
    return model.fit(X, y, **more) if hasattr(model, "fit") else model(X, y)


def counts(forest, n):
    if not hasattr(forest, "_n_samples"):  # scikit-survival < 0.24 cannot tell
        draws = [
            np.random.RandomState(tree.random_state).randint(0, n, n, dtype=np.int32)
            for tree in forest.estimators_
        ]
        return np.stack([np.bincount(s, minlength=n) for s in draws], axis=1)
    return np.stack([np.bincount(s, minlength=n) for s in forest.estimators_samples_], axis=1)


def apply(model, X):
    return np.asarray(model.apply(X)).reshape(len(X), -1)


def apply_members(model, X):
    """Each member's own apply, on its own features."""
    features = getattr(model, "estimators_features_", [slice(None)] * len(model.estimators_))
    X = X.astype(np.float32)
    found = [t.apply(X[:, f]) for t, f in zip(model.estimators_, features, strict=True)]
    return np.stack(found, axis=1)


def paths_of_members(model, X):
    """The decision paths of trees of scikit-learn, in features of the whole."""
    members = getattr(model, "estimators_", [model])
    trees = np.asarray(members, dtype=object).ravel()
    features = getattr(model, "estimators_features_", [np.arange(X.shape[1])] * len(trees))

    def path(t, i):
        return sorted(
            {int(features[t][f]) for f in oracles.features_on_path(trees[t], X[i][features[t]])}
        )

    return path


def climb(parents, features):
    """The features above a node: parents and features are dictionaries by node."""

    def above(node):
        found = set()
        while isinstance(parents.get(node), (int, str)):  # pandas says NaN for none
            node = parents[node]
            found.add(int(features[node]))
        return sorted(found)

    return above


def per_tree(stages):
    """What each tree adds, from the predictions after each round: shape (n, rounds · outputs)."""
    stages = np.stack([np.asarray(s).reshape(len(s), -1) for s in stages], axis=1)
    return np.diff(stages, axis=1, prepend=0).reshape(len(stages), -1)


def adds_of_gradient_boosting(model, X):
    trees = model.estimators_.ravel()
    return np.stack([model.learning_rate * tree.predict(X) for tree in trees], axis=1)


def hist_leaves(model, X):
    """Walk node by node."""
    X = np.asarray(X, dtype=np.float64)
    trees = [tree for of_round in model._predictors for tree in of_round]
    leaf = np.zeros((len(X), len(trees)), dtype=int)
    for t, tree in enumerate(trees):
        for i, x in enumerate(X):
            node = tree.nodes[0]
            while not node["is_leaf"]:
                value = x[node["feature_idx"]]
                left = (
                    node["missing_go_to_left"]
                    if np.isnan(value)
                    else value <= node["num_threshold"]
                )
                leaf[i, t] = node["left"] if left else node["right"]
                node = tree.nodes[leaf[i, t]]
    return leaf


def hist_paths(model, X):
    trees = [tree.nodes for of_round in model._predictors for tree in of_round]
    leaf = hist_leaves(model, X)

    def path(t, i):
        inner = [k for k, node in enumerate(trees[t]) if not node["is_leaf"]]
        parents = {int(trees[t][k][side]): k for k in inner for side in ("left", "right")}
        return climb(parents, {k: int(trees[t][k]["feature_idx"]) for k in inner})(int(leaf[i, t]))

    return path


def adds_of_hist_classifier(model, X):
    return per_tree(list(model.staged_decision_function(X)))


def adds_of_hist_regressor(model, X):
    return per_tree(list(model.staged_predict(X)))


def scikit_learn():
    forest = {"n_estimators": 12, "random_state": 0}
    boosted = {"n_estimators": 4, "random_state": 0}
    hist = {"max_iter": 4, "min_samples_leaf": 3, "max_leaf_nodes": 6}
    yield Animal(
        "RandomForestClassifier", lambda: RandomForestClassifier(**forest), iris, apply, counts
    )
    yield Animal(
        "RandomForestRegressor",
        lambda: RandomForestRegressor(max_samples=0.7, **forest),
        diabetes,
        apply,
        counts,
        labels=False,
    )
    yield Animal("ExtraTrees", lambda: ExtraTreesClassifier(**forest), iris, apply)
    yield Animal(
        "ExtraTrees, bootstrap=True",
        lambda: ExtraTreesClassifier(bootstrap=True, **forest),
        iris,
        apply,
        counts,
    )
    yield Animal("RandomTreesEmbedding", lambda: RandomTreesEmbedding(**forest), iris, apply)
    yield Animal(
        "GradientBoostingClassifier",
        lambda: GradientBoostingClassifier(**boosted),
        iris,
        apply,
        adds=adds_of_gradient_boosting,
    )
    yield Animal(
        "GradientBoostingRegressor",
        lambda: GradientBoostingRegressor(**boosted),
        diabetes,
        apply,
        adds=adds_of_gradient_boosting,
        labels=False,
    )
    yield Animal(
        "HistGradientBoostingClassifier",
        lambda: HistGradientBoostingClassifier(**hist),
        iris,
        hist_leaves,
        adds=adds_of_hist_classifier,
        paths=hist_paths,
    )
    yield Animal(
        "HistGradientBoostingRegressor",
        lambda: HistGradientBoostingRegressor(**hist),
        diabetes,
        hist_leaves,
        adds=adds_of_hist_regressor,
        labels=False,
    )
    yield Animal(
        "IsolationForest",
        lambda: IsolationForest(max_samples=25, max_features=0.7, **forest),
        lambda: (diabetes()[0], None),
        apply_members,
        counts,
        labels=False,
    )
    yield Animal(
        "BaggingClassifier of trees",
        lambda: BaggingClassifier(max_features=0.5, bootstrap_features=True, **forest),
        iris,
        apply_members,
        counts,
    )
    yield Animal(
        "BaggingRegressor of trees",
        lambda: BaggingRegressor(max_samples=0.5, bootstrap=False, **forest),
        diabetes,
        apply_members,
        counts,
        labels=False,
    )
    yield Animal(
        "AdaBoostClassifier of trees",
        lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), **boosted, **SAMME),
        iris,
        apply_members,
        tree_weights=lambda model: model.estimator_weights_[: len(model.estimators_)],
    )
    yield Animal(
        "AdaBoostRegressor of trees",
        lambda: AdaBoostRegressor(**boosted),
        diabetes,
        apply_members,
        tree_weights=lambda model: model.estimator_weights_[: len(model.estimators_)],
        labels=False,
    )
    yield Animal(
        "DecisionTree", lambda: DecisionTreeClassifier(max_depth=3, random_state=0), iris, apply
    )
    yield Animal(
        "ExtraTree",
        lambda: ExtraTreeRegressor(max_depth=4, random_state=0),
        diabetes,
        apply,
        labels=False,
    )
    yield Animal(
        "Pipeline with RandomForest",
        lambda: make_pipeline(StandardScaler(), RandomForestClassifier(**forest)),
        iris,
        lambda model, X: model[-1].apply(model[:-1].transform(X)),
        lambda model, n: counts(model[-1], n),
        paths=lambda model, X: paths_of_members(model[-1], model[:-1].transform(X)),
        seen=lambda model, X: model[:-1].transform(X),
    )
    yield Animal(
        "GridSearchCV of RandomForest",
        lambda: GridSearchCV(RandomForestClassifier(**forest), {"max_depth": [2, 4]}, cv=2),
        iris,
        lambda model, X: model.best_estimator_.apply(X),
        lambda model, n: counts(model.best_estimator_, n),
        paths=lambda model, X: paths_of_members(model.best_estimator_, X),
    )
    yield Animal(
        "RandomizedSearchCV of GradientBoosting",
        lambda: RandomizedSearchCV(
            GradientBoostingRegressor(**boosted),
            {"max_depth": [2, 3]},
            n_iter=1,
            cv=2,
            random_state=0,
        ),
        diabetes,
        lambda model, X: apply(model.best_estimator_, X),
        adds=lambda model, X: adds_of_gradient_boosting(model.best_estimator_, X),
        labels=False,
    )


def subclasses():
    forest = {"n_estimators": 12, "random_state": 0}
    if find_spec("quantile_forest"):
        from quantile_forest import RandomForestQuantileRegressor

        yield Animal(
            "RandomForestQuantileRegressor",
            lambda: RandomForestQuantileRegressor(**forest),
            diabetes,
            apply,
            counts,
            labels=False,
            library="quantile-forest",
        )
    if find_spec("imblearn"):
        from imblearn.ensemble import BalancedRandomForestClassifier

        def balanced(**more):
            return BalancedRandomForestClassifier(
                sampling_strategy="all", replacement=True, **forest, **more
            )

        def resampled(model, n):
            return np.stack(
                [np.bincount(s.sample_indices_, minlength=n) for s in model.samplers_], axis=1
            )

        yield Animal(
            "BalancedRandomForestClassifier",
            lambda: balanced(bootstrap=False),
            lambda: (iris()[0][5:50], iris()[1][5:50]),
            apply,
            resampled,
            library="imbalanced-learn",
        )
    if find_spec("sksurv"):
        from sksurv.ensemble import RandomSurvivalForest

        yield Animal(
            "RandomSurvivalForest",
            lambda: RandomSurvivalForest(**forest),
            survival,
            lambda model, X: model.apply(X.astype(np.float32)),
            counts,
            labels=False,
            library="scikit-survival",
        )


def lightgbm():
    if not find_spec("lightgbm"):
        return
    import lightgbm as lgb

    small = {"n_estimators": 4, "min_child_samples": 3, "num_leaves": 6, "verbose": -1, "seed": 0}

    def leaves(model, X):
        return np.asarray(model.predict(X, pred_leaf=True)).reshape(len(X), -1)

    def adds(model, X):
        booster = getattr(model, "booster_", model)
        per_round = booster.num_model_per_iteration()
        rounds = leaves(model, X).shape[1] // per_round
        found = [
            np.asarray(
                booster.predict(X, raw_score=True, start_iteration=i, num_iteration=1)
            ).reshape(len(X), -1)
            for i in range(rounds)
        ]
        return np.concatenate(found, axis=1)

    def train(X, y):
        params = {"objective": "regression", "verbose": -1, "min_data_in_leaf": 3, "seed": 0}
        return lgb.train(params, lgb.Dataset(X, y), num_boost_round=4)

    def averaged(model, X):
        return adds(model, X) / leaves(model, X).shape[1]

    def paths(model, X):
        table = getattr(model, "booster_", model).trees_to_dataframe()
        names = table.split_feature.dropna().unique()
        column = {name: int(name.removeprefix("Column_")) for name in names}
        parents = dict(zip(table.node_index, table.parent_index, strict=True))
        features = dict(zip(table.node_index, table.split_feature.map(column), strict=True))
        leaf = leaves(model, X)
        return lambda t, i: climb(parents, features)(f"{t}-L{leaf[i, t]}")

    common = {"leaves": leaves, "adds": adds, "paths": paths, "library": "LightGBM"}
    yield Animal("LGBMClassifier", lambda: lgb.LGBMClassifier(**small), iris, **common)
    yield Animal(
        "LGBMRegressor", lambda: lgb.LGBMRegressor(**small), diabetes, labels=False, **common
    )
    yield Animal(
        "LGBMRegressor, dart",
        lambda: lgb.LGBMRegressor(boosting_type="dart", drop_rate=0.5, **small),
        diabetes,
        labels=False,
        **common,
    )
    yield Animal(
        "LGBMRegressor, rf",
        lambda: lgb.LGBMRegressor(boosting_type="rf", subsample=0.6, subsample_freq=1, **small),
        diabetes,
        labels=False,
        **common | {"adds": averaged},
    )
    yield Animal("LGBMRanker", lambda: lgb.LGBMRanker(**small), ranking, **common)
    yield Animal("lightgbm.Booster", lambda: train, diabetes, **common)


def xgboost():
    if not find_spec("xgboost"):
        return
    import xgboost as xgb

    small = {"n_estimators": 4, "max_depth": 3, "random_state": 0}

    def leaves(model, X):
        if isinstance(model, xgb.Booster):
            return model.predict(xgb.DMatrix(X), pred_leaf=True).reshape(len(X), -1)
        return model.apply(X).reshape(len(X), -1)

    def adds(model, X):
        """The leaf values in the library's own table of trees, at the leaves."""
        booster = model if isinstance(model, xgb.Booster) else model.get_booster()
        leaf = leaves(model, X).astype(int)
        table = booster.trees_to_dataframe()
        table = table[table.Feature == "Leaf"].set_index(["Tree", "Node"])["Gain"]
        return np.array([[table[t, node] for t, node in enumerate(row)] for row in leaf])

    def dropped(model, X):
        """What each round adds to the margin; the last base is the same for all rows."""
        booster, data = model.get_booster(), xgb.DMatrix(X)
        rounds = booster.num_boosted_rounds()
        return np.stack(
            [
                booster.predict(data, output_margin=True, iteration_range=(i, i + 1))
                for i in range(rounds)
            ],
            axis=1,
        )

    def train(X, y):
        return xgb.train({"max_depth": 3, "seed": 0}, xgb.DMatrix(X, y), num_boost_round=4)

    def paths(model, X):
        booster = model if isinstance(model, xgb.Booster) else model.get_booster()
        table = booster.trees_to_dataframe()
        inner = table[table.Feature != "Leaf"]
        parents = {
            child: node
            for side in (inner.Yes, inner.No)
            for child, node in zip(side, inner.ID, strict=True)
        }
        features = dict(zip(inner.ID, inner.Feature.str[1:].astype(int), strict=True))
        leaf = leaves(model, X).astype(int)
        return lambda t, i: climb(parents, features)(f"{t}-{leaf[i, t]}")

    common = {"leaves": leaves, "adds": adds, "paths": paths, "library": "XGBoost"}
    yield Animal("XGBClassifier", lambda: xgb.XGBClassifier(**small), iris, **common)
    yield Animal(
        "XGBClassifier, two classes", lambda: xgb.XGBClassifier(**small), two_kinds, **common
    )
    yield Animal(
        "XGBRegressor", lambda: xgb.XGBRegressor(**small), diabetes, labels=False, **common
    )
    yield Animal(
        "XGBRegressor, dart",
        lambda: xgb.XGBRegressor(booster="dart", rate_drop=0.5, **small),
        diabetes,
        labels=False,
        **common | {"adds": dropped},
    )
    yield Animal("XGBRanker", lambda: xgb.XGBRanker(**small), ranking, **common)
    yield Animal(
        "XGBRFClassifier",
        lambda: xgb.XGBRFClassifier(**small),
        iris,
        **common,
    )
    yield Animal("xgboost.Booster", lambda: train, diabetes, **common)


def catboost():
    if not find_spec("catboost"):
        return
    import catboost as cb

    small = {"iterations": 4, "depth": 3, "verbose": 0, "allow_writing_files": False}

    def leaves(model, X):
        return model.calc_leaf_indexes(X)

    def adds(model, X):
        stages = [
            np.asarray(cb.CatBoost.predict(model, X, "RawFormulaVal", ntree_end=k + 1))
            for k in range(model.tree_count_)
        ]
        stages = np.stack([s.reshape(len(X), -1) for s in stages], axis=1)
        return np.diff(stages, axis=1, prepend=0)

    def paths(model, X):
        """A symmetric tree looks at a feature if its leaves change with it."""
        leaf = leaves(model, X)
        used = [set() for _ in range(leaf.shape[1])]
        for f in range(X.shape[1]):
            for value in np.unique(X[:, f]):
                changed = X.copy()
                changed[:, f] = value
                for t in np.flatnonzero((leaves(model, changed) != leaf).any(axis=0)):
                    used[t].add(f)
        return lambda t, i: sorted(used[t])

    common = {"leaves": leaves, "adds": adds, "paths": paths, "library": "CatBoost"}
    yield Animal("CatBoostClassifier", lambda: cb.CatBoostClassifier(**small), iris, **common)
    yield Animal(
        "CatBoostRegressor", lambda: cb.CatBoostRegressor(**small), diabetes, labels=False, **common
    )
    yield Animal(
        "CatBoostRegressor, Lossguide",
        lambda: cb.CatBoostRegressor(grow_policy="Lossguide", **small),
        diabetes,
        labels=False,
        **common,
    )
    yield Animal(
        "CatBoostRanker",
        lambda: cb.CatBoostRanker(**small),
        lambda: (*iris(), {"group_id": np.repeat([0, 1], 30)}),
        **common,
    )


# The default of AdaBoostClassifier before 1.6 warns; after, the parameter does.
def _samme():
    import sklearn
    from sklearn.utils.fixes import parse_version

    return (
        {"algorithm": "SAMME"} if parse_version(sklearn.__version__) < parse_version("1.6") else {}
    )


SAMME = _samme()
ANIMALS = [
    *scikit_learn(),
    *subclasses(),
    *lightgbm(),
    *xgboost(),
    *catboost(),
]
